"""What the user types as ``/skill:name arguments`` or ``/name arguments``, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pi_core import ConfigError

from .resources import Resources

_SKILL = "skill:"


@dataclass(frozen=True, slots=True)
class ResourceCommand:
    """A skill or template as the user calls it.

    :param name: what is typed after the slash.
    :param description: one line for lists.
    :param argument_hint: what it takes, for people; ``None`` if it does not say.
    :param path: the file it comes from.
    """

    name: str
    description: str
    source: Literal["skill", "prompt"]
    path: Path
    argument_hint: str | None = None


def commands(resources: Resources) -> list[ResourceCommand]:
    """Return what can be called, templates first, each kind by name."""
    found = [
        ResourceCommand(template.name, template.description, "prompt", template.path, template.argument_hint)
        for template in sorted(resources.templates, key=lambda template: template.name)
    ]
    if resources.skill_commands:
        found += [
            ResourceCommand(f"{_SKILL}{skill.name}", skill.description, "skill", skill.path)
            for skill in sorted(resources.skills, key=lambda skill: skill.name)
        ]
    return found


def expand(text: str, resources: Resources) -> str:
    """Return the prompt that a text stands for: that of a skill or template it calls, else the text itself.

    :raises ConfigError: there is no such skill, or its file cannot be read.
    """
    if not text.startswith("/"):
        return text
    words = text[1:].split(maxsplit=1)
    if not words or text[1].isspace():
        return text
    name, arguments = words[0], words[1].strip() if len(words) > 1 else ""
    if name.startswith(_SKILL) and resources.skill_commands:
        return _skill(name.removeprefix(_SKILL), arguments, resources)
    for template in resources.templates:
        if template.name == name:
            return template.expand(arguments)
    return text


def _skill(name: str, arguments: str, resources: Resources) -> str:
    for skill in resources.skills:
        if skill.name == name:
            return skill.expand(arguments)
    known = ", ".join(sorted(skill.name for skill in resources.skills)) or "none"
    raise ConfigError(f"There is no skill '{name}'. Skills here: {known}")


__all__ = ["ResourceCommand", "commands", "expand"]
