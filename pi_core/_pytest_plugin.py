"""Fixtures for the tests of plugins; nothing of the framework is imported before one of them is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .agent import Agent
    from .testing import EventLog, Reply, ScriptedProvider


@pytest.fixture
def scripted() -> ScriptedProvider:
    """A scripted provider without replies; ``add`` some."""
    from .testing import ScriptedProvider

    return ScriptedProvider()


@pytest.fixture
def agent_with() -> Callable[..., tuple[Agent, ScriptedProvider, EventLog]]:
    """Makes an agent of plugins: ``agent_with(plugin, replies=["hello"])``."""
    from .testing import scripted_agent

    def make(
        *plugins: object, replies: list[Reply | str] | None = None, **options: Any
    ) -> tuple[Agent, ScriptedProvider, EventLog]:
        return scripted_agent(*(replies or []), plugins=plugins, **options)

    return make


@pytest.fixture
def run_hook() -> Callable[..., Any]:
    """Calls one hook of some plugins and returns the combined answer, in an event loop of its own."""
    import asyncio

    from .testing import run_hook as call

    return lambda name, /, *plugins, **arguments: asyncio.run(call(name, *plugins, **arguments))
