"""Dialects of the responses API stream: what each event means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pi_core import (
    AbortController,
    AssistantMessage,
    Context,
    StreamEvent,
    StreamOptions,
    ThinkingContent,
    Tool,
    user_message,
)
from pi_plugins.providers._errors import is_retryable
from pi_plugins.providers._responses_input import HOSTED_ITEMS
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

PROVIDER = OpenAIResponsesProvider

Run = Callable[..., list[StreamEvent]]

GRAMMAR = {"type": "grammar", "variants": {"openai_lark": "start: /.+/"}}
SCHEMA = {"type": "object", "properties": {"patch": {"type": "string"}}, "required": ["patch"]}
PATCH = Tool("apply_patch", "", SCHEMA, print, constrained_sampling=GRAMMAR)


def event(kind: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}", **place, **fields}


def added(index: int | None = 0, **item: Any) -> dict[str, Any]:
    return event("output_item.added", index, item=item)


def done(index: int | None = 0, **item: Any) -> dict[str, Any]:
    return event("output_item.done", index, item=item)


def delta(text: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return event("output_text.delta", index, delta=text, **fields)


def message(text: str | None = None, item_id: str = "m0") -> dict[str, Any]:
    content = [] if text is None else [{"type": "output_text", "text": text}]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}


def function(arguments: Any = "", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_0", "call_id": "c0", "name": "read", "arguments": arguments, **fields}


def custom(text: str = "") -> dict[str, Any]:
    return {"type": "custom_tool_call", "id": "ctc_0", "call_id": "c0", "name": "apply_patch", "input": text}


def last(kind: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "r", "status": kind, **response}}


def sse(*events: Any) -> bytes:
    lines = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in events]
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


CREATED = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
COMPLETED = last()


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays events and returns the stream events; the last one is the final event."""

    def play(*events: Any, tools: Any = (), body: bytes | None = None, **fields: Any) -> list[StreamEvent]:
        provider, _ = played(reply([sse(*events) if body is None else body]))
        context = Context(messages=[user_message("x")], tools=tools)
        return asyncio.run(calls.collect(provider.stream(model(**fields), context, calls.options({"maxRetries": 0}))))

    return play


def final(events: list[StreamEvent]) -> AssistantMessage:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    return events[-1].message


def kinds(events: list[StreamEvent]) -> list[str]:
    return [event.type for event in events]


# --- text ---


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([added(**message()), delta("a"), delta("b"), done(**message("ab"))], "ab"),
        ([added(**message()), delta("a"), done(**message("final"))], "final"),
        ([added(**message()), delta("a"), event("output_text.done", text="given", content_index=0)], "given"),
        ([added(**message()), delta("a"), event("output_text.done", text="given"), done(**message())], "given"),
        ([added(**message()), delta("a"), done(**message())], "a"),
        ([added(**message()), delta("a"), done(**message(""))], "a"),
        ([added(**message()), delta("a")], "a"),
        ([done(**message("only"))], "only"),
        ([delta("lost"), done(**message("kept"))], "kept"),
        ([added(**message()), done(**message("once")), done(**message("once"))], "once"),
        ([added(**message()), delta("a"), added(**message()), delta("b"), done(**message("ab"))], "ab"),
        (
            [
                added(**message()),
                delta("a"),
                delta("late", 1),
                event("output_text.delta", delta=None),
                done(**message("a")),
            ],
            "a",
        ),
        ([done(content="no type"), done(**{**message("a"), "content": ["odd", {"text": "a"}]})], "a"),
        ([{"type": "response.keepalive"}, [], 3, None, {}, {"type": 3}, done(**message("a"))], "a"),
    ],
)
def test_text(run: Run, events: list[Any], text: str) -> None:
    made = final(run(CREATED, *events, COMPLETED))
    assert (made.text, made.stop_reason, made.raw_stop_reason) == (text, "stop", "completed")
    assert made.response_id == "r"


def test_ids_that_change_from_event_to_event(run: Run) -> None:
    made = final(
        run(
            {"type": "response.created", "response": {"id": "r1"}},
            added(**message(item_id="a")),
            delta("x", item_id="b"),
            added(1, **function(id="c", call_id="k")),
            event("function_call_arguments.delta", 1, item_id="d", delta="{}"),
            done(**message("x", item_id="e")),
            done(1, **function("{}", id="f", call_id="k")),
            {"type": "response.completed", "response": {"id": "r2", "status": "completed"}},
        )
    )
    assert (made.text, made.response_id, made.stop_reason) == ("x", "r2", "toolUse")
    assert [(call.id, call.arguments) for call in made.tool_calls] == [("k|c", {})]
    assert json.loads(made.content[0].text_signature or "") == {"v": 1, "id": "e"}


