"""What a program in the sandbox may not ask of the kernel: a filter of system calls, for bubblewrap to load.

A program computes and handles its own files; what it does not need for that is refused with "operation not permitted":
keys of the host, memory that no limit counts, other processes' memory, mounts, namespaces, tracing, modules, clocks,
and sockets of unusual kinds. System calls that are newer than this list do not exist for it.
"""

import platform
import struct
from typing import NamedTuple

REFUSED = {  # name: numbers on x86_64 and aarch64
    # keys
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # memory, semaphores and messages that outlive a process or that no limit counts
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "memfd_create": (319, 279), "memfd_secret": (447, 447), "mbind": (237, 235),
    "set_mempolicy": (238, 237), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # large parts of the kernel that are rarely needed
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "vmsplice": (278, 75), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18), "personality": (135, 92),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # namespaces and files beyond its own
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # the machine
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116),
    "vhangup": (153, 58),
}  # fmt: skip
REFUSED_ON_X86 = {"modify_ldt": 154, "iopl": 172, "ioperm": 173, "uselib": 134, "_sysctl": 156}
FAMILIES = (1, 2, 10)
"""Sockets of which families it may open: AF_UNIX, AF_INET and AF_INET6, in a network that holds nothing but itself."""
NEW_NAMESPACES = 0x7E02_0000
"""The flags of `clone` that make namespaces."""
NEWEST = 449
"""The last system call that is known here."""
CLONE3 = 435
"""Its flags lie in memory, where a filter cannot look: the C library falls back to `clone`."""

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
_KILL, _ERRNO, _ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


class Machine(NamedTuple):
    """How the kernel calls a processor, where its numbers stand in `REFUSED`, and its numbers that arguments decide."""

    audit: int
    column: int
    socket: int
    clone: int


MACHINES = {"x86_64": Machine(0xC000_003E, 0, 41, 56), "aarch64": Machine(0xC000_00B7, 1, 198, 220)}


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """Return the filter as a program of classic BPF; None for processors whose numbers are not known here."""
    if machine not in MACHINES:
        return None
    audit, column, socket, clone = MACHINES[machine]
    refused = {numbers[column] for numbers in REFUSED.values()}
    if machine == "x86_64":
        refused.update(REFUSED_ON_X86.values())
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, NEWEST + 1), (_RETURN, 0, 0, _ERRNO | ENOSYS),  # x86_64's other numbers, of x32, among them
        (_EQUAL, 0, 1, CLONE3), (_RETURN, 0, 0, _ERRNO | ENOSYS),
    ]  # fmt: skip
    for number in sorted(refused):
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | EPERM)]
    last = len(FAMILIES) - 1
    program += [
        (_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, last + 5, NEW_NAMESPACES), (_RETURN, 0, 0, _ERRNO | EPERM),
        (_EQUAL, 0, last + 3, socket), (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_EQUAL, last - index + 1, 0, family) for index, family in enumerate(FAMILIES)),
        (_RETURN, 0, 0, _ERRNO | EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
