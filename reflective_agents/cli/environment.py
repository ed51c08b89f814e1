"""Reads `.env`, and warns of variables that nothing reads: a limit with a typo in its name would not hold."""

import difflib
import os
from functools import cache
from pathlib import Path

from dotenv import dotenv_values, load_dotenv

from reflective_agents.cli.output import say
from reflective_agents.state.errors import Misuse, reason_of
from reflective_agents.state.settings import settings_of, strategy_names

PREFIX = "REFLECT_"
PROCESS = {"ALLOWED_HOSTS", "ALLOWED_ORIGINS", "CACHE_DIR", "HOME", "JWT_ALGORITHM", "JWT_AUDIENCE", "JWT_KEY", "KEYS"}
PROCESS |= {"LOG", "LOG_LEVEL", "POLICY", "PREPARED_STATEMENTS", "SERVE_DIR"}
"""Variables that are no settings of a strategy, without the prefix."""
OTHERS = {"MODEL", "JUDGE_MODEL", "CRITIC_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "TAVILY_API_KEY"}
OTHERS |= {"TAVILY_BASE_URL", "WIKIPEDIA_URL", "DATABASE_URL", "REDIS_URL", "OLLAMA_HOST"}
"""Variables without the prefix; a name in `.env` that resembles one of them is a typo."""


def load_env() -> None:
    """Read `.env` in the working folder, and say which variables of it and of the shell are unknown.

    Raises:
        Misuse: if the file cannot be read.
    """
    path = Path(".env")
    try:
        written = dotenv_values(path)
        load_dotenv(path, override=False)
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f".env cannot be read ({reason_of(error)}): correct or remove it") from error
    ours = {name for name in os.environ if name.startswith(PREFIX)}
    for name in sorted(ours | written.keys()):
        _check(name)


def _check(name: str) -> None:
    """Warn of a name that nothing reads; one without our prefix may be another program's, unless it resembles ours."""
    ours = name.startswith(PREFIX)
    if name in OTHERS or name.removeprefix(PREFIX) in PROCESS:
        return
    variables = [*OTHERS, *_prefixed()]
    # Stricter without our prefix: most of what stands in `.env` is meant for other programs.
    close = difflib.get_close_matches(name, variables, n=1, cutoff=0.75 if ours else 0.85)
    if name not in variables and (ours or close):
        hint = f"; did you mean {close[0]}?" if close else ": reflect run STRATEGY --help lists the settings"
        say(f"warning: nothing reads {name}{hint}")


@cache
def _prefixed() -> list[str]:
    names = set(PROCESS)
    for schema in map(settings_of, strategy_names()):
        names.update(map(str.upper, schema.model_fields), map(str.upper, schema.renamed))
    return [PREFIX + name for name in sorted(names)]
