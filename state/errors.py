"""The project's exceptions.

    ReflectError
    ├── Misuse                 what was asked for cannot be done; the message says what to do instead
    │   ├── EmptyQuestion
    │   ├── UnknownStrategy
    │   ├── UnknownModel
    │   ├── MissingKey
    │   ├── BadCorpus
    │   ├── WrongThread
    │   ├── NoDatabase
    │   └── SandboxMissing
    ├── LimitReached           a limit of the run forbids the next call
    ├── ModelFailed            a model could not be brought to answer
    ├── InvalidOutput          a model answered, but never in the form asked for
    └── SearchFailed           a search could not be carried out

`Misuse` raises at once, in Python as well as in the command (exit code 2). The other four never leave a graph: they
end in its outcome, or go back to the model as a tool message.
"""


class ReflectError(Exception):
    """Base of everything this project raises itself."""


class Misuse(ReflectError, ValueError):
    """Raised when a request cannot be carried out as it was put."""


class EmptyQuestion(Misuse):
    """Raised when a run is started without a question."""


class UnknownStrategy(Misuse):
    """Raised when a strategy is named that does not exist."""


class UnknownModel(Misuse):
    """Raised when a model string names no provider that is installed."""


class MissingKey(Misuse):
    """Raised when the chosen provider needs a key that the environment does not hold."""


class BadCorpus(Misuse):
    """Raised when the corpus folder is missing, or holds nothing that can be read."""


class WrongThread(Misuse):
    """Raised when a thread belongs to another strategy, or to another user."""


class NoDatabase(Misuse):
    """Raised when the database cannot be reached or opened."""


class SandboxMissing(Misuse):
    """Raised when code would have to run outside a sandbox, and that was not allowed."""


class LimitReached(ReflectError):
    """Raised when the next call would exceed a limit; its text names the limit and quotes the numbers."""


class ModelFailed(ReflectError):
    """Raised when a model gave no usable reply after all attempts; its text names the cause."""


class InvalidOutput(ModelFailed):
    """Raised when a model's replies did not fit the form asked for, in any attempt."""


class SearchFailed(ReflectError):
    """Raised when a search failed, timed out or found nothing; its text is told to the model."""
