"""The rules of the blocksworld: facts, the four actions, and plans (PlanBench, arXiv 2206.10498).

A fact is a text such as "on red blue", "ontable red", "clear red", "holding red" or "handempty".
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from reflective_agents.state.errors import Misuse

# "the" and "block" are words of the sentence, or "stack the red on the blue" would move a block called "the".
_NAME = r"(?!the\b|block\b)([a-z0-9_]+)"
_BLOCK = rf"(?:the\s+)?{_NAME}(?:\s+block)?"
_ONE_BLOCK = re.compile(rf"(pick|put)(?:\s+|-)?(up|down)\s+{_BLOCK}(?:\s+(?:from|on)\s+the\s+table)?", re.IGNORECASE)
_TWO_BLOCKS = re.compile(
    rf"(unstack|stack)\s+{_BLOCK}\s+(?:(?:from\s+)?(?:on\s+)?(?:top\s+of\s+)?)?{_BLOCK}", re.IGNORECASE
)
_LIST_MARK = re.compile(r"^(?:[-*]|\(?\d++[.):])\s+")
_ACTION_LINE = re.compile(r"\(?(?:pick|put|stack|unstack)\b", re.IGNORECASE)
_WORDS = {
    "on": "the {} block is on top of the {} block",
    "ontable": "the {} block is on the table",
    "clear": "the {} block is clear",
    "holding": "the hand is holding the {} block",
    "handempty": "the hand is empty",
}
_UNMET = {
    "on": "the {} block is not on top of the {} block",
    "ontable": "the {} block is not on the table",
    "clear": "the {} block is not clear",
    "holding": "the hand is not holding the {} block",
    "handempty": "the hand is not empty",
}
_MAX_CHARACTERS = 300


class Move(NamedTuple):
    """One of the four actions, with its preconditions and effects in PlanBench's domain."""

    verb: str
    """One of: pick up, put down, stack, unstack."""
    block: str
    below: str = ""
    """The other block, of stack and unstack."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Facts that must hold."""
        lifted = (f"clear {self.block}", "handempty")
        match self.verb:
            case "pick up":
                return (f"ontable {self.block}", *lifted)
            case "unstack":
                return (f"on {self.block} {self.below}", *lifted)
            case "stack":
                return (f"holding {self.block}", f"clear {self.below}")
            case _:
                return (f"holding {self.block}",)

    @property
    def brings(self) -> tuple[str, ...]:
        """Facts that hold afterwards; of those that it needs, none does."""
        match self.verb:
            case "pick up":
                return (f"holding {self.block}",)
            case "unstack":
                return (f"holding {self.block}", f"clear {self.below}")
            case "stack":
                return (f"on {self.block} {self.below}", f"clear {self.block}", "handempty")
            case _:
                return (f"ontable {self.block}", f"clear {self.block}", "handempty")

    def __str__(self) -> str:
        where = {"stack": f" on top of the {self.below} block", "unstack": f" from on top of the {self.below} block"}
        return f"{self.verb} the {self.block} block{where.get(self.verb, '')}"


