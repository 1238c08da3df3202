from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_core import Hooks, ToolContext, ToolResult, hookimpl, tool
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import FirstHook
from .making import async_wrapper, holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


class TestExecuteTool(FirstHook, WrappedRaising):
    hook = "execute_tool"
    wrong = (
        "text",
        {"content": []},
        3,
    )

    def arguments(self) -> dict[str, Any]:
        return {"call": samples.call(), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return samples.result(number)

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return ToolResult.text("contents of file1")

    def test_the_tool_is_not_run_when_a_plugin_answers(self) -> None:
        call = samples.call()
        call.tool.execute = lambda arguments, context: pytest.fail("the tool ran")
        hooks = hooks_of(plugin(self.hook, "cache", lambda given: samples.result(1)))
        assert run(hooks.execute_tool(call, samples.ctx())) == samples.result(1)

    def test_a_wrapper_proceeds_with_another_call(self) -> None:
        async def body(given: dict[str, Any], proceed: Any) -> Any:
            return await proceed(call=given["call"].with_arguments({"path": "sandbox/file"}))

        came = run(self.call(hooks_of(async_wrapper(self.hook, "sandbox", body))))
        assert came == ToolResult.text("contents of sandbox/file")

    def test_what_the_tool_raises_goes_through_the_wrappers_as_it_is(self) -> None:
        call = samples.call()

        def fail(arguments: Any, context: ToolContext) -> Any:
            raise FileNotFoundError("no such file")

        call.tool.execute = fail
        trace: list[Any] = []
        spy = self.spy("generator", "w", trace)
        with pytest.raises(FileNotFoundError, match="no such file"):
            run(hooks_of(spy).execute_tool(call, samples.ctx()))
        assert trace == ["w in"]

    def test_a_timeout_around_the_tool(self) -> None:
        stopped: list[str] = []

        @tool
        async def hang() -> str:
            """Hang."""
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append("hang")
            return "never"

        async def body(given: dict[str, Any], proceed: Any) -> Any:
            try:
                async with asyncio.timeout(0.01):
                    return await proceed()
            except TimeoutError:
                return ToolResult.error("took too long")

        agent, _, log = scripted_agent(
            Reply(Call("hang")), "done", plugins=[async_wrapper(self.hook, "patience", body)], tools=[hang]
        )
        agent.run_sync("go")
        assert stopped == ["hang"]
        assert log.of("tool_execution_end")[0].result.content[0].text == "took too long"

    def test_a_timeout_that_gets_away_is_blamed_by_its_type(self) -> None:
        async def body(given: dict[str, Any], proceed: Any) -> Any:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()

        with pytest.raises(Exception, match=r"^TimeoutError \(plugin 'w' \(pi-w 1.2\), hook execute_tool\)$"):
            run(self.call(hooks_of(async_wrapper(self.hook, "w", body))))

    def test_a_failure_is_an_error_result_that_names_the_plugin(self) -> None:
        def fail(self: Any) -> None:
            raise ValueError("boom")

        agent, _, log = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "done",
            plugins=[holding("bad", execute_tool=hookimpl(fail))],
            tools=[samples.tool()],
        )
        agent.run_sync("go")
        (end,) = log.of("tool_execution_end")
        assert (end.is_error, end.result.content[0].text) == (True, "boom (plugin 'bad', hook execute_tool)")

    def test_calls_of_a_batch_go_through_at_the_same_time(self) -> None:
        async def main() -> None:
            together = asyncio.Barrier(3)

            async def body(given: dict[str, Any], proceed: Any) -> Any:
                await together.wait()
                return await proceed()

            hooks: Hooks = hooks_of(async_wrapper(self.hook, "w", body))
            calls = [hooks.execute_tool(samples.call(number), samples.ctx()) for number in range(3)]
            results = await asyncio.gather(*calls)
            assert results == [ToolResult.text(f"contents of file{number}") for number in range(3)]

        run(main())
