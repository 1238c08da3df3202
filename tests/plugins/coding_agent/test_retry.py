"""Which failures are tried again, and after how long."""

from __future__ import annotations

from typing import Any

import pytest

from pi_core import AssistantMessage, ErrorDetails
from pi_plugins.coding_agent.retry import RetryPolicy, is_overflow
from pi_plugins.config.settings import RetrySettings


def policy(**settings: Any) -> RetryPolicy:
    return RetryPolicy(RetrySettings(**settings))


def failed(text: str = "500: internal server error", **details: Any) -> AssistantMessage:
    return AssistantMessage(
        content=[],
        api="a",
        provider="p",
        model="m",
        stop_reason="error",
        error_message=text,
        error_details=ErrorDetails(**details) if details else None,
    )


def test_the_delay_doubles_up_to_its_limit() -> None:
    chosen = policy(max_retries=6, base_delay_ms=2000, max_agent_delay_ms=10_000)
    assert [chosen.delay(failed(), attempt) for attempt in range(1, 8)] == [2, 4, 8, 10, 10, 10, None]
    assert chosen.max_retries == 6


def test_three_attempts_are_the_default() -> None:
    chosen = policy()
    assert [chosen.delay(failed(), attempt) for attempt in range(1, 5)] == [2, 4, 8, None]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_failure_of_the_moment_is_tried_again(status: int) -> None:
    assert policy().delay(failed("no words", status=status, retryable=True), 1) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_request_at_fault_is_never_sent_again_whatever_the_server_says(status: int) -> None:
    assert policy().delay(failed("overloaded, please try again", status=status, retryable=True), 1) is None


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("Overloaded", True),
        ("connection reset by peer", True),
        ("stream ended before its last event", True),
        ("429: you exceeded your current quota, check your billing", False),
        ("invalid x-api-key", False),
        ("prompt is too long: 210000 tokens > 200000 maximum", False),
        ("", False),
    ],
)
def test_without_details_the_text_decides(text: str, again: bool) -> None:
    assert (policy().delay(failed(text), 1) is not None) is again


def test_what_the_provider_knows_stands_above_the_text() -> None:
    assert policy().delay(failed("overloaded", retryable=False), 1) is None
    assert policy().delay(failed("a fault of its own", retryable=True), 1) == 2


def test_an_aborted_response_is_not_tried_again() -> None:
    aborted = failed("terminated").model_copy(update={"stop_reason": "aborted"})
    assert policy().delay(aborted, 1) is None


def test_a_request_that_was_too_long_has_a_predicate_of_its_own() -> None:
    too_long = failed("prompt is too long: 210000 tokens > 200000 maximum", retryable=True)
    assert is_overflow(too_long)
    assert policy().delay(too_long, 1) is None


def test_the_delay_that_the_server_asks_for_is_waited_for() -> None:
    asked = failed(status=429, retryable=True, retry_after_ms=45_000)
    assert policy().delay(asked, 1) == 45
    assert policy().refusal(asked) is None


def test_a_server_that_asks_for_less_does_not_shorten_the_delay() -> None:
    assert policy().delay(failed(status=429, retryable=True, retry_after_ms=0), 2) == 4


def test_a_delay_above_the_limit_is_left_to_the_user_with_a_reason() -> None:
    asked = failed(status=429, retryable=True, retry_after_ms=3_600_000)
    assert policy().delay(asked, 1) is None
    assert policy().refusal(asked) == (
        "The server asks to wait 3600 s, and retry.maxAgentDelayMs allows 60 s: try again later, or raise the setting"
    )


def test_a_lasting_failure_gives_no_advice_to_wait() -> None:
    assert policy().refusal(failed(status=401, retryable=False, retry_after_ms=3_600_000)) is None
    assert policy().refusal(failed()) is None