def test_items_without_index(run: Run) -> None:
    first, second = function(id="fc_1", call_id="c1"), function(id="fc_2", call_id="c2")
    made = final(
        run(
            added(None, **message()),
            delta("a", None, item_id="m0"),
            delta("b", None),
            delta("lost", None, item_id="other"),
            added(None, **first),
            added(None, **second),
            event("function_call_arguments.delta", None, item_id="fc_1", delta='{"a":1}'),
            event("function_call_arguments.delta", None, item_id="fc_2", delta='{"a":2}'),
            done(None, **message("ab")),
            done(None, **{**first, "arguments": '{"a":1}'}),
            done(None, **{**second, "arguments": '{"a":2}'}),
            last(output=[message("ab"), first, second]),
        )
    )
    assert made.text == "ab"
    assert [(call.id, call.arguments) for call in made.tool_calls] == [("c1|fc_1", {"a": 1}), ("c2|fc_2", {"a": 2})]


def test_every_item_at_the_same_index(run: Run) -> None:
    made = final(run(done(0, **function("{}", call_id="c1")), done(0, **function('{"a":1}', call_id="c2", id="fc_1"))))
    assert [call.id for call in made.tool_calls] == ["c1|fc_0", "c2|fc_1"]


def test_halves_of_pairs(run: Run) -> None:
    halves = [
        b'{"type":"response.output_text.delta","output_index":0,"delta":"%s"}' % half
        for half in (rb"a\ud83d", rb"\ude00", rb"\ud83d")
    ]
    made = final(run(added(**message()), *halves, COMPLETED))
    assert made.text == "a\U0001f600\ufffd"
    item = json.dumps(message("\ud83dx", "m\ud83d"))
    made = final(run(f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}'.encode(), COMPLETED))
    assert made.text == "x"
    assert made.content[0].text_signature == '{"v":1,"id":"m"}'


# --- calls ---


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        ([added(**function()), done(**function('{"a":1}'))], {"a": 1}),
        ([done(**function('{"a":1}'))], {"a": 1}),
        ([done(**function({"a": 1}))], {"a": 1}),
        ([added(**function('{"a":1}')), done(**function())], {"a": 1}),
        ([done(**function(""))], {}),
        ([done(**function(None))], {}),
        (
            [
                added(**function()),
                event("function_call_arguments.delta", delta='{"a"'),
                event("function_call_arguments.done", arguments='{"a":1}'),
                done(**function()),
            ],
            {"a": 1},
        ),
        (
            [
                added(**function()),
                event("function_call_arguments.delta", delta='{"b"'),
                event("function_call_arguments.done", arguments='{"a":1}'),
                done(**function()),
            ],
            {"a": 1},
        ),
    ],
)
def test_where_arguments_come_from(run: Run, events: list[Any], arguments: dict[str, Any]) -> None:
    made = final(run(*events, COMPLETED))
    [call] = made.tool_calls
    assert (call.id, call.name, call.arguments, call.arguments_error) == ("c0|fc_0", "read", arguments, None)
    assert made.stop_reason == "toolUse"


def test_the_end_of_arguments_adds_what_is_missing(run: Run) -> None:
    events = run(
        added(**function()),
        event("function_call_arguments.delta", delta='{"a"'),
        event("function_call_arguments.done", arguments='{"a":1}'),
        done(**function('{"a":1}')),
        COMPLETED,
    )
    assert [event.delta for event in events if event.type == "toolcall_delta"] == ['{"a"', ":1}"]


def test_ids_of_calls(run: Run) -> None:
    made = final(
        run(
            done(0, **function(id="")),
            done(1, **function(call_id=None, id="fc_1")),
            done(2, type="function_call", name="read", arguments="{}"),
            done(3, **function(id="fc_3", call_id="c3", namespace="crm")),
            COMPLETED,
        )
    )
    bare, item_only, made_up, named = made.tool_calls
    assert (bare.id, item_only.id) == ("c0", "fc_1")
    assert made_up.id.startswith("call_")
    assert (named.id, named.namespace) == ("c3|fc_3", "crm")


def test_a_call_whose_end_is_only_in_the_whole_answer(run: Run) -> None:
    events = run(
        added(**function()),
        event("function_call_arguments.delta", delta='{"a":1}'),
        last(output=[function('{"a":1}')]),
    )
    assert kinds(events)[-2:] == ["toolcall_end", "done"]
    assert final(events).stop_reason == "toolUse"


