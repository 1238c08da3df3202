"""One response without an agent: ask a model, and read its answer whole or as it arrives."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from .context import AgentContext, RunContext, SelectionContext, as_messages
from .errors import ConfigError
from .events import DoneEvent, ErrorEvent, StartEvent, StreamEvent, TextDeltaEvent, TextStartEvent, UpdateEvent
from .messages import AgentMessage, AssistantMessage, user_message
from .providers import Context, Model, Provider, StreamFunction, StreamOptions, get_default_stream

if TYPE_CHECKING:
    from .build import Build
    from .tools import Tool


Prepared: TypeAlias = "tuple[StreamFunction, Model, Context, StreamOptions]"


class ResponseStream:
    """One response, which is made while it is read.

    Iterate it for the events, or :meth:`text` for the text alone; :meth:`result` reads what is left and returns the
    message. A failure of the request is data: an error event, and a message whose ``stop_reason`` is ``error`` or
    ``aborted``. Who stops reading early closes it, with ``async with`` or :meth:`aclose`. Made by :func:`stream`.
    """

    def __init__(self, prepare: Callable[[], Awaitable[Prepared]]) -> None:
        self._message: AssistantMessage | None = None
        self._error: Exception | None = None
        self._events = self._read(prepare)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[StreamEvent]:
        return self._events.__anext__()

    async def text(self) -> AsyncIterator[str]:
        """Iterate the text as it arrives, without thinking and tool calls."""
        async for event in self:
            if isinstance(event, TextDeltaEvent):
                yield event.delta
            elif isinstance(event, TextStartEvent) and event.text:
                yield event.text

    async def result(self) -> AssistantMessage:
        """Read to the end and return the message.

        :raises ConfigError: the model is not known, or nobody speaks its api.
        :raises HookError: a plugin failed.
        :raises RuntimeError: the response was closed before its end.
        """
        if self._message is None and self._error is None:
            async for _ in self:
                pass
        if self._error is not None:
            raise self._error
        if self._message is None:
            raise RuntimeError("the response was closed before its end")
        return self._message

    async def aclose(self) -> None:
        """Give up what is left of the response."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _read(self, prepare: Callable[[], Awaitable[Prepared]]) -> AsyncGenerator[StreamEvent, None]:
        """The events of the request, each of which can tell the message so far, and always a final one."""
        from ._requests import close_stream
        from .assembler import MessageAssembler, Replay

        try:
            function, model, context, options = await prepare()
            made = function(model, context, options)
            source = await made if inspect.isawaitable(made) else made
            replay: Replay | None = None
            last: StartEvent | UpdateEvent | None = None
            final: DoneEvent | ErrorEvent | None = None
            try:
                async for event in source:
                    if isinstance(event, DoneEvent | ErrorEvent):
                        final = event
                        break
                    if isinstance(event, UpdateEvent):
                        if event.frame is None:
                            if replay is None:
                                begun = MessageAssembler(model.api, model.provider, model.id)
                                replay = Replay(begun, begun.message() if last is None else last.partial)
                            replay.add(event)
                    elif not isinstance(event, StartEvent):
                        raise TypeError(f"a provider yields stream events, got {event!r}")
                    last = event
                    yield event
            finally:
                await close_stream(source)
            if final is None:
                partial = (
                    MessageAssembler(model.api, model.provider, model.id).message() if last is None else last.partial
                )
                final = _end_of(source, partial)
        except Exception as error:
            self._error = error
            raise
        self._message = final.message
        yield final


def _end_of(source: AsyncIterable[StreamEvent], partial: AssistantMessage) -> DoneEvent | ErrorEvent:
    """The final event of a stream that ended without one."""
    from ._requests import NO_FINAL_EVENT

    settled: tuple[AssistantMessage] | None = getattr(source, "settled", None)
    if settled is None:
        failed = {"stop_reason": "error", "error_message": NO_FINAL_EVENT}
        return ErrorEvent(partial.model_copy(update=failed))
    return ErrorEvent(settled[0]) if settled[0].stop_reason in ("error", "aborted") else DoneEvent(settled[0])


