"""Abort at any moment, and streams that stall, over real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pi_core import AbortController, Context, StreamOptions, user_message
from pi_plugins.providers import _reader
from pi_plugins.providers._connections import Connections
from pi_plugins.providers._watch import Watch
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider

HELLO = b'data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
JSON = {"content-type": "application/json"}
CONTEXT = Context(messages=[user_message("x")])

Play = Callable[..., Any]


def failure(events: list[Any]) -> Any:
    assert events[-1].type == "error"
    return events[-1].message


@pytest.mark.parametrize(
    ("pieces", "then", "seen"),
    [([], "silent", 0), ([], "stall", 1), ([HELLO], "stall", 3), ([HELLO, b'data: {"choi'], "stall", 3)],
    ids=["before the head", "before an event", "between events", "inside an event"],
)
def test_abort_closes_the_socket(
    serve: Any, reply: Any, model: Any, calls: Any, pieces: list[bytes], then: str, seen: int
) -> None:
    async def go() -> Any:
        async with serve(reply(pieces, then=then)) as server:
            controller = AbortController()
            options = StreamOptions(signal=controller.signal)
            stream = OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, options)
            events = [await anext(stream) for _ in range(seen)]
            reader = asyncio.create_task(calls.collect(stream))
            await server.sent.wait()
            await asyncio.sleep(0)
            controller.abort()
            await asyncio.wait_for(server.gone.wait(), 5)
            return events + await reader

    events = asyncio.run(go())
    message = failure(events)
    assert (message.stop_reason, message.error_message) == ("aborted", "Request was aborted")
    assert message.text == ("hello" if seen == 3 else "")
    assert [event.type for event in events][:-1] == ["start", "text_start", "text_delta"][:seen]


def test_abort_closes_the_socket_while_nobody_reads(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO], then="stall")) as server:
            controller = AbortController()
            stream = OpenAICompletionsProvider().stream(
                model(base_url=server.url), CONTEXT, StreamOptions(signal=controller.signal)
            )
            first = [await anext(stream) for _ in range(3)]
            controller.abort()
            await asyncio.wait_for(server.gone.wait(), 5)
            return first + [event async for event in stream]

    assert [event.type for event in asyncio.run(go())] == ["start", "text_start", "text_delta", "error"]


def test_abort_from_another_thread(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO], then="stall")) as server:
            controller = AbortController()
            stream = OpenAICompletionsProvider().stream(
                model(base_url=server.url), CONTEXT, StreamOptions(signal=controller.signal)
            )
            reader = asyncio.create_task(calls.collect(stream))
            await server.sent.wait()
            await asyncio.to_thread(controller.abort)
            return await asyncio.wait_for(reader, 5)

    assert failure(asyncio.run(go())).stop_reason == "aborted"


def test_abort_with_many_events_at_hand_stops_at_once(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO * 500 + STOP + DONE])) as server:
            controller = AbortController()
            events = []
            async for event in OpenAICompletionsProvider().stream(
                model(base_url=server.url), CONTEXT, StreamOptions(signal=controller.signal)
            ):
                events.append(event)
                if len(events) == 10:
                    controller.abort()
            return events

    events = asyncio.run(go())
    assert len(events) == 11
    assert failure(events).text == "hello" * 8


def test_abort_while_waiting_for_a_retry(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> Any:
        busy = reply([b"busy"], 503, {"retry-after": "30", **JSON})
        async with serve(busy) as server:
            controller = AbortController()
            options = StreamOptions(signal=controller.signal)
            stream = OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, options)
            reader = asyncio.create_task(calls.collect(stream))
            await server.sent.wait()
            controller.abort()
            return await asyncio.wait_for(reader, 5), server

    events, server = asyncio.run(go())
    assert [event.type for event in events] == ["error"]
    assert failure(events).stop_reason == "aborted"
    assert len(server.requests) == 1


def test_abort_while_connecting(model: Any, calls: Any) -> None:
    async def go() -> Any:
        connecting = asyncio.Event()

        class Unreachable(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                connecting.set()
                await asyncio.Event().wait()
                raise AssertionError("never connected")

        provider = OpenAICompletionsProvider(Connections(Unreachable))
        controller = AbortController()
        reader = asyncio.create_task(
            calls.collect(provider.stream(model(), CONTEXT, StreamOptions(signal=controller.signal)))
        )
        await connecting.wait()
        controller.abort()
        return await asyncio.wait_for(reader, 5)

    events = asyncio.run(go())
    assert [event.type for event in events] == ["error"]
    assert failure(events).stop_reason == "aborted"


def test_a_consumer_that_leaves_closes_the_socket(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> None:
        async with serve(reply([HELLO], then="stall")) as server:
            stream = OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, StreamOptions())
            await anext(stream)
            await stream.aclose()
            await asyncio.wait_for(server.gone.wait(), 5)

    asyncio.run(go())


def test_a_cancelled_consumer_closes_the_socket(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> None:
        async with serve(reply([HELLO], then="stall")) as server:
            stream = OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, StreamOptions())
            reader = asyncio.create_task(calls.collect(stream))
            await server.sent.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            await asyncio.wait_for(server.gone.wait(), 5)

    asyncio.run(go())


def test_an_abort_after_the_loop_is_gone() -> None:
    controller = AbortController()

    async def watch() -> Watch:
        return Watch(controller.signal, 0, "host")

    watch_ = asyncio.run(watch())
    controller.abort()
    assert watch_.aborted


# --- limits ---


@pytest.mark.parametrize(
    ("pieces", "then"), [([], "silent"), ([], "stall"), ([HELLO], "stall"), ([HELLO, b": a\n"], "stall")]
)
def test_a_stalled_stream_ends(play: Play, reply: Any, pieces: list[bytes], then: str) -> None:
    events, server = play(reply(pieces, then=then), timeout_ms=400)
    message = failure(events)
    assert re.fullmatch(r"Request timed out: 127\.0\.0\.1:\d+ sent nothing for 0\.4 s", message.error_message)
    assert message.error_details.retryable is True
    assert message.text == ("hello" if pieces else "")
    assert server.gone.is_set()
    assert len(server.requests) == 1


def test_comments_do_not_keep_a_stalled_stream_alive(play: Play, reply: Any) -> None:
    def comments() -> Any:
        while True:
            yield b": still here\n\n"

    events, server = play(reply(comments(), pause=0.01), timeout_ms=400)
    assert "timed out" in failure(events).error_message
    assert server.gone.is_set()


def test_what_never_ends_after_the_end_is_left(play: Play, reply: Any) -> None:
    def comments() -> Any:
        yield HELLO + STOP + DONE
        while True:
            yield b": still here\n\n"

    events, server = play(reply(comments(), pause=0.01))
    assert events[-1].type == "done"
    assert server.gone.is_set()


def test_the_consumers_own_time_does_not_count(serve: Any, reply: Any, model: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO, STOP + DONE])) as server:
            events = []
            options = StreamOptions(timeout_ms=100)
            async for event in OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, options):
                events.append(event)
                if event.type == "start":
                    await asyncio.sleep(0.15)
            return events

    assert asyncio.run(go())[-1].type == "done"


def test_a_whole_answer_needs_no_end(play: Play, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reader, "FINISHED_MS", 50)
    for then in ("stall", "drop"):
        events, _ = play(reply([HELLO, STOP], then=then))
        assert (events[-1].type, events[-1].message.text) == ("done", "hello")
    events, server = play(reply([HELLO, STOP, DONE], then="stall"))
    assert events[-1].type == "done"
    assert server.gone.is_set()
