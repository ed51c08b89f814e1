"""Which model a string means, and what is said when it means none."""

import asyncio

import pytest
from langchain_openai import ChatOpenAI

from reflective_agents.models.providers import choose_model, close_models, get_model
from reflective_agents.offline.model import OfflineChatModel
from reflective_agents.state.errors import MissingKey, UnknownModel
from reflective_agents.testing.fake import FakeChatModel


def test_with_nothing_configured_it_is_the_offline_model_and_says_why() -> None:
    model, reason = choose_model(None)
    assert model == "offline"
    assert "neither MODEL nor OPENAI_API_KEY" in reason
    assert isinstance(get_model(None), OfflineChatModel)


def test_a_key_chooses_openai_and_the_environment_goes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    assert choose_model(None) == ("openai:gpt-4.1-mini", "because OPENAI_API_KEY is set")
    monkeypatch.setenv("MODEL", "openai:other")
    assert choose_model(None) == ("openai:other", "from MODEL")
    assert choose_model("offline") == ("offline", "as set")


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    model = get_model("openai:llama", max_answer_tokens=77)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.max_tokens, model.max_retries) == ("llama", 77, 0)


def test_a_missing_key_is_said_in_one_line() -> None:
    with pytest.raises(MissingKey, match="OPENAI_API_KEY") as caught:
        get_model("openai:gpt-4.1-mini")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["nonsense", "no-such-provider:model", "openai:", ":"])
def test_an_unknown_model_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        get_model(name)
    assert "\n" not in str(caught.value)


def test_a_provider_whose_package_is_missing_says_what_to_install() -> None:
    with pytest.raises(UnknownModel, match=r"langchain[-_]anthropic"):
        get_model("anthropic:claude-sonnet-4-5")


def test_a_model_object_is_taken_as_it_is() -> None:
    fake = FakeChatModel(reply=lambda request: "")
    assert get_model(fake) is fake


def test_each_event_loop_has_clients_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")

    async def twice() -> tuple[object, object]:
        models = get_model("openai:a"), get_model("openai:a")
        await close_models()
        return models

    (first, again), (other, _) = asyncio.run(twice()), asyncio.run(twice())
    assert first is again
    assert first is not other


def test_no_key_shows_in_a_models_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    assert "sk-planted" not in repr(get_model("openai:a"))
