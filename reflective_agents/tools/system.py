"""The files of this machine that Python needs, which are all that a program in the sandbox sees of it.

Which shared libraries the interpreter and its standard library load, a process that loads all of them tells.
"""

import functools
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

PREFIX = Path(sys.base_prefix).resolve()
PYTHON = PREFIX / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
_LOAD_ALL = """
import importlib, pathlib, sys, warnings
warnings.simplefilter("ignore")
folder = next((path for path in sys.path if path.endswith("lib-dynload")), "")
for file in pathlib.Path(folder).glob("*.so") if folder else ():
    name = file.name.partition(".")[0]
    if "test" not in name and name not in ("_tkinter", "_curses", "_curses_panel", "readline", "nis"):
        try:
            importlib.import_module(name)
        except Exception:
            pass
print(open("/proc/self/maps").read())
"""
"""Left out are windows, terminals, the network's user lists, and what is there to test Python itself."""
_LOADERS = ("/lib64", "/lib")
"""Folders by which the interpreter names what loads its libraries."""
_TIME_ZONES = Path("/usr/share/zoneinfo")


@functools.cache
def system_files() -> tuple[str, ...]:
    """Return bubblewrap's options that show the files, read only. Starts a process, the first time.

    Raises:
        OSError, subprocess.SubprocessError: if Python cannot be started.
    """
    command = [str(PYTHON), "-I", "-S", "-c", _LOAD_ALL]
    maps = subprocess.run(command, env={}, capture_output=True, check=True, timeout=20, text=True).stdout
    library = Path(sysconfig.get_path("stdlib"))
    options = [*_links(), "--ro-bind", str(PYTHON), str(PYTHON), "--ro-bind", str(library), str(library)]
    for file in sorted(_libraries(maps)):
        if file.is_relative_to(library):
            continue
        options += ["--ro-bind", str(file), str(file)]
        # Links, since the loader asks for libm.so.6 where the file is libm-2.36.so.
        for name in _names(file):
            options += ["--symlink", str(file), str(name)]
    for packages in ("site-packages", "dist-packages"):
        if (library / packages).is_dir():
            # Empty: packages are not offered, and what they hold is no business of the program's.
            options += ["--tmpfs", str(library / packages), "--remount-ro", str(library / packages)]
    if _TIME_ZONES.is_dir():
        options += ["--ro-bind", str(_TIME_ZONES), str(_TIME_ZONES)]
    return tuple(options)


def _libraries(maps: str) -> set[Path]:
    """Return the shared libraries among the files that a process has mapped."""
    files: set[Path] = set()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and ".so" in Path(fields[5]).name:
            files.add(Path(fields[5]))
    return files


def _links() -> Iterator[str]:
    """Recreate links such as /lib to /usr/lib inside."""
    for folder in map(Path, ("/bin", "/lib", "/lib32", "/lib64")):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))


def _names(file: Path) -> set[Path]:
    """Return the other names by which a library is looked for: in its folder, and where a loader is expected."""
    folders = {file.parent, *(Path(folder).resolve() for folder in _LOADERS)}
    stem = file.name.partition(".so")[0].rstrip("0123456789.-")  # a name may hold the version in front of .so, too
    names = chain.from_iterable(folder.glob(f"{stem}*.so?*") for folder in folders)
    links = {name for name in names if name.resolve() == file}
    return links - {file}
