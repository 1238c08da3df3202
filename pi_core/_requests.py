"""Making the requests of one run: converting what is new, streaming the response, and what is made of a broken one."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Collection, Iterable, Sequence
from typing import Any, cast

from ._log import log
from ._run import Run
from .assembler import MessageAssembler, Replay
from .context import ListView, RunContext
from .errors import ConfigError
from .events import DoneEvent, ErrorEvent, MessageStartEvent, MessageUpdateEvent, StartEvent, StreamEvent, UpdateEvent
from .hooks import Hooks
from .messages import LLM_ROLES, AgentMessage, AssistantMessage, CustomMessage, Message
from .providers import Context, Model, ProviderResponse, StreamFunction, StreamOptions

NO_FINAL_EVENT = "Stream ended without a final event"
REQUEST_ABORTED = "Request was aborted"


class Requests:
    """Makes the requests of one run; what was converted for one is not converted again for the next."""

    __slots__ = ("_converted", "_options", "_plain", "_run", "_seen", "_source", "_stream")

    def __init__(self, run: Run, options: StreamOptions, stream: StreamFunction | None) -> None:
        self._run = run
        self._stream = stream
        if stream is None and "stream" not in run.hooked:
            raise _no_stream(run.ctx.model)
        plain = options.replace(signal=run.signal, reasoning=None)
        self._options = with_provider_hooks(plain, run.hooks, run.hooked, run.ctx)
        self._source: list[AgentMessage] | None = None
        self._seen = 0
        self._plain = True
        self._converted: list[Message] = []

    async def make(self) -> AssistantMessage:
        """Make one request, announce the response as it arrives, and return it."""
        run, hooks, ctx = self._run, self._run.hooks, self._run.ctx
        if run.aborted:
            return await self._not_made()
        messages = await self._messages()
        key = await hooks.get_api_key(ctx.model.provider, ctx) if "get_api_key" in run.hooked else None
        if run.aborted:
            return await self._not_made()
        level = ctx.thinking_level
        options = self._options
        if key or level != "off":
            options = options.replace(api_key=key or options.api_key, reasoning=None if level == "off" else level)
        context = Context(run.context.system_prompt, messages, tuple(run.context.tools))
        if "stream" in run.hooked:
            stream = await hooks.stream(ctx.model, context, options, ctx, self._core)
        else:
            made = self._core(ctx.model, context, options)
            stream = made if hasattr(made, "__aiter__") else await made
        return await self._consume(stream)

    def _core(self, model: Model, context: Context, options: StreamOptions) -> Any:
        if self._stream is None:
            raise _no_stream(model)
        return self._stream(model, context, options)

    async def _messages(self) -> Sequence[Message]:
        run, hooks, ctx = self._run, self._run.hooks, self._run.ctx
        if "transform_context" not in run.hooked and "convert_to_llm" not in run.hooked:
            return self._convert_new(run.context.messages)
        given = run.context.messages
        messages = await hooks.transform_context(given, ctx) if "transform_context" in run.hooked else given
        converted = await hooks.convert_to_llm(messages, ctx) if "convert_to_llm" in run.hooked else None
        if converted is not None:
            return converted
        return self._convert_new(run.context.messages) if messages is given else convert_to_llm(messages)

    def _convert_new(self, messages: list[AgentMessage]) -> Sequence[Message]:
        """Convert what was added since the last request; a list without custom messages is used as it is."""
        if self._source is not messages:
            self._source, self._seen, self._plain, self._converted = messages, 0, True, []
        for position in range(self._seen, len(messages)):
            message = messages[position]
            if self._plain and isinstance(message, CustomMessage):
                self._plain = False
                self._converted = cast("list[Message]", messages[:position])
            if not self._plain:
                self._converted += convert_to_llm([message])
        self._seen = len(messages)
        return ListView(cast("list[Message]", messages) if self._plain else self._converted)

    async def _not_made(self) -> AssistantMessage:
        reason = self._run.signal.reason if self._run.signal is not None else ""
        message = self._assembler().message("aborted", error_message=reason or REQUEST_ABORTED)
        await self._run.add_message(message)
        return message

    async def _consume(self, stream: AsyncIterable[StreamEvent]) -> AssistantMessage:
        run, emit = self._run, self._run.announcer(MessageUpdateEvent)
        started: StartEvent | None = None
        source: MessageAssembler | Replay | None = None
        final: AssistantMessage | None = None
        try:
            async for event in stream:
                if isinstance(event, UpdateEvent):
                    if started is None:
                        continue
                    if event.frame is not None:
                        source = event.frame[0]
                    else:
                        if not isinstance(source, Replay):
                            source = Replay(self._assembler(), started.partial)
                        source.add(event)
                    pending = emit(MessageUpdateEvent(event))
                    if pending is not None:
                        await pending
                elif isinstance(event, StartEvent):
                    if started is None:
                        started = event
                        await run.say(MessageStartEvent(event))
                elif isinstance(event, DoneEvent | ErrorEvent):
                    final = event.message
                    break
                else:
                    raise TypeError(f"a provider yields stream events, got {event!r}")
        finally:
            await close_stream(stream)
        if final is None:
            settled = getattr(stream, "settled", None)
            final = settled[0] if settled is not None else self._cut_off(source, started)
        if isinstance(source, Replay):
            source.close()
        if final.stop_reason == "aborted" and run.signal is not None and run.signal.reason:
            final = final.model_copy(update={"error_message": run.signal.reason})
        if started is None:
            await run.say(MessageStartEvent(final))
        await run.close_message(final)
        return final

    def _assembler(self) -> MessageAssembler:
        model = self._run.ctx.model
        return MessageAssembler(model.api, model.provider, model.id)

    def _cut_off(self, source: MessageAssembler | Replay | None, started: StartEvent | None) -> AssistantMessage:
        """What has arrived of a response that ended without a final event, as a failure."""
        if isinstance(source, Replay):
            source = source.assembler()
        if source is None:
            source = self._assembler()
            if started is not None:
                source.begin(started.partial)
        return source.message("error", error_message=NO_FINAL_EVENT)


async def close_stream(stream: object) -> None:
    """Let go of a response; a failure is logged, since what counts has been read or is being raised."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        try:
            await close()
        except Exception:
            log().warning("closing the stream of a response failed", exc_info=True)


