"""Client and server of the proxy against each other over loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import (
    AbortController,
    AbortSignal,
    AssistantMessage,
    Build,
    Context,
    ErrorDetails,
    MessageAssembler,
    Model,
    OpaqueContent,
    RunContext,
    StreamEvent,
    StreamOptions,
    TextContent,
    Tool,
    ToolResultMessage,
    Usage,
    hookimpl,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Barrier, Call, Reply, Say, ScriptedProvider, Think, Wait
from pi_plugins.providers import _proxy_app
from pi_plugins.providers._proxy_app import ProxyLimits
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider
from pi_plugins.providers.proxy import ProxyProvider

from .proxying import TOKEN, Backend, proxied

CONTEXT = Context(messages=[user_message("x")])
BEHIND = SCRIPTED_MODEL.model_copy(update={"api": "proxy"})
BODY: Any = {
    "model": {"id": "scripted", "provider": "scripted"},
    "context": {"messages": [{"role": "user", "content": "x", "timestamp": 1}]},
    "options": {},
}


def final(events: list[Any]) -> AssistantMessage:
    message: AssistantMessage = events[-1].message
    return message


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "timestamp"}
    return [plain(item) for item in value] if isinstance(value, list) else value


def shown(events: list[Any]) -> list[Any]:
    """Every event, with the message as of it."""
    return [
        plain([event.to_json(), event.partial.to_json() if hasattr(event, "partial") else None]) for event in events
    ]


async def directly(reply: Reply, context: Context = CONTEXT) -> list[Any]:
    return [event async for event in ScriptedProvider(reply).stream(SCRIPTED_MODEL, context, StreamOptions())]


# --- the same as without a proxy ---

REPLIES = {
    "nothing": Reply(),
    "text": Reply(Say("Hello there", ["Hel", "lo", " there"])),
    "text of every kind": Reply(Say('"\\\n\r\t\x00 \u2028 \u00e9 \U0001f600 data: {}', signature="sig\u00e9")),
    "empty text": Reply(Say("")),
    "thinking": Reply(Think("hm, hm", ["hm,", " hm"], signature="s1"), Say("so", signature="s2")),
    "hidden thinking": Reply(Think("", redacted=True, signature="opaque"), Say("so")),
    "calls": Reply(
        Say("I will."),
        Call("add", {"a": 1, "b": [None, {"c": "\u00e9"}]}, chunks=['{"a":1,', '"b":[null,{"c":"\u00e9"}]}']),
        Call("add", {}, id="second"),
        Call("sub", {"x": 1.5}),
    ),
    "a call that is no JSON": Reply(Call("add", raw='{"a": ', chunks=['{"a"', ": "])),
    "length": Reply(Say("cut"), stop_reason="length", usage=Usage(input=5, output=6, total_tokens=11, reasoning=2)),
    "an error": Reply(error="overloaded", error_details=ErrorDetails(status=529, type="x", retryable=True)),
    "an error in the middle": Reply(Think("hm"), Say("so"), error="broken", usage=Usage(input=5)),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_response_is_the_same_through_the_proxy(name: str) -> None:
    async def go() -> tuple[list[Any], list[Any]]:
        async with proxied(Backend(REPLIES[name])) as proxy:
            return await proxy.ask(CONTEXT), await directly(REPLIES[name])

    through, direct = asyncio.run(go())
    assert shown(through) == shown(direct)


texts = st.text(max_size=8)
blocks = st.one_of(
    st.builds(lambda parts, sig: Say("".join(parts), parts, sig), st.lists(texts, max_size=4), st.none() | texts),
    st.builds(
        lambda parts, sig, hidden: Think("".join(parts), parts, sig, hidden),
        st.lists(texts, max_size=3),
        st.none() | texts,
        st.sampled_from([None, True]),
    ),
    st.builds(
        lambda name, arguments, id_: Call(name, arguments, id_),
        st.text(min_size=1, max_size=5),
        st.dictionaries(texts, st.none() | st.booleans() | st.integers(-9, 9) | texts | st.lists(texts, max_size=2)),
        texts,
    ),
)
replies = st.builds(
    lambda parts, reason, error, tokens: Reply(
        *parts, stop_reason=reason, error=error, usage=Usage(input=tokens, total_tokens=tokens)
    ),
    st.lists(blocks, max_size=4),
    st.sampled_from([None, "stop", "length"]),
    st.none() | st.text(min_size=1, max_size=8),
    st.integers(0, 2**40),
)


@settings(deadline=None, max_examples=12)
@given(st.lists(replies, min_size=1, max_size=8))
def test_any_response_is_the_same_through_the_proxy(played: list[Reply]) -> None:
    async def go() -> list[tuple[list[Any], list[Any]]]:
        async with proxied(Backend(*played)) as proxy:
            return [(await proxy.ask(CONTEXT), await directly(reply)) for reply in played]

    for through, direct in asyncio.run(go()):
        # The ids that the scripted provider makes up count its requests.
        assert _without_ids(shown(through)) == _without_ids(shown(direct))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        made_up = str(value.get("id", "")).startswith("call_")
        return {key: _without_ids(item) for key, item in value.items() if not (made_up and key == "id")}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


class Odd:
    """A provider whose messages are not the sum of their events."""

    api = "odd"

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        made = MessageAssembler(model.api, model.provider, model.id)
        begun = made.message().model_copy(update={"content": [TextContent(text="begun ")]})
        made.begin(begun)
        yield made.start()
        yield made.text_delta(0, "and grown")
        yield made.text_end(0, "corrected")
        yield made.text_start(1, "all at once")
        yield made.text_end(1)
        made.sign(1, "late signature")
        yield made.thinking_start(4, "at once", "early signature")
        yield made.thinking_end(4)
        done = made.done("stop", response_id="r", raw_stop_reason="fin", end_turn=True, provider_thinking_level="x")
        content = [*done.message.content, OpaqueContent.model_validate({"type": "new", "data": 1})]
        done.message = done.message.model_copy(update={"content": content})
        yield done


def test_what_events_cannot_say_arrives_all_the_same() -> None:
    model = Model(id="odd", api="odd", provider="odd")

    async def go() -> tuple[Any, Any]:
        async with proxied(Backend(providers=[Odd()], models=[model])) as proxy:
            through = await proxy.ask(CONTEXT, model)
        direct = [event async for event in Odd().stream(model, CONTEXT, StreamOptions())]
        return final(through), final(direct)

    through, direct = asyncio.run(go())
    assert plain(through.to_json()) == plain(direct.to_json())
    assert through.content[2].thinking_signature == "early signature"


# --- what reaches the provider ---


def test_the_request_reaches_the_provider() -> None:
    tool = Tool("add", "Add.", {"type": "object", "properties": {"a": {}}}, lambda *_: None)
    answer = AssistantMessage(content=[TextContent(text="a", text_signature="s")], api="x", provider="y", model="z")
    messages = [user_message("one"), answer, ToolResultMessage(tool_call_id="c", tool_name="t", content=[])]
    options = {
        "temperature": 0.5,
        "max_tokens": 7,
        "reasoning": "low",
        "session_id": "s",
        "metadata": {"user_id": "u"},
        "cache_retention": "long",
        "thinking_budgets": {"low": 9},
        "sampling_params": {"top_p": 0.1},
        "transport": "auto",
        "max_retry_delay_ms": 5,
    }

    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            await proxy.ask(Context("Be kind", messages, [tool]), **options, api_key="MINE", timeout_ms=100_000)
            return proxy.backend.provider.requests[0]

    request = asyncio.run(go())
    assert (request.system_prompt, request.tool_names, request.model) == ("Be kind", ["add"], SCRIPTED_MODEL)
    assert [message.to_json() for message in request.messages] == [message.to_json() for message in messages]
    assert {name: getattr(request.options, name) for name in options} == options
    assert request.options.api_key is None
    assert request.options.timeout_ms == 300_000


def test_the_model_is_the_servers_own_whatever_the_client_says() -> None:
    """A client that could say where the model is served would be sent the proxy's keys."""
    mine = SCRIPTED_MODEL.model_copy(
        update={"base_url": "http://attacker.example", "headers": {"x": "y"}, "compat": {"a": 1}}
    )

    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            await proxy.ask(CONTEXT, mine)
            return proxy.backend.provider.requests[0].model

    assert asyncio.run(go()) == SCRIPTED_MODEL


