from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pi_core import Block, HookError, PluginFailure, ReplaceArguments, ToolCall, hookimpl, tool
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import AnswerHook
from .making import STYLES, holding, hooks_of, plugin, run
from .wrapping import refuses_wrappers


class TestBeforeToolCall(AnswerHook):
    hook = "before_tool_call"
    wrong = (
        True,
        "no",
        Block,
        {"path": "x"},
        Block(5),  # type: ignore[arg-type]
    )

    def arguments(self) -> dict[str, Any]:
        return {"call": samples.call(), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return Block(f"no {number}")

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return arguments["call"]

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return answers[0]

    def asked(self, answers: list[Any]) -> int:
        return 1 + next(number for number, answer in enumerate(answers) if answer is not None)

    def test_wrappers_are_refused(self) -> None:
        refuses_wrappers(self.hook)

    @pytest.mark.parametrize("style", STYLES)
    def test_new_arguments_are_validated_and_seen_by_the_next_guard(self, style: str) -> None:
        seen: list[dict[str, Any]] = []

        def replace(**arguments: Any) -> Callable[[dict[str, Any]], Any]:
            def react(given: dict[str, Any]) -> ReplaceArguments:
                seen.append(given["call"].arguments)
                return ReplaceArguments({**given["call"].arguments, **arguments})

            return react

        arguments = self.arguments()
        hooks = hooks_of(
            plugin(self.hook, "a", replace(limit="5"), style=style), plugin(self.hook, "b", replace(path="other"))
        )
        call = run(self.call(hooks, arguments))
        assert seen == [{"path": "file1"}, {"path": "file1", "limit": 5}]
        assert isinstance(call, ToolCall)
        assert call.arguments == {"path": "other", "limit": 5}
        assert arguments["call"].arguments == {"path": "file1"}
        assert call.raw_arguments == {"path": "file1"}

    def test_arguments_that_do_not_fit_block_and_are_blamed(self) -> None:
        hooks = hooks_of(plugin(self.hook, "bad", lambda given: ReplaceArguments({"limit": 3})))
        with pytest.raises(HookError, match="path") as caught:
            run(self.call(hooks))
        assert caught.value.plugin == "bad"

    def test_editing_arguments_in_place_does_nothing(self) -> None:
        def edit(given: dict[str, Any]) -> None:
            given["call"].arguments["path"] = "/etc/passwd"
            given["call"].raw_arguments.clear()

        arguments = self.arguments()
        assert run(self.call(hooks_of(plugin(self.hook, "a", edit)), arguments)).arguments == {"path": "file1"}

    def test_what_a_guard_keeps_of_its_answer_does_not_count(self) -> None:
        kept = {"path": "safe", "extra": {"deep": ["x"]}}
        call = run(self.call(hooks_of(plugin(self.hook, "a", lambda given: ReplaceArguments(kept)))))
        kept["path"] = "/etc/passwd"
        kept["extra"].clear()  # type: ignore[attr-defined]
        assert call.arguments == {"path": "safe", "extra": {"deep": ["x"]}}

    def test_a_failure_is_reported_and_the_later_guards_are_not_asked(self) -> None:
        reports: list[PluginFailure] = []
        trace: list[str] = []

        def fail(given: dict[str, Any]) -> None:
            raise ValueError("boom")

        watch = holding("watch", plugin_error=hookimpl(lambda self, failure: reports.append(failure)))
        with pytest.raises(HookError):
            run(self.call(hooks_of(plugin(self.hook, "bad", fail), self.quiet("b", trace), watch)))
        assert trace == []
        assert [(one.plugin, one.distribution, one.hook, str(one.error)) for one in reports] == [
            ("bad", "pi-bad 1.2", self.hook, "boom")
        ]
        assert not reports[0].disabled

    @pytest.mark.parametrize("answer", [Block("not this file"), ValueError("boom"), "wrong"])
    def test_the_tool_of_a_refused_call_never_runs(self, answer: Any) -> None:
        ran: list[str] = []

        @tool
        async def delete(path: str) -> str:
            """Delete a file."""
            ran.append(path)
            return "gone"

        def ask(self: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        agent, _, log = scripted_agent(
            Reply(Call("delete", {"path": "x"})),
            "done",
            plugins=[holding("guard", before_tool_call=hookimpl(ask))],
            tools=[delete],
        )
        agent.run_sync("go")
        assert ran == []
        (end,) = log.of("tool_execution_end")
        assert end.is_error
        text = end.result.content[0].text
        assert text == "not this file" if isinstance(answer, Block) else "plugin 'guard', hook before_tool_call" in text
