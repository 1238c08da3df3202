"""The scripted provider: plays responses that a test wrote.

Deterministic, without timers; concurrent things are put in order with barriers.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

from ..assembler import MessageAssembler
from ..context import AbortSignal
from ..events import StreamEvent
from ..messages import AssistantMessage, ErrorDetails, Message, StopReason, ToolCallContent, Usage
from ..providers import Context, Model, ProviderResponse, StreamOptions

SCRIPTED_MODEL = Model(
    id="scripted", name="Scripted", api="scripted", provider="scripted", reasoning=True, input=["text", "image"]
)
"""The model that the scripted provider serves."""


class Barrier:
    """A latch that tests order concurrent things with: closed until released, then open for good."""

    def __init__(self) -> None:
        self._open = asyncio.Event()

    def release(self) -> None:
        """Open it."""
        self._open.set()

    async def wait(self, signal: AbortSignal | None = None) -> None:
        """Wait until it is open, or the signal is aborted."""
        if self._open.is_set() or (signal is not None and signal.aborted):
            return
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._open.wait())]
        if signal is not None:
            waits.append(asyncio.ensure_future(signal.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


@dataclass(slots=True)
class Say:
    """A text block, streamed in chunks (one by default)."""

    text: str
    chunks: Sequence[str] = ()
    signature: str | None = None


@dataclass(slots=True)
class Think:
    """A thinking block, streamed in chunks (one by default)."""

    thinking: str
    chunks: Sequence[str] = ()
    signature: str | None = None
    redacted: bool | None = None


@dataclass(slots=True)
class Call:
    """A tool call; ``raw`` is argument text that need not be JSON, ``chunks`` splits the text."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str | None = None
    chunks: Sequence[str] = ()


@dataclass(slots=True)
class Wait:
    """Waits for a barrier; the response ends as aborted when the signal is aborted by then."""

    barrier: Barrier


ScriptedBlock: TypeAlias = Say | Think | Call | Wait
"""What a reply is made of."""


class Reply:
    """One scripted response.

    :param blocks: what it holds; a string is a :class:`Say`.
    :param stop_reason: ``toolUse`` with a call, else ``stop``.
    :param error: makes it fail with this text after the blocks.
    :param raises: makes the request itself raise, as no provider should.
    :param ends: ``False`` lets the stream end without a final event.
    :param ignore_abort: plays on whatever the signal says.
    """

    def __init__(
        self,
        *blocks: ScriptedBlock | str,
        stop_reason: StopReason | None = None,
        error: str | None = None,
        error_details: ErrorDetails | None = None,
        raises: Exception | None = None,
        ends: bool = True,
        usage: Usage | None = None,
        ignore_abort: bool = False,
    ) -> None:
        self.blocks: list[ScriptedBlock] = [Say(block) if isinstance(block, str) else block for block in blocks]
        calls = any(isinstance(block, Call) for block in self.blocks)
        self.stop_reason: StopReason = stop_reason or ("toolUse" if calls else "stop")
        self.error = error
        self.error_details = error_details
        self.raises = raises
        self.ends = ends
        self.usage = usage
        self.ignore_abort = ignore_abort

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Reply:
        """Make a reply of JSON: a string, or an object with ``blocks``, ``stopReason``, ``error``, ``usage``.

        A block is ``{"text"}``, ``{"thinking"}``, ``{"toolCall": {"name", "arguments", "id"}}``, each perhaps with
        ``chunks``, or ``{"wait": true}``, which hangs until the run is aborted.

        :raises ValueError: something in it means nothing; names what.
        """
        if isinstance(data, str):
            return cls(data)
        if not isinstance(data, Mapping):
            raise ValueError(f"scripted reply: expected a text or an object, got {data!r}")
        known = {"text", "blocks", "stopReason", "error", "usage"}
        if unknown := set(data) - known:
            raise ValueError(
                f"scripted reply: unknown key {sorted(unknown)[0]!r}, known are {', '.join(sorted(known))}"
            )
        stop_reason = data.get("stopReason")
        if stop_reason is not None and stop_reason not in get_args(StopReason):
            raise ValueError(f"scripted reply: stopReason {stop_reason!r}, known are {', '.join(get_args(StopReason))}")
        blocks = data.get("blocks", [{"text": data["text"]}] if "text" in data else [])
        return cls(
            *[_block_from_json(block) for block in blocks],
            stop_reason=stop_reason,
            error=data.get("error"),
            usage=Usage.model_validate(data["usage"]) if "usage" in data else None,
        )


def _block_from_json(data: Any) -> ScriptedBlock:
    match data:
        case {"text": str(text)}:
            return Say(text, _chunks(data))
        case {"thinking": str(thinking)}:
            return Think(thinking, _chunks(data))
        case {"toolCall": {"name": str(name)} as call}:
            arguments, id_ = call.get("arguments", {}), call.get("id", "")
            if not isinstance(arguments, dict):
                raise ValueError(f"scripted reply: arguments of a toolCall are an object, got {arguments!r}")
            if not isinstance(id_, str):
                raise ValueError(f"scripted reply: the id of a toolCall is a text, got {id_!r}")
            return Call(name, arguments, id_, chunks=_chunks(data))
        case {"wait": True}:
            return Wait(Barrier())
    raise ValueError(f"scripted reply: a block needs text, thinking, toolCall with a name, or wait, got {data!r}")


