"""The timeline of a town on a terminal: a row for each change, no higher and no wider than the screen."""

from io import StringIO

from rich.console import Console

from reflective_agents.cli.timeline import Timeline


def drawn(timeline: Timeline, height: int) -> list[str]:
    console = Console(file=StringIO(), width=60)
    console.print(timeline.as_table(height))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue().splitlines()


def act(timeline: Timeline, time: str, agent: str, doing: str) -> None:
    timeline.add({"event": "act", "time": time, "agent": agent, "place": "Café", "doing": doing})


def test_a_row_for_each_change() -> None:
    timeline = Timeline()
    for time, doing in (("07:00", "bakes"), ("07:30", "bakes"), ("08:00", "sells")):
        act(timeline, time, "Anna", doing)
        act(timeline, time, "Ben", "waits")
    assert timeline.columns() == ["time", "Anna", "Ben"]
    assert timeline.lines() == [["07:00", "Café: bakes", "Café: waits"], ["08:00", "Café: sells", " "]]


def test_it_fits_the_screen_and_keeps_the_times() -> None:
    timeline = Timeline()
    for hour in range(8, 20):
        for agent in ("Anna", "Ben", "Clara"):
            act(timeline, f"{hour:02}:00", agent, f"is busy with something long, number {hour}")
    lines = drawn(timeline, height=5)
    assert [line[:5] for line in lines] == ["time ", "16:00", "17:00", "18:00", "19:00"]
    assert max(map(len, lines)) <= 60


def test_what_is_said_cannot_command_the_terminal() -> None:
    timeline = Timeline()
    timeline.add({"event": "say", "time": "07:00", "agent": "Anna", "text": "\x1b[31mred\x07\nnew line"})
    assert timeline.talk == ["07:00 Anna: red new line"]