def test_an_unfinished_call_may_be_tried_again(run: Run) -> None:
    made = final(run(added(**function()), event("function_call_arguments.delta", delta='{"a":1}'), COMPLETED))
    assert made.error_message == "OpenAI Responses stream completed with an unfinished tool call: read (c0|fc_0)"
    assert is_retryable(made)


def test_a_call_cut_by_the_token_limit(run: Run) -> None:
    incomplete = last("incomplete", incomplete_details={"reason": "max_output_tokens"})
    made = final(run(added(**function()), event("function_call_arguments.delta", delta='{"a":"b'), incomplete))
    assert made.stop_reason == "length"
    [call] = made.tool_calls
    assert call.arguments == {}
    assert (call.arguments_error or "").endswith('{"a":"b')


@pytest.mark.parametrize(
    ("events", "deltas"),
    [
        (["a", 'b"\n'], ['{"patch":"a', 'b\\"\\n', '"}']),
        (["ab"], ['{"patch":"ab', '\\"\\n', '"}']),
        (["other"], ['{"patch":"other']),
        ([], []),
    ],
)
def test_free_text(run: Run, events: list[str], deltas: list[str]) -> None:
    made = run(
        added(**custom()),
        *(event("custom_tool_call_input.delta", delta=piece) for piece in events),
        *([event("custom_tool_call_input.done", input='ab"\n')] if events else []),
        done(**custom('ab"\n')),
        COMPLETED,
        tools=[PATCH],
        compat={"supportsOpenAIGrammarTools": True},
    )
    assert [event.delta for event in made if event.type == "toolcall_delta"] == deltas
    [call] = final(made).tool_calls
    assert (call.id, call.arguments) == ("c0|ctc_0", {"patch": 'ab"\n'})


def test_free_text_whose_rest_comes_at_the_end(run: Run) -> None:
    made = run(
        added(**custom()),
        event("custom_tool_call_input.delta", delta="a"),
        done(**custom("ab")),
        COMPLETED,
        tools=[PATCH],
        compat={"supportsOpenAIGrammarTools": True},
    )
    assert [event.delta for event in made if event.type == "toolcall_delta"] == ['{"patch":"a', "b", '"}']
    assert final(made).tool_calls[0].arguments == {"patch": "ab"}


def test_halves_of_pairs_in_arguments(run: Run) -> None:
    [call] = final(run(done(**function('{"a":"x\\ud83d"}')), COMPLETED)).tool_calls
    assert call.arguments == {"a": "x"}


# --- reasoning ---


def test_summaries(run: Run) -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "E"}
    events = run(
        added(type="reasoning", id="rs", summary=[]),
        event("reasoning_summary_text.delta", delta="one", summary_index=0),
        event("reasoning_summary_part.done", summary_index=0),
        event("reasoning_summary_text.delta", delta="two", summary_index=1),
        event("reasoning_summary_part.done", summary_index=1),
        done(**item),
        COMPLETED,
    )
    assert [event.delta for event in events if event.type == "thinking_delta"] == ["one", "\n\n", "two", "\n\n"]
    [block] = final(events).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "one\n\ntwo"
    assert json.loads(block.thinking_signature or "") == item


@pytest.mark.parametrize(
    "events",
    [
        [event("reasoning_text.delta", delta="deep"), done(type="reasoning", id="rs", summary=[])],
        [event("reasoning_text.done", text="deep", content_index=0), done(type="reasoning", id="rs")],
        [done(type="reasoning", id="rs", summary=[], content=[{"type": "reasoning_text", "text": "deep"}])],
        [event("reasoning_text.delta", delta="deep")],
    ],
)
def test_plain_reasoning(run: Run, events: list[Any]) -> None:
    [block] = final(run(added(type="reasoning", id="rs"), *events, COMPLETED)).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "deep"


def test_encrypted_reasoning_that_comes_at_the_end(run: Run) -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "s"}]}
    late = {**item, "id": "other", "encrypted_content": "LATE"}
    [block] = final(run(done(**item), last(output=[late, {**late, "id": "more"}, None]))).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "s"
    assert json.loads(block.thinking_signature or "") == {**item, "encrypted_content": "LATE"}


# --- what tools of the server leave ---


def test_hosted_items(run: Run) -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "\ud83d"}}
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    made = final(
        run(
            done(0, **reasoning),
            added(1, type="web_search_call", id="ws"),
            event("web_search_call.searching", 1),
            json.dumps(done(1, **search)).encode(),
            done(2, **message("found")),
            last(output=[reasoning, search, message("found")]),
        )
    )
    assert [block.type for block in made.content] == ["thinking", "text"]
    kept = {**search, "action": {"query": ""}}
    assert made.to_json()[HOSTED_ITEMS] == [{"before": 1, "item": kept}]


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
