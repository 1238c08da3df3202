"""What holds for the hook of every agent event."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from pi_core import AgentEvent, hookimpl, tool
from pi_core.testing import Call, Reply, Say, scripted_agent

from . import samples
from .making import holding
from .spoiling import spoil
from .wrapping import WrappedNotify


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


class EventHook(WrappedNotify):
    """Tests of an ``on_*`` hook. ``times``: how often it is called in a run with one call of a tool."""

    times: ClassVar[int]

    def event(self) -> AgentEvent:
        raise AssertionError

    def arguments(self) -> dict[str, Any]:
        return {"event": self.event(), "ctx": samples.ctx()}

    def test_it_is_called_before_the_subscribers_with_every_event_of_its_type(self) -> None:
        seen: list[Any] = []

        def observe(self: Any, event: AgentEvent, ctx: Any) -> None:
            seen.append(("plugin", event))

        agent, _, _ = scripted_agent(
            Reply(Call("echo", {"text": "hi"})),
            Reply(Say("done", chunks=["do", "ne"])),
            plugins=[holding("watch", **{self.hook: hookimpl(observe)})],
            tools=[echo],
        )
        event_type = self.event().type
        agent.subscribe(lambda event, signal: seen.append(("own", event)) if event.type == event_type else None)
        agent.run_sync("go")
        assert [who for who, _ in seen] == ["plugin", "own"] * self.times
        for (_, given), (_, told) in zip(seen[::2], seen[1::2], strict=True):
            assert given == told

    def test_what_an_observer_edits_does_not_reach_the_run(self) -> None:
        def observe(self: Any, event: Any) -> None:
            for name in ("messages", "tool_results", "args"):
                if hasattr(event, name):
                    spoil(getattr(event, name))
            for name in ("result", "partial_result"):
                if hasattr(event, name):
                    spoil(getattr(event, name))
            for field in fields(event):
                setattr(event, field.name, None)

        def run(*plugins: Any) -> tuple[list[Any], list[Any]]:
            agent, _, log = scripted_agent(
                Reply(Call("echo", {"text": "hi"})), "done", plugins=plugins, tools=[echo], system_prompt="Be brief."
            )
            agent.run_sync("go")
            return [message.model_copy(update={"timestamp": 0}) for message in agent.state.messages], log.types

        plain, types = run()
        watched, watched_types = run(holding("watch", **{self.hook: hookimpl(observe)}))
        assert watched_types == types
        assert [_timeless(message) for message in watched] == [_timeless(message) for message in plain]


def _timeless(message: Any) -> dict[str, Any]:
    data: dict[str, Any] = message.to_json()
    data.pop("durationMs", None)
    return data
