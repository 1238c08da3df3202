"""Plugins that are files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_core import Build, ConfigError
from pi_plugins.config import Settings, plugin_files

from .conftest import Places

PLUGIN = """
from pi_core import hookimpl

class Plugin:
    @hookimpl
    def register_tools(self):
        from pi_core import Tool
        async def run(arguments, context):
            return None
        return [Tool(name="{name}", description="", parameters={{}}, execute=run)]
"""


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / "plugins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PLUGIN.format(name=Path(name).stem))


def found(places: Places, *, trusted: bool = True, settings: Settings | None = None) -> list[str]:
    files = plugin_files(places.cwd, environ=places.environ, trusted=trusted, settings=settings)
    return [str(file.relative_to(places.home.parent)) for file in files]


def test_without_folders_there_are_none(places: Places) -> None:
    assert found(places) == []


def test_files_and_packages_are_plugins_and_nothing_else_is(places: Places) -> None:
    write(
        places.agent,
        "b.py",
        "a/__init__.py",
        "_private.py",
        ".hidden.py",
        "notes.txt",
        "empty/notes.py",
        "__pycache__/b.py",
    )
    assert found(places) == ["home/.pi/agent/plugins/a", "home/.pi/agent/plugins/b.py"]


def test_those_of_settings_come_first_then_the_projects(places: Places) -> None:
    write(places.agent, "own.py")
    write(places.project, "ours.py")
    settings = Settings(plugin_files=(str(places.cwd / "named.py"),))
    assert found(places, settings=settings) == [
        "project/named.py",
        "project/.pi/plugins/ours.py",
        "home/.pi/agent/plugins/own.py",
    ]


def test_a_project_that_is_not_trusted_brings_none(places: Places) -> None:
    write(places.project, "ours.py")
    assert found(places, trusted=False) == []


def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(places: Places) -> None:
    (places.agent / "plugins").symlink_to(places.agent / "plugins")
    with pytest.raises(ConfigError, match=f"^{places.agent}/plugins: "):
        found(places)


def test_each_file_is_loaded_once(places: Places) -> None:
    write(places.agent, "own.py")
    (places.project / "plugins").symlink_to(places.agent / "plugins")
    settings = Settings(plugin_files=(str(places.agent / "plugins" / "own.py"),))
    assert found(places, settings=settings) == ["home/.pi/agent/plugins/own.py"]


def test_what_is_found_can_be_loaded(places: Places) -> None:
    write(places.agent, "first.py", "second/__init__.py")
    build = Build(only=()).extended(files=plugin_files(places.cwd, environ=places.environ))
    assert build.problems() == []
    assert {record.name for record in build.plugins if record.state == "loaded"} == {"first", "second"}