def test_a_model_knows_its_own_messages_again() -> None:
    async def go() -> list[tuple[str, str, str]]:
        async with proxied(Backend("a", "b"), models=["scripted/scripted"]) as proxy:
            first = final(await proxy.ask(CONTEXT, BEHIND))
            assert first.api == "proxy"
            other = first.model_copy(update={"model": "unknown"})
            await proxy.ask(Context(messages=[user_message("x"), first, other, user_message("y")]), BEHIND)
            messages = proxy.backend.provider.requests[1].messages
            return [(m.api, m.provider, m.model) for m in messages if isinstance(m, AssistantMessage)]

    assert asyncio.run(go()) == [("scripted", "scripted", "scripted"), ("proxy", "scripted", "unknown")]


def test_the_plugins_of_the_proxy_take_part() -> None:
    class Key:
        @hookimpl
        def get_api_key(self, provider: str, ctx: RunContext) -> str:
            return f"key of {provider}"

    async def go() -> Any:
        async with proxied(Backend("a"), Key()) as proxy:
            await proxy.ask(CONTEXT)
            return proxy.backend.provider.requests[0].options.api_key

    assert asyncio.run(go()) == "key of scripted"


def test_prompt_and_tools_may_come_in_the_transcript() -> None:
    def declared(name: str) -> Any:
        return {"name": name, "description": "", "parameters": {}}

    body = {
        "model": BODY["model"],
        "context": {
            "messages": [
                {"role": "system", "content": "First.", "toolsAdded": [declared("a"), declared("b")]},
                {"role": "user", "content": "x", "timestamp": 1},
                {"role": "system", "content": [{"type": "text", "text": "Second."}], "sections": {"s": "S", "t": "T"}},
                {"role": "system", "toolsRemoved": ["a"], "toolsAdded": [declared("c")], "sections": {"s": None}},
            ]
        },
    }

    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            answer = await proxy.post(json.dumps(body).encode())
            return answer.text, proxy.backend.provider.requests[0]

    text, request = asyncio.run(go())
    assert '"type":"done"' in text
    assert request.system_prompt == "First.\n\nSecond.\n\nT"
    assert request.tool_names == ["b", "c"]
    assert [message.role for message in request.messages] == ["user"]


