"""Which node was the first with an answer, in a tree that grows."""

import copy

from langchain_core.messages import AIMessage

from reflective_agents.state.tree import Tree
from reflective_agents.tree_search.candidates import Candidate, answer_key
from reflective_agents.tree_search.known_answers import KnownAnswers

reads: list[str] = []


class Watched(AIMessage):
    """A message that notes when its text is read."""

    @property
    def text(self) -> str:  # type: ignore[override]
        """Its content."""
        reads.append(str(self.content))
        return str(self.content)


def tree_of(*answers: str) -> Tree:
    nodes = [
        Candidate(0, [Watched(content=answer)], answers=True).as_node(f"0.{n}", "0") for n, answer in enumerate(answers)
    ]
    return {node["id"]: node for node in nodes}


def key(answer: str) -> str:
    return answer_key(answer, "", unfounded=False)


def test_the_first_node_with_an_answer_is_known() -> None:
    known = KnownAnswers()
    assert known.first_nodes({}) == {}
    assert known.first_nodes(tree_of("Rome", "Paris", "Rome")) == {key("Rome"): "0.0", key("Paris"): "0.1"}


def test_only_new_nodes_are_read() -> None:
    known, tree = KnownAnswers(), tree_of("Rome", "Paris", "Rome", "Bonn")
    known.first_nodes(dict(list(tree.items())[:2]))
    reads.clear()
    assert known.first_nodes(tree) == {key("Rome"): "0.0", key("Paris"): "0.1", key("Bonn"): "0.3"}
    assert reads == ["Rome", "Bonn"]


def test_another_tree_of_the_run_is_read_from_its_beginning() -> None:
    known = KnownAnswers()
    known.first_nodes(tree_of("Rome", "Paris"))
    assert known.first_nodes(tree_of("Oslo")) == {key("Oslo"): "0.0"}
    tree = tree_of("Rome", "Oslo")
    known.first_nodes(tree)
    assert known.first_nodes(copy.deepcopy(tree)) == {key("Rome"): "0.0", key("Oslo"): "0.1"}


def test_a_fork_that_is_read_meanwhile_is_known_apart() -> None:
    known, fork = KnownAnswers(), tree_of("Oslo")

    class Forking(AIMessage):
        """A message while whose text is read another fork of the run goes on."""

        @property
        def text(self) -> str:  # type: ignore[override]
            """Its content."""
            known.first_nodes(fork)
            return str(self.content)

    node = Candidate(0, [Forking(content="Rome")], answers=True).as_node("0.0", "0")
    assert known.first_nodes({"0.0": node}) == {key("Rome"): "0.0"}
    assert known.first_nodes(fork) == {key("Oslo"): "0.0"}
