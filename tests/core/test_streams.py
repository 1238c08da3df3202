"""The event queue, and views of a streamed message as of each event."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import (
    ArgumentsParser,
    AssistantMessage,
    AssistantStream,
    DoneEvent,
    EventStream,
    MessageAssembler,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingContent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallContent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UpdateEvent,
    Usage,
)

from .running import run


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# --- views --------------------------------------------------------------------------------------------------------


class Naive:
    """The message so far, kept the expensive way: a copy for every event."""

    def __init__(self) -> None:
        self.blocks: dict[int, dict[str, Any]] = {}
        self.fields: dict[str, Any] = {}
        self.parsers: dict[int, ArgumentsParser] = {}

    def snapshot(self) -> dict[str, Any]:
        return {"content": [copy.deepcopy(self.blocks[index]) for index in sorted(self.blocks)], **self.fields}


def seen(message: AssistantMessage) -> dict[str, Any]:
    data = message.to_json()
    keys = ("content", "responseId")
    return {key: data[key] for key in keys if key in data}


KINDS = ("text", "thinking", "toolcall")
STEP = st.tuples(
    st.sampled_from(["open", "delta", "delta", "delta", "end", "update"]),
    st.integers(0, 3),
    st.sampled_from(KINDS),
    st.text('{}[]:,"ab1 \\é', max_size=4),
)


def build(
    assembler: MessageAssembler, steps: list[tuple[str, int, str, str]], *, by_hand: bool, eager: bool
) -> tuple[Naive, list[tuple[UpdateEvent, dict[str, Any]]]]:
    """Play the steps that make sense; the events with the naive snapshot of each."""
    naive, events = Naive(), []
    for op, index, kind, text in steps:
        block = naive.blocks.get(index)
        event: UpdateEvent | None = None
        if op == "update":
            assembler.update(response_id=text)
            naive.fields["responseId"] = text
        elif op == "open":
            event = opened(assembler, naive, index, kind, text, by_hand=by_hand)
        elif block is not None:
            event = grown(assembler, naive, index, op, text, by_hand=by_hand)
        if event is not None:
            events.append((event, naive.snapshot()))
            if eager:
                assert seen(event.partial) == naive.snapshot()
    return naive, events


def opened(
    assembler: MessageAssembler, naive: Naive, index: int, kind: str, text: str, *, by_hand: bool
) -> UpdateEvent:
    if kind == "text":
        naive.blocks[index] = {"type": "text", "text": text}
        return assembler.apply(TextStartEvent(index, text)) if by_hand else assembler.text_start(index, text)
    if kind == "thinking":
        naive.blocks[index] = {"type": "thinking", "thinking": text, "redacted": True}
        if by_hand:
            return assembler.apply(ThinkingStartEvent(index, text, redacted=True))
        return assembler.thinking_start(index, text, redacted=True)
    naive.blocks[index] = {"type": "toolCall", "id": text, "name": "t", "arguments": {}}
    naive.parsers[index] = ArgumentsParser()
    if by_hand:
        return assembler.apply(ToolCallStartEvent(index, text, "t"))
    return assembler.toolcall_start(index, text, "t")


def grown(
    assembler: MessageAssembler, naive: Naive, index: int, op: str, text: str, *, by_hand: bool
) -> UpdateEvent | None:
    block = naive.blocks[index]
    ended = block.get("textSignature") or block.get("thinkingSignature") or block.get("thoughtSignature")
    if ended:
        return None
    if op == "end":
        if block["type"] == "text":
            block.update(text=block["text"] + "!", textSignature="s")
            event: UpdateEvent = TextEndEvent(index, block["text"], "s")
            return assembler.apply(event) if by_hand else assembler.text_end(index, block["text"], "s")
        if block["type"] == "thinking":
            block.update(thinkingSignature="s")
            event = ThinkingEndEvent(index, block["thinking"], "s")
            return assembler.apply(event) if by_hand else assembler.thinking_end(index, signature="s")
        block.update(arguments={"final": True}, thoughtSignature="s")
        if by_hand:
            return assembler.apply(ToolCallEndEvent(index, ToolCallContent.model_validate(block)))
        return assembler.toolcall_end(index, arguments={"final": True}, thought_signature="s")
    if block["type"] == "text":
        block["text"] += text
        return assembler.apply(TextDeltaEvent(index, text)) if by_hand else assembler.text_delta(index, text)
    if block["type"] == "thinking":
        block["thinking"] += text
        return assembler.apply(ThinkingDeltaEvent(index, text)) if by_hand else assembler.thinking_delta(index, text)
    naive.parsers[index].feed(text)
    block["arguments"] = copy.deepcopy(naive.parsers[index].value)
    return assembler.apply(ToolCallDeltaEvent(index, text)) if by_hand else assembler.toolcall_delta(index, text)


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(STEP, max_size=40),
    by_hand=st.booleans(),
    eager=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_view_is_the_message_as_of_the_event(
    steps: list[tuple[str, int, str, str]], by_hand: bool, eager: bool, order: Any
) -> None:
    assembler = MessageAssembler("api", "provider", "model")
    naive, events = build(assembler, steps, by_hand=by_hand, eager=eager)
    order.shuffle(events)
    for event, snapshot in events:
        assert seen(event.partial) == snapshot
        assert event.partial.stop_reason == "pending"
    assert seen(assembler.message("stop")) == naive.snapshot()


def test_fields_known_before_the_end_are_in_later_views_only() -> None:
    assembler = MessageAssembler("api", "provider", "model", timestamp=5)
    first = assembler.text_start(0)
    assembler.update(usage=Usage(input=3), response_id="r")
    second = assembler.text_delta(0, "x")
    assert (first.partial.response_id, second.partial.response_id) == (None, "r")
    assert second.partial.usage.input == 3
    assert second.partial.timestamp == 5
    done = assembler.done("stop", raw_stop_reason="end_turn")
    assert (done.message.raw_stop_reason, done.message.stop_reason, done.message.text) == ("end_turn", "stop", "x")


def test_a_block_opened_again_does_not_change_what_came_before() -> None:
    assembler = MessageAssembler("api", "provider", "model")
    assembler.text_start(0)
    old = assembler.text_delta(0, "old")
    for _ in range(3000):
        new = assembler.text_start(0, "new")
    assert (old.partial.text, new.partial.text) == ("old", "new")


def test_late_name_of_a_call() -> None:
    assembler = MessageAssembler("api", "provider", "model")
    start = assembler.toolcall_start(0)
    assembler.toolcall_name(0, "c1", "read")
    delta = assembler.toolcall_delta(0, '{"a": 1}')
    assert [call.name for call in start.partial.tool_calls] == [""]
    assert [(call.id, call.name, call.arguments) for call in delta.partial.tool_calls] == [("c1", "read", {"a": 1})]
    assert assembler.toolcall_end(0).tool_call.arguments == {"a": 1}


def test_signature_that_comes_before_the_end() -> None:
    assembler = MessageAssembler("api", "provider", "model")
    start = assembler.thinking_start(0)
    first = assembler.thinking_delta(0, "a")
    assembler.sign(0, "S")
    second = assembler.thinking_delta(0, "b")
    assert [event.partial.content[0].thinking_signature for event in (start, first, second)] == [None, None, "S"]
    assert [event.partial.content[0].thinking for event in (first, second)] == ["a", "ab"]
    assert assembler.thinking_end(0).partial.content == [ThinkingContent(thinking="ab", thinking_signature="S")]


def test_a_message_begun_elsewhere_is_taken_over() -> None:
    partial = AssistantMessage(
        content=[
            TextContent(text="Hel", text_signature="s"),
            ThinkingContent(thinking="hm", redacted=True),
            ToolCallContent(id="c", name="t", arguments={"a": 1}),
        ],
        api="their-api",
        provider="p",
        model="m",
        response_id="r",
        timestamp=7,
    )
    assembler = MessageAssembler("api", "provider", "model")
    assembler.begin(partial)
    assembler.apply(TextDeltaEvent(0, "lo"))
    message = assembler.message("stop")
    assert message.text == "Hello"
    assert (message.content[1], message.content[2]) == (partial.content[1], partial.content[2])
    assert (message.api, message.response_id, message.timestamp) == ("their-api", "r", 7)


@pytest.mark.parametrize(
    "event",
    [TextDeltaEvent(0, "x"), TextEndEvent(0, "x"), ThinkingDeltaEvent(1, "x"), ToolCallDeltaEvent(2, "x")],
)
def test_an_event_that_fits_no_block_is_refused(event: UpdateEvent) -> None:
    assembler = MessageAssembler("api", "provider", "model")
    assembler.thinking_start(0)
    with pytest.raises(ValueError, match=f"content index {event.content_index}"):
        assembler.apply(event)


def test_an_event_without_a_source_says_so() -> None:
    with pytest.raises(ValueError, match="apply it to a MessageAssembler"):
        _ = TextDeltaEvent(0, "x").partial


# --- the queue ----------------------------------------------------------------------------------------------------


def numbers() -> EventStream[int, str]:
    return EventStream(lambda event: ("result",) if event == 0 else None)


def test_events_arrive_in_order_and_the_final_one_ends() -> None:
    async def main() -> None:
        stream = numbers()
        stream.push(2)
        stream.push(1)
        stream.push(0)
        stream.push(9)
        assert [event async for event in stream] == [2, 1, 0]
        assert await stream.result() == "result"
        assert stream.settled == ("result",)

    run(main())


def test_waiting_readers_are_served_in_the_order_they_came() -> None:
    async def main() -> None:
        stream = numbers()
        first, second = asyncio.create_task(anext(stream)), asyncio.create_task(anext(stream))
        await settle()
        stream.push(1)
        late = asyncio.create_task(anext(stream))
        stream.push(2)
        stream.push(3)
        assert [await first, await second, await late] == [1, 2, 3]

    run(main())


def test_a_cancelled_reader_takes_no_event_with_it() -> None:
    async def main() -> None:
        stream = numbers()
        gone, waits = asyncio.create_task(anext(stream)), asyncio.create_task(anext(stream))
        await settle()
        gone.cancel()
        await settle()
        stream.push(1)
        assert await waits == 1

    run(main())


@pytest.mark.parametrize("another_waits", [False, True])
def test_a_reader_cancelled_with_its_event_in_hand_gives_it_back(another_waits: bool) -> None:
    async def main() -> None:
        stream = numbers()
        gone = asyncio.create_task(anext(stream))
        await settle()
        waits = asyncio.create_task(anext(stream)) if another_waits else None
        await settle()
        stream.push(1)
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()
        stream.push(2)
        assert (await waits if waits is not None else await anext(stream)) == 1
        assert await anext(stream) == 2

    run(main())


def test_a_failure_comes_after_what_was_queued() -> None:
    async def main() -> None:
        stream = numbers()
        waiting = asyncio.create_task(stream.result())
        await settle()
        stream.push(1)
        stream.fail(LookupError("gone"))
        stream.fail(ValueError("too late"))
        assert await anext(stream) == 1
        for read in (anext(stream), stream.result(), waiting):
            with pytest.raises(LookupError, match="gone"):
                await read

    run(main())


def test_a_stream_ended_without_a_result_has_none() -> None:
    async def main() -> None:
        stream = numbers()
        result = asyncio.create_task(stream.result())
        await settle()
        stream.end()
        assert [event async for event in stream] == []
        await settle()
        assert not result.done()
        result.cancel()
        await asyncio.wait([result])

    run(main())


def test_closing_wakes_everybody_and_tells_the_producer() -> None:
    async def main() -> None:
        stream, told = numbers(), []

        async def stop() -> None:
            await asyncio.sleep(0)
            told.append("stopped")

        stream.on_close(stop)
        reader, result = asyncio.create_task(anext(stream)), asyncio.create_task(stream.result())
        await settle()
        await stream.aclose()
        stream.push(1)
        await stream.aclose()
        assert told == ["stopped"]
        with pytest.raises(StopAsyncIteration):
            await reader
        for waiting in (result, stream.result()):
            with pytest.raises(RuntimeError, match="closed before its result"):
                await waiting
        assert [event async for event in stream] == []

    run(main())


def test_closing_after_the_final_event_keeps_the_result() -> None:
    async def main() -> None:
        stream = numbers()
        stream.push(0)
        await stream.aclose()
        assert await stream.result() == "result"

    run(main())


def test_text_of_a_response() -> None:
    async def main() -> None:
        stream, assembler = AssistantStream(), MessageAssembler("api", "provider", "model")
        stream.push(assembler.start())
        for event in (
            assembler.thinking_start(0, "hidden"),
            assembler.text_start(1, "Hel"),
            assembler.text_delta(1, "lo"),
            assembler.toolcall_start(2, "c", "t"),
        ):
            stream.push(event)
        done = assembler.done("toolUse")
        assert isinstance(done, DoneEvent)
        stream.push(done)
        assert [text async for text in stream.text()] == ["Hel", "lo"]
        assert await stream.result() is done.message

    run(main())