# --- clients that leave ---


async def when_free(proxy: Any) -> Any:
    """The answer to a request that is made until the proxy takes it."""
    for _ in range(500):
        events = await proxy.ask(CONTEXT)
        if events[-1].type == "done":
            return events
        await asyncio.sleep(0.01)
    raise AssertionError(events)


class Waiting:
    """A provider that says how far it is, and waits for an abort.

    :param obeys: whether it ends then.
    """

    api = "waiting"

    def __init__(self, *, obeys: bool = True) -> None:
        self.asked = asyncio.Event()
        self.ended = asyncio.Event()
        self.signal: AbortSignal | None = None
        self._obeys = obeys

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        made = MessageAssembler(model.api, model.provider, model.id)
        self.signal = options.signal
        assert self.signal is not None
        try:
            yield made.start()
            yield made.text_start(0)
            yield made.text_delta(0, "so far")
            self.asked.set()
            await self.signal.wait()
            if not self._obeys:
                await asyncio.Event().wait()
            yield made.error("Request was aborted", aborted=True)
        finally:
            self.ended.set()


WAITING = Model(id="waiting", api="waiting", provider="waiting")


@pytest.mark.parametrize("obeys", [True, False])
def test_an_abort_of_the_client_reaches_the_provider(obeys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_proxy_app, "ABORT_SECONDS", 0.05)

    async def go() -> Any:
        provider = Waiting(obeys=obeys)
        async with proxied(
            Backend("a", providers=[provider], models=[WAITING]), limits=ProxyLimits(streams=1)
        ) as proxy:
            controller = AbortController()
            events = []
            async for event in proxy.client.stream(WAITING, CONTEXT, StreamOptions(signal=controller.signal)):
                events.append(event)
                if event.type == "text_delta":
                    controller.abort()
            await asyncio.wait_for(provider.ended.wait(), 5)
            return events, provider.signal, await when_free(proxy)

    events, signal, again = asyncio.run(go())
    assert (final(events).stop_reason, final(events).text) == ("aborted", "so far")
    assert signal is not None
    assert signal.aborted
    assert final(again).text == "a"


