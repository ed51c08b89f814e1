"""What holds for every test: no network, no keys of the developer's, strict checkpoints."""

import asyncio
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
RECORDED = ROOT.parent / "shared" / "recorded"
LOOPBACK_MARKERS = ("wire", "studio", "postgres", "notebook")
SETTINGS = re.compile(
    r"OPENAI_API_KEY|OPENAI_BASE_URL|TAVILY_API_KEY|TAVILY_BASE_URL|WIKIPEDIA_URL|OLLAMA_HOST|MODEL|JUDGE_MODEL|CRITIC_MODEL|DATABASE_URL"
    r"|(LANGSMITH|LANGCHAIN|OTEL|REFLECT)_.*"
)

HAS_SANDBOX = shutil.which("bwrap") is not None or os.environ.get("REQUIRE_SANDBOX") == "1"

# Read once, when langgraph is imported: must stand before any test module is.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"


SHARED_SERVERS = ("tests/studio/", "tests/persistence/", "tests/viewer/")
FIRST = (*SHARED_SERVERS, "tests/replays/", "tests/notebooks/")
"""What takes longest begins first, so that no worker is left with it in the end."""


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types
    """Gives the tests of a folder that shares a server to one worker, and every other test to whichever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SHARED_SERVERS if nodeid.startswith(folder)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FolderScheduling:
    """Replace the choice of pytest-xdist, whose groups newer releases of pytest do not see."""
    return FolderScheduling(config, log)


def _settings() -> list[str]:
    return [name for name in os.environ if SETTINGS.fullmatch(name)]


def pytest_configure() -> None:
    """Forget the developer's settings before a fixture of any scope, or a module, can see them."""
    for name in _settings():
        del os.environ[name]
    # Started in the background, a shell lets us ignore Ctrl-C; whatever a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the marked tests reach this machine and nothing else; the others open no socket at all."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if any(item.get_closest_marker(name) for name in LOOPBACK_MARKERS):
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"]))
        if not HAS_SANDBOX and item.get_closest_marker("sandbox"):
            item.add_marker(pytest.mark.skipif(True, reason="bubblewrap is not installed"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start each test without settings, and with folders of its own."""
    for name in _settings():
        monkeypatch.delenv(name)
    monkeypatch.setenv("REFLECT_HOME", str(tmp_path / "reflect-home"))
    monkeypatch.setenv("REFLECT_CACHE_DIR", str(tmp_path / "reflect-cache"))


@pytest.fixture
def virtual_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the seconds of a run pass on the clock of its event loop, which `virtually` moves."""
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr("models.meter.time", clock)


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Return the folder of recorded model outputs; where it is missing, skip, or fail if REQUIRE_RECORDED=1."""
    if not RECORDED.is_dir():
        reason = "the recorded model outputs do not lie beside the checkout, in ../shared/recorded"
        if os.environ.get("REQUIRE_RECORDED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return RECORDED
