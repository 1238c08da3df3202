"""The scripted model: what it answers to the n-th request of a scenario."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from typing import Any

from pi_core import (
    AssistantMessage,
    AssistantStream,
    Context,
    DoneEvent,
    ErrorEvent,
    MessageAssembler,
    Model,
    ProviderResponse,
    StreamEvent,
    StreamOptions,
    Usage,
)

from .specs import Json, ScriptError, normalized
from .world import World

EXHAUSTED: Json = {"events": [{"type": "error", "errorMessage": "script exhausted"}]}
ABORTED = "Request was aborted"
_FORWARDED = {
    "sessionId": "session_id",
    "transport": "transport",
    "thinkingBudgets": "thinking_budgets",
    "maxRetryDelayMs": "max_retry_delay_ms",
    "temperature": "temperature",
    "maxTokens": "max_tokens",
    "headers": "headers",
    "metadata": "metadata",
    "cacheRetention": "cache_retention",
}


def stream_options(options: Json) -> Json:
    """The stream options among the options of a scenario, by their Python names."""
    return {name: options[key] for key, name in _FORWARDED.items() if key in options}


class ScriptedModel:
    """A stream function that plays ``llm`` of the scenario."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls = 0

    async def __call__(self, model: Model, context: Context, options: StreamOptions) -> Any:
        world = self._world
        script: list[Json] = world.scenario.get("llm", [])
        entry = script[self._calls] if self._calls < len(script) else EXHAUSTED
        self._calls += 1
        world.log(f"llm {self._calls}")
        world.requests.append(self._request(model, context, options))
        await world.delay()
        if "throw" in entry:
            raise ScriptError(entry["throw"])
        await self._call_provider_hooks(entry.get("provider", {}), model, options)
        steps = expanded(entry)
        events = _Response(world, entry, steps, model, options)
        pushed = world.variant.pushed or any(step.get("type") == "end" and "reason" in step for step in steps)
        return events.pushed() if pushed else events.pulled()

    def _request(self, model: Model, context: Context, options: StreamOptions) -> Json:
        forwarded = {key: getattr(options, name) for key, name in _FORWARDED.items()}
        return {
            "n": self._calls,
            "model": model.id,
            "provider": model.provider,
            "reasoning": options.reasoning,
            "apiKey": options.api_key,
            "aborted": None if options.signal is None else options.signal.aborted,
            "systemPrompt": context.system_prompt,
            "toolNames": [tool.name for tool in context.tools],
            "options": {key: value for key, value in forwarded.items() if value is not None},
            "messages": normalized([message.to_json() for message in context.messages]),
        }

    async def _call_provider_hooks(self, provider: Json, model: Model, options: StreamOptions) -> None:
        if "payload" in provider:
            payload = provider["payload"]
            if options.on_payload is not None:
                answer = await _settled(options.on_payload(payload, model))
                payload = payload if answer is None else answer
            self._world.log(f"payload {_compact(payload)}")
        if "headers" in provider:
            headers = provider["headers"]
            if options.transform_headers is not None:
                headers = await _settled(options.transform_headers(headers))
            self._world.log(f"headers {_compact(headers)}")
        if "response" in provider and options.on_response is not None:
            await _settled(options.on_response(ProviderResponse(**provider["response"]), model))


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def expanded(entry: Json) -> list[Json]:
    """The stream steps of an entry."""
    if "events" in entry:
        return list(entry["events"])
    blocks = [{"text": entry["text"]}] if "text" in entry else entry["blocks"]
    steps: list[Json] = [] if entry.get("noStart") else [{"type": "start"}]
    for block in blocks:
        steps += _block_steps(block)
    calls = any("toolCall" in block for block in blocks)
    reason = entry.get("stopReason", "toolUse" if calls else "stop")
    failed = reason in ("error", "aborted")
    last = {"type": "error" if failed else "done", "reason": reason}
    if "errorMessage" in entry:
        last["errorMessage"] = entry["errorMessage"]
    return [*steps, last]


