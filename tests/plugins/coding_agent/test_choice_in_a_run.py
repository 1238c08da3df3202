"""What the user chooses while a run goes on counts from its next request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from pi_core.testing import SCRIPTED_MODEL, Call, Reply
from pi_plugins.coding_agent import AgentSession, SessionEvent

from .sessions import Case

OTHER = SCRIPTED_MODEL.model_copy(update={"id": "other", "reasoning": True})


async def run_with(case: Case, change: Callable[[AgentSession], Awaitable[object]]) -> AgentSession:
    """Run a prompt, and change something while its tool call is executed."""
    session = await case.session()

    def listener(event: SessionEvent) -> Awaitable[None] | None:
        return changed() if event.type == "tool_execution_start" else None

    async def changed() -> None:
        await change(session)

    session.subscribe(listener)
    await session.prompt("go")
    return session


def case_with_a_call(folder: Path) -> Case:
    (folder / "project").mkdir()
    (folder / "project" / "a.txt").write_text("text", encoding="utf-8")
    return Case(folder, [Reply(Call("read", {"path": "a.txt"})), "done"])


async def test_another_model_and_level(tmp_path: Path) -> None:
    case = case_with_a_call(tmp_path)
    await run_with(case, lambda session: session.choice.set_model(OTHER, level="high"))
    assert [request.model.id for request in case.requests] == [SCRIPTED_MODEL.id, "other"]
    assert case.requests[1].options.reasoning == "high"


async def test_other_tools(tmp_path: Path) -> None:
    case = case_with_a_call(tmp_path)
    session = await run_with(case, lambda session: session.change_tools(["+grep", "-write"]))
    named = [request.tool_names for request in case.requests]
    assert named == [["read", "bash", "edit", "write"], ["read", "bash", "edit", "grep"]]
    assert [message.role for message in session.agent.state.messages] == [
        "user",
        "assistant",
        "toolResult",
        "assistant",
    ]


async def test_nothing_changes_without_a_choice(tmp_path: Path) -> None:
    case = case_with_a_call(tmp_path)

    async def nothing(session: AgentSession) -> None:
        pass

    await run_with(case, nothing)
    first, second = case.requests
    assert first.model == second.model
    assert first.tool_names == second.tool_names
