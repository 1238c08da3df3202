"""Writes a new plugin: a complete distribution with entry point, module, README and tests that pass."""

from __future__ import annotations

import keyword
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from . import __version__
from .errors import ConfigError

KINDS: Final = {
    "tool": "A tool for the model.",
    "provider": "A provider that speaks a wire protocol of its own.",
    "message": "A message type of its own for the transcript.",
    "hooks": "A guard for tool calls, with options.",
}


def write_plugin(name: str, kind: str, parent: Path) -> list[Path]:
    """Write the distribution ``pi-NAME`` below a folder, whole or not at all, and return its files.

    :param name: what the plugin is called, with or without ``pi-`` in front: letters, digits and dashes.
    :param kind: one of :data:`KINDS`.
    :raises ConfigError: the name cannot be one, or the folder is there already.
    """
    plugin = re.sub(r"[-_.]+", "-", name.strip().lower()).removeprefix("pi-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", plugin):
        raise ConfigError(f"'{name}' cannot name a plugin: use letters, digits and dashes, as in weather-report")
    identifier = plugin.replace("-", "_")
    if keyword.iskeyword(identifier):
        raise ConfigError(f"'{name}' is a word of Python: choose another name")
    target = parent / f"pi-{plugin}"
    if target.exists():
        raise ConfigError(f"{target} is there already: choose another name or folder")
    module = f"pi_{identifier}"
    values = {
        "distribution": f"pi-{plugin}",
        "plugin": identifier,
        "identifier": identifier,
        "module": module,
        "class_name": "".join(part.capitalize() for part in plugin.split("-")) + "Plugin",
        "summary": KINDS[kind],
        "version": __version__,
        "why": identifier,
    }
    files = {
        "pyproject.toml": "pyproject.toml.txt",
        "README.md": "README.md.txt",
        "tox.ini": "tox.ini.txt",
        f"{module}.py": f"{kind}.py.txt",
        f"tests/test_{identifier}.py": f"test_{kind}.py.txt",
    }
    templates = resources.files("pi_core") / "templates"
    parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".pi-new-", dir=parent))
    try:
        for path, template in files.items():
            written = staging / path
            written.parent.mkdir(exist_ok=True)
            text = Template((templates / template).read_text(encoding="utf-8")).substitute(values)
            written.write_text(text, encoding="utf-8")
        staging.chmod(0o755)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [target / path for path in files]
