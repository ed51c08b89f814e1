"""The command as a process: in a terminal, interrupted, with its output cut off."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import Any

import pytest

from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import stubborn

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.wire, pytest.mark.process]
Start = Callable[..., subprocess.Popen[str]]


class Terminal:
    """The command on a terminal of its own, 80 columns wide and 24 lines high."""

    def __init__(self, *args: str, **settings: str) -> None:
        """Start the command."""
        self.screen = ""
        self._own, inner = pty.openpty()
        ioctl(self._own, TIOCSWINSZ, pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **settings}
        command = [sys.executable, "-c", _ON_TERMINAL, *args]
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
        )
        os.close(inner)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Read until the screen has shown a text."""
        end = time.monotonic() + seconds
        while text not in plain(self.screen):
            assert time.monotonic() < end, f"{text!r} was not shown: {self.screen[-2000:]!r}"
            self._read()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._own, keys.encode())

    def end(self) -> int:
        """Read until the command ends; return its exit code."""
        while self._read():
            pass
        os.close(self._own)
        return self.process.wait(30)

    def _read(self) -> bool:
        if not select.select([self._own], [], [], 30)[0]:
            return False
        try:
            data = os.read(self._own, 65536)
        except OSError:  # Linux says so when nobody is left on the other side
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)


# The terminal becomes the one that Ctrl-C comes from.
_ON_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from reflective_agents.cli.main import main
sys.exit(main())
"""


def plain(screen: str) -> str:
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|\r", "", screen)


def settings(server: OpenAIServer) -> dict[str, str]:
    return {"MODEL": "openai:test", "OPENAI_BASE_URL": server.base_url}


def wait_for_line(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} was not said: {seen}")


@pytest.mark.thorough
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_is_resumed(
    start: Start, reflect: Any, slow_server: OpenAIServer, signum: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(
        "run", "lats", "Why?", "--n", "2", "--max-expansions", "3", "--thread", "t", **settings(slow_server)
    )
    wait_for_line(process, "node: id=0.1")
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted; go on with: reflect run lats --thread t --resume"
    assert "Traceback" not in err
    assert "Warning" not in err

    calls_before = len(slow_server.calls)
    for name, value in settings(slow_server).items():
        monkeypatch.setenv(name, value)
    refusal = reflect("run", "lats", "--resume")
    assert refusal.code == 0, refusal.err
    assert re.search("limit_reached: .*max_expansions", refusal.out)
    assert "node: id=0," not in refusal.err, "what was done is not done again"
    assert len(slow_server.calls) - calls_before < len(slow_server.calls)


@pytest.mark.thorough
def test_reader_that_has_gone_is_no_traceback(start: Start) -> None:
    process = start("run", "reflection", "Why?")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    assert process.wait(60) == 1


@pytest.mark.thorough
def test_tree_grows_on_the_terminal(slow_server: OpenAIServer) -> None:
    terminal = Terminal("run", "lats", "Why?", "--max-expansions", "8", **settings(slow_server))
    assert terminal.end() == 0
    shown = plain(terminal.screen)
    assert "model: openai:test (from MODEL)" in shown
    assert "expansions 1/8" in shown
    assert "expansions 8/8" in shown
    assert "more)" in shown, "41 nodes do not fit on 24 lines"
    assert re.search("limit_reached: .*max_expansions", shown)


@pytest.mark.thorough
def test_no_color_shows_no_colour(slow_server: OpenAIServer) -> None:
    terminal = Terminal("run", "reflexion", "Why?", "--max-rounds", "1", NO_COLOR="1", **settings(slow_server))
    assert terminal.end() == 0
    assert "rounds 1/1" in plain(terminal.screen)
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", terminal.screen)


@pytest.mark.thorough
def test_dumb_terminal_gets_plain_lines() -> None:
    terminal = Terminal("run", "reflection", "Why?", TERM="dumb")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.screen
    assert ": draft: round=1" in terminal.screen


@pytest.mark.thorough
def test_ctrl_c_on_the_terminal(slow_server: OpenAIServer) -> None:
    terminal = Terminal("run", "lats", "Why?", "--thread", "t", **settings(slow_server))
    terminal.wait_for("expansions 1/10")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "interrupted; go on with: reflect run lats --thread t --resume" in plain(terminal.screen)
    assert "Traceback" not in terminal.screen


@pytest.mark.thorough
def test_person_at_the_terminal_is_asked() -> None:
    terminal = Terminal("run", "reflection", "Why is reflection useful?", "--critic", "human")
    terminal.wait_for("Your critique (Enter accepts the draft): ")
    terminal.type("Give an example.\n")
    terminal.wait_for("rounds 2/3")
    terminal.screen = ""
    terminal.wait_for("Your critique")
    terminal.type("\n")
    assert terminal.end() == 0
    assert re.search(r"solved: .* \(verified by: person\)", plain(terminal.screen))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("key", "code", "shown"), [("\x03", 130, "interrupted; go on"), ("\x04", 3, "waits for a critique")]
)
def test_person_can_put_it_off(key: str, code: int, shown: str) -> None:
    terminal = Terminal("run", "reflection", "Why is reflection useful?", "--critic", "human", "--thread", "t")
    terminal.wait_for("Your critique (Enter accepts the draft): ")
    terminal.type(key)
    assert terminal.end() == code
    assert shown in plain(terminal.screen)
    assert "Traceback" not in terminal.screen


@pytest.mark.thorough
def test_model_cannot_drive_the_terminal() -> None:
    evil = "Plain \x1b[2J\x1b]0;owned\x07\x1b[31m[bold]text[/bold] \x9b31m\u202eend"
    with OpenAIServer(lambda request: evil).threaded() as server:
        extra: dict[str, Any] = settings(server)
        terminal = Terminal("run", "reflection", "Why?", "--critic", "checks", **extra)
        assert terminal.end() == 0
    assert "Plain [bold]text[/bold] end" in plain(terminal.screen)
    assert "owned" not in terminal.screen
    assert "\x1b[2J" not in terminal.screen


@pytest.mark.thorough
@pytest.mark.hostile
def test_one_run_at_a_time_on_a_thread(start: Start, reflect: Any) -> None:
    with OpenAIServer(stubborn, latency=600).threaded() as hanging:
        first = start("run", "reflection", "Why?", "--thread", "t", **settings(hanging))
        wait_for_line(first, "begin:")
        for arguments in (("Why?",), ("--resume",)):
            second = start("run", "reflection", *arguments, "--thread", "t", "--model", "offline")
            out, err = second.communicate(timeout=60)
            assert (second.returncode, out) == (2, "")
            refusal = "reflect: thread t is in use by another run: wait for its end, or choose another thread"
            assert err.splitlines() == [refusal]
        assert reflect("run", "reflection", "Why?", "--thread", "other").code == 0
        first.kill()
        first.communicate()
    assert reflect("run", "reflection", "--resume", "--thread", "t", "--model", "offline").code == 0


@pytest.mark.thorough
def test_arguments_that_are_no_text(start: Start) -> None:
    process = start("run", "chain_of_thought", os.fsdecode(b"Why \xff?"), "--thread", os.fsdecode(b"t\xff"))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "on thread t\ufffd (new)" in err
