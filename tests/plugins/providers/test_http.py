"""Tries, connections and what can be wrong with them, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pi_core import Context, StreamOptions, user_message
from pi_plugins.providers import _http
from pi_plugins.providers._connections import Connections
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider

HELLO = b'data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
CERTIFICATE = Path(__file__).with_name("localhost.pem")
JSON = {"content-type": "application/json"}
CONTEXT = Context(messages=[user_message("x")])

Play = Callable[..., Any]


def failure(events: list[Any]) -> Any:
    assert events[-1].type == "error"
    return events[-1].message


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_tries_again(play: Play, reply: Any, status: int) -> None:
    events, server = play(reply([b"{}"], status, JSON), reply([HELLO, STOP, DONE]))
    assert [event.type for event in events] == ["start", "text_start", "text_delta", "text_end", "done"]
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_never_tries_the_same_again(play: Play, reply: Any, status: int) -> None:
    body = b'{"error":{"message":"overloaded, please retry","type":"invalid_request_error"}}'
    events, server = play(reply([body], status, JSON))
    assert len(server.requests) == 1
    assert failure(events).error_details.to_json() == {
        "type": "invalid_request_error",
        "status": status,
        "retryable": False,
    }


def test_gives_up_after_two_more_tries(play: Play, reply: Any) -> None:
    events, server = play(reply([b"busy"], 503, {"x-request-id": "r1"}))
    assert len(server.requests) == 3
    details = failure(events).error_details
    assert (details.status, details.request_id, details.retryable) == (503, "r1", True)
    assert len(play(reply([b"busy"], 503), max_retries=0)[1].requests) == 1
    assert len(play(reply([b"busy"], 503), max_retries=4)[1].requests) == 5


def test_the_server_says_whether_to_try_again(play: Play, reply: Any) -> None:
    assert len(play(reply([b"x"], 503, {"x-should-retry": "false"}))[1].requests) == 1
    events, server = play(reply([b"x"], 400, {"x-should-retry": "true"}), reply([HELLO, STOP, DONE]))
    assert (events[-1].type, len(server.requests)) == ("done", 2)


def test_used_up_quota_is_not_tried_again(play: Play, reply: Any) -> None:
    body = b'{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}'
    events, server = play(reply([body], 429, JSON))
    assert len(server.requests) == 1
    assert failure(events).error_details.retryable is False


def test_waits_as_long_as_the_server_asks(play: Play, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 60_000)
    info = {"error": {"code": 429, "details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "0.01s"}]}}
    for headers, body in (
        ({"retry-after-ms": "5"}, b"{}"),
        ({"Retry-After": "0"}, b"{}"),
        (JSON, json.dumps(info).encode()),
    ):
        events, server = play(reply([body], 429, headers), reply([HELLO, STOP, DONE]))
        assert (events[-1].type, len(server.requests)) == ("done", 2)


def test_a_delay_that_is_too_long_is_an_error_that_carries_it(play: Play, reply: Any) -> None:
    slow = reply([b'{"error":{"message":"slow down"}}'], 429, {"retry-after": "61"})
    events, server = play(slow)
    message = failure(events)
    assert message.error_message == "Server requested 61s retry delay (max: 60s). 429 slow down"
    assert (message.error_details.retry_after_ms, message.error_details.retryable) == (61_000, True)
    assert len(server.requests) == 1
    assert failure(play(slow, max_retry_delay_ms=5000)[0]).error_message.startswith("Server requested 61s")


def test_delays_grow_up_to_a_limit(play: Play, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 500)
    slept: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(_http.asyncio, "sleep", note)
    play(reply([b"busy"], 503), max_retries=6)
    assert len(slept) == 6
    for delay, longest in zip(slept, [0.5, 1, 2, 4, 8, 8], strict=True):
        assert 0.75 * longest <= delay <= longest


def test_nobody_listens(model: Any, calls: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    stream = OpenAICompletionsProvider().stream(model(base_url=url), CONTEXT, StreamOptions(max_retries=1))
    events = asyncio.run(calls.collect(stream))
    assert [event.type for event in events] == ["error"]
    message = failure(events)
    assert message.error_message.startswith(f"Connection error: {url[7:-3]}: ")
    assert "Connect call failed" in message.error_message
    assert message.error_details.retryable is True


def test_a_connection_that_breaks_before_any_event_is_tried_again(play: Play, reply: Any) -> None:
    good = reply([HELLO, STOP, DONE])
    for broken in (reply(then="drop"), reply([b": hello\n\n"], then="drop")):
        events, server = play(broken, good)
        assert [event.type for event in events].count("start") == 1
        assert (events[-1].type, len(server.requests)) == ("done", 2)


def test_a_connection_that_breaks_later_is_not(play: Play, reply: Any) -> None:
    events, server = play(reply([HELLO], then="drop"), reply([HELLO, STOP, DONE]))
    message = failure(events)
    assert len(server.requests) == 1
    assert message.error_message.startswith("Connection error: 127.0.0.1:")
    assert message.text == "hello"
    assert message.error_details.retryable is True


def test_redirects(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO, STOP, DONE])) as there:
            moved = reply([], 307, {"location": f"{there.url}/elsewhere"})
            lost = reply([], 301, {"location": "/v2"})
            async with serve(moved, lost) as here:
                provider = OpenAICompletionsProvider()
                target = model(base_url=here.url)
                options = StreamOptions(api_key="sk-secret-key", headers={"x-api-key": "k", "x-org": "o"})
                followed = await calls.collect(provider.stream(target, CONTEXT, options))
                refused = await calls.collect(provider.stream(target, CONTEXT, options))
                return followed, refused, here, there

    followed, refused, here, there = asyncio.run(go())
    assert followed[-1].type == "done"
    assert (there.requests[0].method, there.requests[0].path) == ("POST", "/v1/elsewhere")
    assert there.requests[0].body == here.requests[0].body
    assert here.requests[0].headers["x-api-key"] == "k"
    kept = {"accept", "content-length", "content-type", "host", "user-agent"}
    assert set(there.requests[0].headers) == kept
    assert "redirects to /v2" in failure(refused).error_message


# --- connections ---


def test_connections_stay_open(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    provider = OpenAICompletionsProvider()

    async def twice() -> Any:
        async with serve(reply([HELLO, STOP, DONE]), reply([b"{}"], 400, JSON), reply([HELLO, STOP, DONE])) as server:
            for _ in range(3):
                await calls.collect(provider.stream(model(base_url=server.url), CONTEXT, StreamOptions()))
            return server

    for _ in range(2):
        server = asyncio.run(twice())
        assert (len(server.requests), server.connections) == (3, 1)


def test_responses_side_by_side(serve: Any, reply: Any, model: Any, calls: Any) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO, STOP, DONE])) as server:
            provider = OpenAICompletionsProvider()
            streams = (provider.stream(model(base_url=server.url), CONTEXT, StreamOptions()) for _ in range(20))
            return await asyncio.gather(*map(calls.collect, streams))

    assert all(events[-1].type == "done" for events in asyncio.run(go()))


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_framings(play: Play, reply: Any, framing: str) -> None:
    events, _ = play(reply([HELLO] * 3 + [STOP, DONE], framing=framing))
    assert events[-1].message.text == "hello" * 3


def test_compressed_body(play: Play, reply: Any) -> None:
    import gzip

    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    events, _ = play(reply([gzip.compress(HELLO + STOP + DONE)], headers=headers))
    assert (events[-1].type, events[-1].message.text) == ("done", "hello")


def test_proxy_from_the_environment(
    serve: Any, reply: Any, model: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO, STOP, DONE])) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.delenv("NO_PROXY", raising=False)
            target = model(base_url="http://models.example/v1")
            options = StreamOptions(api_key="sk-secret-key")
            return await calls.collect(OpenAICompletionsProvider().stream(target, CONTEXT, options)), proxy

    events, proxy = asyncio.run(go())
    assert events[-1].type == "done"
    assert proxy.requests[0].path == "http://models.example/v1/chat/completions"


def test_certificates_that_cannot_be_loaded(
    model: Any, calls: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = model(base_url="https://127.0.0.1:1/v1")
    file = tmp_path / "certificates.pem"
    for words in ("which is no file", "cannot be loaded"):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        events = asyncio.run(calls.collect(OpenAICompletionsProvider().stream(target, CONTEXT, StreamOptions())))
        message = failure(events)
        assert str(file) in message.error_message
        assert words in message.error_message
        file.write_text("no certificate")


def test_encrypted_connection(serve: Any, reply: Any, model: Any, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO] * 50 + [STOP, DONE]), certificate=CERTIFICATE) as server:
            provider = OpenAICompletionsProvider()
            return [
                await calls.collect(provider.stream(model(base_url=server.url), CONTEXT, StreamOptions()))
                for _ in range(2)
            ], server

    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    answers, server = asyncio.run(go())
    assert [events[-1].message.text for events in answers] == ["hello" * 50] * 2
    assert server.connections == 1


def test_a_certificate_that_nobody_trusts(
    serve: Any, reply: Any, model: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> Any:
        async with serve(reply([HELLO, STOP, DONE]), certificate=CERTIFICATE) as server:
            stream = OpenAICompletionsProvider().stream(model(base_url=server.url), CONTEXT, StreamOptions())
            return await calls.collect(stream)

    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    message = failure(asyncio.run(go()))
    assert "CERTIFICATE_VERIFY_FAILED" in message.error_message
    assert "SSL_CERT_FILE" in message.error_message
    assert message.error_details.retryable is False


@pytest.mark.parametrize(
    ("error", "words", "retryable"),
    [
        (httpx.ConnectTimeout("slow"), "did not answer within 10 s", True),
        (httpx.ReadError("reset"), "Connection error: 127.0.0.1:1: reset", True),
        (httpx.ProxyError("407 Proxy Authentication Required"), "407 Proxy Authentication Required", False),
        (httpx.LocalProtocolError("bad"), "bad", False),
        (httpx.DecodingError("not gzip"), "not gzip", False),
        (TimeoutError("the system gave up"), "the system gave up", False),
        (RuntimeError(""), "RuntimeError", False),
    ],
)
def test_what_a_transport_raises(model: Any, calls: Any, error: Exception, words: str, retryable: bool) -> None:
    class Broken(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise error

    provider = OpenAICompletionsProvider(Connections(Broken))
    options = StreamOptions(max_retries=0)
    events = asyncio.run(calls.collect(provider.stream(model(), CONTEXT, options)))
    assert [event.type for event in events] == ["error"]
    assert words in failure(events).error_message
    assert failure(events).error_details.retryable is retryable


def test_redirect_on_the_same_server_keeps_the_key(play: Play, reply: Any) -> None:
    events, server = play(reply([], 307, {"location": "/v2/x"}), reply([HELLO, STOP, DONE]), api_key="sk-secret-key")
    assert events[-1].type == "done"
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-secret-key"] * 2


def test_endless_redirects(play: Play, reply: Any) -> None:
    events, server = play(reply([], 308, {"location": "/v1/chat/completions"}))
    assert len(server.requests) == 5
    assert "redirects to /v1/chat/completions" in failure(events).error_message


def test_an_error_body_is_read_up_to_a_limit(play: Play, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    events, server = play(reply([b"x" * 65536] * 50, 400), max_retries=0)
    assert len(failure(events).error_message) < 4100
    monkeypatch.setattr(_http, "_ERROR_BODY_MS", 50)
    events, server = play(reply([b"not all of"], 400, then="stall"))
    assert failure(events).error_message == "400 not all of"
    assert server.gone.is_set()