def test_a_client_that_stops_reading_ends_the_request() -> None:
    async def go() -> None:
        provider = Waiting()
        async with proxied(Backend(providers=[provider], models=[WAITING])) as proxy:
            stream = proxy.client.stream(WAITING, CONTEXT, StreamOptions())
            async for event in stream:
                if event.type == "text_delta":
                    break
            await stream.aclose()  # type: ignore[attr-defined]
            await asyncio.wait_for(provider.ended.wait(), 5)

    asyncio.run(go())


def test_an_abort_closes_the_connection_to_the_server_behind(serve: Any, reply: Any) -> None:
    hello = b'data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'

    async def go() -> Any:
        async with serve(reply([hello], then="stall")) as upstream:
            model = Model(id="m", api="openai-completions", provider="local", base_url=upstream.url)
            backend = Backend(providers=[OpenAICompletionsProvider()], models=[model])
            async with proxied(backend) as proxy:
                controller = AbortController()
                asking = asyncio.create_task(proxy.ask(CONTEXT, model, signal=controller.signal))
                await upstream.sent.wait()
                controller.abort()
                await asyncio.wait_for(upstream.gone.wait(), 5)
                return await asking

    assert final(asyncio.run(go())).stop_reason == "aborted"


def test_a_server_behind_that_falls_silent_is_an_error(serve: Any, reply: Any) -> None:
    hello = b'data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'

    async def go() -> Any:
        async with serve(reply([hello], then="stall")) as upstream:
            model = Model(id="m", api="openai-completions", provider="local", base_url=upstream.url)
            backend = Backend(providers=[OpenAICompletionsProvider()], models=[model])
            async with proxied(backend, limits=ProxyLimits(idle_seconds=0.3)) as proxy:
                return await proxy.ask(CONTEXT, model)

    message = final(asyncio.run(go()))
    assert "sent nothing for 0.3 s" in (message.error_message or "")
    assert message.text == "hello"
    assert message.error_details is not None
    assert message.error_details.retryable is True


class Endless:
    """A provider that never stops."""

    api = "endless"

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        made = MessageAssembler(model.api, model.provider, model.id)
        try:
            yield made.start()
            yield made.text_start(0)
            while True:
                yield made.text_delta(0, "x" * 100_000)
        finally:
            self.ended.set()


def test_a_client_that_reads_nothing_is_let_go() -> None:
    model = Model(id="m", api="endless", provider="endless")

    async def go() -> None:
        provider = Endless()
        backend = Backend(providers=[provider], models=[model])
        async with proxied(backend, limits=ProxyLimits(idle_seconds=0.2), grace=0) as proxy:
            body = json.dumps({**BODY, "model": {"id": "m", "provider": "endless"}}).encode()
            host, port = proxy.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1)
            head = f"POST /api/stream HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await asyncio.wait_for(provider.ended.wait(), 10)
            writer.close()
            assert reader

    asyncio.run(go())


