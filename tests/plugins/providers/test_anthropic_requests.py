"""Requests of the messages API on their way: address, keys, and what happens when a server refuses a part of one."""

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
    ImageContent,
    StreamOptions,
    TextContent,
    Tool,
    ToolResultMessage,
    UserMessage,
    user_message,
)
from pi_plugins.providers._anthropic_sessions import Sessions
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .test_anthropic_wire import DONE

PROVIDER = AnthropicMessagesProvider
JSON = {"content-type": "application/json"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = Tool(
    "read",
    "",
    SCHEMA,
    lambda arguments, context: None,
    constrained_sampling={"type": "json_schema", "strict": "prefer"},
)


class Talk:
    """Requests of one provider to one server."""

    def __init__(self, provider: Any, target: Any, server: Any) -> None:
        self.server = server
        self.notes_at_start: list[Any] = []
        self._provider = provider
        self._target = target

    async def say(self, *messages: Any, **given: Any) -> AssistantMessage:
        context = Context(given.pop("system", ""), messages or [user_message("x")], given.pop("tools", []))
        options = StreamOptions(**{"api_key": "<key>", "max_retries": 0, **given})
        events = [event async for event in self._provider.stream(self._target, context, options)]
        assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
        if events[0].type == "start":
            self.notes_at_start = (events[0].partial.model_extra or {}).get("diagnostics", [])
        message: AssistantMessage = events[-1].message
        return message

    @property
    def bodies(self) -> list[Any]:
        return [request.json for request in self.server.requests]


@pytest.fixture
def talk(serve: Any, rerouted: Any, model: Any) -> Callable[..., None]:
    """Runs a conversation with a server that gives these replies."""

    def run(replies: list[Any], conversation: Callable[[Talk], Any], **fields: Any) -> None:
        async def go() -> None:
            async with serve(*replies) as server:
                provider, _ = rerouted(server)
                await conversation(Talk(provider, model(**fields), server))

        asyncio.run(go())

    return run


def refusal(reply: Any, text: str, status: int = 400) -> Any:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    return reply([json.dumps(body).encode()], status, JSON)


# --- address and keys ---


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("http://127.0.0.1", "/v1/messages?beta=true"),
        ("http://127.0.0.1/v1", "/v1/messages?beta=true"),
        ("http://127.0.0.1/v1/", "/v1/messages?beta=true"),
        ("http://127.0.0.1/anthropic/", "/anthropic/v1/messages?beta=true"),
    ],
)
def test_address(talk: Any, reply: Any, base: str, path: str) -> None:
    async def conversation(talk: Talk) -> None:
        assert (await talk.say()).stop_reason == "stop"
        assert talk.server.requests[0].path == path

    talk([reply([DONE])], conversation, base_url=base)


