"""Fixtures for the tests of plugins; nothing of the framework is imported before one of them is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .agent import Agent
    from .hooks import Hooks
    from .testing import Cassette, EventLog, Golden, HookRecorder, Reply, ScriptedProvider


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that renew what tests compare with."""
    group = parser.getgroup("pi", "tests of plugins of pi")
    group.addoption(
        "--update-goldens", action="store_true", help="write the golden event sequences instead of comparing with them"
    )
    group.addoption(
        "--record-cassettes", action="store_true", help="ask the network and record it, instead of playing cassettes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", "pi_plugins(*plugins): what agent_with, run_hook and hooks begin with; classes by .with_args(...)"
    )


def _marked(request: pytest.FixtureRequest) -> list[object]:
    """The plugins of the test's markers, those nearest to the test first; a class is made into an object."""
    given = [plugin for marker in request.node.iter_markers("pi_plugins") for plugin in marker.args]
    return [plugin() if isinstance(plugin, type) else plugin for plugin in given]


@pytest.fixture
def scripted() -> ScriptedProvider:
    """A scripted provider without replies; ``add`` some."""
    from .testing import ScriptedProvider

    return ScriptedProvider()


@pytest.fixture
def agent_with(request: pytest.FixtureRequest) -> Callable[..., tuple[Agent, ScriptedProvider, EventLog]]:
    """Makes an agent of plugins: ``agent_with(plugin, replies=["hello"])``."""
    from .testing import scripted_agent

    def make(
        *plugins: object, replies: list[Reply | str] | None = None, **options: Any
    ) -> tuple[Agent, ScriptedProvider, EventLog]:
        return scripted_agent(*(replies or []), plugins=[*_marked(request), *plugins], **options)

    return make


@pytest.fixture
def run_hook(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls one hook of some plugins and returns the combined answer, in an event loop of its own."""
    import asyncio

    from .testing import run_hook as call

    return lambda name, /, *plugins, **arguments: asyncio.run(call(name, *_marked(request), *plugins, **arguments))


@pytest.fixture
def hooks(request: pytest.FixtureRequest) -> Callable[..., Hooks]:
    """Makes the typed facade over plugins: ``await hooks(plugin).transform_context(messages, ctx)``."""
    from .hooks import Hooks

    return lambda *plugins, **options: Hooks.over(*_marked(request), *plugins, **options)


@pytest.fixture
def event_log() -> EventLog:
    """A log of events: ``agent.subscribe(event_log)``."""
    from .testing import EventLog

    return EventLog()


@pytest.fixture
def hook_recorder() -> HookRecorder:
    """A plugin that records which hooks are called."""
    from .testing import HookRecorder

    return HookRecorder()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares events with a file beside the test: ``golden(event_log.events)``. ``--update-goldens`` writes it."""
    from .testing import Golden

    folder = request.path.parent / "goldens" / request.path.stem
    return Golden(folder, _file_name(request.node.name), update=request.config.getoption("update_goldens"))


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cassette]]:
    """Opens a cassette beside the test: ``cassette("name").transport()``; at the end of the test all must be played.

    ``--record-cassettes`` records it.
    """
    from .testing import Cassette

    folder = request.path.parent / "cassettes" / request.path.stem
    with ExitStack() as opened:

        def open_(name: str | None = None, **options: Any) -> Cassette:
            path = folder / f"{name or _file_name(request.node.name)}.json"
            record = request.config.getoption("record_cassettes")
            return opened.enter_context(Cassette(path, record=record, **options))

        yield open_


def _file_name(test: str) -> str:
    return re.sub(r"[^\w.-]+", "-", test).strip("-")
