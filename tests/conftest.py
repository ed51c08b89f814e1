"""What holds for every test: no network, no keys of the developer's, strict checkpoints."""

import asyncio
import gc
import itertools
import math
import os
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch
from uuid import uuid4
from zlib import crc32

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from bench.recorded import RECORDED
from tests.support.needs import DECLARED, PROGRAMS, ROOT, missing, without

# Scripts that the tests of several servers share: where one fails, it says what it has compared.
pytest.register_assert_rewrite("tests.serve")

LOOPBACK_MARKERS = ("wire", "studio", "aegra", "postgres", "notebook")
STARTING = ("studio", "aegra", "postgres", "notebook", "sandbox", "browser")
"""What is marked so starts a process, and is marked `process` for that."""
SETTINGS = re.compile(
    r"OPENAI_API_KEY|OPENAI_BASE_URL|TAVILY_API_KEY|TAVILY_BASE_URL|WIKIPEDIA_URL|OLLAMA_HOST|MODEL|JUDGE_MODEL|CRITIC_MODEL|DATABASE_URL"
    r"|(LANGSMITH|LANGCHAIN|OTEL|REFLECT)_.*"
)

REQUIRED = os.environ.get("REQUIRE", "").split()
"""Markers whose tests fail, and are not left out, where this machine lacks what they need."""
PATH = os.environ["PATH"]
LINKS = TemporaryDirectory()
BARE = without(PROGRAMS, PATH, Path(LINKS.name))

# Read once, when langgraph is imported: must stand before any test module is.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"


# The garbage collector would look again and again at modules that stay: a third of what collecting the tests takes.
gc.set_threshold(200_000, 20, 50)

# How many examples a property is tried on where its test does not say.
settings.register_profile("few", max_examples=8, deadline=None)
settings.register_profile("many", max_examples=50, deadline=None)

SHARED_SERVERS = ("tests/studio/", "tests/aegra/", "tests/persistence/", "tests/viewer/")
SHARED_COPIES = ("tests/test_contributing.py", "tests/test_product.py", "tests/bench/test_provider_packages.py")
LONG = ("tests/test_platforms.py", "tests/evals/test_workers.py", "tests/test_scripts.py")
FIRST = (*SHARED_SERVERS, *SHARED_COPIES, *LONG, "tests/replays/", "tests/notebooks/")
"""What takes longest begins first, so that no worker is left with it in the end."""


FEW = 8
"""A test on fewer strategies is tried on all of them."""

STEP = 16
"""Of so many strategies `make test` tries one, with another one for each test."""

THOROUGH_MODULE = re.compile(r"^pytestmark = [^\n]*\bthorough\b", re.MULTILINE)
"""What a module of thorough tests alone says of itself, in one line."""


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types
    """Gives tests that share a server or a copy of the project to one worker, and others to whichever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in (*SHARED_SERVERS, *SHARED_COPIES) if nodeid.startswith(folder)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FolderScheduling:
    """Replace the choice of pytest-xdist, whose groups newer releases of pytest do not see."""
    return FolderScheduling(config, log)


def _settings() -> list[str]:
    return [name for name in os.environ if SETTINGS.fullmatch(name)]


def pytest_configure(config: pytest.Config) -> None:
    """Forget the developer's settings before a fixture of any scope, or a module, can see them."""
    settings.load_profile("few" if "not thorough" in config.option.markexpr else "many")
    for name in _settings():
        del os.environ[name]
    config.add_cleanup(LINKS.cleanup)
    # A shell lets what is in the background ignore Ctrl-C, and nohup a hang-up; what a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at what stays until the end."""
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import, where thorough tests are left out, a module that has no others."""
    if "not thorough" not in config.option.markexpr or not collection_path.match("test_*.py"):
        return None
    return bool(THOROUGH_MODULE.search(collection_path.read_text("utf-8"))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Make no items of a thorough test where such are left out: there are thousands."""
    if "not thorough" not in collector.config.option.markexpr or not name.lower().startswith("test"):
        return None
    return [] if any(mark.name == "thorough" for mark in getattr(obj, "pytestmark", ())) else None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Let the marked tests reach this machine and nothing else, and mark what takes a process or more time."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    _leave_out_repeated_combinations(items, config)
    _thin_out(items)
    lacking = missing(REQUIRED)
    for item in items:
        if "recorded" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.recorded)
        names = {mark.name for mark in item.iter_markers()}
        if item.nodeid.startswith(SHARED_SERVERS) or not names.isdisjoint(STARTING):
            item.add_marker(pytest.mark.process)
        if not names.isdisjoint(LOOPBACK_MARKERS):
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"]))
        for need in lacking:
            if need.marker in names:
                item.add_marker(pytest.mark.skip(reason=need.reason()))


def _thin_out(items: list[pytest.Item]) -> None:
    """Of each test that is marked as a matrix leave some cases to `make test`; the others are thorough. So are all
    strategies but one, in turns, where a test is tried on all of them.

    With `over` a case of each combination of the other parameters stays, or of `keep` of them, with the values of this
    one in turns; without it the first `keep` cases.
    """
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("matrix") or "strategy" in _parameters(item):
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        for item in set(cases) - _kept(name, cases):
            item.add_marker(pytest.mark.thorough)


