"""OpenTelemetry spans of runs, requests and tool calls, by the conventions for generative AI.

OpenTelemetry is imported when the first run begins.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pi_core import (
    AgentEndEvent,
    AssistantMessage,
    Context,
    DoneEvent,
    ErrorEvent,
    Model,
    RunContext,
    StashKey,
    StreamEvent,
    StreamOptions,
    ToolCall,
    ToolResult,
    hookimpl,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

RUN_SPAN: StashKey[Span] = StashKey("span of the run")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class OtelOptions(BaseModel):
    """Options of the plugin.

    :param endpoint: address of an OTLP collector, up to and without ``/v1/traces``; without it that of
        ``OTEL_EXPORTER_OTLP_ENDPOINT``, and without that the tracer provider that the application has set.
    :param agent_name: what the agent is called in the spans.
    :param content: whether prompts, answers, arguments and results are recorded.
    """

    model_config = ConfigDict(extra="forbid")

    endpoint: str | None = None
    agent_name: str | None = None
    content: bool = False


class OtelPlugin:
    """Makes a span for each run, and in it one for each request and each executed tool call.

    :param options: as a build file would give them.
    :param provider: makes the tracer, in place of what the options say.
    """

    requires = "pi-agent-framework>=0.1.0"
    Options = OtelOptions

    def __init__(self, options: OtelOptions | None = None, provider: TracerProvider | None = None) -> None:
        self._options = options or OtelOptions()
        self._provider = provider
        self._made: Tracer | None = None

    @hookimpl
    def configure(self, options: OtelOptions) -> None:
        """Take the options."""
        self._options = options

    @hookimpl(tryfirst=True)
    def on_agent_start(self, ctx: RunContext) -> None:
        """Begin the span of the run."""
        from ._spans import begin_run

        ctx.stash[RUN_SPAN] = begin_run(self._tracer, self._options.agent_name, ctx.model)

    @hookimpl(trylast=True)
    def on_agent_end(self, event: AgentEndEvent, ctx: RunContext) -> None:
        """End the span of the run."""
        from ._spans import describe

        span = _run_of(ctx)
        if span is not None:
            answers = [message for message in event.messages if isinstance(message, AssistantMessage)]
            describe(span, answers, content=False)
            span.end()

    @hookimpl
    async def stream(
        self, model: Model, context: Context, options: StreamOptions, ctx: RunContext, *, proceed: Any
    ) -> AsyncIterable[StreamEvent]:
        """Put a span around a request, until its last event."""
        from ._spans import begin_request, failed, within

        span = begin_request(self._tracer, _run_of(ctx), model, context, options, content=self._options.content)
        try:
            with within(span):
                answer = await proceed()
        except BaseException as error:
            failed(span, error)
            span.end()
            raise
        return self._watched(answer, span)

    async def _watched(self, answer: AsyncIterable[StreamEvent], span: Span) -> AsyncIterator[StreamEvent]:
        from ._spans import describe, failed

        complete = False
        try:
            async for event in answer:
                if isinstance(event, DoneEvent | ErrorEvent):
                    complete = True
                    describe(span, [event.message], content=self._options.content)
                yield event
        except BaseException as error:
            if not complete:
                failed(span, error)
            raise
        finally:
            span.end()

    @hookimpl
    async def execute_tool(self, call: ToolCall, ctx: RunContext, *, proceed: Any) -> ToolResult:
        """Put a span around the execution of a call; what the tool does in it becomes part of it."""
        from ._spans import begin_call, describe_result, failed, within

        span = begin_call(self._tracer, _run_of(ctx), call, content=self._options.content)
        try:
            with within(span):
                result: ToolResult = await proceed()
            describe_result(span, result, content=self._options.content)
            return result
        except BaseException as error:
            failed(span, error)
            raise
        finally:
            span.end()

    @property
    def _tracer(self) -> Tracer:
        if self._made is None:
            from opentelemetry import trace

            wanted = self._options.endpoint or any(os.environ.get(name) for name in _ENDPOINTS)
            if self._provider is None and wanted:
                from ._export import provider_for

                self._provider = provider_for(self._options.endpoint)
            self._made = trace.get_tracer("pi_otel", tracer_provider=self._provider)
        return self._made


def _run_of(ctx: RunContext) -> Span | None:
    return ctx.stash[RUN_SPAN] if RUN_SPAN in ctx.stash else None  # noqa: SIM401 - a default widens the type
