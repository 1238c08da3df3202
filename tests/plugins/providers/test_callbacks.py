"""The callbacks of a request, and keys: missing, unusable, and never in an error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pi_core import AbortController, Context, StreamOptions, user_message
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


def test_callbacks_in_order(play: Play, reply: Any) -> None:
    trace: list[Any] = []

    async def transform(headers: Any) -> Any:
        trace.append("headers")
        assert headers["x-request"] == "r"
        return {**headers, "X-Request": "changed", "user-agent": None, "x-new": "n"}

    def payload(body: Any, target: Any) -> Any:
        trace.append("payload")
        return {**body, "extra": target.id}

    async def response(head: Any, target: Any) -> None:
        trace.append((head.status, head.headers["content-type"], target.id))

    events, server = play(
        reply([b"{}"], 500, JSON),
        reply([HELLO, STOP, DONE]),
        headers={"X-Request": "r"},
        transform_headers=transform,
        on_payload=payload,
        on_response=response,
    )
    assert events[-1].type == "done"
    answered = (200, "text/event-stream; charset=utf-8", "test-model")
    assert trace == ["headers", "payload", (500, "application/json", "test-model"), answered]
    for request in server.requests:
        assert request.json["extra"] == "test-model"
        assert request.headers["x-request"] == "changed"
        assert request.headers["x-new"] == "n"
        assert "user-agent" not in request.headers


def test_headers_callback_that_returns_nothing_keeps_the_headers(play: Play, reply: Any) -> None:
    events, server = play(reply([HELLO, STOP, DONE]), headers={"x-number": 3}, transform_headers=lambda headers: None)
    assert events[-1].type == "done"
    assert server.requests[0].headers["x-number"] == "3"


def test_payload_callback_that_returns_nothing_keeps_the_body(play: Play, reply: Any) -> None:
    events, server = play(reply([HELLO, STOP, DONE]), on_payload=lambda body, target: body.update(seed=1))
    assert events[-1].type == "done"
    assert server.requests[0].json["seed"] == 1


@pytest.mark.parametrize("name", ["transform_headers", "on_payload", "on_response"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_callback_that_raises_ends_the_stream(play: Play, reply: Any, name: str, asynchronous: bool) -> None:
    def fail(*arguments: Any) -> Any:
        raise RuntimeError(f"{name} says no")

    async def fail_later(*arguments: Any) -> Any:
        raise RuntimeError(f"{name} says no")

    events, server = play(reply([HELLO, STOP, DONE]), **{name: fail_later if asynchronous else fail})
    assert [event.type for event in events] == ["error"]
    message = failure(events)
    assert message.error_message == f"{name} says no"
    assert message.error_details.retryable is False
    assert len(server.requests) == (1 if name == "on_response" else 0)


def test_a_callback_that_aborts(play: Play, reply: Any) -> None:
    controller = AbortController()

    def abort(*arguments: Any) -> None:
        controller.abort()
        raise RuntimeError("no longer wanted")

    events, _ = play(reply([HELLO, STOP, DONE]), signal=controller.signal, on_response=abort)
    assert (failure(events).stop_reason, failure(events).error_message) == ("aborted", "Request was aborted")


def test_payload_that_is_not_json(play: Play, reply: Any) -> None:
    for value in (object(), float("nan")):
        events, server = play(reply([HELLO]), on_payload=lambda body, target, value=value: {"x": value})
        assert "not JSON" in failure(events).error_message
        assert not server.requests


# --- keys ---


def test_a_key_never_appears_in_an_error(play: Play, reply: Any) -> None:
    key = "sk-abc123def456"
    echo = b'{"error":{"message":"Incorrect API key provided: sk-abc123def456 (header-secret-9)"}}'
    for given in (
        reply([echo], 401, JSON),
        reply([b"data: " + echo + b"\n\n"]),
        reply([b"<p>" + key.encode()], 200, {"content-type": "text/html"}),
        reply([b"data: {" + key.encode()]),
    ):
        events, _ = play(given, api_key=f"{key}\n", headers={"X-Api-Key": "header-secret-9"})
        message = failure(events)
        assert key not in message.model_dump_json()
        assert "header-secret-9" not in message.model_dump_json()
        assert "***" in message.error_message


@pytest.mark.parametrize("key", ["sk-line\nbreak", "sk-ключ", "sk-\x00nul"])
def test_a_key_that_no_header_can_hold(play: Play, reply: Any, key: str) -> None:
    events, server = play(reply([HELLO]), api_key=key)
    text = failure(events).error_message
    assert text.startswith("The header 'authorization' has a character that HTTP does not allow at position")
    assert key not in text
    assert not server.requests


def test_a_missing_key(played: Any, reply: Any, model: Any, calls: Any) -> None:
    provider, transport = played(reply([HELLO, STOP, DONE]))

    def ask(options: StreamOptions, **fields: Any) -> Any:
        return asyncio.run(calls.collect(provider.stream(model(**fields), CONTEXT, options)))

    remote = {"base_url": "https://api.example.com/v1", "provider": "my-lab"}
    message = failure(ask(StreamOptions(), **remote))
    assert message.error_message.startswith("No API key for provider: my-lab.")
    assert "MY_LAB_API_KEY" in message.error_message
    assert "--api-key" in message.error_message
    assert "HF_TOKEN" in failure(ask(StreamOptions(), **{**remote, "provider": "huggingface"})).error_message
    assert failure(ask(StreamOptions(api_key="  "), **remote)).error_message == message.error_message
    assert transport.requests == 0
    assert ask(StreamOptions(headers={"Authorization": "Basic x"}), **remote)[-1].type == "done"
    assert (
        ask(StreamOptions(transform_headers=lambda given: {"cf-aig-authorization": "k"}), **remote)[-1].type == "done"
    )
    for url in ("http://localhost:1/v1", "http://127.0.0.5:1", "http://[::1]:1/v1", "http://box.localhost"):
        assert ask(StreamOptions(), base_url=url)[-1].type == "done"


@pytest.mark.parametrize("url", ["", "localhost:8000/v1", "ftp://x", "http://[::1"])
def test_a_base_url_that_is_none(model: Any, calls: Any, url: str) -> None:
    options = StreamOptions(api_key="k", max_retries=0)
    events = asyncio.run(calls.collect(OpenAICompletionsProvider().stream(model(base_url=url), CONTEXT, options)))
    assert [event.type for event in events] == ["error"]
    assert failure(events).error_details.retryable is False