@pytest.mark.parametrize("begun", [True, False])
def test_comments_tell_that_the_connection_lives(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_proxy_app, "HEARTBEAT_SECONDS", 0.01)

    async def go() -> str:
        gate = Barrier()

        class Slow:
            @hookimpl
            async def get_api_key(self) -> None:
                await gate.wait()

        backend = Backend(Reply("a", Wait(gate), "b"))
        async with (
            proxied(backend, *([] if begun else [Slow()])) as proxy,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with client.stream("POST", f"{proxy.url}/api/stream", json=BODY, headers=headers) as answer:
                text = ""
                async for piece in answer.aiter_text():
                    text += piece
                    if ": \n\n" in text:
                        gate.release()
                return text

    text = asyncio.run(go())
    assert '"type":"done"' in text
    assert text.startswith("data: " if begun else ": \n\n")
    assert text.index(": \n\n") < text.index('"delta":"b"')


# --- who may ask ---


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "\u00e9"])
def test_a_wrong_token_is_refused(token: str) -> None:
    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            sent = f"Bearer {token}".encode() if token else b""
            headers = {b"content-type": b"application/json", **({b"authorization": sent} if sent else {})}
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(f"{proxy.url}/api/stream", json=BODY, headers=list(headers.items()))
            return answer, proxy.backend.provider.requests

    answer, requests = asyncio.run(go())
    assert (answer.status_code, answer.json(), requests) == (401, {"error": "The token is missing or wrong"}, [])
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_client_is_told_about_a_wrong_token() -> None:
    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            return await proxy.ask(CONTEXT, client=ProxyProvider(proxy.url, "another-token"))

    message = final(asyncio.run(go()))
    assert message.error_message == "Proxy error: The token is missing or wrong"
    assert message.error_details is not None
    assert (message.error_details.status, message.error_details.retryable) == (401, False)


def test_without_a_token_only_this_machine_may_ask() -> None:
    async def go() -> list[int]:
        async with proxied(Backend("a", "b", "c"), token="") as proxy:
            body = json.dumps(BODY).encode()
            names = ["127.0.0.1:80", "localhost", "evil.example", "evil.example:80", "127.0.0.1.evil.example@x"]
            return [(await proxy.post(body, authorization="", host=name)).status_code for name in names]

    assert asyncio.run(go()) == [200, 200, 403, 403, 403]


def test_pages_may_ask_only_when_they_are_named() -> None:
    async def go() -> list[httpx.Response]:
        async with proxied(Backend("a", "b"), origins=["https://good.example/"]) as proxy:
            body = json.dumps(BODY).encode()
            answers = [await proxy.post(body, origin=name) for name in ("https://good.example", "https://evil.example")]
            answers.append(await proxy.post(body, origin="https://good.example", authorization="Bearer wrong"))
            answers.append(await proxy.post(body, origin=proxy.url))
            async with httpx.AsyncClient(trust_env=False) as client:
                asking = {"origin": "https://good.example", "access-control-request-method": "POST"}
                answers.append(await client.options(f"{proxy.url}/api/stream", headers=asking))
                answers.append(await client.options(f"{proxy.url}/api/stream", headers={"origin": "https://evil"}))
            return answers

    good, evil, wrong, own, preflight, denied = asyncio.run(go())
    assert [answer.status_code for answer in (good, evil, wrong, own)] == [200, 403, 401, 200]
    for answer in (good, wrong, preflight):
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        assert answer.headers["vary"] == "origin"
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-headers"] == "authorization, content-type"
    for answer in (evil, own, denied):
        assert "access-control-allow-origin" not in answer.headers
    assert denied.status_code == 403


