"""The deterministic reference provider: plays the replies of a JSON file, so that a build can be tried without a model.

``PI_SCRIPT`` or the option ``script`` names the file: a list of replies, each a text or an object with ``blocks``.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from pi_core import ConfigError, Context, Model, StreamEvent, StreamOptions, hookimpl

if TYPE_CHECKING:
    from pi_core.testing import Reply, ScriptedProvider

_API: Final = "scripted"


class ScriptedPlugin:
    """Registers the scripted provider and its model ``scripted/scripted``."""

    class Options(BaseModel):
        """Options of the plugin."""

        model_config = ConfigDict(extra="forbid")

        script: Path | None = None

    def __init__(self) -> None:
        self._options = self.Options()
        self._provider: ScriptedProvider | None = None

    @hookimpl
    def configure(self, options: Options) -> None:
        """Take the options."""
        self._options = options

    @property
    def api(self) -> str:
        """The api the model names."""
        return _API

    @hookimpl
    def register_providers(self) -> list[ScriptedPlugin]:
        """Offer the provider; the script is read when the first request is made."""
        return [self]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        """Know ``scripted/scripted``; never a default."""
        if name != "scripted/scripted":
            return None
        from pi_core.testing import SCRIPTED_MODEL

        return SCRIPTED_MODEL

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        """Play the next reply."""
        if self._provider is None:
            from pi_core.testing import ScriptedProvider

            self._provider = ScriptedProvider(*self._replies())
        return self._provider.stream(model, context, options)

    def _replies(self) -> list[Reply]:
        path = self._options.script or os.environ.get("PI_SCRIPT")
        if not path:
            raise ConfigError(
                "The scripted provider has no script: name a JSON file in PI_SCRIPT or its option 'script'"
            )
        from pi_core.testing import Reply

        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(data, list):
                raise ValueError("expected a list of replies")
            return [Reply.from_json(reply) for reply in data]
        except (OSError, ValueError) as error:
            raise ConfigError(f"The script {path} cannot be played: {error}") from error