def _no_stream(model: Model) -> ConfigError:
    return ConfigError(
        "No stream function: pass stream=..., install one with set_default_stream(), or add the plugin of a provider "
        f"that speaks '{model.api}'"
    )


def convert_to_llm(messages: Iterable[AgentMessage]) -> list[Message]:
    """Return the messages a model understands: the plain ones, and what each custom message stands for."""
    converted: list[Message] = []
    for message in messages:
        if isinstance(message, CustomMessage):
            given = message.to_llm()
            converted += [given] if getattr(given, "role", None) in LLM_ROLES else given  # type: ignore[list-item]
        else:
            converted.append(message)
    return converted


def with_provider_hooks(
    options: StreamOptions, hooks: Hooks, hooked: Collection[str], ctx: RunContext
) -> StreamOptions:
    """Return options whose callbacks also call the provider hooks.

    :param hooked: the hooks that somebody implements.
    """
    changes: dict[str, Any] = {}
    if "provider_payload" in hooked:

        async def on_payload(payload: Any, model: Model) -> Any:
            if options.on_payload is not None:
                own = options.on_payload(payload, model)
                own = await own if inspect.isawaitable(own) else own
                payload = payload if own is None else own
            return await hooks.provider_payload(payload, model, ctx)

        changes["on_payload"] = on_payload
    if "provider_headers" in hooked:

        async def transform_headers(headers: Any) -> Any:
            if options.transform_headers is not None:
                own = options.transform_headers(headers)
                headers = await own if inspect.isawaitable(own) else own
            return await hooks.provider_headers(dict(headers), ctx.model, ctx)

        changes["transform_headers"] = transform_headers
    if "provider_response" in hooked:

        async def on_response(response: ProviderResponse, model: Model) -> None:
            if options.on_response is not None:
                own = options.on_response(response, model)
                if inspect.isawaitable(own):
                    await own
            await hooks.provider_response(response.status, response.headers, model, ctx)

        changes["on_response"] = on_response
    return options.replace(**changes) if changes else options
