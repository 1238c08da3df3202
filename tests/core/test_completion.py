"""Asking a model without an agent: with a provider, a stream function, a build, or the default stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest

from pi_core import (
    AbortController,
    AssistantMessage,
    AssistantStream,
    Build,
    ConfigError,
    Context,
    CustomMessage,
    DoneEvent,
    HookError,
    Message,
    MessageAssembler,
    Model,
    PluginConflictError,
    RunContext,
    SelectionContext,
    StartEvent,
    StreamEvent,
    StreamOptions,
    TextContent,
    TextDeltaEvent,
    TextStartEvent,
    UserMessage,
    complete,
    complete_sync,
    hookimpl,
    set_default_stream,
    stream,
    tool,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Barrier, Call, Reply, Say, ScriptedProvider, Think, Wait

REPLY = Reply(Think("hm"), Say("Hello there", ["Hello", " there"]), Call("add", {"a": 1}))


@tool
def add(a: int) -> str:
    """Add."""
    return str(a)


def test_the_message_has_everything_the_provider_gave() -> None:
    provider = ScriptedProvider(REPLY)
    answer = complete_sync(SCRIPTED_MODEL, "Hi", provider=provider, system_prompt="Be kind", tools=[add], max_tokens=7)
    assert (answer.text, answer.stop_reason) == ("Hello there", "toolUse")
    assert answer.tool_calls[0].arguments == {"a": 1}
    (request,) = provider.requests
    assert (request.system_prompt, request.tool_names, request.options.max_tokens) == ("Be kind", ["add"], 7)
    assert [message.content for message in request.messages] == [[TextContent(text="Hi")]]


def test_the_text_arrives_in_pieces() -> None:
    async def go() -> tuple[list[str], AssistantMessage]:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider(REPLY))
        return [piece async for piece in answer.text()], await answer.result()

    pieces, message = asyncio.run(go())
    assert pieces == ["Hello", " there"]
    assert message.text == "Hello there"


def test_text_that_comes_with_the_start_of_its_block_is_text() -> None:
    async def events(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        made = MessageAssembler(model.api, model.provider, model.id)
        yield made.start()
        yield made.text_start(0, "all at once")
        yield made.done("stop")

    async def go() -> list[str]:
        return [piece async for piece in stream(SCRIPTED_MODEL, "Hi", provider=events).text()]

    assert asyncio.run(go()) == ["all at once"]


def test_every_event_comes_once_and_the_last_one_last() -> None:
    async def go() -> list[str]:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider("one"))
        types = [event.type async for event in answer]
        await answer.result()
        return types + [event.type async for event in answer]

    assert asyncio.run(go()) == ["start", "text_start", "text_delta", "text_end", "done"]


def test_the_result_can_be_asked_for_at_any_time_and_again() -> None:
    async def go() -> None:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider("one"))
        await anext(answer)
        assert (await answer.result()).text == "one"
        assert (await answer.result()).text == "one"

    asyncio.run(go())


def test_messages_of_every_kind_can_be_asked_with() -> None:
    class Note(CustomMessage):
        role: Literal["note"] = "note"
        text: str

        def to_llm(self) -> list[Message]:
            return [user_message(f"Note: {self.text}")]

    async def go() -> list[str]:
        provider = ScriptedProvider("a", "b")
        first = await complete(SCRIPTED_MODEL, UserMessage(content="one"), provider=provider)
        await complete(SCRIPTED_MODEL, [user_message("one"), first, Note(text="two")], provider=provider)
        return [message.role for message in provider.requests[1].messages]

    assert asyncio.run(go()) == ["user", "assistant", "user"]


def test_a_failure_is_a_message() -> None:
    answer = complete_sync(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider(Reply("so far", error="broken")))
    assert (answer.stop_reason, answer.error_message, answer.text) == ("error", "broken", "so far")


def test_an_abort_ends_the_answer() -> None:
    async def go() -> AssistantMessage:
        controller = AbortController()
        provider = ScriptedProvider(Reply("so far", Wait(Barrier())))
        answer = stream(SCRIPTED_MODEL, "Hi", provider=provider, signal=controller.signal)
        async for piece in answer.text():
            assert piece == "so far"
            controller.abort()
        return await answer.result()

    message = asyncio.run(go())
    assert (message.stop_reason, message.text) == ("aborted", "so far")


class Closing:
    """A provider whose generator says when it is closed."""

    api = "closing"

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.closed = False

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        made = MessageAssembler(model.api, model.provider, model.id)
        try:
            yield made.start()
            self.waiting.set()
            await asyncio.Event().wait()
        finally:
            self.closed = True


def test_who_stops_reading_closes_the_request() -> None:
    async def go() -> None:
        provider = Closing()
        async with stream(SCRIPTED_MODEL, "Hi", provider=provider) as answer:
            await anext(answer)
        assert provider.closed
        with pytest.raises(RuntimeError, match="closed before its end"):
            await answer.result()

    asyncio.run(go())


def test_a_cancelled_caller_closes_the_request() -> None:
    async def go() -> None:
        provider = Closing()
        asking = asyncio.create_task(complete(SCRIPTED_MODEL, "Hi", provider=provider))
        await provider.waiting.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert provider.closed

    asyncio.run(go())


# --- what providers do ---


def test_events_made_by_hand_tell_the_message_so_far() -> None:
    async def events(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        begun = MessageAssembler(model.api, model.provider, model.id)
        yield StartEvent(begun.message())
        yield TextStartEvent(0)
        yield TextDeltaEvent(0, "by ")
        yield TextDeltaEvent(0, "hand")

    async def go() -> tuple[list[str], AssistantMessage]:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=events)
        seen = [event async for event in answer]
        return [event.partial.text for event in seen[:-1]], await answer.result()

    texts, message = asyncio.run(go())
    assert texts == ["", "", "by ", "by hand"]
    assert (message.stop_reason, message.text) == ("error", "by hand")
    assert message.error_message == "Stream ended without a final event"


def test_a_stream_without_any_event_is_a_failure() -> None:
    answer = complete_sync(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider(Reply(ends=False)))
    assert answer.stop_reason == "error"

    async def nothing(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        return
        yield

    answer = complete_sync(SCRIPTED_MODEL, "Hi", provider=nothing)
    assert (answer.stop_reason, answer.content) == ("error", [])


@pytest.mark.parametrize(("reason", "last"), [("stop", "done"), ("error", "error")])
def test_a_queue_that_ends_with_a_result_has_a_final_event(reason: Any, last: str) -> None:
    async def queue(model: Model, context: Context, options: StreamOptions) -> AssistantStream:
        pushed = AssistantStream()
        made = MessageAssembler(model.api, model.provider, model.id)
        pushed.push(made.start())
        pushed.end(made.message(reason))
        return pushed

    async def go() -> list[str]:
        return [event.type async for event in stream(SCRIPTED_MODEL, "Hi", provider=queue)]

    assert asyncio.run(go()) == ["start", last]


def test_what_a_provider_raises_comes_out_each_time() -> None:
    async def go() -> None:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider(Reply(raises=ValueError("no provider should"))))
        for _ in range(2):
            with pytest.raises(ValueError, match="no provider should"):
                await answer.result()

    asyncio.run(go())


def test_what_is_no_event_is_an_error() -> None:
    async def events(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[Any]:
        yield "text"

    with pytest.raises(TypeError, match="yields stream events, got 'text'"):
        complete_sync(SCRIPTED_MODEL, "Hi", provider=events)


# --- who is asked ---


@pytest.fixture
def no_default() -> Iterator[None]:
    yield
    set_default_stream(None)


def test_the_default_stream_is_used_when_no_provider_is_given(no_default: None) -> None:
    with pytest.raises(ConfigError, match="Nobody is there to make the request: pass provider="):
        stream(SCRIPTED_MODEL, "Hi")
    set_default_stream(ScriptedProvider("from the default").stream)
    assert complete_sync(SCRIPTED_MODEL, "Hi").text == "from the default"


def test_what_is_no_provider_and_what_is_no_option_is_an_error() -> None:
    provider: Any = 5
    with pytest.raises(TypeError, match="expected a provider, a stream function or a build, got 5"):
        stream(SCRIPTED_MODEL, "Hi", provider=provider)
    with pytest.raises(TypeError, match="temprature"):
        stream(SCRIPTED_MODEL, "Hi", provider=ScriptedProvider(), temprature=0)
    with pytest.raises(TypeError, match="'gpt' is a name"):
        stream("gpt", "Hi", provider=ScriptedProvider())


class Whole:
    """A plugin with a provider that takes part in every hook of a request."""

    def __init__(self, *replies: Reply | str) -> None:
        self.provider = ScriptedProvider(*replies)
        self.seen: list[Any] = []

    @hookimpl
    def register_providers(self) -> list[ScriptedProvider]:
        return [self.provider]

    @hookimpl
    async def resolve_model(self, name: str, ctx: SelectionContext) -> Model | None:
        ctx.notice(f"taking {name}")
        return SCRIPTED_MODEL if name == "me/any" else None

    @hookimpl
    def get_api_key(self, provider: str, ctx: RunContext) -> str:
        self.seen.append(("key", provider, ctx.model.id, [message.role for message in ctx.messages]))
        return "from the plugin"

    @hookimpl
    def provider_payload(self, payload: Any) -> None:
        self.seen.append(("payload", payload["model"]))

    @hookimpl
    def provider_response(self, status: int) -> None:
        self.seen.append(("response", status))


def build_of(*plugins: object) -> Build:
    return Build(plugins, only=[])


def test_a_build_brings_model_key_and_hooks() -> None:
    plugin = Whole("a", "b")
    build = build_of(plugin)
    assert complete_sync("me/any", "Hi", provider=build).text == "a"
    assert plugin.seen == [
        ("key", "scripted", "scripted", ["user"]),
        ("payload", "scripted"),
        ("response", 200),
    ]
    assert complete_sync(SCRIPTED_MODEL, "Hi", provider=build, api_key="given", reasoning="low").text == "b"
    first, second = (request.options for request in plugin.provider.requests)
    assert (first.api_key, second.api_key, second.reasoning) == ("from the plugin", "given", "low")


def test_a_wrapper_around_the_stream_of_a_build_is_called() -> None:
    class Cache:
        @hookimpl
        async def stream(self, model: Model) -> AsyncIterator[StreamEvent]:
            async def cached() -> AsyncIterator[StreamEvent]:
                made = MessageAssembler(model.api, model.provider, model.id)
                yield DoneEvent(made.message("length"))

            return cached()

    plugin = Whole("never asked")
    assert complete_sync(SCRIPTED_MODEL, "Hi", provider=build_of(plugin, Cache())).stop_reason == "length"
    assert plugin.provider.requests == []


def test_a_build_without_the_model_or_its_provider_says_so() -> None:
    with pytest.raises(ConfigError, match="No plugin knows the model 'you/any'"):
        complete_sync("you/any", "Hi", provider=build_of(Whole()))
    other = SCRIPTED_MODEL.model_copy(update={"api": "other"})
    with pytest.raises(ConfigError, match=r"No provider speaks 'other'.*\(providers here: scripted\)"):
        complete_sync(other, "Hi", provider=build_of(Whole()))


def test_two_providers_of_one_api_are_an_error_that_names_both() -> None:
    class Other(Whole):
        pass

    build = build_of(Whole(), Other())
    with pytest.raises(PluginConflictError, match="'scripted' is offered by"):
        complete_sync(SCRIPTED_MODEL, "Hi", provider=build)


def test_a_plugin_that_fails_is_named() -> None:
    class Broken:
        @hookimpl
        def get_api_key(self) -> str:
            raise ValueError("no key ring")

    async def go() -> None:
        answer = stream(SCRIPTED_MODEL, "Hi", provider=build_of(Broken(), Whole("a")))
        with pytest.raises(HookError, match="no key ring"):
            await answer.result()

    asyncio.run(go())
