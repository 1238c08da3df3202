"""The system prompt: named sections, of which plugins can change, add and leave out some."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from pi_core import ConfigError, Hooks, Tool

from .resources import Resources

PREAMBLE: Final = "preamble"
"""The section that stands first, without a tag around it."""

_ROLE = (
    "You are a coding agent. You work for the user in the folder named at the end, with the tools you are given: "
    "look and act instead of guessing."
)
_ROLE_WITHOUT_TOOLS = "You are a coding agent. You have no tools now: say so when a task needs them."
_RULES = (
    "Do what was asked and nothing else. Check that it works before you say that it does.",
    "Answer briefly. Name files by their paths.",
)
_DOCS = (
    "You run in the program pi. For questions about pi itself run `pi --help` (its commands), `pi plugins list` (what "
    "is installed), `pi hooks show` (what plugins can change) or `pi --show-prompt` (this text and its files)."
)
_CONTEXT = "Instructions of the user and the project. Where two differ, the later one holds."
_SKILLS = (
    "Instructions for certain tasks. When a task fits a description, read the file at the location before you begin. "
    "Paths in it start from its folder."
)
_SECTION_NAME = re.compile(r"[A-Za-z_][\w.-]*")


async def build_system_prompt(
    resources: Resources,
    tools: Sequence[Tool],
    cwd: Path,
    *,
    custom: str | None = None,
    append: Sequence[str] = (),
    hooks: Hooks | None = None,
) -> str:
    """Return the system prompt. It holds no date or time, so that a provider's cache keeps it.

    :param tools: those that the model may call.
    :param cwd: the folder that the agent works in.
    :param custom: replaces what the framework says of itself, as ``SYSTEM.md`` does, which it is used in place of.
    :param append: texts added to it, after that of ``APPEND_SYSTEM.md``.
    :param hooks: plugins that change the sections.
    :raises HookError: a plugin failed.
    :raises ConfigError: a plugin made a section that cannot be one.
    """
    return render(await prompt_sections(resources, tools, cwd, custom=custom, append=append, hooks=hooks))


async def prompt_sections(
    resources: Resources,
    tools: Sequence[Tool],
    cwd: Path,
    *,
    custom: str | None = None,
    append: Sequence[str] = (),
    hooks: Hooks | None = None,
) -> dict[str, str]:
    """Return the sections of the system prompt by name, in their order; the parameters are those of the prompt.

    :raises HookError: a plugin failed.
    :raises ConfigError: a plugin made a section that cannot be one.
    """
    if custom is None and resources.system_prompt is not None:
        custom = resources.system_prompt.text
    sections = dict(_own_sections(tools)) if custom is None else {PREAMBLE: custom}
    added = [*([resources.append.text] if resources.append is not None else []), *append]
    sections["addendum"] = "\n\n".join(text.strip() for text in added)
    sections["project_context"] = _project_context(resources)
    sections["skills"] = _skills(resources, tools)
    sections["cwd"] = str(cwd)
    sections = {name: text.strip() for name, text in sections.items() if text.strip()}
    if hooks is None or "system_prompt" not in hooks.implemented():
        return sections
    changed = await hooks.call("system_prompt", sections=sections, cwd=cwd)
    return {name: text.strip() for name, text in _checked(changed).items() if text.strip()}


def render(sections: dict[str, str]) -> str:
    """Return the text of some sections: each but the preamble between tags of its name."""
    blocks = [text if name == PREAMBLE else f"<{name}>\n{text}\n</{name}>" for name, text in sections.items()]
    return "\n\n".join(blocks)


def _own_sections(tools: Sequence[Tool]) -> Iterator[tuple[str, str]]:
    yield PREAMBLE, _ROLE if tools else _ROLE_WITHOUT_TOOLS
    yield "tools", "\n".join(f"- {tool.name}: {tool.prompt_snippet}" for tool in tools if tool.prompt_snippet)
    rules = dict.fromkeys([*(rule for tool in tools for rule in tool.prompt_guidelines), *_RULES])
    yield "rules", "\n".join(f"- {rule}" for rule in rules)
    yield "docs", _DOCS if any(tool.name == "bash" for tool in tools) else ""


def _project_context(resources: Resources) -> str:
    files = [
        f'<project_instructions path="{escape(str(file.path))}">\n{file.text.strip()}\n</project_instructions>'
        for file in resources.context_files
        if file.text.strip()
    ]
    return "\n\n".join([_CONTEXT, *files]) if files else ""


def _skills(resources: Resources, tools: Sequence[Tool]) -> str:
    """List the skills, for a model that can read their files."""
    listings = [skill.listing() for skill in resources.skills if skill.listed]
    if not listings or not {"read", "bash"}.intersection(tool.name for tool in tools):
        return ""
    return "\n".join([_SKILLS, *listings])


def _checked(sections: object) -> dict[str, str]:
    if not isinstance(sections, dict):
        raise ConfigError(f"hook system_prompt: expected sections by name, got {type(sections).__name__}")
    for name, text in sections.items():
        if not isinstance(name, str) or not _SECTION_NAME.fullmatch(name):
            raise ConfigError(f"hook system_prompt: {name!r} cannot be the name of a section: letters, digits and _")
        if not isinstance(text, str):
            raise ConfigError(f"hook system_prompt: section '{name}' is {type(text).__name__}, not a text")
    return sections


__all__ = ["PREAMBLE", "build_system_prompt", "prompt_sections", "render"]