def parse_move(text: str) -> Move | None:
    """Read an action in words, such as `stack the red block on top of the blue block`, or as `(stack red blue)`.

    Returns:
        The action, possible or not; None if the text is none.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    plain = text.strip().strip("().").strip().lower()
    if match := _ONE_BLOCK.fullmatch(plain):
        verb = f"{match[1]} {match[2]}"
        return Move(verb, match[3]) if verb in ("pick up", "put down") else None
    match = _TWO_BLOCKS.fullmatch(plain)
    return Move(match[1], match[2], match[3]) if match else None


def read_plan(text: str) -> list[Move] | None:
    """Read a plan, one action a line, numbered or not; other lines between them do not matter.

    Returns:
        The actions; None if there are none, or a line that begins like an action cannot be read.
    """
    plan: list[Move] = []
    for line in text.split("\n"):
        unmarked = _LIST_MARK.sub("", line.strip(), count=1)
        if not _ACTION_LINE.match(unmarked):
            continue
        move = parse_move(unmarked)
        if move is None:
            return None  # a plan with a gap would be carried out as another plan than was meant
        plan.append(move)
    return plan or None


def run_plan(facts: Iterable[str], plan: Iterable[Move]) -> tuple[list[str], str | None]:
    """Carry out a plan as far as possible.

    Returns:
        The facts that hold then, and why the next action is not possible; None if all were.
    """
    now = sorted(facts)
    for move in plan:
        if why := check_move(now, move):
            return now, f"{move}: {why}"
        now = apply_move(now, move)
    return now, None


def check_move(facts: Collection[str], move: Move) -> str | None:
    """Say why an action is not possible where these facts hold; None if it is."""
    blocks = blocks_in(facts)
    for block in (move.block, move.below):
        if block and block not in blocks:
            return f"There is no {block} block."
    if move.block == move.below:
        return "A block cannot lie on itself."
    missing = [fact for fact in move.needs if fact not in facts]
    return f"Not possible: {_joined(missing, _UNMET)}." if missing else None


def blocks_in(facts: Iterable[str]) -> set[str]:
    """Return the blocks that facts are about."""
    blocks = set[str]()
    for fact in facts:
        blocks.update(fact.split()[1:])
    return blocks


def check_facts(facts: Iterable[str]) -> set[str]:
    """Return the blocks of a complete state.

    Raises:
        Misuse: if it is inconsistent: each block lies somewhere or is held, and is clear if nothing lies on it.
    """
    facts = set(facts)
    if not facts:
        raise Misuse("A task of the blocksworld needs data: init, all facts that hold at first, and goal.")
    for fact in sorted(facts):
        if not is_fact(fact):
            raise Misuse(f"{fact!r} is no fact of the blocksworld, such as on red blue, ontable red or handempty.")
    held: list[str] = []
    on_table: list[str] = []
    towers: list[tuple[str, str]] = []
    free = set[str]()
    for fact in facts:
        match fact.split():
            case ["holding", block]:
                held.append(block)
            case ["ontable", block]:
                on_table.append(block)
            case ["on", block, below]:
                towers.append((block, below))
            case _:
                free.add(fact)
    lying = [*on_table, *(block for block, _ in towers)]
    covered = [below for _, below in towers]
    blocks = {*held, *lying}
    expected = {f"clear {block}" for block in blocks.difference(covered, held)}
    if not held:
        expected.add("handempty")
    are_once = len(held) + len(lying) == len(blocks) and len(set(covered)) == len(covered)
    if free != expected or len(held) > 1 or not are_once:
        raise Misuse("The facts contradict each other: each block lies in one place, and is clear if none is on it.")
    if not blocks.issuperset(covered) or _supported(on_table, towers) != set(lying):
        raise Misuse("The facts are of no state: each block stands, in the end, on the table.")
    return blocks


def _supported(on_table: Sequence[str], towers: Sequence[tuple[str, str]]) -> set[str]:
    """Return the blocks that stand, in the end, on the table: not those that lie on each other in a circle."""
    supported = set(on_table)
    while True:
        above = {block for block, below in towers if below in supported}
        if supported >= above:
            return supported
        supported |= above


def possible_moves(facts: Iterable[str]) -> list[Move]:
    """Return every action that is possible where these facts hold, in a fixed order."""
    words = sorted(fact.split() for fact in facts)
    clear = [word[1] for word in words if word[0] == "clear"]
    moves: list[Move] = []
    unstacking: list[Move] = []
    for word in words:
        match word:
            case ["holding", held]:
                stacking = [Move("stack", held, block) for block in clear]
                return [Move("put down", held), *stacking]
            case ["ontable", block] if block in clear:
                moves.append(Move("pick up", block))
            case ["on", block, below] if block in clear:
                unstacking.append(Move("unstack", block, below))
    return moves + unstacking


def apply_move(facts: Iterable[str], move: Move) -> list[str]:
    """Return the facts that hold after an action that is possible, sorted."""
    return sorted(set(facts).difference(move.needs).union(move.brings))


def is_fact(text: str) -> bool:
    """Return whether a text is a fact, about any blocks."""
    kind, *blocks = text.split(" ")
    fits = kind in _WORDS and len(blocks) == _WORDS[kind].count("{}") and len(set(blocks)) == len(blocks)
    return fits and all(re.fullmatch(_NAME, block) for block in blocks)


def in_words(facts: Sequence[str]) -> str:
    """Return facts as a sentence without its full stop: first the clear blocks, then the hand, then the positions."""
    order = ("clear", "holding", "handempty", "on", "ontable")
    return _joined(sorted(facts, key=lambda fact: order.index(fact.split()[0])), _WORDS)


def _joined(facts: Sequence[str], words: dict[str, str]) -> str:
    clauses: list[str] = []
    for fact in facts:
        kind, *blocks = fact.split()
        clauses.append(words[kind].format(*blocks))
    *first, last = clauses or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last