def _kept(test: str, cases: list[pytest.Item]) -> set[pytest.Item]:
    turn, matrix = crc32(test.encode()), cases[0].get_closest_marker("matrix")
    if matrix is None:
        step = min(STEP, len(cases))
        return {*cases} if len(cases) < FEW else {*cases[turn % step :: step]}
    over, keep = matrix.kwargs.get("over"), matrix.kwargs.get("keep")
    if over is None:
        return {*cases[: keep or 1]}
    groups: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in cases:
        groups[repr({name: value for name, value in _parameters(item).items() if name != over})].append(item)
    apart = math.ceil(len(groups) / keep) if keep else 1
    return {group[(turn + index) % len(group)] for index, group in enumerate([*groups.values()][::apart])}


def _leave_out_repeated_combinations(items: list[pytest.Item], config: pytest.Config) -> None:
    """Of the cases of each test that is marked as `crossed(count)` choose some, in which each combination of the values
    of so many parameters occurs; by default of all but one: of two each value, of three each pair. The others are
    never run."""
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("crossed"):
            tests[item.nodeid.partition("[")[0]].append(item)
    left_out: set[pytest.Item] = set()
    for cases in tests.values():
        marker = cases[0].get_closest_marker("crossed")
        left_out |= {*cases} - _covering(cases, *(marker.args if marker else ()))
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def _covering(cases: list[pytest.Item], count: int | None = None) -> set[pytest.Item]:
    combinations: dict[pytest.Item, set[tuple[str, ...]]] = {}
    for item in cases:
        values = [f"{name}={value!r}" for name, value in _parameters(item).items()]
        combinations[item] = {*itertools.combinations(values, count or max(len(values) - 1, 1))}
    missing_still = set[tuple[str, ...]]().union(*combinations.values())
    chosen: set[pytest.Item] = set()
    while missing_still:
        best = max(cases, key=lambda item: len(combinations[item] & missing_still))
        chosen.add(best)
        missing_still -= combinations[best]
    return chosen


def _parameters(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide the programs that need a marker from tests without one, from their fixtures and from what they start: such a
    test then fails on every machine, and not only where the program is missing."""
    os.environ["PATH"] = PATH if any(map(item.get_closest_marker, DECLARED)) else BARE
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List what was left out for want of what, and what brings it."""
    skips = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    ours = [reason for file, _, reason in skips if Path(ROOT, file).is_relative_to(ROOT / "tests")]
    terminalreporter.section("left out")
    for reason, count in Counter(ours).most_common():
        terminalreporter.line(f"{count:6,}  {reason.removeprefix('Skipped: ')}")
    if "not thorough" in config.option.markexpr:
        terminalreporter.line("   all  thorough tests: make test-all")
    if "not published" in config.option.markexpr:
        terminalreporter.line("   all  published tables that are measured anew for minutes: make published")


def _forbid_processes(event: str, _: object) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        raise RuntimeError("a test that starts a process has to be marked with `process`")


@pytest.fixture(scope="session", autouse=True)
def no_processes(pytestconfig: pytest.Config) -> None:
    """Refuse to start a process where such tests are left out, as in `make quick`."""
    if "not process" in pytestconfig.option.markexpr:
        sys.addaudithook(_forbid_processes)


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Generator[None, None, None]:
    """Start each test without settings, and with a home of its own, which is made when something is put there.

    What the test's own `.env` sets goes with it, before a fixture of the next module can see it.

    The indexes of documents are shared: each has the name of its folder, and that of the articles takes longer to make
    than most runs.
    """
    with patch.dict(os.environ):
        for name in _settings():
            monkeypatch.delenv(name)
        shared = tmp_path_factory.getbasetemp()
        monkeypatch.setenv("REFLECT_HOME", str(shared / "homes" / uuid4().hex))
        monkeypatch.setenv("REFLECT_CACHE_DIR", str(shared / "reflect-cache"))
        yield


@pytest.fixture(autouse=True)
def own_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find modules in the working folder because an earlier one has loaded a class of the user's."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(autouse=True)
def nothing_learned() -> Generator[None, None, None]:
    """Start each test, and the fixtures of its module, without what others learned about their models, whose addresses
    come again, or remember."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    if capabilities := sys.modules.get("reflective_agents.models.capabilities"):
        capabilities.forget_capabilities()
    if kept := sys.modules.get("reflective_agents.nodes.asking.kept"):
        kept.forget_summaries()
    if remember := sys.modules.get("reflective_agents.nodes.remembering.remember"):
        remember.store_of_process.cache_clear()


@pytest.fixture
def virtual_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the seconds of a run pass on the clock of its event loop, which `virtually` moves."""
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr("reflective_agents.models.meter.time", clock)


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Return the folder of recorded model outputs. Who uses it is marked `recorded`."""
    return RECORDED
