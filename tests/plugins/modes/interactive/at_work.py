"""A session with the commands of the interactive mode, whose model plays a script, in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_core import Build, Model, hookimpl
from pi_core.testing import SCRIPTED_MODEL, Reply, ScriptedProvider
from pi_plugins.coding_agent import (
    AgentSession,
    Prepared,
    SessionEvent,
    SessionOptions,
    create_session,
    prepare_session,
)
from pi_plugins.coding_agent.events import NoticeEvent
from pi_plugins.modes.interactive.commands import offer_commands

from .fake_ui import FakeUi

MODELS = {
    "providers": {
        "work": {
            "baseUrl": "http://127.0.0.1:9/v1",
            "apiKey": "secret",
            "api": "openai-completions",
            "models": [
                {"id": "quick-1", "contextWindow": 100_000},
                {"id": "deep-1", "reasoning": True, "contextWindow": 200_000},
                {"id": "deep-2", "reasoning": True, "contextWindow": 400_000},
            ],
        }
    }
}


class Scripted:
    """Takes the place of the built-in plugin ``scripted``."""

    name = "scripted"

    def __init__(self, replies: Sequence[Reply | str], model: Model | None) -> None:
        self.provider = ScriptedProvider(*replies)
        self._model = model

    @hookimpl
    def register_providers(self) -> list[ScriptedProvider]:
        return [self.provider]

    @hookimpl
    async def resolve_model(self) -> Model | None:
        return self._model


@dataclass
class AtWork:
    """A session that is open, the terminal it is shown in, and what was said of it."""

    session: AgentSession
    ui: FakeUi
    prepared: Prepared
    provider: ScriptedProvider
    events: list[SessionEvent]

    async def run(self, text: str, *answers: Any) -> str:
        """Type a command and return what it showed and said; all answers have to be asked for.

        :param answers: those of its dialogs.
        """
        before, shown = len(self.events), len(self.ui.shown)
        self.ui.answers.extend(answers)
        assert await self.session.submit(text) == "handled", f"{text} was sent to the model"
        assert self.ui.done(), f"nobody asked for {list(self.ui.answers)}"
        said = self.ui.shown[shown:]
        said += [(event.text, event.level) for event in self.events[before:] if isinstance(event, NoticeEvent)]
        return "\n".join(text if level == "info" else f"{level}: {text}" for text, level in said)

    @property
    def asked(self) -> list[str]:
        """The last text of each request."""
        return [str(request.messages[-1].content) for request in self.provider.requests]


def build_of(replies: Sequence[Reply | str] = (), model: Model | None = SCRIPTED_MODEL, *plugins: object) -> Build:
    """Return a build whose model plays a script; without a model, none is found."""
    return Build(plugins=[Scripted(replies, model), *plugins])


def options_in(folder: Path, **options: Any) -> SessionOptions:
    """Return options for a session in folders of its own."""
    (folder / "agent").mkdir(exist_ok=True)
    (folder / "project").mkdir(exist_ok=True)
    environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return SessionOptions(
        cwd=folder / "project",
        agent_dir=folder / "agent",
        **{"no_context_files": True, "environ": environ, **options},
    )


@asynccontextmanager
async def at_work(
    folder: Path,
    *replies: Reply | str,
    models: Mapping[str, Any] | None = MODELS,
    settings: Mapping[str, Any] | None = None,
    model: Model = SCRIPTED_MODEL,
    plugins: Sequence[object] = (),
    **options: Any,
) -> AsyncIterator[AtWork]:
    """Make a session in a folder, and close it in the end.

    :param models: what ``models.json`` holds.
    :param settings: the user's settings.
    """
    wanted = options_in(folder, **options)
    for name, content in (("models.json", models), ("settings.json", settings)):
        if content is not None:
            (folder / "agent" / name).write_text(json.dumps(content), encoding="utf-8")
    build = build_of(replies, model, *plugins)
    prepared = await prepare_session(wanted, build)
    session = await create_session(prepared=prepared)
    ui, events = FakeUi(), []
    ui.session = session
    session.subscribe(events.append)
    offer_commands(session, ui, prepared)
    provider = build.registry.providers.get("scripted")
    assert isinstance(provider, ScriptedProvider)
    try:
        yield AtWork(session, ui, prepared, provider, events)
    finally:
        await session.close()
