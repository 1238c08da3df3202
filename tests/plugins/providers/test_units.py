"""The pure functions against recorded cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pi_core import AssistantMessage, Context, Model, ModelCost, Tool, Usage, parse_message, user_message
from pi_plugins.providers._errors import is_overflow, is_overflow_text, is_recoverable_length, is_retryable_text
from pi_plugins.providers._strict_schema import strict_parameters, strict_schema
from pi_plugins.providers._text import clean, short_hash
from pi_plugins.providers._thinking import clamp_level, requested_level, supported_levels, with_thinking_budget
from pi_plugins.providers._tokens import cap_output, estimate_context
from pi_plugins.providers._usage import count, make_usage, price

Units = Callable[[str], list[Any]]

# The original retries neither this one nor treats it as an overflow; the server says itself that waiting helps.
RETRIED_HERE = "Throttling error: Too many tokens, please wait before trying again."


def plain_model(**fields: Any) -> Model:
    return Model.model_validate({"id": "m", "api": "a", "provider": "p", **fields})


def test_cost(units: Units) -> None:
    for case in units("cost"):
        target = plain_model(cost=ModelCost.model_validate(case["model_cost"]))
        assert price(target, Usage.model_validate(case["usage"])).to_json() == case["cost"]


def test_error_classification(units: Units) -> None:
    for case in units("error-classification"):
        text = case["errorMessage"]
        assert is_overflow_text(text) == case["overflow"], text
        assert is_overflow_text(text, "cerebras") == case["overflow_cerebras"], text
        assert is_retryable_text(text) == (case["retryable"] or text == RETRIED_HERE), text


def test_overflow_by_usage(units: Units) -> None:
    for case in units("overflow-usage"):
        usage = Usage.model_validate(case["usage"])
        message = AssistantMessage(
            content=[], api="a", provider="p", model="m", usage=usage, stop_reason=case["stopReason"]
        )
        assert is_overflow(message, case["contextWindow"]) == case["overflow"]
        assert is_recoverable_length(message, 4096) == case["recoverable_length_4096"]


def test_thinking_levels(units: Units) -> None:
    for case in units("thinking-levels"):
        target = plain_model(**case["model"])
        assert supported_levels(target) == case["supported"]
        assert {level: clamp_level(target, level) for level in case["clamp"]} == case["clamp"]


def test_off_asks_for_nothing() -> None:
    target = plain_model(reasoning=True, thinkingLevelMap={"off": None})
    assert requested_level(target, None) is None
    assert requested_level(target, "off") is None
    assert requested_level(target, "max") == "high"
    assert requested_level(plain_model(), "high") is None


def test_thinking_budget(units: Units) -> None:
    for case in units("thinking-budget"):
        for key, budgets in (("result", None), ("custom_medium_5000", {"medium": 5000})):
            wanted = case[key]["maxTokens"], case[key]["thinkingBudget"]
            got = with_thinking_budget(case["baseMaxTokens"], case["modelMaxTokens"], case["level"], budgets)
            assert got == wanted


def test_strict_schema(units: Units) -> None:
    for case in units("strict-schema"):
        try:
            result: Any = strict_schema(case["schema"])
        except ValueError as error:
            result = str(error)
        assert result == case.get("out", case.get("error"))


@pytest.mark.parametrize(
    ("sampling", "supported", "strict"),
    [
        (None, True, False),
        (False, True, False),
        ({"type": "json_schema", "strict": "prefer"}, True, True),
        ({"type": "json_schema", "strict": "prefer"}, False, False),
        ({"type": "json_schema", "strict": "require"}, True, True),
    ],
)
def test_strict_parameters(sampling: Any, supported: bool, strict: bool) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = Tool("t", "", schema, print, constrained_sampling=sampling)
    parameters, is_strict = strict_parameters(tool, supported=supported)
    assert is_strict is strict
    assert (parameters == schema) is not strict
    assert tool.schema == {"type": "object", "properties": {"path": {"type": "string"}}}


def test_a_tool_that_insists_on_what_cannot_be() -> None:
    sampling = {"type": "json_schema", "strict": "require"}
    tool = Tool("t", "", {"type": "object", "properties": {"a": {}}}, print, constrained_sampling=sampling)
    with pytest.raises(ValueError, match="schemas without a type are unsupported"):
        strict_parameters(tool, supported=True)
    wish = {"type": "json_schema", "strict": "prefer"}
    lenient = Tool("t", "", {"type": "object", "properties": {"a": {}}}, print, constrained_sampling=wish)
    assert strict_parameters(lenient, supported=True) == (lenient.schema, False)


def test_output_cap(units: Units) -> None:
    for case in units("max-tokens-clamp"):
        used = estimate_context(Context(messages=[user_message("x" * case["user_chars"])]))
        target = plain_model(contextWindow=case["contextWindow"])
        assert cap_output(target, case["requested"], used) == case["clamped"]


def test_estimate(units: Units) -> None:
    for case in units("estimate"):
        system = [message for message in case["messages"] if message["role"] == "system"]
        tools = [
            Tool(tool["name"], tool["description"], tool["parameters"], print)
            for message in system
            for tool in message["toolsAdded"]
        ]
        context = Context(
            system_prompt="".join(message["content"] for message in system),
            messages=[parse_message(message) for message in case["messages"] if message["role"] != "system"],
            tools=tools,
        )
        assert estimate_context(context) == case["estimate"]["tokens"], case["name"]


def test_text(units: Units) -> None:
    for case in units("sanitize"):
        assert clean(case["in"]) == case["out"]
    for case in units("short-hash"):
        assert short_hash(case["in"]) == case["out"]


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(3, 3), (3.9, 3), (-1, 0), (None, 0), ("3", 0), (True, 0), (float("inf"), 0), (float("nan"), 0)],
)
def test_count(value: Any, tokens: int) -> None:
    assert count(value) == tokens


@pytest.mark.parametrize(
    ("reported", "total", "from_provider"),
    [
        ({"cost": 0.5, "is_byok": False}, 0.5, True),
        ({"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.4}}, 0.5, True),
        (
            {
                "cost": 0.1,
                "is_byok": True,
                "cost_details": {
                    "upstream_inference_cost": None,
                    "upstream_inference_prompt_cost": 0.25,
                    "upstream_inference_completions_cost": 0.25,
                },
            },
            0.6,
            True,
        ),
        ({"cost": 0.5}, 2.0, False),
        ({"cost": -1, "is_byok": False}, 2.0, False),
        ({"cost": "0.5", "is_byok": False}, 2.0, False),
        (None, 2.0, False),
    ],
)
def test_cost_that_a_router_reports(reported: Any, total: float, from_provider: bool) -> None:
    prices = ModelCost(input=1_000_000, output=0)
    target = plain_model(provider="openrouter", cost=prices)
    usage = make_usage(target, prompt=2, output=0, reported=reported)
    assert usage.cost.total == pytest.approx(total)
    assert usage.cost.total_from_provider is from_provider
    other = make_usage(plain_model(cost=prices), prompt=2, output=0, reported=reported)
    assert other.cost.total == pytest.approx(2.0)
