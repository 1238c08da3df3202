"""Skills: instructions for certain tasks, which the model reads when it has such a task."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from ._frontmatter import parse
from .files import read_file, read_file_or_warn

MAX_NAME: Final = 64
"""Most characters of a skill's name."""

MAX_DESCRIPTION: Final = 1024
"""Most characters of a skill's description that a model is told."""

_NAME = re.compile(r"[a-z0-9-]+")
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill.

    :param description: what it is for and when to use it, in one line.
    :param path: the file that holds the instructions.
    :param origin: who brought it, for people.
    :param listed: whether the model is told of it; otherwise only the user can call it.
    """

    name: str
    description: str
    path: Path
    origin: str
    listed: bool = True

    def listing(self) -> str:
        """Return what the model is told of it."""
        fields = (("name", self.name), ("description", self.description), ("location", str(self.path)))
        lines = (f"<{tag}>{escape(text, quote=False)}</{tag}>" for tag, text in fields)
        return "\n".join(("<skill>", *lines, "</skill>"))

    def expand(self, arguments: str) -> str:
        """Return the message that calls it: the instructions, then what the user typed after the name.

        :raises ConfigError: its file cannot be read any more.
        """
        body = parse(read_file(self.path).text).body
        block = (
            f'<skill name="{escape(self.name)}" location="{escape(str(self.path))}">\n'
            f"References are relative to {self.path.parent}.\n\n{body}\n</skill>"
        )
        return f"{block}\n\n{arguments}" if arguments else block


def load_skill(path: Path, origin: str, warnings: list[str]) -> Skill | None:
    """Read a skill; what is wrong with it is added to the warnings.

    :returns: ``None`` when it cannot be used: it cannot be read, or has no description.
    """
    file = read_file_or_warn(path, warnings)
    if file is None:
        return None
    document = parse(file.text)
    description = document.text("description")
    if document.problem is not None:
        warnings.append(f"{path}: {document.problem}. The skill is not used")
        return None
    if description is None:
        warnings.append(f"{path}: the skill has no description in its frontmatter, so it is not used")
        return None
    is_folder = path.name == "SKILL.md"
    place = path.parent.name if is_folder else path.stem
    name = document.text("name") or place
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        warnings.append(f"{path}: the name '{name}' should have at most {MAX_NAME} letters a-z, digits and hyphens")
    if is_folder and name != place:
        warnings.append(f"{path}: the skill is called '{name}' and its folder '{place}'; give both one name")
    if len(description) > MAX_DESCRIPTION:
        warnings.append(
            f"{path}: the description has {len(description)} characters, of which a model is told {MAX_DESCRIPTION}"
        )
    hidden = document.text("disable-model-invocation") or "false"
    if hidden.lower() not in _FLAGS:
        warnings.append(f"{path}: disable-model-invocation is true or false, not '{hidden}'; taken as false")
    return Skill(
        name=name,
        description=description[:MAX_DESCRIPTION],
        path=path,
        origin=origin,
        listed=not _FLAGS.get(hidden.lower(), False),
    )


__all__ = ["MAX_DESCRIPTION", "MAX_NAME", "Skill", "load_skill"]