def test_every_page_may_ask_where_all_are_let_in() -> None:
    async def go() -> httpx.Response:
        async with proxied(Backend("a"), origins=["*"]) as proxy:
            return await proxy.post(json.dumps(BODY).encode(), origin="https://any.example")

    assert asyncio.run(go()).headers["access-control-allow-origin"] == "https://any.example"


# --- what may be asked ---


def test_only_the_models_that_are_named_are_served() -> None:
    other = Model(id="other", api="scripted", provider="scripted")

    async def go() -> list[Any]:
        async with proxied(Backend("a", models=[other]), models=["scripted/scripted"]) as proxy:
            return [await proxy.ask(CONTEXT, model) for model in (other, SCRIPTED_MODEL)]

    refused, served = asyncio.run(go())
    message = final(refused)
    words = "Proxy error: The model 'scripted/other' is not served here; models: scripted/scripted"
    assert message.error_message == words
    assert final(served).text == "a"


@pytest.mark.parametrize("provider", ["proxy", "custom"])
def test_a_name_of_the_proxys_own_may_be_asked_for(provider: str) -> None:
    async def go() -> Any:
        async with proxied(Backend("a", "b"), models=["bare"]) as proxy:
            bare = Model(id="bare", api="proxy", provider=provider)
            return [final(await proxy.ask(CONTEXT, model)).text for model in (bare, SCRIPTED_MODEL)]

    assert asyncio.run(go()) == ["a", "b"]


def test_a_model_that_nobody_knows_is_refused() -> None:
    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            return await proxy.ask(CONTEXT, Model(id="x", api="y", provider="z"))

    message = final(asyncio.run(go()))
    assert (message.error_message or "").startswith("Proxy error: No plugin knows the model 'z/x'")


def test_a_model_behind_another_proxy_is_refused() -> None:
    far = Model(id="far", api="proxy", provider="far", base_url="http://127.0.0.1:1")

    async def go() -> Any:
        async with proxied(Backend("a", models=[far])) as proxy:
            return await proxy.ask(CONTEXT, far)

    assert "is behind a proxy itself" in (final(asyncio.run(go())).error_message or "")


def test_a_model_without_a_provider_is_an_error() -> None:
    model = Model(id="m", api="unspoken", provider="p")

    async def go() -> Any:
        async with proxied(Backend("a", models=[model])) as proxy:
            return await proxy.ask(CONTEXT, model)

    assert "Proxy error: No provider speaks 'unspoken'" in (final(asyncio.run(go())).error_message or "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"headers": {"Host": "evil.example"}}, "option headers: 'Host' is not allowed by this proxy"),
        ({"headers": {"authorization": None}}, "option headers: 'authorization' is not allowed"),
        ({"sampling_params": {"model": "expensive"}}, "option samplingParams: 'model' is not allowed"),
    ],
)
def test_what_would_change_where_a_request_goes_is_refused(options: Any, words: str) -> None:
    async def go() -> Any:
        async with proxied(Backend("a")) as proxy:
            return await proxy.ask(CONTEXT, **options), proxy.backend.provider.requests

    events, requests = asyncio.run(go())
    assert words in (final(events).error_message or "")
    assert requests == []


def test_a_header_that_is_let_through_reaches_the_provider() -> None:
    async def go() -> Any:
        async with proxied(Backend("a"), headers=["Anthropic-Beta"]) as proxy:
            await proxy.ask(CONTEXT, headers={"anthropic-beta": "new"})
            return proxy.backend.provider.requests[0].options.headers

    assert asyncio.run(go()) == {"anthropic-beta": "new"}


