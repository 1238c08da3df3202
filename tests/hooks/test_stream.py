from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pi_core import Context, Hooks, MessageAssembler, Model, StreamEvent, StreamOptions, hookimpl
from pi_core.testing import Reply, scripted_agent

from . import samples
from .kinds import FirstHook
from .making import async_wrapper, holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


class Events:
    """A stream that is equal to another of the same text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Events) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler("scripted", "scripted", "scripted")
        yield assembler.start()
        yield assembler.text_start(0)
        yield assembler.text_delta(0, self.text)
        yield assembler.text_end(0)
        yield assembler.done("stop")


CORE = Events("from the core")


class TestStream(FirstHook, WrappedRaising):
    hook = "stream"
    wrong = (
        "text",
        3,
        [1],
    )

    def arguments(self) -> dict[str, Any]:
        request = {"model": samples.model(1), "context": samples.context(), "options": samples.options()}
        return {**request, "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return Events(f"answer {number}")

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return CORE

    async def call(self, hooks: Hooks, arguments: dict[str, Any] | None = None) -> Any:
        return await hooks.stream(**(arguments or self.arguments()), core=lambda model, context, options: CORE)

    def test_the_core_is_asked_last_with_what_the_wrappers_made_of_the_request(self) -> None:
        asked: list[tuple[Model, Context, StreamOptions]] = []

        async def core(model: Model, context: Context, options: StreamOptions) -> Any:
            asked.append((model, context, options))
            return CORE

        async def body(given: dict[str, Any], proceed: Any) -> Any:
            return await proceed(model=samples.model(9), options=given["options"].replace(temperature=0.5))

        quiet = plugin(self.hook, "a", lambda given: None)
        hooks = hooks_of(async_wrapper(self.hook, "w", body), quiet)
        assert run(hooks.stream(**self.arguments(), core=core)) is CORE
        ((model, _, options),) = asked
        assert (model.id, options.temperature) == ("model-9", 0.5)

    def test_the_core_is_not_asked_when_a_plugin_answers(self) -> None:
        def core(model: Model, context: Context, options: StreamOptions) -> Any:
            raise AssertionError

        hooks = hooks_of(plugin(self.hook, "a", lambda given: self.answer(1)))
        assert run(hooks.stream(**self.arguments(), core=core)) == self.answer(1)

    def test_what_the_core_raises_goes_through_the_wrappers_as_it_is(self) -> None:
        seen: list[BaseException] = []

        def core(model: Model, context: Context, options: StreamOptions) -> Any:
            raise OSError("down")

        async def body(given: dict[str, Any], proceed: Any) -> Any:
            try:
                return await proceed()
            except OSError as error:
                seen.append(error)
                raise

        with pytest.raises(OSError, match="down") as caught:
            run(hooks_of(async_wrapper(self.hook, "w", body)).stream(**self.arguments(), core=core))
        assert seen == [caught.value]

    def test_an_async_generator_is_an_answer(self) -> None:
        async def stream(self: Any, model: Model) -> AsyncIterator[StreamEvent]:
            assembler = MessageAssembler(model.api, model.provider, model.id)
            yield assembler.start()
            yield assembler.error("down for repairs")

        agent, provider, _ = scripted_agent(plugins=[holding("p", stream=hookimpl(stream))])
        assert agent.run_sync("hi")[-1].error_message == "down for repairs"  # type: ignore[union-attr]
        assert provider.requests == []

    def test_a_wrapper_retries_a_request_before_anything_was_said(self) -> None:
        async def body(given: dict[str, Any], proceed: Any) -> Any:
            events = aiter(await proceed())
            first = await anext(events)
            if first.type == "start" and (await anext(events)).type == "error":
                return await proceed()
            raise AssertionError

        agent, provider, _ = scripted_agent(
            Reply(error="overloaded"), "better", plugins=[async_wrapper(self.hook, "retry", body)]
        )
        assert agent.run_sync("hi")[-1].text == "better"  # type: ignore[union-attr]
        assert len(provider.requests) == 2
