"""A user's folder and a project's, both empty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_plugins.config import LoadedSettings, load_settings


class Places:
    """Folders of a user and a project.

    :param folder: where they are made.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.agent = self.home / ".pi" / "agent"
        self.cwd = folder / "project"
        self.project = self.cwd / ".pi"
        self.agent.mkdir(parents=True)
        self.project.mkdir(parents=True)
        self.environ = {"HOME": str(self.home)}
        self.user_file = self.agent / "settings.json"
        self.project_file = self.project / "settings.json"

    def user(self, settings: Any) -> None:
        """Write the user's settings: a text as it is, anything else as JSON."""
        self.user_file.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=1))

    def of_project(self, settings: Any) -> None:
        """Write the project's settings."""
        self.project_file.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=1))

    def load(self, *, trusted: bool = True, overrides: dict[str, Any] | None = None, **environ: str) -> LoadedSettings:
        """Load the settings as a process with these environment variables does."""
        return load_settings(self.cwd, environ={**self.environ, **environ}, trusted=trusted, overrides=overrides)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Folders of a user and a project."""
    return Places(tmp_path)