MESSAGE = BODY["context"]["messages"][0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "The body is not JSON"),
        (b"{", "The body is not JSON"),
        (b"[" * 100_000, "The body is not JSON"),
        (b"[]", "body: "),
        ({**BODY, "model": {"id": ""}}, "model.id: "),
        ({**BODY, "model": {"id": "x"}}, "model.provider: Field required"),
        ({**BODY, "context": {}}, "context.messages: Field required"),
        ({**BODY, "context": {"messages": ["x"]}}, "context.messages.0: "),
        ({**BODY, "context": {"messages": [MESSAGE, {"role": "user"}]}}, "context.messages.1.content: Field required"),
        (
            {**BODY, "context": {"messages": [{"role": "x", "timestamp": 1}]}},
            "messages.0: the role 'x' is not for a model",
        ),
        ({**BODY, "context": {"messages": [{}]}}, "context.messages.0.role: Field required"),
        ({**BODY, "context": {"messages": [{"role": "system", "content": 5}]}}, "context.messages.0.content"),
        ({**BODY, "context": {"messages": [], "tools": [{"name": ""}]}}, "context.tools.0.name: "),
        ({**BODY, "context": {"messages": [], "tools": [{"name": " "}]}}, "context.tools: a tool needs a name"),
        ({**BODY, "options": {"maxTokens": 0}}, "options.maxTokens: "),
        ({**BODY, "options": {"reasoning": "very"}}, "options.reasoning: "),
        ({**BODY, "options": {"temperature": "hot"}}, "options.temperature: "),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(body: Any, words: str) -> None:
    async def go() -> httpx.Response:
        async with proxied(Backend("a")) as proxy:
            return await proxy.post(body if isinstance(body, bytes) else json.dumps(body).encode())

    answer = asyncio.run(go())
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_other_requests_are_refused() -> None:
    async def go() -> list[tuple[int, Any]]:
        async with proxied(Backend("a")) as proxy, httpx.AsyncClient(trust_env=False) as client:
            body = json.dumps(BODY).encode()
            answers = [
                await client.get(f"{proxy.url}/api/stream"),
                await client.post(f"{proxy.url}/api/other", content=body),
                await proxy.post(body, content_type="text/plain"),
                await proxy.post(body, content_encoding="gzip"),
            ]
            return [(answer.status_code, answer.json()["error"]) for answer in answers]

    assert asyncio.run(go()) == [
        (405, "Requests are made with POST, not GET"),
        (404, "There is nothing here; requests go to /api/stream"),
        (415, "The body has to be application/json"),
        (415, "The body must not be compressed"),
    ]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused(chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 100_000

    async def go() -> Any:
        async with proxied(Backend("a"), limits=ProxyLimits(body_bytes=250_000)) as proxy:
            if chunked:
                return (await proxy.post(pieces())).json()["error"]
            long = Context("x" * 5_000_000, CONTEXT.messages)
            return final(await proxy.ask(long)).error_message.removeprefix("Proxy error: ")

    assert asyncio.run(go()) == "The body is longer than 250000 bytes"


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_proxy_app, "BODY_SECONDS", 0.05)

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(0.5)
        yield b"}"

    async def go() -> httpx.Response:
        async with proxied(Backend("a")) as proxy:
            return await proxy.post(slowly())

    assert asyncio.run(go()).status_code == 408


def test_a_client_that_leaves_while_it_asks_leaves_nothing_behind() -> None:
    async def go() -> Any:
        async with proxied(Backend("a"), limits=ProxyLimits(streams=1)) as proxy:
            host, port = proxy.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port))) as client:
                head = f"POST /api/stream HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n"
                client.sendall(f"{head}content-type: application/json\r\ncontent-length: 50\r\n\r\n{{".encode())
            return await when_free(proxy)

    assert final(asyncio.run(go())).text == "a"


def test_more_requests_than_the_proxy_takes_on_are_told_to_come_back() -> None:
    async def go() -> Any:
        provider = Waiting()
        backend = Backend("a", providers=[provider], models=[WAITING])
        async with proxied(backend, limits=ProxyLimits(streams=1), grace=0) as proxy:
            controller = AbortController()
            first = asyncio.create_task(proxy.ask(CONTEXT, WAITING, signal=controller.signal))
            await asyncio.wait_for(provider.asked.wait(), 5)
            refused = await proxy.ask(CONTEXT)
            controller.abort()
            await first
            return refused

    message = final(asyncio.run(go()))
    assert message.error_message == "Proxy error: The proxy is busy: too many requests at one time"
    assert message.error_details is not None
    assert (message.error_details.retryable, message.error_details.retry_after_ms) == (True, 1000)


