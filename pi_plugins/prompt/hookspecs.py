"""The hooks of the system prompt and its resources."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pi_core import Kind, hookspec


@hookspec(Kind.COLLECT)
async def resources_discover(cwd: Path) -> Iterable[Path] | None:
    """Called when skills and prompt templates are looked for.

    :returns: further folders that hold ``skills/`` and ``prompts/``.
    """


@hookspec(Kind.CHAIN)
async def system_prompt(sections: dict[str, str], cwd: Path) -> dict[str, str] | None:
    """Called when the system prompt is made, to change, add or leave out sections.

    :param sections: texts by name, in the order in which they appear.
    :returns: the sections to use.
    """