def _block_steps(block: Json) -> list[Json]:
    if "wait" in block or "do" in block:
        return [block]
    if "toolCall" in block:
        call = dict(block["toolCall"])
        start = {"type": "toolcall_start", "id": call.pop("id"), "name": call.pop("name")}
        raw = call.pop("rawArguments", None)
        arguments = call.pop("arguments", None)
        end: Json = {"type": "toolcall_end", "extra": call}
        if raw is None:
            end["arguments"] = arguments
        chunks = block.get("chunks", [_compact(arguments) if raw is None else raw])
        return [start, *({"type": "toolcall_delta", "delta": chunk} for chunk in chunks), end]
    kind = "text" if "text" in block else "thinking"
    whole = block[kind]
    chunks = block.get("chunks", [whole] if whole or kind == "text" else [])
    start = {"type": f"{kind}_start", **({"redacted": block["redacted"]} if "redacted" in block else {})}
    end = {"type": f"{kind}_end", **({"signature": block["signature"]} if "signature" in block else {})}
    return [start, *({"type": f"{kind}_delta", "delta": chunk} for chunk in chunks), end]


class _Response:
    """The events of one response."""

    def __init__(self, world: World, entry: Json, steps: list[Json], model: Model, options: StreamOptions) -> None:
        self._world = world
        self._entry = entry
        self._steps = steps
        self._signal = None if entry.get("ignoreAbort") else options.signal
        self._assembler = MessageAssembler(model.api, model.provider, model.id)
        self.result: AssistantMessage | None = None

    async def pulled(self) -> AsyncIterator[StreamEvent]:
        """The response as a generator."""
        if self._aborted:
            yield self._abort()
            return
        for step in self._steps:
            await self._world.delay()
            if "wait" in step:
                await self._wait(step["wait"])
                if self._aborted:
                    yield self._abort()
                    return
            elif "do" in step:
                await self._world.act(step["do"])
            elif step["type"] == "end":
                if "reason" in step:
                    self.result = self._final(step["reason"], step.get("errorMessage"))
                return
            else:
                yield self._event(step)

    def pushed(self) -> AssistantStream:
        """The response as a stream that a task fills."""
        stream = AssistantStream()

        async def push() -> None:
            try:
                async for event in self.pulled():
                    stream.push(event)
            except Exception as error:
                stream.fail(error)
            else:
                stream.end(*([] if self.result is None else [self.result]))

        task = asyncio.create_task(push())
        stream.on_close(task.cancel)
        self._world.background.append(task)
        return stream

    @property
    def _aborted(self) -> bool:
        return self._signal is not None and self._signal.aborted

    async def _wait(self, barrier: str) -> None:
        if self._signal is None:
            await self._world.barrier(barrier).wait()
        else:
            await first_of(self._world.barrier(barrier).wait(), self._signal.wait())

    def _abort(self) -> StreamEvent:
        return ErrorEvent(self._final("aborted", ABORTED))

    def _final(self, reason: Any, error_message: str | None) -> AssistantMessage:
        fields = dict(self._entry.get("extra", {}))
        if "usage" in self._entry:
            fields["usage"] = Usage.model_validate(self._entry["usage"])
        if error_message is not None:
            fields["error_message"] = error_message
        return self._assembler.message(reason, **fields)

    def _event(self, step: Json) -> StreamEvent:
        kind, assembler = step["type"], self._assembler
        if kind == "start":
            return assembler.start()
        if kind == "done":
            return DoneEvent(self._final(step.get("reason", "stop"), step.get("errorMessage")))
        if kind == "error":
            return ErrorEvent(self._final(step.get("reason", "error"), step.get("errorMessage")))
        index = step.get("contentIndex", assembler.next_index - (0 if kind.endswith("_start") else 1))
        match kind:
            case "text_start":
                return assembler.text_start(index)
            case "thinking_start":
                return assembler.thinking_start(index, redacted=step.get("redacted"))
            case "toolcall_start":
                return assembler.toolcall_start(index, step["id"], step["name"])
            case "text_delta":
                return assembler.text_delta(index, step["delta"])
            case "thinking_delta":
                return assembler.thinking_delta(index, step["delta"])
            case "toolcall_delta":
                return assembler.toolcall_delta(index, step["delta"])
            case "text_end":
                return assembler.text_end(index, signature=step.get("signature"))
            case "thinking_end":
                return assembler.thinking_end(index, signature=step.get("signature"))
            case "toolcall_end":
                given = {"arguments": step["arguments"]} if "arguments" in step else {}
                return assembler.toolcall_end(index, **given, **step.get("extra", {}))
        raise ValueError(f"unknown stream step {kind}")


async def first_of(*coroutines: Any) -> None:
    """Wait for whichever ends first, and end the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
