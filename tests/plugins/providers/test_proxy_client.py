"""The client of the proxy against what servers could send."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import (
    AbortController,
    Agent,
    AssistantMessage,
    Build,
    ConfigError,
    Context,
    Model,
    ProviderResponse,
    RunContext,
    SelectionContext,
    StreamOptions,
    TextContent,
    ThinkingContent,
    Tool,
    ToolCallContent,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, assert_plugin_contract, run_hook
from pi_plugins.models import ModelsPlugin
from pi_plugins.providers._connections import Connections
from pi_plugins.providers.proxy import ProxyPlugin, ProxyProvider

from .conftest import Played, Reply
from .fuzz import damage, damaged, lines, often, record, values

CONTEXT = Context(messages=[user_message("x")])
CLOSED = "Connection closed by proxy server before the response completed"
USAGE = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": {"total": 0.5}}
SOMEWHERE = {"PI_PROXY_URL": "http://127.0.0.1:1"}
START = {"type": "start"}
DONE = {"type": "done", "reason": "stop", "usage": USAGE}


def provider(connections: Connections | None = None) -> ProxyProvider:
    return ProxyProvider(connections=connections)


PROVIDER = provider


def sse(*events: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def text(*deltas: str, index: int = 0) -> list[Any]:
    return [
        {"type": "text_start", "contentIndex": index},
        *({"type": "text_delta", "contentIndex": index, "delta": delta} for delta in deltas),
    ]


def final(events: list[Any]) -> AssistantMessage:
    message: AssistantMessage = events[-1].message
    return message


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


# --- the request ---


def test_what_is_sent(serve: Any, reply: Any, calls: Any) -> None:
    asked = Model(
        id="m", provider="p", api="proxy", headers={"x-route": "eu"}, reasoning=True, context_window=5, max_tokens=4
    )
    tool = Tool("add", "Add.", {"type": "object"}, lambda *_: None, constrained_sampling={"strict": True})
    options = StreamOptions(
        api_key="TOKEN",
        temperature=0.5,
        sampling_params={"top_k": 4},
        max_tokens=9,
        reasoning="low",
        cache_retention="long",
        session_id="s",
        headers={"h": "1"},
        metadata={"m": 1},
        transport="sse",
        thinking_budgets={"low": 1},
        max_retry_delay_ms=3,
        timeout_ms=60_000,
        max_retries=0,
    )

    async def go() -> Any:
        async with serve(reply([sse(START, DONE)])) as server:
            model = asked.model_copy(update={"base_url": server.url + "/"})
            await calls.collect(ProxyProvider().stream(model, Context("Be kind", CONTEXT.messages, [tool]), options))
            return server.requests[0], model

    request, model = asyncio.run(go())
    assert (request.method, request.path) == ("POST", "/v1/api/stream")
    assert request.headers["authorization"] == "Bearer TOKEN"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-route"] == "eu"
    assert "h" not in request.headers
    expected = model.to_json()
    del expected["headers"]
    assert request.json["model"] == expected
    assert request.json["context"] == {
        "systemPrompt": "Be kind",
        "messages": [message.to_json() for message in CONTEXT.messages],
        "tools": [
            {
                "name": "add",
                "description": "Add.",
                "parameters": {"type": "object"},
                "constrainedSampling": {"strict": True},
            }
        ],
    }
    assert request.json["options"] == {
        "temperature": 0.5,
        "samplingParams": {"top_k": 4},
        "maxTokens": 9,
        "reasoning": "low",
        "cacheRetention": "long",
        "sessionId": "s",
        "headers": {"h": "1"},
        "metadata": {"m": 1},
        "transport": "sse",
        "thinkingBudgets": {"low": 1},
        "maxRetryDelayMs": 3,
    }


def test_a_model_of_another_api_goes_through_the_proxy_whole(serve: Any, reply: Any, calls: Any) -> None:
    asked = SCRIPTED_MODEL.model_copy(update={"headers": {"x-route": "eu"}, "base_url": "http://127.0.0.1:1"})

    async def go() -> Any:
        async with serve(reply([sse(START, *text("hi"), DONE)])) as server:
            stream = ProxyProvider(server.url, "TOKEN").stream(asked, CONTEXT, StreamOptions(api_key="OTHER"))
            return await calls.collect(stream), server.requests[0]

    events, request = asyncio.run(go())
    assert request.headers["authorization"] == "Bearer TOKEN"
    assert "x-route" not in request.headers
    assert request.json["model"]["headers"] == {"x-route": "eu"}
    assert (final(events).api, final(events).provider, final(events).model) == ("scripted", "scripted", "scripted")


def test_address_and_token_from_the_environment(
    serve: Any, reply: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> Any:
        async with serve(reply([sse(START, DONE)])) as server:
            monkeypatch.setenv("PI_PROXY_URL", server.url)
            monkeypatch.setenv("PI_PROXY_TOKEN", " TOKEN ")
            events = await calls.collect(
                ProxyProvider().stream(SCRIPTED_MODEL, CONTEXT, StreamOptions(api_key="OTHER"))
            )
            return events, server.requests[0].headers["authorization"]

    events, sent = asyncio.run(go())
    assert events[-1].type == "done"
    assert sent == "Bearer TOKEN"


@pytest.mark.parametrize("url", ["", "ftp://host", "proxy.example"])
def test_without_an_address_nothing_is_asked(url: str, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PI_PROXY_URL", raising=False)
    model = Model(id="m", provider="p", api="proxy", base_url=url)
    events = asyncio.run(calls.collect(ProxyProvider().stream(model, CONTEXT, StreamOptions())))
    assert types(events) == ["error"]
    assert "PI_PROXY_URL" in (final(events).error_message or "")


def test_without_a_token_another_machine_is_not_asked(calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PI_PROXY_TOKEN", raising=False)
    model = Model(id="m", provider="p", api="proxy", base_url="https://proxy.example")
    events = asyncio.run(calls.collect(ProxyProvider().stream(model, CONTEXT, StreamOptions())))
    assert (
        final(events).error_message == "No token for the proxy at proxy.example. Set PI_PROXY_TOKEN, or pass --api-key."
    )


def test_the_callbacks_see_the_request_and_the_response(play: Any, reply: Any) -> None:
    seen: list[Any] = []

    def on_payload(payload: Any, model: Model) -> Any:
        seen.append(payload["model"]["id"])
        return {**payload, "further": 1}

    def transform(headers: Any) -> Any:
        return {**headers, "x-trace": "1"}

    def on_response(response: ProviderResponse, model: Model) -> None:
        seen.append(response.status)

    events, server = play(
        reply([sse(START, DONE)]), on_payload=on_payload, transform_headers=transform, on_response=on_response
    )
    assert events[-1].type == "done"
    assert seen == ["test-model", 200]
    assert server.requests[0].json["further"] == 1
    assert server.requests[0].headers["x-trace"] == "1"


def test_a_tool_choice_does_not_travel_and_says_so(play: Any, reply: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pi.proxy"):
        _, server = play(reply([sse(START, DONE)]), tool_choice="required")
    assert "toolChoice" not in server.requests[0].json["options"]
    assert "tool_choice does not travel" in caplog.text


def test_connections_stay_open_between_requests(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> int:
        async with serve(reply([sse(START, *text("hi"), DONE)])) as server:
            one = ProxyProvider()
            for _ in range(3):
                await calls.collect(one.stream(model(base_url=server.url), CONTEXT, StreamOptions()))
            return int(server.connections)

    assert asyncio.run(go()) == 1


# --- the answer ---


def test_the_message_is_put_together(play: Any, reply: Any) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "a", "arguments": {"x": 1}, "namespace": "ns", "index": 3}
    events, _ = play(
        reply(
            [
                sse(
                    START,
                    {"type": "thinking_start", "contentIndex": 0},
                    {"type": "thinking_delta", "contentIndex": 0, "delta": "hm"},
                    {"type": "thinking_end", "contentIndex": 0, "contentSignature": "ts"},
                    *text("Hel", "lo", index=1),
                    {"type": "text_end", "contentIndex": 1},
                    {"type": "toolcall_start", "contentIndex": 2, "id": "c1", "toolName": "a"},
                    {"type": "toolcall_delta", "contentIndex": 2, "delta": '{"x":'},
                    {"type": "toolcall_end", "contentIndex": 2, "toolCall": call},
                    {"type": "toolcall_start", "contentIndex": 3, "id": "c2", "toolName": "b"},
                    {"type": "toolcall_delta", "contentIndex": 3, "delta": '{"y":2}'},
                    {"type": "toolcall_end", "contentIndex": 3, "toolCall": {}},
                    {**DONE, "reason": "toolUse", "providerThinkingLevel": "high"},
                )
            ]
        )
    )
    message = final(events)
    assert message.content == [
        ThinkingContent(thinking="hm", thinking_signature="ts"),
        TextContent(text="Hello"),
        ToolCallContent(id="c1", name="a", arguments={"x": 1}, namespace="ns"),
        ToolCallContent(id="c2", name="b", arguments={"y": 2}),
    ]
    assert (message.stop_reason, message.provider_thinking_level) == ("toolUse", "high")
    assert (message.usage.total_tokens, message.usage.cost.total) == (3, 0.5)
    assert (message.api, message.provider, message.model) == ("proxy", "local", "test-model")


def test_what_follows_the_final_event_is_not_read(play: Any, reply: Any) -> None:
    events, server = play(reply([sse(START, DONE, *text("late"))], then="stall"))
    assert types(events) == ["start", "done"]
    assert server.gone.is_set()


def test_an_event_is_there_as_soon_as_its_line_is(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> list[str]:
        async with serve(reply([b'data: {"type":"start"}\n'], then="stall")) as server:
            stream = ProxyProvider().stream(model(base_url=server.url), CONTEXT, StreamOptions())
            first = await asyncio.wait_for(anext(stream), 5)
            await stream.aclose()
            return [first.type]

    assert asyncio.run(go()) == ["start"]


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + sse(START, *text("\u00e9"), DONE),
        sse(START, *text("\u00e9"), DONE).replace(b"\n", b"\r\n"),
        sse(START, *text("\u00e9"), DONE).replace(b"\n\n", b"\n").rstrip(),
        b": hello\nevent: x\ndata:{}\ndata: \nid: 1\n" + sse(START, *text("\u00e9"), DONE),
    ],
    ids=["byte order mark", "CRLF", "no empty lines", "other lines"],
)
def test_lines_count_when_they_begin_with_data(body: bytes, played: Any, reply: Any, model: Any, calls: Any) -> None:
    for pieces in ([body], [body[at : at + 1] for at in range(len(body))]):
        one, _ = played(reply(pieces))
        events = asyncio.run(calls.collect(one.stream(model(), CONTEXT, StreamOptions())))
        assert types(events) == ["start", "text_start", "text_delta", "done"]
        assert final(events).text == "\u00e9"


def test_halves_of_a_character_in_two_events_are_joined(play: Any, reply: Any) -> None:
    halves = [*text("\ud83d", "\ude00 and \ud83d"), {"type": "text_end", "contentIndex": 0}]
    events, _ = play(reply([sse(START, *halves, DONE)]))
    assert final(events).text == "\U0001f600 and \ufffd"
    assert "".join(event.delta for event in events if event.type == "text_delta") == "\U0001f600 and \ufffd"


def test_an_answer_without_a_start_gets_one(play: Any, reply: Any) -> None:
    events, _ = play(reply([sse(*text("a"), DONE)]))
    assert types(events) == ["start", "text_start", "text_delta", "done"]
    events, _ = play(reply([sse(DONE)]))
    assert types(events) == ["start", "done"]
    events, _ = play(reply([sse(START, START, DONE)]))
    assert types(events) == ["start", "done"]


def test_an_unknown_event_is_passed_over_and_logged_once(
    play: Any, reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pi.proxy"):
        events, _ = play(reply([sse(START, {"type": "ping"}, {"type": "ping"}, {"type": 5}, 7, {}, DONE)]))
    assert types(events) == ["start", "done"]
    assert caplog.text.count("unknown type ping") == 1


def test_the_final_event_may_bring_what_the_others_cannot_say(play: Any, reply: Any) -> None:
    done = {
        **DONE,
        "content": [{"type": "new_kind", "data": 1}, {"type": "text", "text": "whole"}],
        "responseId": "r1",
        "responseModel": "m-2",
        "rawStopReason": "end",
        "endTurn": True,
    }
    events, _ = play(reply([sse(START, *text("so far"), done)]))
    message = final(events)
    assert [block.type for block in message.content] == ["new_kind", "text"]
    assert (message.text, message.response_id, message.response_model) == ("whole", "r1", "m-2")
    assert (message.raw_stop_reason, message.end_turn) == ("end", True)


def test_an_error_of_the_provider_keeps_what_is_known_about_it(play: Any, reply: Any) -> None:
    details = {"type": "overloaded_error", "status": 529, "retryable": True}
    error = {"type": "error", "reason": "error", "errorMessage": "overloaded", "usage": USAGE, "errorDetails": details}
    events, _ = play(reply([sse(START, *text("par"), error)]))
    message = final(events)
    assert (message.error_message, message.text, message.usage.output) == ("overloaded", "par", 2)
    assert message.error_details is not None
    assert message.error_details.to_json() == details


@pytest.mark.parametrize("reason", ["error", None, "stop"])
def test_an_error_without_words_has_some(play: Any, reply: Any, reason: Any) -> None:
    events, _ = play(reply([sse(START, {"type": "error", "reason": reason, "usage": USAGE})]))
    assert final(events).stop_reason == "error"
    assert final(events).error_message == "The proxy reported an error and did not say which"


# --- failures ---


CALL = {"type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "a"}
THINKING = {"type": "thinking_start", "contentIndex": 0}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([{"type": "text_delta", "contentIndex": 0, "delta": "x"}], "Received text_delta for non-text content"),
        ([{"type": "text_delta", "delta": "x"}], "Received text_delta for non-text content"),
        ([{"type": "text_delta", "contentIndex": [], "delta": "x"}], "Received text_delta for non-text content"),
        ([THINKING, {"type": "text_end", "contentIndex": 0}], "Received text_end for non-text content"),
        ([*text(), {"type": "thinking_end", "contentIndex": 0}], "Received thinking_end for non-thinking content"),
        (
            [*text(), {"type": "thinking_delta", "contentIndex": 0, "delta": ""}],
            "Received thinking_delta for non-thinking content",
        ),
        (
            [*text(), {"type": "toolcall_delta", "contentIndex": 0, "delta": ""}],
            "Received toolcall_delta for non-toolCall content",
        ),
        ([{"type": "text_start"}], "Received text_start with the content index None"),
        ([{"type": "text_start", "contentIndex": -1}], "Received text_start with the content index -1"),
        ([*text(), {"type": "text_delta", "contentIndex": 0}], "Received text_delta without a text"),
        ([*text(), {"type": "text_end", "contentIndex": 0, "contentSignature": 5}], "signature that is no text"),
        ([{**CALL, "id": 5}], "Received toolcall_start with an id or a name that is no text"),
        ([CALL, {"type": "toolcall_end", "contentIndex": 0}], "Received toolcall_end without a tool call"),
        (
            [CALL, {"type": "toolcall_end", "contentIndex": 0, "toolCall": {"arguments": 5}}],
            "Received toolcall_end with a wrong arguments",
        ),
        ([{**DONE, "usage": {"input": "many"}}], "Received done with a wrong usage.input"),
        ([{**DONE, "reason": "tired"}], "Received done with the reason 'tired'"),
        ([{**DONE, "reason": ["stop"]}], "Received done with the reason"),
        ([{**DONE, "content": 5}], "Received done with a wrong content"),
    ],
)
def test_what_makes_no_sense_is_an_error(play: Any, reply: Any, sent: list[Any], words: str) -> None:
    events, _ = play(reply([sse(START, *sent, DONE)]))
    message = final(events)
    assert message.stop_reason == "error"
    assert words in (message.error_message or "")
    assert message.error_details is not None
    assert message.error_details.retryable is False


def test_the_end_of_a_call_that_is_none_is_passed_over(play: Any, reply: Any) -> None:
    end = {"type": "toolcall_end", "contentIndex": 0, "toolCall": {}}
    events, _ = play(reply([sse(START, *text("a"), end, DONE)]))
    assert (events[-1].type, final(events).text) == ("done", "a")


def test_what_is_no_json_is_quoted(play: Any, reply: Any) -> None:
    events, _ = play(reply([sse(START, *text("so far")) + b"data: {nope}\n\n"]))
    assert final(events).error_message == "The server sent an event that is not JSON: {nope}"
    assert final(events).text == "so far"


@pytest.mark.parametrize("then", ["end", "drop"])
@pytest.mark.parametrize("sent", [[], text("par")], ids=["nothing", "some text"])
def test_a_proxy_that_goes_away_is_an_error_that_may_be_over_soon(
    play: Any, reply: Any, then: str, sent: list[Any]
) -> None:
    events, _ = play(reply([sse(*sent)] if sent else [], then=then))
    message = final(events)
    assert (message.stop_reason, message.error_message) == ("error", CLOSED)
    assert message.text == ("par" if sent else "")
    assert message.error_details is not None
    assert message.error_details.retryable is True


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            b"<html><head><title>Welcome</title></head>" + b"<p>Hello</p>" * 50 + b"</html>",
            'HTML page "Welcome": Hello',
        ),
        (b'{"error": "use POST"}', '{"error": "use POST"}'),
    ],
)
def test_what_is_no_stream_is_shown(play: Any, reply: Any, body: bytes, shown: str) -> None:
    events, _ = play(reply([body]))
    message = final(events)
    assert (message.error_message or "").startswith(f"{CLOSED}. It sent this instead of events: {shown}")
    assert message.error_details is not None
    assert message.error_details.retryable is False


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "bad token"}', "Proxy error: bad token"),
        (b'{"error": {"message": "bad token", "code": 5}}', "Proxy error: bad token"),
        (b'{"error": {"code": 5}}', 'Proxy error: {"code":5}'),
        (b'{"error": ""}', "Proxy error: 401 Whatever"),
        (b'{"message": "x"}', "Proxy error: 401 Whatever"),
        (b"[" * 100_000, "Proxy error: 401 Whatever"),
        (b"<html>no</html>", "Proxy error: 401 Whatever"),
        (b"", "Proxy error: 401 Whatever"),
    ],
)
def test_a_refusal_has_the_words_of_the_proxy(play: Any, reply: Any, body: bytes, words: str) -> None:
    events, _ = play(reply([body], 401, {"x-request-id": "r7"}))
    message = final(events)
    assert types(events) == ["error"]
    assert message.error_message == words
    assert message.error_details is not None
    assert (message.error_details.status, message.error_details.request_id) == (401, "r7")


def test_a_refused_request_is_made_again_only_when_asked(play: Any, reply: Any) -> None:
    busy, good = reply([b'{"error": "busy"}'], 503, {}), reply([sse(START, DONE)])
    events, server = play(busy, good)
    assert (final(events).error_message, len(server.requests)) == ("Proxy error: busy", 1)
    events, server = play(busy, good, max_retries=1)
    assert (events[-1].type, len(server.requests)) == ("done", 2)


def test_the_token_is_in_no_error(play: Any, reply: Any) -> None:
    events, _ = play(reply([b'{"error": "unknown token SECRET99, header TOP-SECRET"}'], 401, {}), api_key="SECRET99")
    assert final(events).error_message == "Proxy error: unknown token ***, header TOP-SECRET"
    headers = {"x-api-key": "TOP-SECRET"}
    events, _ = play(reply([sse(START) + b"data: TOP-SECRET SECRET99\n"]), api_key="SECRET99", headers=headers)
    assert final(events).error_message == "The server sent an event that is not JSON: *** ***"


def test_nobody_listens(calls: Any, model: Any) -> None:
    events = asyncio.run(calls.collect(ProxyProvider().stream(model(), CONTEXT, StreamOptions())))
    assert (final(events).error_message or "").startswith("Connection error: 127.0.0.1:1: ")


def test_a_connection_that_breaks_speaks_for_itself(model: Any, calls: Any) -> None:
    class Broken(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ReadError("socket hang up")

    one = ProxyProvider(connections=Connections(Broken))
    events = asyncio.run(calls.collect(one.stream(model(), CONTEXT, StreamOptions())))
    assert final(events).error_message == "socket hang up"


def test_silence_ends_the_response(play: Any, reply: Any) -> None:
    events, server = play(reply([sse(START, *text("par")), b": still here\n\n"], then="stall"), timeout_ms=300)
    assert "sent nothing for 0.3 s" in (final(events).error_message or "")
    assert final(events).text == "par"
    assert server.gone.is_set()


@pytest.mark.parametrize(("pieces", "then"), [([], "silent"), ([], "stall"), ([sse(START)], "stall")])
def test_abort_closes_the_socket(
    serve: Any, reply: Any, model: Any, calls: Any, pieces: list[bytes], then: str
) -> None:
    async def go() -> Any:
        async with serve(reply(pieces, then=then)) as server:
            controller = AbortController()
            options = StreamOptions(signal=controller.signal)
            stream = ProxyProvider().stream(model(base_url=server.url), CONTEXT, options)
            reader = asyncio.create_task(calls.collect(stream))
            await server.sent.wait()
            controller.abort()
            await asyncio.wait_for(server.gone.wait(), 5)
            return await reader

    message = final(asyncio.run(go()))
    assert (message.stop_reason, message.error_message) == ("aborted", "Request aborted by user")


def test_an_aborted_request_is_not_made(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> Any:
        async with serve(reply([sse(START, DONE)])) as server:
            controller = AbortController()
            controller.abort()
            options = StreamOptions(signal=controller.signal)
            events = await calls.collect(ProxyProvider().stream(model(base_url=server.url), CONTEXT, options))
            return events, server.requests

    events, requests = asyncio.run(go())
    assert (types(events), final(events).stop_reason, requests) == (["error"], "aborted", [])


def test_an_abort_between_events_keeps_what_was_seen(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> Any:
        async with serve(reply([sse(START, *text(*"abcdef"), DONE)])) as server:
            controller = AbortController()
            seen = []
            options = StreamOptions(signal=controller.signal)
            async for event in ProxyProvider().stream(model(base_url=server.url), CONTEXT, options):
                seen.append(event)
                if len(seen) == 4:
                    controller.abort()
            return seen

    events = asyncio.run(go())
    assert len(events) == 5
    assert (final(events).stop_reason, final(events).text) == ("aborted", "ab")


index_, name_, kind_ = often(st.integers(0, 2)), often(st.text(max_size=5)), st.just
EVENTS = [
    record(type=kind_("start")),
    *(record(type=kind_(f"{block}_start"), contentIndex=index_, redacted=values) for block in ("text", "thinking")),
    *(record(type=kind_(f"{block}_delta"), contentIndex=index_, delta=name_) for block in ("text", "thinking")),
    *(
        record(type=kind_(f"{block}_end"), contentIndex=index_, contentSignature=name_)
        for block in ("text", "thinking")
    ),
    record(type=kind_("toolcall_start"), contentIndex=index_, id=name_, toolName=name_),
    record(type=kind_("toolcall_delta"), contentIndex=index_, delta=name_),
    record(type=kind_("toolcall_end"), contentIndex=index_, toolCall=often(record(id=name_, arguments=values))),
    record(type=kind_("done"), reason=often(kind_("stop")), usage=often(record(input=index_)), content=values),
    record(type=kind_("error"), reason=often(kind_("error")), errorMessage=name_, errorDetails=values),
]


@settings(deadline=None)
@given(
    lines(*EVENTS),
    st.sampled_from([b"\n\n", b"\n", b"\r\n"]),
    damage,
    st.lists(st.integers(1, 50), max_size=20),
    st.sampled_from(["end", "drop"]),
)
def test_streams_of_nonsense_end_well(given_lines: Any, end: bytes, changes: Any, sizes: list[int], then: str) -> None:
    body = damaged(sse(START) + b"".join(line + end for line in given_lines), changes)
    pieces, position = [], 0
    for size in sizes:
        pieces.append(body[position : position + size])
        position += size
    ways = [[body], [*pieces, body[position:]], [body[at : at + 1] for at in range(len(body))]]
    traces = []
    for way in ways:
        played = Played(Reply([piece for piece in way if piece], then=then))
        one = ProxyProvider(connections=Connections(lambda played=played: played))
        events = asyncio.run(collect(one.stream(SCRIPTED_MODEL, CONTEXT, StreamOptions(env=SOMEWHERE))))
        assert [event.type in ("done", "error") for event in events] == [False] * (len(events) - 1) + [True]
        traces.append([{**event.to_json(), "message": None, "error": None} for event in events])
        shown = final(events).to_json()
        del shown["timestamp"]
        json.dumps(shown, ensure_ascii=False).encode()
        traces[-1].append(shown)
    assert traces[0] == traces[1] == traces[2]


async def collect(stream: Any) -> list[Any]:
    return [event async for event in stream]


# --- the plugin ---


def test_the_contract_of_a_plugin() -> None:
    assert_plugin_contract(ProxyPlugin())


def resolve(name: str | None, url: str = "http://127.0.0.1:9", option: str = "") -> Model | None:
    plugin = ProxyPlugin()
    plugin.configure(ProxyPlugin.Options(url=option))
    ctx = SelectionContext(environ={"PI_PROXY_URL": url} if url else {})
    found: Model | None = asyncio.run(run_hook("resolve_model", plugin, ModelsPlugin(), name=name, ctx=ctx))
    return found


def test_models_behind_the_proxy_have_names() -> None:
    model = resolve("proxy/anthropic/claude/x")
    assert model is not None
    assert (model.api, model.provider, model.id) == ("proxy", "anthropic", "claude/x")
    assert model.base_url == "http://127.0.0.1:9"
    model = resolve("proxy/fast")
    assert model is not None
    assert (model.provider, model.id) == ("proxy", "fast")


def test_the_address_in_the_options_wins() -> None:
    model = resolve("proxy/fast", "http://other", option="http://mine")
    assert model is not None
    assert model.base_url == "http://mine"


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [("proxy/a/b", "", "PI_PROXY_URL"), ("proxy/", "http://h", "names no model"), ("proxy//b", "http://h", "no model")],
)
def test_a_name_that_cannot_be_used_says_why(name: str, url: str, words: str) -> None:
    with pytest.raises(Exception, match=words) as failed:
        resolve(name, url)
    assert isinstance(failed.value.__cause__, ConfigError)


def test_other_names_are_left_to_others() -> None:
    assert resolve("someone/else") is None
    model = resolve("openai/gpt-5-mini")
    assert model is not None
    assert model.api != "proxy"


@pytest.mark.parametrize(("token", "key"), [("TOKEN", "TOKEN"), (None, "")])
def test_no_other_key_goes_to_a_proxy(token: str | None, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "ANTHROPIC")
    monkeypatch.delenv("PI_PROXY_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("PI_PROXY_TOKEN", token)
    model = Model(id="m", provider="anthropic", api="proxy")
    plugins = [ModelsPlugin(), ProxyPlugin()]
    ctx = RunContext(model=model)
    assert asyncio.run(run_hook("get_api_key", *plugins, provider="anthropic", ctx=ctx)) == key
    other = RunContext(model=model.model_copy(update={"api": "anthropic-messages"}))
    assert asyncio.run(run_hook("get_api_key", *plugins, provider="anthropic", ctx=other)) == "ANTHROPIC"


def test_an_agent_runs_through_the_proxy(serve: Any, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> Any:
        async with serve(reply([sse(START, *text("Hi"), DONE)])) as server:
            monkeypatch.setenv("PI_PROXY_URL", server.url)
            monkeypatch.setenv("PI_PROXY_TOKEN", "TOKEN")
            build = Build([ProxyPlugin()], only=[])
            agent: Agent = await build.create_agent(model="proxy/anthropic/claude")
            await agent.prompt("hello")
            return agent.state.messages[-1], server.requests[0]

    message, request = asyncio.run(go())
    assert (message.text, message.api, message.provider, message.model) == ("Hi", "proxy", "anthropic", "claude")
    assert request.headers["authorization"] == "Bearer TOKEN"
    assert request.json["model"]["provider"] == "anthropic"
