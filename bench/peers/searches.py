"""The searches that are compared, as equal as their settings allow."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A search that takes part: what it is called, its peer (None for this project), its driver, and its setting."""

    what: str
    peer: str | None
    driver: str
    setting: str = ""


ENTRIES = (
    Entry("this project: LATS, 10 expansions x 5", None, "ours", "{}"),
    Entry("the same, each sibling judged alone", None, "ours", '{"grading": "each"}'),
    Entry("the same, each judged alone, four leaves in flight", None, "ours", '{"grading": "each", "parallel": 4}'),
    Entry("LATSAgentWorker, 10 rollouts x 5", "llama-index-agent-lats", "llama_lats"),
    Entry("ReasoningAgent, beam search, 10 expansions x 5", "ag2", "ag2_reasoning", '{"method": "beam_search"}'),
    Entry("ReasoningAgent, LATS, 10 expansions x 5", "ag2", "ag2_reasoning", '{"method": "lats"}'),
    Entry("StandardMCTS, step, 50 nodes", "treequest", "tree_quest", "StandardMCTS 1"),
    Entry("StandardMCTS, ask_batch 5, 50 nodes", "treequest", "tree_quest", "StandardMCTS 5"),
    Entry("ABMCTSA, ask_batch 5, 50 nodes", "treequest", "tree_quest", "ABMCTSA 5"),
    Entry("MCTS, 10 expansions x 5", "llm-reasoners", "llm_reasoners", "mcts"),
    Entry("BeamSearch, 10 expansions x 5", "llm-reasoners", "llm_reasoners", "beam"),
    Entry("mcts, 10 simulations x 3", "optillm", "opti_llm", "mcts"),
    Entry("bon, 50 candidates", "optillm", "opti_llm", "bon"),
    Entry("the bare client, 10 x (1 + 5) requests", None, "bare_client"),
)
OWN = [entry for entry in ENTRIES if entry.peer is None]
"""Those that need nothing installed."""