# --- failures ---


def test_what_a_plugin_raises_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        @hookimpl
        def get_api_key(self) -> str:
            raise ValueError("vault at secret-host said no")

    async def go() -> Any:
        async with proxied(Backend("a"), Broken()) as proxy:
            return await proxy.ask(CONTEXT)

    with caplog.at_level(logging.ERROR, "pi.proxy"):
        message = final(asyncio.run(go()))
    assert message.error_message == "Proxy error: The proxy failed; its log says more"
    assert "secret-host" in caplog.text


def test_a_provider_that_raises_in_the_middle_is_an_error() -> None:
    class Raising:
        api = "raising"

        async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
            made = MessageAssembler(model.api, model.provider, model.id)
            yield made.start()
            yield made.text_start(0)
            yield made.text_delta(0, "so far")
            raise ValueError("as no provider should")

    model = Model(id="m", api="raising", provider="p")

    async def go() -> Any:
        async with proxied(Backend(providers=[Raising()], models=[model])) as proxy:
            return await proxy.ask(CONTEXT, model)

    message = final(asyncio.run(go()))
    assert (message.error_message, message.text) == ("The proxy failed; its log says more", "so far")


def test_no_secret_of_the_proxy_is_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")

    async def go() -> Any:
        async with proxied(Backend(Reply("a", error=f"401: bad key sk-0123456789 or {TOKEN}"))) as proxy:
            return await proxy.ask(CONTEXT)

    assert final(asyncio.run(go())).error_message == "401: bad key *** or ***"


@pytest.mark.parametrize("begun", [True, False])
def test_a_proxy_that_is_stopped_ends_its_answers(begun: bool) -> None:
    async def go() -> Any:
        provider = Waiting()
        gate = Barrier()

        class Gate:
            @hookimpl
            async def get_api_key(self) -> None:
                provider.asked.set()
                await gate.wait()

        plugins = [] if begun else [Gate()]
        async with proxied(Backend(providers=[provider], models=[WAITING]), *plugins, grace=0) as proxy:
            asking = asyncio.create_task(proxy.ask(CONTEXT, WAITING))
            await asyncio.wait_for(provider.asked.wait(), 5)
            proxy.server.should_exit = True
            return await asyncio.wait_for(asking, 5)

    message = final(asyncio.run(go()))
    assert (message.stop_reason, message.text) == ("error", "so far" if begun else "")
    assert message.error_message == ("The proxy was stopped" if begun else "Proxy error: The proxy was stopped")


def test_an_answer_that_ends_in_time_is_whole_when_the_proxy_is_stopped() -> None:
    async def go() -> Any:
        gate = Barrier()
        async with proxied(Backend(Reply("a", Wait(gate), "b"))) as proxy:
            seen = []
            async for event in proxy.client.stream(SCRIPTED_MODEL, CONTEXT, StreamOptions()):
                seen.append(event)
                if event.type == "text_end" and event.content == "a":
                    proxy.server.should_exit = True
                    gate.release()
            return seen

    events = asyncio.run(go())
    assert (events[-1].type, final(events).text) == ("done", "ab")


def test_only_http_is_answered() -> None:
    async def nothing() -> Any:
        raise AssertionError("not called")

    async def send(message: Any) -> None:
        raise AssertionError("not called")

    app = _proxy_app.ProxyApp(Build([Backend()], only=[]))
    with pytest.raises(ValueError, match="HTTP requests only, got lifespan"):
        asyncio.run(app({"type": "lifespan"}, nothing, send))
