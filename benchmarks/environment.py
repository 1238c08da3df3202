"""An environment with the framework and what it needs, and nothing else, made of links to what is installed here.

Start-up is measured in it, since every further distribution makes the search for plugins longer.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

from .processes import ROOT

_PLUGIN = '''"""A plugin as others write it."""

from pi_core import RunContext, Tool, ToolCall, ToolContext, ToolResult, hookimpl


async def answer(arguments: dict, context: ToolContext) -> ToolResult:
    return ToolResult.text("ok")


class Plugin:
    @hookimpl
    def register_tools(self) -> list[Tool]:
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
        return [Tool("tool%(number)d", "Answer.", schema, answer)]

    @hookimpl
    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> None:
        return None

    @hookimpl
    async def on_turn_end(self, ctx: RunContext) -> None:
        return None
'''


class BareEnvironment:
    """A virtual environment in a folder, with the distributions the framework requires.

    :param folder: where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = str(folder / "bin" / "python")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._site = folder / "lib" / version / "site-packages"
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for distribution in _required(project["dependencies"]):
            self._link(distribution)
        for package in ("pi_core", "pi_plugins"):
            (self._site / package).symlink_to(ROOT / package)
        _describe(self._site, project["name"], project["version"], project["entry-points"])
        self.pi = self._script(project["scripts"]["pi"])
        self.environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8"}

    def _link(self, distribution: metadata.Distribution) -> None:
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            place = self._site / top
            if not place.exists():
                place.symlink_to(Path(str(distribution.locate_file(top))))

    def _script(self, target: str) -> str:
        module, _, function = target.partition(":")
        path = self.folder / "bin" / "pi"
        path.write_text(
            f"#!{self.python}\nimport sys\nfrom {module} import {function}\nif __name__ == '__main__':\n"
            f"    sys.exit({function}())\n"
        )
        path.chmod(0o755)
        return str(path)

    def add_plugins(self, count: int, others: int = 0) -> dict[str, str]:
        """Make installed plugins in a folder of their own; returns the environment variables that add it.

        :param others: how many distributions that offer no plugin, but a command, lie beside them.
        """
        place = self.folder / f"plugins_{count}_{others}"
        place.mkdir()
        for number in range(count):
            name = f"bench_plugin{number}"
            (place / f"{name}.py").write_text(_PLUGIN % {"number": number})
            _describe(place, name, "1.0", {"pi": {name: f"{name}:Plugin"}})
        for number in range(others):
            name = f"bench_other{number}"
            _describe(place, name, "1.0", {"console_scripts": {name: f"{name}:main"}})
        return {**self.environ, "PYTHONPATH": str(place)}


def _required(requirements: list[str]) -> list[metadata.Distribution]:
    """Return the installed distributions behind requirements, and those behind theirs."""
    from packaging.requirements import Requirement

    found: dict[str, metadata.Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
            continue
        found[name] = metadata.distribution(requirement.name)
        waiting += [Requirement(text) for text in found[name].requires or ()]
    return list(found.values())


def _describe(site: Path, name: str, version: str, entry_points: dict[str, dict[str, Any]]) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = [
        f"[{group}]\n" + "".join(f"{entry} = {target}\n" for entry, target in entries.items())
        for group, entries in entry_points.items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(sections))