def _chunks(data: Mapping[str, Any]) -> list[str]:
    chunks = data.get("chunks", [])
    if not isinstance(chunks, list) or not all(isinstance(chunk, str) for chunk in chunks):
        raise ValueError(f"scripted reply: chunks are a list of texts, the pieces that are streamed, got {chunks!r}")
    return chunks


@dataclass(slots=True)
class Request:
    """A request the scripted provider got; the messages are those at the time."""

    model: Model
    system_prompt: str
    messages: list[Message]
    tool_names: list[str]
    options: StreamOptions


class ScriptedProvider:
    """Plays replies, one for each request. A request past the last one fails with ``script exhausted``.

    :param replies: a string is a reply of one text.
    :param keep_messages: ``False`` does not copy the messages of each request, for long runs.
    """

    api = "scripted"

    def __init__(self, *replies: Reply | str, keep_messages: bool = True) -> None:
        self.replies = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]
        self.requests: list[Request] = []
        self._keep_messages = keep_messages
        self._played = 0

    def add(self, *replies: Reply | str) -> None:
        """Append replies."""
        self.replies += [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]

    def assert_exhausted(self) -> None:
        """Check that every reply was asked for.

        :raises AssertionError: some were not.
        """
        left = len(self.replies) - self._played
        assert left == 0, f"{left} of {len(self.replies)} scripted replies were never asked for"

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        """Play the next reply."""
        messages = list(context.messages) if self._keep_messages else []
        names = [tool.name for tool in context.tools]
        self.requests.append(Request(model, context.system_prompt, messages, names, options))
        number = self._played
        if number == len(self.replies):
            return play(Reply(error="script exhausted"), model, context, options, number)
        self._played += 1
        reply = self.replies[number]
        if reply.raises is not None:
            raise reply.raises
        return play(reply, model, context, options, number)


async def play(
    reply: Reply, model: Model, context: Context, options: StreamOptions, number: int = 0
) -> AsyncIterator[StreamEvent]:
    """Yield the events of a reply, calling the provider callbacks of the options as a real provider does."""
    assembler = MessageAssembler(model.api, model.provider, model.id)
    signal = None if reply.ignore_abort else options.signal
    try:
        await _provider_hooks(model, context, options)
    except Exception as error:
        yield assembler.error(str(error))
        return
    if signal is not None and signal.aborted:
        yield assembler.error("Request was aborted", aborted=True)
        return
    yield assembler.start()
    for block in reply.blocks:
        if isinstance(block, Wait):
            await block.barrier.wait(signal)
            if signal is not None and signal.aborted:
                yield assembler.error("Request was aborted", aborted=True)
                return
            continue
        for event in _events(assembler, block, number):
            yield event
    fields: dict[str, Any] = {} if reply.usage is None else {"usage": reply.usage}
    if reply.error is not None:
        yield assembler.error(reply.error, error_details=reply.error_details, **fields)
    elif reply.ends:
        yield assembler.done(reply.stop_reason, **fields)


async def _provider_hooks(model: Model, context: Context, options: StreamOptions) -> None:
    if options.on_payload is not None:
        payload = {"model": model.id, "messages": [message.to_json() for message in context.messages]}
        answer = options.on_payload(payload, model)
        if inspect.isawaitable(answer):
            await answer
    if options.transform_headers is not None:
        headers = options.transform_headers(dict(options.headers or {}))
        if inspect.isawaitable(headers):
            await headers
    if options.on_response is not None:
        pending = options.on_response(ProviderResponse(200, {}), model)
        if pending is not None:
            await pending


def _events(assembler: MessageAssembler, block: Say | Think | Call, number: int) -> Iterable[StreamEvent]:
    index = assembler.next_index
    if isinstance(block, Say):
        yield assembler.text_start(index)
        for chunk in block.chunks or [block.text]:
            yield assembler.text_delta(index, chunk)
        yield assembler.text_end(index, signature=block.signature)
    elif isinstance(block, Think):
        yield assembler.thinking_start(index, redacted=block.redacted)
        for chunk in block.chunks or ([block.thinking] if block.thinking else []):
            yield assembler.thinking_delta(index, chunk)
        yield assembler.thinking_end(index, signature=block.signature)
    else:
        yield assembler.toolcall_start(index, block.id or f"call_{number + 1}_{index}", block.name)
        text = block.raw if block.raw is not None else json.dumps(dict(block.arguments), separators=(",", ":"))
        for chunk in block.chunks or [text]:
            yield assembler.toolcall_delta(index, chunk)
        yield assembler.toolcall_end(index)


def scripted_message(*calls: ToolCallContent, text: str = "") -> AssistantMessage:
    """Return a finished assistant message, for hooks that want one."""
    content: list[Any] = [{"type": "text", "text": text}] if text else []
    return AssistantMessage(
        content=[*content, *calls],
        api="scripted",
        provider="scripted",
        model="scripted",
        stop_reason="toolUse" if calls else "stop",
    )
