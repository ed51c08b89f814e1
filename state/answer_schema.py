"""The form that a caller wants the answer in: a JSON schema, or a Python type that stands for one."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, PydanticUserError, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import to_json

from reflective_agents.state.callers_schemas import check_form
from reflective_agents.state.errors import Misuse, problems_of
from reflective_agents.state.json_types import JsonMapping, JsonObject

T = TypeVar("T")


class TypeSchema(dict[str, Any]):
    """The JSON schema of a Python type, whose own validators check an answer too.

    A run that is resumed without its settings has the schema alone: state is plain data.
    """

    type: type[Any]


def schema_of(form: object) -> object:
    """Return the JSON schema of a pydantic class, a TypedDict or a dataclass; anything else as it is.

    Raises:
        ValueError: if pydantic makes no schema of a class.
    """
    if not isinstance(form, type):
        return form
    try:
        schema: JsonObject = TypeAdapter(form).json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise ValueError(f"no JSON schema can be made of {form.__name__}: {str(error).splitlines()[0]}") from error
    if "$ref" in schema:  # of a type that holds itself
        schema = {**schema["$defs"][schema["$ref"].rpartition("/")[2]], **schema}
        del schema["$ref"]
    named = TypeSchema(schema)
    named.type = form
    return named


def _is_object(schema: object) -> object:
    if schema is None or isinstance(schema, dict):
        return schema
    raise ValueError("give a pydantic class, a TypedDict, a dataclass, or the JSON schema of an object")


def type_faults(schema: JsonMapping, data: JsonMapping) -> str:
    """Say in words what the type's own validators have against data; nothing if the schema is not that of a type."""
    if isinstance(schema, TypeSchema):
        try:
            # From JSON, since only there does a strict type take a date or the member of an enum as a text.
            TypeAdapter(schema.type).validate_json(to_json(data))
        except ValidationError as error:
            return "; ".join(problems_of(error))
    return ""


def as_held(schema: JsonMapping, data: JsonMapping) -> JsonObject:
    """Return data that fits as the type of its schema holds it: with its defaults, and without what it ignores. Data of
    any other schema stays as it is."""
    if not isinstance(schema, TypeSchema):
        return dict(data)
    adapter: TypeAdapter[Any] = TypeAdapter(schema.type)
    held: JsonObject = adapter.dump_python(
        adapter.validate_json(to_json(data)), mode="json", by_alias=True, round_trip=True
    )
    return held


def parsed(result: Mapping[str, Any], schema: type[T]) -> T:
    """Return the structured answer of a run as an instance of a class.

        out = graph.invoke(question, context={"answer_schema": Weather})
        weather = parsed(out, Weather)

    Args:
        result: What a strategy has returned.
        schema: The pydantic class, TypedDict or dataclass that was its `answer_schema`.

    Raises:
        Misuse: if there is no structured answer; the text says why.
        pydantic.ValidationError: if the answer is of another class.
    """
    data, outcome = result.get("structured_response"), result.get("outcome") or {}
    # A run that failed without a schema holds its outcome in that place.
    if data is None or data == outcome:
        raise Misuse(f"there is no structured answer: {outcome.get('reason', 'the run had no answer_schema')}")
    return TypeAdapter(schema).validate_json(to_json(data))


AnswerSchema = Annotated[
    Any,
    BeforeValidator(_is_object),
    BeforeValidator(schema_of),
    AfterValidator(check_form),
    WithJsonSchema({"anyOf": [{"additionalProperties": True, "type": "object"}, {"type": "null"}], "default": None}),
]
"""A JSON schema, or in Python a class that stands for one."""
