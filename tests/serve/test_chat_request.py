"""What a request to /v1/chat/completions may ask for, and what is refused by name."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.serve.chat_request import parse
from reflective_agents.serve.gate import check_settings_of
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state import policy as checks

HI: dict[str, Any] = {"role": "user", "content": "Hi"}


@pytest.fixture
def rule_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return what sets the operator's rules."""

    def write(**rules: Any) -> None:
        (tmp_path / "policy.json").write_text(json.dumps(rules))
        monkeypatch.setenv("REFLECT_POLICY", str(tmp_path / "policy.json"))
        policy.cache_clear()

    yield write
    policy.cache_clear()


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "lats", "messages": [HI], **fields}


def refusal(**fields: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        parse(body(**fields)).context()
    return refused.value


@pytest.mark.parametrize(
    ("model", "strategy", "context"),
    [
        ("lats", "lats", {}),
        ("lats:offline", "lats", {"model": "offline"}),
        ("reflexion:openai:gpt-4.1-mini", "reflexion", {"model": "openai:gpt-4.1-mini"}),
    ],
)
def test_a_model_is_a_strategy_and_its_model(model: str, strategy: str, context: dict[str, Any]) -> None:
    request = parse(body(model=model))
    assert (request.strategy, request.context()) == (strategy, context)


@pytest.mark.parametrize(
    "thread", ["x\n", "\t", "a\x00b", "x\x7f", "", " x", "x ", "a/b", "\u4e2d", "\u2028", "a\x85b"]
)
def test_a_thread_has_a_name_that_addresses_and_headers_can_hold(thread: str) -> None:
    assert (refusal(thread_id=thread).status, refusal(thread_id=thread).param) == (400, "thread_id")


@pytest.mark.parametrize("thread", ["x", "a b", "Gespr\u00e4ch 1", "a?b#c%2F", "x" * 100])
def test_other_names_of_threads_are_taken(thread: str) -> None:
    assert parse(body(thread_id=thread)).thread_id == thread


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_length_of_an_answer_is_a_setting(name: str) -> None:
    assert parse(body(**{name: 99})).context() == {"max_answer_tokens": 99}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_answer_of_no_length_is_refused(name: str) -> None:
    assert (refusal(**{name: 0}).status, refusal(**{name: 0}).param) == (400, "settings.max_answer_tokens")


def test_a_seed_of_zero_is_sent() -> None:
    assert parse(body(seed=0)).context() == {"seed": 0}


@pytest.mark.parametrize("stop", ["", ["", "END"], [""], None])
def test_an_empty_stop_ends_nothing(stop: Any) -> None:
    assert parse(body(stop=stop)).stops == (["END"] if stop and "END" in stop else [])


def test_parameters_may_be_given_as_text() -> None:
    request = body(model="reflection", top_p=0.3, presence_penalty=1, settings={"model_parameters": '{"top_p": 0.5}'})
    assert parse(request).context() == {"model_parameters": {"top_p": 0.5, "presence_penalty": 1}}


def test_settings_are_those_of_the_strategy() -> None:
    assert parse(body(settings={"n": 3, "max_expansions": 4})).context() == {"n": 3, "max_expansions": 4}


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"model": "latz"}, "model", 404),
        ({"settings": {"max_expansion": 3}}, "settings.max_expansion", 400),
        ({"settings": {"n": 0}}, "settings.n", 400),
        ({"settings": {"model": 7}}, "settings.model", 400),
        ({"max_tokens": 1}, "settings.max_answer_tokens", 400),
        ({"n": 2}, "n", 400),
        ({"temperature": "cold"}, "temperature", 400),
        ({"temperature": 3}, "temperature", 400),
        ({"logprobs": True}, "logprobs", 400),
        ({"logit_bias": {"50256": -100}}, "logit_bias", 400),
        ({"tools": [{"type": "function"}]}, "tools", 400),
        ({"tool_choice": "required"}, "tool_choice", 400),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", 400),
        ({"tool_choice": "often"}, "tool_choice", 400),
        ({"reasoning_effort": "enormous"}, "reasoning_effort", 400),
        ({"response_format": {"type": "xml"}}, "response_format.type", 400),
        ({"response_format": {"type": "json_schema"}}, "response_format", 400),
        ({"functions": []}, "functions", 400),
        ({"audio": {}}, "audio", 400),
        ({"messages": []}, "messages", 400),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content", 400),
        ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages.0.role", 400),
        ({"on_disconnect": "shrug"}, "on_disconnect", 400),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str, status: int) -> None:
    refused = refusal(**fields)
    assert (refused.param, refused.status) == (param, status)
    assert refused.body()["error"]["message"]


