"""The project's exceptions.

    ReflectError
    ├── Misuse                 what was asked for cannot be done; the message says what to do instead
    │   ├── EmptyQuestion
    │   ├── UnknownStrategy
    │   ├── UnknownModel
    │   ├── MissingKey
    │   ├── UnknownPrice
    │   ├── BadPrompt
    │   ├── BadCorpus
    │   ├── WrongThread
    │   ├── NoDatabase
    │   ├── OperatorOnly
    │   └── SandboxMissing
    ├── LimitReached           a limit of the run forbids the next call
    ├── ModelFailed            a model could not be brought to answer
    │   ├── InvalidOutput      a model answered, but never in the form asked for
    │   ├── Refused            its server does not take the request as it is
    │   └── TooLong            the prompt does not fit into its context
    ├── SearchFailed           a search could not be carried out
    └── ConversationTooLong    a prompt does not fit, and would with a shorter conversation

`Misuse` raises at once, in Python as well as in the command (exit code 2). The others never leave a graph: they
end in its outcome, go back to the model as a tool message, or have the conversation compacted.
"""

from typing import TYPE_CHECKING

from reflective_agents.state.limits import Limit, sentence
from reflective_agents.text.validation import in_plain_words

if TYPE_CHECKING:  # the help of the command loads no pydantic
    from pydantic import ValidationError


class ReflectError(Exception):
    """Base of everything this project raises itself."""


LONGEST, END = 1_000, 300
"""Characters of a refusal, and how many of them are its end, which says what to do."""


class Misuse(ReflectError, ValueError):
    """Raised when a request cannot be carried out as it was put.

    Its text is cut in the middle where it is too long: it may quote what a stranger wrote.
    """

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= LONGEST:
            return text
        return f"{text[: LONGEST - END - 5]} ... {text[-END:]}"


class EmptyQuestion(Misuse):
    """Raised when a run is started without a question."""


class UnknownStrategy(Misuse):
    """Raised when a strategy is named that does not exist."""


class UnknownModel(Misuse):
    """Raised when a model string names no provider that is installed."""


class MissingKey(Misuse):
    """Raised when the chosen provider needs a key that the environment does not hold."""


class UnknownPrice(Misuse):
    """Raised when a run has a limit of money, and nobody knows what one of its models costs."""


class BadPrompt(Misuse):
    """Raised when a prompt is given that there is not, or that lacks a placeholder."""


class BadCorpus(Misuse):
    """Raised when the corpus folder is missing, or holds nothing that can be read."""


class WrongThread(Misuse):
    """Raised when a thread belongs to another strategy or to another user, or holds what no run writes."""


class NoDatabase(Misuse):
    """Raised when the database cannot be reached or opened."""


class OperatorOnly(Misuse):
    """Raised when a request to a server sets what reaches the server's machine."""


class SandboxMissing(Misuse):
    """Raised when code would have to run outside a sandbox, and that was not allowed."""


class ScorerFailed(Misuse):
    """Raised when a scorer of the user's own raises, or returns no score; its text quotes that."""


class LimitReached(ReflectError):
    """Raised when the next call would exceed a limit; its text names the limit and quotes the numbers."""

    def __init__(self, limit: Limit, detail: str = "") -> None:
        super().__init__(limit, detail)
        self.limit, self.detail = limit, detail

    def __str__(self) -> str:
        return sentence(self.limit, self.detail)


class ModelFailed(ReflectError):
    """Raised when a model gave no usable reply after all attempts; its text names the cause."""


class InvalidOutput(ModelFailed):
    """Raised when a model's replies did not fit the form asked for, in any attempt."""


class Refused(ModelFailed):
    """Raised when a server does not take a request as it is; its text is what the server says."""


class TooLong(ModelFailed):
    """Raised when a prompt does not fit into a model's context; its text names the settings that shorten it."""


class ConversationTooLong(ReflectError):
    """Raised when a prompt does not fit, and would with a shorter conversation: the node is run again with that.

    It is no `ModelFailed`, so that nobody on the way takes it for the end of one call.
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"the conversation may have {most} estimated tokens")
        self.most = most


class SearchFailed(ReflectError):
    """Raised when a search failed, timed out or found nothing; the model sees its text."""


def reason_of(error: Exception) -> str:
    """Return what an error says; one of the system without its number and the file, which is named beside it."""
    return getattr(error, "strerror", None) or str(error)


def problems_of(error: "ValidationError", whole: str = "") -> list[str]:
    """Say in words what does not fit, each with the name of the value; `whole` names what has none."""
    problems: list[str] = []
    for fault in error.errors():
        name = ".".join(map(str, fault["loc"])) or whole
        words = in_plain_words(fault["msg"])
        problems.append(f"{name}: {words}" if name else words)
    return problems
