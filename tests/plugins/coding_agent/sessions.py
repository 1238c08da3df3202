"""Sessions whose model plays a script, in folders of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pi_core import Build, Model, hookimpl
from pi_core.testing import SCRIPTED_MODEL, Reply, ScriptedProvider
from pi_plugins.coding_agent import AgentSession, SessionEvent, SessionOptions, create_session, event_json

SUMMARY = "## Goal\nA goal.\n\n## Progress\nDone.\n\n## Next Steps\nNone."


class Scripted:
    """Takes the place of the built-in plugin ``scripted``."""

    name = "scripted"

    def __init__(self, replies: Sequence[Reply | str], model: Model) -> None:
        self.provider = ScriptedProvider(*replies)
        self._model = model
        self.refuse_default = False

    @hookimpl
    def register_providers(self) -> list[ScriptedProvider]:
        return [self.provider]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        return None if name is None and self.refuse_default else self._model


class Case:
    """A session, its events and the requests it made.

    :param model: fields of the model that differ.
    :param settings: the user's settings.
    """

    def __init__(
        self,
        folder: Path,
        replies: Sequence[Reply | str],
        *,
        model: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        plugins: Sequence[object] = (),
        **options: Any,
    ) -> None:
        self.folder = folder
        self.agent_dir = folder / "agent"
        self.agent_dir.mkdir(parents=True, exist_ok=True)
        (self.agent_dir / "settings.json").write_text(json.dumps(settings or {}), encoding="utf-8")
        self.cwd = folder / "project"
        self.cwd.mkdir(exist_ok=True)
        self.plugin = Scripted(replies, SCRIPTED_MODEL.model_copy(update=model or {}))
        self.build = Build(plugins=[self.plugin, *plugins])
        environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        options = {"in_memory": True, "no_context_files": True, "environ": environ, **options}
        self.options = SessionOptions(cwd=self.cwd, agent_dir=self.agent_dir, **options)
        self.events: list[SessionEvent] = []

    async def session(self) -> AgentSession:
        """Make the session."""
        made = await create_session(self.options, self.build)
        made.subscribe(self._see)
        return made

    def _see(self, event: SessionEvent) -> None:
        self.events.append(event)

    async def asks(self, number: int) -> None:
        """Wait until a number of requests was made."""
        while len(self.requests) < number:  # noqa: ASYNC110 - the provider tells nobody
            await asyncio.sleep(0)

    @property
    def types(self) -> list[str]:
        """The types of the events so far, without those of messages."""
        return [event.type for event in self.events if not event.type.startswith(("message_", "tool_", "turn_"))]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type as JSON."""
        return [event_json(event) for event in self.events if event.type == kind]

    def asked(self) -> list[list[str]]:
        """The texts of each request, with the role's first letter."""
        return [[f"{message.role[0]}:{_text(message)}" for message in request.messages] for request in self.requests]

    @property
    def requests(self) -> list[Any]:
        """The requests so far."""
        return self.plugin.provider.requests


def _text(message: Any) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(getattr(block, "text", f"<{block.type}>") for block in content)
