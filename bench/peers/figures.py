"""What the comparison measures."""

import json
from dataclasses import dataclass, field

from bench.peers.environments import version
from bench.peers.searches import Entry
from bench.wire import Counters


@dataclass(frozen=True)
class Round:
    """What a driver says of one run: seconds of clock and processor, the tree, the calls that it counted itself."""

    seconds: float
    cpu: float
    nodes: int
    expansions: int
    calls: int | None
    finished: bool

    @classmethod
    def parse(cls, line: str) -> "Round":
        """Read a driver's line.

        Raises:
            ValueError: if it is not one.
        """
        figures = json.loads(line)
        if not isinstance(figures, dict) or figures.keys() != cls.__dataclass_fields__.keys():
            raise ValueError(f"a driver printed {line[:200]!r}")
        return cls(**figures)


@dataclass(frozen=True)
class Figures:
    """What a search took, and how it fared when each tenth request failed for good: `error` is how it ended."""

    entry: Entry
    run: Round
    sent: Counters
    faulty: Round
    error: str = ""

    @property
    def name(self) -> str:
        """The search with its peer and version."""
        peer = self.entry.peer
        return f"{peer} {version(peer)}: {self.entry.what}" if peer else self.entry.what

    @property
    def cpu(self) -> float:
        """Milliseconds of processor time of the search's process for each call."""
        return 1000 * self.run.cpu / self.sent.calls

    @property
    def fate(self) -> str:
        """How the run with failing requests ended, and how many nodes its caller has in hand then."""
        end = "returns" if self.faulty.finished else f"raises {self.error.split(':')[0].rsplit('.')[-1]}"
        return f"{end}, {self.faulty.nodes} nodes"


@dataclass
class Comparison:
    """All that was measured, and for what was left out the reason."""

    figures: list[Figures] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