def stream(
    model: Model | str,
    messages: str | AgentMessage | Sequence[AgentMessage],
    *,
    provider: Provider | StreamFunction | Build | None = None,
    system_prompt: str = "",
    tools: Iterable[Tool] = (),
    **options: Any,
) -> ResponseStream:
    """Ask a model once; the request is made when the answer is read.

    Tools are only declared: what the answer calls is up to the caller. With a build its plugins take part as in a run:
    they find model and key, and see headers, payload and response.

    :param model: whom to ask; a name needs a build.
    :param messages: a text, a message, or several.
    :param provider: a provider, a stream function, or a build; the process-wide default stream if absent.
    :param options: fields of :class:`~pi_core.StreamOptions`: ``max_tokens``, ``reasoning``, ``signal`` ...
    :raises ConfigError: nobody is there to make the request.
    :raises TypeError: the provider is none, or an option does not exist.
    """
    given = StreamOptions(**options)
    asked = as_messages(user_message(messages) if isinstance(messages, str) else messages)
    context = AgentContext(system_prompt, asked, list(tools))
    if provider is not None and hasattr(provider, "registry"):
        build = cast("Build", provider)
        return ResponseStream(lambda: _of_build(build, model, context, given))
    if not isinstance(model, Model):
        raise TypeError(
            f"the model {model!r} is a name, which only a build can look up: pass a Model, or provider=build"
        )
    known, function = model, _stream_function(provider)

    async def prepared() -> Prepared:
        return function, known, _request_context(context), given

    return ResponseStream(prepared)


async def complete(
    model: Model | str,
    messages: str | AgentMessage | Sequence[AgentMessage],
    *,
    provider: Provider | StreamFunction | Build | None = None,
    system_prompt: str = "",
    tools: Iterable[Tool] = (),
    **options: Any,
) -> AssistantMessage:
    """Ask a model once and return its answer, as :func:`stream` does.

    A failure of the request is a message too: look at its ``stop_reason``.

    :raises ConfigError: the model is not known, or nobody is there to make the request.
    :raises HookError: a plugin failed.
    :raises TypeError: the provider is none, or an option does not exist.
    """
    answer = stream(model, messages, provider=provider, system_prompt=system_prompt, tools=tools, **options)
    async with answer:
        return await answer.result()


def complete_sync(
    model: Model | str,
    messages: str | AgentMessage | Sequence[AgentMessage],
    *,
    provider: Provider | StreamFunction | Build | None = None,
    system_prompt: str = "",
    tools: Iterable[Tool] = (),
    **options: Any,
) -> AssistantMessage:
    """Run :func:`complete` in an event loop of its own, for scripts.

    :raises RuntimeError: an event loop is running here; await :func:`complete` instead.
    """
    import asyncio

    return asyncio.run(
        complete(model, messages, provider=provider, system_prompt=system_prompt, tools=tools, **options)
    )


def _stream_function(provider: Provider | StreamFunction | Build | None) -> StreamFunction:
    if provider is None:
        default = get_default_stream()
        if default is None:
            raise ConfigError(
                "Nobody is there to make the request: pass provider=..., or install a stream with set_default_stream()"
            )
        return default
    function = getattr(provider, "stream", provider)
    if not callable(function):
        raise TypeError(f"expected a provider, a stream function or a build, got {provider!r}")
    return cast("StreamFunction", function)


def _request_context(context: AgentContext) -> Context:
    from ._requests import convert_to_llm

    return Context(context.system_prompt, convert_to_llm(context.messages), tuple(context.tools))


async def _of_build(build: Build, model: Model | str, context: AgentContext, options: StreamOptions) -> Prepared:
    """A request that is made with a build's plugins."""
    from ._requests import with_provider_hooks

    if not isinstance(model, Model):
        model = await _find(build, model)
    hooks, hooked = build.hooks, build.hooks.implemented()
    ctx = RunContext(signal=options.signal, model=model, thinking_level=options.reasoning or "off", context=context)
    ctx.begin(hooks)
    if not options.api_key and "get_api_key" in hooked:
        options = options.replace(api_key=await hooks.get_api_key(model.provider, ctx))
    options = with_provider_hooks(options, hooks, hooked, ctx)
    providers = build.registry.providers

    def core(model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        provider = providers.get(model.api)
        if provider is None:
            apis = ", ".join(providers.names()) or "none"
            raise providers.conflict(model.api) or ConfigError(
                f"No provider speaks '{model.api}', which model {model.id} needs (providers here: {apis})"
            )
        return provider.stream(model, context, options)

    async def hooked_stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        return await hooks.stream(model, context, options, ctx, core)

    return hooked_stream if "stream" in hooked else core, model, _request_context(context), options


async def _find(build: Build, name: str) -> Model:
    import os

    from ._log import log

    selection = SelectionContext(environ=os.environ)
    model = await build.resolve_model(name, selection)
    for notice in selection.notices:
        log().info("%s", notice)
    return model
