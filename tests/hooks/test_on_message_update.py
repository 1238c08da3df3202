from __future__ import annotations

from typing import Any

from pi_core import MessageAssembler, MessageUpdateEvent, hookimpl
from pi_core.testing import Reply, Say, scripted_agent

from .making import holding
from .observing import EventHook


class TestOnMessageUpdate(EventHook):
    hook = "on_message_update"
    times = 7

    def event(self) -> MessageUpdateEvent:
        assembler = MessageAssembler("scripted", "scripted", "scripted")
        assembler.start()
        assembler.text_start(0)
        return MessageUpdateEvent(assembler.text_delta(0, "hello"))

    def test_the_message_is_the_one_as_of_the_event(self) -> None:
        texts: list[str] = []

        def observe(self: Any, event: MessageUpdateEvent) -> None:
            texts.append(event.message.text)

        agent, _, _ = scripted_agent(
            Reply(Say("abc", chunks=["a", "b", "c"])), plugins=[holding("w", on_message_update=hookimpl(observe))]
        )
        agent.run_sync("go")
        assert texts == ["", "a", "ab", "abc", "abc"]
