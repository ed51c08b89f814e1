"""How a form is asked for: what stands in the prompt, and what in the request alone."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

from reflective_agents.models.structured import structured_request
from reflective_agents.state.context import Structured


class Verdict(BaseModel):
    """A verdict."""

    score: float = Field(description="How good it is.")


@pytest.mark.parametrize(
    ("address", "way", "fields_in_prompt"),
    [
        ("https://api.openai.com/v1", "json_schema", False),
        ("http://127.0.0.1:1/v1", "json_schema", True),
        ("https://api.openai.com/v1", "tool", False),
        ("https://api.openai.com/v1", "text", True),
    ],
)
def test_the_fields_stand_in_the_prompt_only_where_the_model_would_not_see_them(
    address: str, way: Structured, fields_in_prompt: bool
) -> None:
    chat = ChatOpenAI(model="m", base_url=address, api_key=SecretStr("key"))
    _, prompt = structured_request(way, chat, Verdict, [HumanMessage("How good?")])
    assert ("How good it is." in prompt[-1].text) is fields_in_prompt
    assert prompt[0].text.startswith("How good?")
