from __future__ import annotations

from typing import Any

from pi_core import UserMessage, hookimpl
from pi_core.testing import scripted_agent

from .making import holding
from .queues import QueueHook


class TestFollowUpMessages(QueueHook):
    hook = "follow_up_messages"

    def test_the_run_goes_on_where_it_would_stop(self) -> None:
        given = [UserMessage(content="and then?")]

        def once(self: Any) -> UserMessage | None:
            return given.pop() if given else None

        agent, provider, _ = scripted_agent("one", "two", plugins=[holding("p", follow_up_messages=hookimpl(once))])
        messages = agent.run_sync("go")
        assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
        provider.assert_exhausted()
