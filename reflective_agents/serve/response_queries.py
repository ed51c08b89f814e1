"""What the address of a stored response may ask for."""

from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from reflective_agents.serve.chat_request import refusal_of
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject

Q = TypeVar("Q", bound=BaseModel)


class StreamQuery(BaseModel):
    """How a response is fetched: whole, or as the events of its stream after one of them."""

    model_config = ConfigDict(extra="ignore")

    stream: bool = False
    starting_after: int = -1


class ListQuery(BaseModel):
    """Which items are listed."""

    model_config = ConfigDict(extra="ignore")

    after: str | None = None
    limit: int = Field(default=20, ge=1, le=100)
    order: Literal["asc", "desc"] = "desc"

    def page(self, items: list[JsonObject]) -> JsonObject:
        """Return a page of items.

        Raises:
            Refused: if it is to follow an item that is none of them.
        """
        ordered = items if self.order == "asc" else items[::-1]
        ids = [item["id"] for item in ordered]
        if self.after is not None and self.after not in ids:
            raise Refused(f"there is no item {self.after!r}", "after", status=404, code="not_found")
        start = 0 if self.after is None else ids.index(self.after) + 1
        data = ordered[start : start + self.limit]
        return {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": start + self.limit < len(items),
        }


def query_of(request: Request, form: type[Q]) -> Q:
    """Return the query of a request.

    Raises:
        Refused: if a part of it makes no sense.
    """
    try:
        return form.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise refusal_of(error) from error
