from __future__ import annotations

from typing import Any

import pytest

from pi_core import HookError, TextContent, ToolResult, ToolResultPatch, hookimpl
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import ChainHook
from .making import async_wrapper, holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


def patched(number: int) -> ToolResult:
    return ToolResult(content=[TextContent(text=f"patched {number}")], details={"lines": [1]})


class TestAfterToolCall(ChainHook, WrappedRaising):
    hook = "after_tool_call"
    wrong = (
        "text",
        ToolResult.text("x"),
        {"content": []},
        ToolResultPatch(usage=5),  # type: ignore[arg-type]
        ToolResultPatch(is_error="yes"),  # type: ignore[arg-type]
    )

    def arguments(self) -> dict[str, Any]:
        return {"call": samples.call(), "result": samples.result(), "is_error": False, "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return ToolResultPatch(content=[TextContent(text=f"patched {number}")])

    def outcome(self, number: int) -> Any:
        return (samples.result(number), True)

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return (arguments["result"], arguments["is_error"])

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return (ToolResult(content=answers[-1].content, details={"lines": [1]}), False)

    def test_each_sees_what_the_previous_one_returned(self) -> None:
        seen: list[tuple[Any, bool]] = []

        def react(given: dict[str, Any]) -> ToolResultPatch:
            seen.append((given["result"], given["is_error"]))
            return ToolResultPatch(content=[TextContent(text=f"patched {len(seen)}")], is_error=len(seen) == 1)

        run(self.call(hooks_of(*(plugin(self.hook, name, react) for name in "abc"))))
        assert seen == [(samples.result(), False), (patched(1), True), (patched(2), False)]

    def test_patches_of_different_fields_add_up(self) -> None:
        hooks = hooks_of(
            plugin(self.hook, "a", lambda given: ToolResultPatch(details={"by": "a"})),
            plugin(self.hook, "b", lambda given: ToolResultPatch(terminate=True)),
            plugin(self.hook, "c", lambda given: ToolResultPatch(is_error=True)),
        )
        result, is_error = run(self.call(hooks))
        assert (result.content, result.details, result.terminate, is_error) == (
            samples.result().content,
            {"by": "a"},
            True,
            True,
        )

    def test_a_wrapper_that_gives_a_patch_is_told_what_it_is_to_give(self) -> None:
        async def body(given: dict[str, Any], proceed: Any) -> Any:
            return ToolResultPatch(is_error=True)

        with pytest.raises(HookError, match="a ToolResult and whether it is an error; got ToolResultPatch"):
            run(self.call(hooks_of(async_wrapper(self.hook, "w", body))))

    def test_it_sees_the_result_of_a_tool_that_raised(self) -> None:
        def mend(self: Any, result: ToolResult, is_error: bool) -> ToolResultPatch:
            assert is_error
            return ToolResultPatch(content=[TextContent(text="mended")], is_error=False)

        tool = samples.tool()
        tool.execute = lambda arguments, context: 1 / 0
        agent, _, log = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "done",
            plugins=[holding("mend", after_tool_call=hookimpl(mend))],
            tools=[tool],
        )
        agent.run_sync("go")
        (end,) = log.of("tool_execution_end")
        assert (end.is_error, end.result.content[0].text) == (False, "mended")

    def test_a_failure_is_an_error_result_that_names_the_plugin(self) -> None:
        def fail(self: Any) -> None:
            raise ValueError("boom")

        agent, _, log = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "done",
            plugins=[holding("bad", after_tool_call=hookimpl(fail))],
            tools=[samples.tool()],
        )
        agent.run_sync("go")
        (end,) = log.of("tool_execution_end")
        assert (end.is_error, end.result.content[0].text) == (True, "boom (plugin 'bad', hook after_tool_call)")