def test_no_address(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await talk.say()
        assert message.stop_reason == "error"
        assert "it has to begin with http:// or https://" in (message.error_message or "")
        assert not talk.server.requests

    talk([reply([DONE])], conversation, base_url="anthropic")


@pytest.mark.parametrize(
    ("fields", "options", "wanted"),
    [
        ({}, {"api_key": " k "}, {"x-api-key": "k"}),
        (
            {},
            {"api_key": "sk-ant-oat-1"},
            {"authorization": "Bearer sk-ant-oat-1", "anthropic-beta": "oauth-2025-04-20"},
        ),
        ({"provider": "anthropic"}, {"api_key": None}, {"authorization": "Bearer token"}),
        ({"provider": "anthropic"}, {"api_key": "k"}, {"x-api-key": "k"}),
        ({"provider": "other"}, {"api_key": None}, {}),
        ({}, {"headers": {"X-API-Key": None, "Authorization": "Bearer b"}}, {"authorization": "Bearer b"}),
        ({}, {"headers": {"anthropic-beta": " a ,, b"}}, {"x-api-key": "<key>", "anthropic-beta": "a,b"}),
        ({}, {"headers": {"anthropic-beta": " "}}, {"x-api-key": "<key>"}),
    ],
)
def test_keys(talk: Any, reply: Any, monkeypatch: Any, fields: Any, options: Any, wanted: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")

    async def conversation(talk: Talk) -> None:
        assert (await talk.say(**options)).stop_reason == "stop"
        headers = talk.server.requests[0].headers
        names = ("x-api-key", "authorization", "anthropic-beta")
        assert {name: headers[name] for name in names if name in headers} == wanted

    talk([reply([DONE])], conversation, **fields)


def test_copilot(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        answer = AssistantMessage(content=[TextContent(text="a")], api="x", provider="x", model="x")
        image = UserMessage(content=[ImageContent(data="AAAA", mime_type="image/png")])
        await talk.say(image, answer)
        headers = talk.server.requests[0].headers
        assert headers["authorization"] == "Bearer <key>"
        assert "x-api-key" not in headers
        sent = [headers[name] for name in ("x-initiator", "openai-intent", "copilot-vision-request")]
        assert sent == ["agent", "conversation-edits", "true"]

    talk([reply([DONE])], conversation, provider="github-copilot")


def test_a_missing_key(calls: Any, model: Any) -> None:
    target = model(provider="anthropic", base_url="https://api.anthropic.com")
    stream = AnthropicMessagesProvider().stream(target, Context(messages=[user_message("x")]), StreamOptions())
    [event] = asyncio.run(calls.collect(stream))
    assert event.message.error_message.startswith("No API key for provider: anthropic. Set the environment variable")


def test_a_key_never_appears_in_an_error(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await talk.say(api_key="sk-ant-secret")
        assert "***" in (message.error_message or "")
        assert "secret" not in (message.error_message or "")

    talk([refusal(reply, "invalid key sk-ant-secret", 401)], conversation)


# --- strict tools ---


@pytest.mark.parametrize(
    "text",
    ["Too many strict tools (25). Max 20", "tools: The schemas are too complex to compile", "tools.0: strict: no"],
)
def test_strict_tools_that_are_refused(talk: Any, reply: Any, text: str) -> None:
    async def conversation(talk: Talk) -> None:
        message = await talk.say(tools=[TOOL], session_id="s", on_payload=lambda payload, _: payload)
        assert message.text == "Hello"
        [note] = message.to_json()["diagnostics"]
        assert note["type"] == "anthropic_strict_tools_fallback"
        assert talk.notes_at_start == [note]
        assert text in note["error"]["message"]
        await talk.say(tools=[TOOL], session_id="s")
        await talk.say(tools=[TOOL], session_id="other")
        assert [body["tools"][0].get("strict", False) for body in talk.bodies] == [True, False, False, True]

    replies = [refusal(reply, text), reply([DONE])]
    talk(replies, conversation, compat={"supportsStrictTools": True})


@pytest.mark.parametrize(
    ("text", "status", "compat"),
    [
        ("messages: roles must alternate", 400, {"supportsStrictTools": True}),
        ("Too many strict tools", 403, {"supportsStrictTools": True}),
        ("Too many strict tools", 400, {}),
    ],
)
def test_refusals_for_other_reasons(talk: Any, reply: Any, text: str, status: int, compat: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await talk.say(tools=[TOOL])
        assert message.stop_reason == "error"
        assert text in (message.error_message or "")
        assert len(talk.server.requests) == 1

    talk([refusal(reply, text, status), reply([DONE])], conversation, compat=compat)


def test_strict_tools_that_are_refused_twice(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await talk.say(tools=[TOOL])
        assert message.stop_reason == "error"
        assert len(talk.server.requests) == 2
        assert message.to_json()["diagnostics"]

    talk([refusal(reply, "strict")], conversation, compat={"supportsStrictTools": True})


# --- abort ---


@pytest.mark.parametrize("refused", [False, True])
def test_abort(talk: Any, reply: Any, refused: bool) -> None:
    """Whatever was refused before: an abort closes the socket, and what has arrived stays."""

    async def conversation(talk: Talk) -> None:
        controller = AbortController()
        opened = asyncio.Event()

        def announce(response: Any, _: Any) -> None:
            if response.status == 200:
                opened.set()

        answer = asyncio.create_task(talk.say(tools=[TOOL], signal=controller.signal, on_response=announce))
        await opened.wait()
        controller.abort()
        await asyncio.wait_for(talk.server.gone.wait(), 5)
        message = await answer
        assert (message.stop_reason, message.error_message) == ("aborted", "Request was aborted")
        assert len(talk.server.requests) == 1 + refused

    stalled = reply([DONE[:400]], then="stall")
    replies = [refusal(reply, "strict"), stalled] if refused else [stalled]
    talk(replies, conversation, compat={"supportsStrictTools": True})


# --- threads ---

THREADS = {"compat": {"supportsMessageThreads": True}}
BETA = "message-threads-2026-08-12"


def threads_of(talk: Talk) -> list[Any]:
    return [body.get("thread", {}).get("type") for body in talk.bodies]


def counts(talk: Talk) -> list[int]:
    return [len(body["messages"]) for body in talk.bodies]


async def two_turns(talk: Talk, **second: Any) -> AssistantMessage:
    first = UserMessage(content="one")
    answer = await talk.say(first, session_id="s", system="p", tools=[TOOL])
    given = {"session_id": "s", "system": "p", "tools": [TOOL], **second}
    return await talk.say(first, answer, UserMessage(content="two"), **given)


def test_a_thread_goes_on(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        answer = await two_turns(talk, max_tokens=9)
        more = [UserMessage(content="one"), answer, UserMessage(content="two"), answer, UserMessage(content="three")]
        await talk.say(*more, session_id="s", system="p", tools=[TOOL])
        await talk.say(UserMessage(content="one"), session_id="s", system="p", tools=[TOOL])
        assert threads_of(talk) == ["create", "continue", "continue", "create"]
        assert counts(talk) == [1, 1, 1, 1]
        assert [("system" in body, "tools" in body) for body in talk.bodies] == [
            (True, True),
            (False, False),
            (False, False),
            (True, True),
        ]
        assert talk.bodies[1]["thread"]["previous_message_id"] == "msg_A"
        assert {request.headers["anthropic-beta"] for request in talk.server.requests} == {BETA}

    talk([reply([DONE])], conversation, **THREADS)


@pytest.mark.parametrize(
    "second",
    [
        {"system": "q"},
        {"tools": []},
        {"session_id": "other"},
        {"on_payload": lambda payload, _: {**payload, "messages": payload["messages"][1:]}},
        {"on_payload": lambda payload, _: {**payload, "messages": [*payload["messages"][:1], *payload["messages"]]}},
    ],
)
def test_another_conversation_is_another_thread(talk: Any, reply: Any, second: Any) -> None:
    async def conversation(talk: Talk) -> None:
        await two_turns(talk, **second)
        assert threads_of(talk) == ["create", "create"]

    talk([reply([DONE])], conversation, **THREADS)


@pytest.mark.parametrize(
    "second",
    [
        {"cache_retention": "none"},
        {"session_id": None},
        {"headers": {"anthropic-beta": None}},
        {"headers": {"anthropic-beta": "other"}},
        {"on_payload": lambda payload, _: {**payload, "messages": []}},
        {"on_payload": lambda payload, _: {**payload, "messages": ["x"]}},
        {"on_payload": lambda payload, _: [payload]},
    ],
)
def test_no_thread(talk: Any, reply: Any, second: Any) -> None:
    async def conversation(talk: Talk) -> None:
        await two_turns(talk, **second)
        last = talk.bodies[1]
        assert "thread" not in (last if isinstance(last, dict) else last[0])

    talk([reply([DONE])], conversation, **THREADS)


def test_a_thread_the_server_forgot(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await two_turns(talk)
        assert message.text == "Hello"
        [note] = message.to_json()["diagnostics"]
        assert (note["type"], note["details"]["reason"]) == ("anthropic_message_thread_fallback", "stale_thread")
        assert threads_of(talk) == ["create", "continue", "create"]
        assert counts(talk) == [1, 1, 3]
        await talk.say(
            UserMessage(content="one"),
            message,
            UserMessage(content="two"),
            message,
            UserMessage(content="three"),
            session_id="s",
            system="p",
            tools=[TOOL],
        )
        assert threads_of(talk)[3] == "continue"

    replies = [reply([DONE]), refusal(reply, "thread: previous_message_id msg_A was not found", 404), reply([DONE])]
    talk(replies, conversation, **THREADS)


@pytest.mark.parametrize(
    "text", ["thread: Extra inputs are not permitted", f"Unexpected value(s) `{BETA}` for the `anthropic-beta` header"]
)
def test_a_server_without_threads(talk: Any, reply: Any, text: str) -> None:
    async def conversation(talk: Talk) -> None:
        message = await two_turns(talk)
        assert message.text == "Hello"
        assert threads_of(talk) == ["create", None, None]
        assert counts(talk) == [1, 1, 3]
        assert [request.headers.get("anthropic-beta") for request in talk.server.requests] == [BETA, None, None]

    talk([refusal(reply, text), reply([DONE])], conversation, **THREADS)


def test_refused_in_every_way(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        message = await two_turns(talk)
        assert message.stop_reason == "error"
        assert threads_of(talk) == ["create", "continue", "create", None]
        reasons = [note["details"]["reason"] for note in message.to_json()["diagnostics"]]
        assert reasons == ["stale_thread", "threads_unsupported"]

    talk([reply([DONE]), refusal(reply, "no such thread", 404)], conversation, **THREADS)


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_failures_that_are_not_about_the_thread(talk: Any, reply: Any, status: int) -> None:
    async def conversation(talk: Talk) -> None:
        assert (await talk.say(session_id="s")).stop_reason == "error"
        assert len(talk.server.requests) == 1

    talk([refusal(reply, "thread", status), reply([DONE])], conversation, **THREADS)


def test_a_broken_answer_is_not_on_the_server(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        answer = await two_turns(talk)
        assert answer.stop_reason == "error"
        one, two = UserMessage(content="one"), UserMessage(content="two")
        given = {"session_id": "s", "system": "p", "tools": [TOOL]}
        whole = AssistantMessage(
            content=[TextContent(text="Hello")], api="anthropic-messages", provider="local", model="test-model"
        )
        await talk.say(one, whole, two, answer, two, **given)
        assert threads_of(talk) == ["create", "continue", "continue"]
        assert counts(talk) == [1, 1, 2]

    talk([reply([DONE]), reply([DONE[:200]]), reply([DONE])], conversation, **THREADS)


def test_results_of_a_call_continue_a_thread(talk: Any, reply: Any) -> None:
    call = DONE.replace(b'{"type":"text","text":""}', b'{"type":"tool_use","id":"t1","name":"read","input":{}}')
    call = call.replace(b'{"type":"text_delta","text":"Hello"}', b'{"type":"input_json_delta","partial_json":"{}"}')

    async def conversation(talk: Talk) -> None:
        first = UserMessage(content="one")
        answer = await talk.say(first, session_id="s")
        result = ToolResultMessage(tool_call_id="t1", tool_name="read", content=[TextContent(text="r")])
        await talk.say(first, answer, result, session_id="s")
        assert threads_of(talk) == ["create", "continue"]
        [message] = talk.bodies[1]["messages"]
        assert message["content"][0]["tool_use_id"] == "t1"

    talk([reply([call]), reply([DONE])], conversation, **THREADS)


def test_effort_in_a_thread(talk: Any, reply: Any) -> None:
    async def conversation(talk: Talk) -> None:
        first = UserMessage(content="one")
        answer = await talk.say(first, session_id="s", reasoning="high")
        assert answer.provider_thinking_level == "high"
        await talk.say(first, answer, UserMessage(content="two"), session_id="s", reasoning="low")
        assert threads_of(talk) == ["create", "continue"]
        assert [message["role"] for message in talk.bodies[1]["messages"]] == ["user", "system"]

    compat = {"supportsMessageThreads": True, "supportsMidConvoEffort": True}
    talk([reply([DONE])], conversation, reasoning=True, compat=compat)


def test_sessions_are_forgotten_in_the_end() -> None:
    sessions = Sessions(limit=2)
    sessions.refuse_threads("a")
    sessions.refuse_strict("b")
    sessions.refuse_strict(None)
    sessions.forget_thread("a")
    sessions.refuse_threads("c")
    assert [sessions.uses_threads(name) for name in ("a", "b", "c")] == [False, True, False]
    assert not sessions.strict_refused("b")
    assert not sessions.strict_refused(None)


def test_an_answer_of_nothing_ends_a_thread() -> None:
    sessions = Sessions()
    payload = {"messages": [{"role": "user", "content": "x"}]}
    more = {"messages": [*payload["messages"], {"role": "assistant", "content": []}, *payload["messages"]]}
    sessions.keep("s", payload, {"role": "assistant", "content": []}, "m")
    assert sessions.split("s", more)["thread"] == {"type": "continue", "previous_message_id": "m"}
    for answer, identity in ((None, "m"), ({"role": "assistant", "content": []}, "")):
        sessions.keep("s", payload, answer, identity)
        assert sessions.split("s", more)["thread"] == {"type": "create"}
