from __future__ import annotations

from typing import Any

from pi_core import UserMessage, hookimpl
from pi_core.testing import scripted_agent

from .making import holding
from .queues import QueueHook


class TestSteeringMessages(QueueHook):
    hook = "steering_messages"

    def test_they_come_after_the_agent_s_own_queue(self) -> None:
        given = [UserMessage(content="from the plugin")]

        def once(self: Any) -> list[UserMessage]:
            return [given.pop()] if given else []

        agent, provider, _ = scripted_agent("done", plugins=[holding("p", steering_messages=hookimpl(once))])
        agent.steer(UserMessage(content="from the queue"))
        agent.run_sync("go")
        texts = [message.content for message in provider.requests[0].messages]
        assert texts[1:] == ["from the queue", "from the plugin"]
