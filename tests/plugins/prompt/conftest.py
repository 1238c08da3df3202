"""A home directory with the agent's folder, and a project below it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pi_plugins.prompt import Resources, load_resources


@dataclass(frozen=True)
class Home:
    """Folders of a user.

    :param path: the home directory.
    :param agent: the agent's folder.
    :param project: the folder that is worked in.
    """

    path: Path
    agent: Path
    project: Path

    def write(self, path: str, text: str = "") -> Path:
        """Write a file below the home directory, with its folders."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def skill(self, folder: str, name: str, body: str = "Do it.", **header: str) -> Path:
        """Write a skill ``name`` into ``folder``, which is below the home directory."""
        lines = {"name": name, "description": f"What {name} does.", **header}
        text = "".join(f"{key}: {value}\n" for key, value in lines.items())
        return self.write(f"{folder}/{name}/SKILL.md", f"---\n{text}---\n\n{body}\n")

    def load(self, cwd: Path | None = None, **options: Any) -> Resources:
        """Load the resources of the project, or of another folder."""
        return asyncio.run(load_resources(cwd or self.project, agent_dir=self.agent, **options))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home directory."""
    made = Home(tmp_path / "home", tmp_path / "home" / ".pi" / "agent", tmp_path / "home" / "work")
    made.agent.mkdir(parents=True)
    made.project.mkdir()
    monkeypatch.setenv("HOME", str(made.path))
    return made


@pytest.fixture
def closed_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Home, Callable[[Path], None]]]:
    """A home directory, and a function that takes a folder's permissions away, for root too."""
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    root.chmod(0o755)
    made = Home(root, root / ".pi" / "agent", root / "work")
    made.agent.mkdir(parents=True)
    made.project.mkdir()
    monkeypatch.setenv("HOME", str(root))
    is_root = os.geteuid() == 0
    closed: list[Path] = []

    def close(folder: Path) -> None:
        folder.chmod(0)
        closed.append(folder)
        if is_root:
            os.seteuid(65534)

    try:
        yield made, close
    finally:
        if is_root:
            os.seteuid(0)
        for folder in closed:
            folder.chmod(0o755)
        shutil.rmtree(root)
