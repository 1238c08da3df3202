"""The marker ``pi_plugins`` gives the fixtures the plugins of a test."""

from collections.abc import Callable
from typing import Any

import pytest

from pi_core import hookimpl


class Shout:
    @hookimpl
    def transform_context(self, messages: list[str]) -> list[str]:
        return [message.upper() for message in messages]


class Twice:
    @hookimpl
    def transform_context(self, messages: list[str]) -> list[str]:
        return messages * 2


@pytest.mark.pi_plugins.with_args(Shout)
class TestMarked:
    def test_the_class_is_made_into_an_object(self, hooks: Callable[..., Any]) -> None:
        assert [owner.plugin for owner, _, _ in hooks().implementations("transform_context")] == ["Shout"]

    @pytest.mark.pi_plugins(Twice())
    def test_the_nearest_comes_first_and_given_ones_last(self, hooks: Callable[..., Any]) -> None:
        class Last:
            @hookimpl
            def transform_context(self) -> None:
                return None

        found = hooks(Last()).implementations("transform_context")
        assert [owner.plugin for owner, _, _ in found] == ["Twice", "Shout", "Last"]

    def test_agents_begin_with_it(self, agent_with: Callable[..., Any]) -> None:
        agent, _, _ = agent_with(replies=["hi"])
        assert agent.hooks.has("transform_context")


def test_without_the_marker_there_is_none(hooks: Callable[..., Any]) -> None:
    assert not hooks().has("transform_context")
