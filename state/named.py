"""Settings that hold a name of ours, or in Python an object of the user's own: a search engine, an environment, a
ranking of memories, embeddings, an agent."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema

from reflective_agents.state import shipped
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.policy import OBJECT, Names

T = TypeVar("T")
ENGINES = ("tavily", "local", "none", "searxng", "duckduckgo", "arxiv", "pubmed", "wikipedia")


def _is_engine(value: T) -> T | None:
    if value is None or value == "" or callable(value) or hasattr(value, "ainvoke"):
        return None if isinstance(value, str) else value
    if value in ENGINES:
        return value
    raise ValueError(f"a search is one of {', '.join(ENGINES)}, or in Python a function or a retriever")


Engine = Annotated[
    Literal["tavily", "local", "none", "searxng", "duckduckgo", "arxiv", "pubmed", "wikipedia"] | Any,
    BeforeValidator(_is_engine),
    WithJsonSchema({"anyOf": [{"enum": [*ENGINES], "type": "string"}, {"type": "null"}], "default": None}),
    OBJECT,
]
"""The name of a search engine, or in Python one of your own: see `web_search.own`."""


def _is_environment(value: T) -> T | None:
    if value is None or value == "" or hasattr(value, "step"):
        return None if isinstance(value, str) else value
    if isinstance(value, str) and value in shipped.environments():
        return value
    raise ValueError(f"an environment is one of {', '.join(shipped.environments())}, or in Python an Environment")


def _is_ranking(value: T) -> T:
    names = shipped.rankings()
    is_own = hasattr(value, "terms") and not isinstance(value, type)
    if is_own or (isinstance(value, str) and value in names):
        return value
    raise ValueError(f"a ranking is one of {', '.join(names)}, or in Python a Ranking")


class _RankingNames:
    """The names of rankings in a JSON schema, for forms."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonObject:
        return {"enum": [*shipped.rankings()], "type": "string"}


Rankings = Annotated[Any, BeforeValidator(_is_ranking), _RankingNames(), OBJECT]
"""The name of a ranking of memories, or in Python one of your own: see `memory.rankings.base`."""


class _Names:
    """The names of environments in a JSON schema, for forms."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonObject:
        return {"anyOf": [{"enum": list(shipped.environments()), "type": "string"}, {"type": "null"}]}


World = Annotated[Any, BeforeValidator(_is_environment), _Names(), OBJECT]
"""The name of an environment, or in Python one of your own: see `environments.base`."""


def kind_of(environment: Any) -> Any:
    """Return the environment, or the class of a shipped one."""
    return shipped.environments()[environment] if isinstance(environment, str) else environment


def _is_embeddings(value: T) -> T | None:
    if value is None or isinstance(value, str) or hasattr(value, "aembed_documents"):
        return value or None
    raise ValueError("embeddings are a string such as 'lexical' or 'openai:<model>', or an object of LangChain's")


Embeddings = Annotated[
    Any,
    BeforeValidator(_is_embeddings),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
    Names("model", free=("lexical", "minilm")),
]
"""A string that names embeddings, or in Python an object of LangChain's."""


def _is_agent(value: T) -> T:
    # What binds tools is a chat model, which has `ainvoke` too.
    if value is not None and (not hasattr(value, "ainvoke") or hasattr(value, "bind_tools")):
        raise ValueError("an agent is a graph of LangGraph's, or an agent of LangChain's, that takes messages")
    return value


Agent = Annotated[SkipJsonSchema[Any], BeforeValidator(_is_agent), OBJECT]
"""In Python: a graph, or another agent that takes messages."""
