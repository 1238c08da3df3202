"""How an answer of the responses API ends: reasons, failures, usage, abort."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pi_core import AbortController, Context, StreamEvent, StreamOptions, user_message
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .responses_events import COMPLETED, CREATED, Run, added, delta, done, final, function, kinds, last, message, sse

PROVIDER = OpenAIResponsesProvider


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays events."""
    return Run(played, reply, calls, model)


# --- how it ends ---


@pytest.mark.parametrize(
    ("kind", "response", "reason", "raw"),
    [
        ("completed", {}, "stop", "completed"),
        ("completed", {"status": None}, "stop", "completed"),
        ("completed", {"status": "in_progress"}, "stop", "in_progress"),
        ("completed", {"status": "brand_new"}, "stop", "brand_new"),
        ("completed", {"status": "incomplete"}, "length", "incomplete"),
        ("done", {"status": "completed"}, "stop", "completed"),
        ("incomplete", {"incomplete_details": None}, "length", "incomplete"),
        (
            "incomplete",
            {"incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "incomplete.max_output_tokens",
        ),
    ],
)
def test_reasons(run: Run, kind: str, response: Any, reason: str, raw: str) -> None:
    made = final(run(done(**message("a")), last(kind, **response)))
    assert (made.stop_reason, made.raw_stop_reason, made.text) == (reason, raw, "a")


@pytest.mark.parametrize(
    ("events", "text", "kind", "retryable"),
    [
        (
            [last("failed", error={"code": "server_error", "message": "boom"})],
            "server_error: boom",
            "server_error",
            True,
        ),
        ([last("failed", error={"message": ""})], "unknown: no message", None, False),
        ([last("failed", error="broken")], "broken", None, False),
        ([last("failed", incomplete_details={"reason": "why"})], "incomplete: why", None, False),
        ([last("failed")], "The response ended as failed; the server does not say why", None, False),
        ([last("cancelled")], "The response ended as cancelled; the server does not say why", None, False),
        ([last(status="failed", error={"code": "c", "message": "m"})], "c: m", "c", False),
        (
            [last("incomplete", incomplete_details={"reason": "content_filter"})],
            "Response incomplete: content_filter",
            None,
            False,
        ),
        (
            [{"type": "error", "code": "rate_limit_exceeded", "message": "Rate limit reached"}],
            "Error Code rate_limit_exceeded: Rate limit reached",
            "rate_limit_exceeded",
            True,
        ),
        (
            [{"type": "error", "error": {"type": "overloaded", "code": 503, "message": "Overloaded"}}],
            "Overloaded",
            "overloaded",
            True,
        ),
        ([{"type": "error", "error": "plain words"}], "plain words", None, False),
        ([{"error": {"message": "no", "code": "x"}}], "no", "x", False),
        ([{"type": "error", "code": None, "message": None}], '{"code":null,"message":null}', None, False),
        ([{"type": "error"}], '{"type":"error"}', "error", False),
        ([b"[DONE]"], "OpenAI Responses stream ended before a terminal response event", None, True),
        ([], "OpenAI Responses stream ended before a terminal response event", None, True),
    ],
)
def test_failures(run: Run, events: list[Any], text: str, kind: str | None, retryable: bool) -> None:
    made = final(run(CREATED, added(**message()), delta("kept"), *events))
    assert (made.stop_reason, made.error_message, made.text) == ("error", text, "kept")
    assert made.error_details is not None
    assert (made.error_details.type, made.error_details.retryable) == (kind, retryable)


def test_an_error_event_by_its_name_alone(run: Run) -> None:
    made = final(run(body=b'event: error\ndata: {"message":"no"}\n\n'))
    assert (made.stop_reason, made.error_message) == ("error", "no")


def test_usage_of_a_failure(run: Run) -> None:
    made = final(
        run(last("failed", error={"code": "c", "message": "m"}, usage={"input_tokens": 3, "output_tokens": 2}))
    )
    assert (made.usage.input, made.usage.output, made.usage.total_tokens) == (3, 2, 5)
    assert made.raw_stop_reason == "failed"


def test_an_empty_answer_is_one(run: Run) -> None:
    made = final(run(CREATED, COMPLETED))
    assert (made.content, made.stop_reason) == ([], "stop")


def test_an_answer_in_one_piece(run: Run) -> None:
    response = {"object": "response", "id": "r", "model": "big", "status": "completed", "error": None}
    output = [{"type": "reasoning", "id": "rs", "encrypted_content": "E"}, message("a"), function("{}"), {"type": "x"}]
    made = final(run(body=json.dumps({**response, "output": output, "usage": {"input_tokens": 1}}).encode()))
    assert [block.type for block in made.content] == ["thinking", "text", "toolCall"]
    assert (made.stop_reason, made.response_model, made.usage.input) == ("toolUse", "big", 1)
    failed = {**response, "status": "failed", "error": {"code": "c", "message": "m"}}
    assert final(run(body=json.dumps(failed).encode())).error_message == "c: m"


def test_an_answer_of_the_chat_completions_api(run: Run) -> None:
    chunks = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in ("a", "b")
    ]
    stop = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    events = run(*chunks, stop, b"[DONE]")
    assert kinds(events) == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    assert (final(events).text, final(events).usage.input) == ("ab", 3)
    assert final(run(*chunks)).error_message == "Stream ended without finish_reason"


# --- usage ---


@pytest.mark.parametrize(
    ("tier", "model_id", "total"),
    [
        ("flex", "m", 1.0),
        ("default", "m", 2.0),
        (None, "m", 2.0),
        ("priority", "m", 4.0),
        ("fast", "m", 4.0),
        ("priority", "gpt-5.5", 5.0),
    ],
)
def test_prices_of_service_tiers(run: Run, tier: str | None, model_id: str, total: float) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    cost = {"input": 1_000_000, "output": 1_000_000}
    made = final(run(last(usage=usage, service_tier=tier), id=model_id, cost=cost))
    assert made.usage.cost.total == pytest.approx(total)
    asked = {"service_tier": tier or "auto"}
    made = final(run(last(usage=usage), id=model_id, cost=cost, samplingParams=asked))
    assert made.usage.cost.total == pytest.approx(total)


def test_cost_that_a_router_reports(run: Run) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1, "cost": 0.25, "is_byok": False}
    made = final(run(last(usage=usage, service_tier="flex"), provider="openrouter"))
    assert (made.usage.cost.total, made.usage.cost.total_from_provider) == (0.25, True)


# --- abort ---


def test_abort_keeps_what_arrived(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> list[StreamEvent]:
        body = sse(CREATED, added(**message()), delta("hello"))
        async with serve(reply([body], then="stall")) as server:
            controller = AbortController()
            context, options = Context(messages=[user_message("x")]), StreamOptions(signal=controller.signal)
            events = []
            async for item in PROVIDER().stream(model(base_url=server.url), context, options):
                events.append(item)
                if item.type == "text_delta":
                    controller.abort()
            await asyncio.wait_for(server.gone.wait(), 5)
            return events

    made = final(asyncio.run(go()))
    assert (made.stop_reason, made.text) == ("aborted", "hello")