TOOLS = [{"type": "function", "function": {"name": name}} for name in "fg"]
NAMED = {"type": "function", "function": {"name": "g"}}
WRITING = {"worker_settings": {"acting": "paper"}}
REASONING = {"worker": "trials", "worker_settings": {"actor": "chain_of_thought"}}
SOLVERS = [{"name": name, "instructions": "Solve it.", "strategy": name} for name in ("react", "trials", "plan")]
MIXED = [*SOLVERS, {"name": "writer", "instructions": "Write it.", "strategy": "reflection"}]


@pytest.mark.parametrize(
    ("fields", "ignored"),
    [
        ({"temperature": 0}, []),
        ({"temperature": 0, "settings": {"step_samples": 3}}, ["temperature"]),
        ({"model": "lats", "temperature": 0}, ["temperature"]),
        ({"model": "team", "temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}, []),
        ({"model": "best_of_n", "top_p": 0.5, "frequency_penalty": 1}, ["top_p", "frequency_penalty"]),
        ({"parallel_tool_calls": False}, []),
        ({"tools": TOOLS, "parallel_tool_calls": False, "tool_choice": "required"}, []),
        ({"model": "team", "tools": TOOLS, "parallel_tool_calls": False}, ["parallel_tool_calls"]),
        ({"model": "team", "tools": TOOLS, "tool_choice": "required"}, ["tool_choice"]),
        ({"tools": TOOLS, "tool_choice": "none"}, []),
        ({"tools": TOOLS, "tool_choice": "required", "settings": {"acting": "paper"}}, ["tool_choice"]),
        ({"model": "plan", "tools": TOOLS, "tool_choice": "required"}, []),
        ({"model": "plan", "tools": TOOLS, "tool_choice": NAMED, "settings": {"worker": "lats"}}, ["tool_choice"]),
        ({"model": "plan", "tools": TOOLS, "tool_choice": "required", "settings": WRITING}, ["tool_choice"]),
        ({"model": "team", "tools": TOOLS, "tool_choice": NAMED, "settings": {"roles": SOLVERS}}, []),
        ({"model": "team", "tools": TOOLS, "tool_choice": NAMED, "settings": {"roles": MIXED}}, ["tool_choice"]),
        ({"model": "plan", "tools": TOOLS, "tool_choice": NAMED, "settings": REASONING}, ["tool_choice"]),
    ],
)
def test_what_clients_send_by_default_is_ignored_by_name(fields: dict[str, Any], ignored: list[str]) -> None:
    request = parse(body(**{"model": "react", **fields}))
    request.context()
    assert request.ignored == ignored


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        ({}, {"temperature": 0, "model_parameters": {"top_p": 0.5}}),
        (
            {"temperature": 2, "model_parameters": {"top_k": 3}},
            {"temperature": 2, "model_parameters": {"top_p": 0.5, "top_k": 3}},
        ),
        ({"samples": 2}, {"samples": 2}),
    ],
)
def test_sampling_is_that_of_the_request_where_no_prompt_is_sent_twice(
    settings: dict[str, Any], context: dict[str, Any]
) -> None:
    request = body(model="chain_of_thought", temperature=0, top_p=0.5, settings=settings)
    assert parse(request).context() == context


@pytest.mark.parametrize("strategy", ["react", "plan"])
def test_a_named_tool_is_the_only_one(strategy: str) -> None:
    context = parse(body(model=strategy, tools=TOOLS, tool_choice=NAMED)).context()
    assert context == {"client_tools": TOOLS[1:], "call_client_tool": True}


@pytest.mark.parametrize("fields", [{"tools": TOOLS, "tool_choice": "none"}, {"tools": TOOLS}, {}])
def test_a_run_that_goes_on_has_to_call_a_tool_no_longer(fields: dict[str, Any]) -> None:
    result = {"role": "tool", "tool_call_id": "1", "content": "20"}
    request = body(model="react", messages=[HI, result], **fields)
    assert parse(request).context()["call_client_tool"] is False


@pytest.mark.parametrize("variable", ["REFLECT_PARALLEL_CALLS", "REFLECT_CALL_CLIENT_TOOL"])
def test_a_run_that_goes_on_calls_tools_as_the_operator_has_set(
    variable: str, rule_file: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule_file(settings=["client_tools"])
    name = variable.removeprefix("REFLECT_").lower()
    value = name == "call_client_tool"
    monkeypatch.setenv(variable, str(value))
    monkeypatch.setattr(checks, "_check", policy().check)
    result = {"role": "tool", "tool_call_id": "1", "content": "20"}
    context = parse(body(model="react", messages=[HI, result], tools=TOOLS)).context()
    assert context[name] is value
    check_settings_of("react", {"context": context})


IN_GAME = {"environment": "game24"}
NESTED = {"worker_settings": IN_GAME}
MEMBER = {"name": "a", "instructions": "b"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "plan", "settings": {"worker_settings": IN_GAME}}, "settings.worker_settings"),
        ({"model": "team", "settings": {"roles": [{**MEMBER, "settings": IN_GAME}]}}, "settings.roles"),
        (
            {"model": "team", "settings": {"roles": [{**MEMBER, "strategy": "plan", "settings": NESTED}]}},
            "settings.roles",
        ),
    ],
)
def test_tools_of_a_client_and_workers_in_an_environment_do_not_go_together(fields: dict[str, Any], param: str) -> None:
    refused = refusal(tools=TOOLS, **fields)
    assert (refused.status, refused.param) == (400, param)
    assert "pydantic" not in str(refused)
    assert parse(body(**fields)).context() == fields["settings"]


ORDINARY = {
    "max_tokens": 100,
    "seed": 1,
    "reasoning_effort": "low",
    "temperature": 0,
    "top_p": 0.5,
    "parallel_tool_calls": False,
}


@pytest.mark.parametrize(
    ("rules", "settings", "ignored"),
    [
        ({}, {"max_answer_tokens", "seed", "thinking", "temperature", "model_parameters", "parallel_calls"}, []),
        ({"settings": ["client_tools"]}, set(), [*ORDINARY]),
        ({"settings": ["client_tools", "temperature"]}, {"temperature"}, [*ORDINARY.keys() - {"temperature"}]),
        (
            {"settings": ["client_tools"], "sampling": {"temperature": None}},
            {"temperature"},
            [*ORDINARY.keys() - {"temperature"}],
        ),
    ],
)
def test_what_the_operators_rules_do_not_mention_is_ignored_by_name(
    rules: dict[str, Any], settings: set[str], ignored: list[str], rule_file: Callable[..., None]
) -> None:
    rule_file(**rules)
    request = parse(body(model="react", tools=TOOLS, **ORDINARY))
    assert request.context().keys() - {"client_tools"} == settings
    assert sorted(request.ignored) == sorted(ignored)


@pytest.mark.parametrize(
    ("fields", "context"),
    [
        ({"temperature": 0}, {"temperature": 0}),
        ({"settings": {"temperature": 0}}, {"temperature": 0}),
        ({"response_format": {"type": "json_object"}}, {"answer_schema": {"type": "object"}}),
    ],
)
def test_what_a_rule_bounds_and_what_an_answer_needs_is_left_to_the_gate(
    fields: dict[str, Any], context: dict[str, Any], rule_file: Callable[..., None]
) -> None:
    rule_file(settings=["n"], sampling={"temperature": [0.5, 1]})
    assert parse(body(model="react", **fields)).context() == context


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (ORDINARY, None),
        ({"temperature": 0.2}, 403),
        ({"top_k": 3}, None),
        ({"settings": {"seed": 1}}, 403),
        ({"response_format": {"type": "json_object"}}, 403),
    ],
)
def test_the_gate_refuses_only_what_a_rule_speaks_of(
    fields: dict[str, Any], status: int | None, rule_file: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule_file(settings=["client_tools"], sampling={"temperature": [0, 0.1]})
    monkeypatch.setattr(checks, "_check", policy().check)
    settings = {"context": parse(body(model="react", tools=TOOLS, **fields)).context()}
    if status is None:
        return check_settings_of("react", settings)
    with pytest.raises(Refused) as refused:
        check_settings_of("react", settings)
    assert refused.value.status == status


def test_a_parameter_that_the_operator_sets_is_his(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MODEL_PARAMETERS", '{"top_p": 0.9, "service_tier": "flex"}')
    request = parse(body(model="react", top_p=0.5, frequency_penalty=1))
    assert request.context() == {"model_parameters": {"frequency_penalty": 1}}
    assert request.ignored == ["top_p"]
    both = parse(body(model="react", frequency_penalty=1, settings={"model_parameters": {"top_k": 3}}))
    assert both.context() == {"model_parameters": {"frequency_penalty": 1, "top_k": 3}}


@pytest.mark.parametrize(
    ("effort", "thinking"), [("none", "off"), ("minimal", "low"), ("medium", "medium"), ("xhigh", "high")]
)
def test_an_effort_is_how_much_a_model_thinks(effort: str, thinking: str) -> None:
    assert parse(body(reasoning_effort=effort)).context() == {"thinking": thinking}


@pytest.mark.parametrize("name", ["temperature", "top_p", "n", "presence_penalty", "stop", "user", "tool_choice"])
def test_what_is_not_set_is_not_refused(name: str) -> None:
    assert parse(body(**{name: None})).context() == {}


def test_text_in_parts_is_text() -> None:
    parts = [{"type": "text", "text": "Why "}, {"type": "text", "text": "so?"}]
    assert parse(body(messages=[{"role": "user", "content": parts}])).question()[0]["content"] == "Why so?"


def test_a_thread_gets_only_new_messages() -> None:
    messages = [HI, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Why?"}]
    assert [message["content"] for message in parse(body(messages=messages)).question()] == ["Hi", "Hello", "Why?"]
    on_thread = parse(body(messages=messages, thread_id="a")).question()
    assert [message["content"] for message in on_thread] == ["Why?"]
