"""Shows the system prompt that a run with the same options would have, and the files it is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from pi_core import Build, ConfigError
from pi_plugins.coding_agent import PromptParts, SessionOptions, load_prompt_parts, prepare_session
from pi_plugins.prompt import ResourceCommand, commands, prompt_sections, render


async def show_prompt(build: Build, options: SessionOptions, section: str, *, as_json: bool = False) -> int:
    """Print the system prompt, then on stderr its files and what was found and cannot be used.

    :param section: the name of the only section to print; all of them when it is empty.
    :param as_json: print sections, files and commands as JSON.
    :raises ConfigError: there is no such section, or the prompt cannot be made.
    """
    prepared = await prepare_session(options, build)
    parts = await load_prompt_parts(prepared)
    sections = await prompt_sections(
        parts.resources,
        parts.tools,
        prepared.cwd,
        custom=parts.system_prompt,
        append=parts.append,
        hooks=prepared.build.hooks,
    )
    if section and section not in sections:
        raise ConfigError(f"The system prompt has no section '{section}'. Sections: {', '.join(sections)}")
    warnings = [*prepared.warnings, *parts.resources.warnings, *prepared.notices]
    files = [{"kind": kind, "path": path} for kind, path in _files(parts)]
    if as_json:
        chosen = {section: sections[section]} if section else sections
        called = [_command_json(one) for one in commands(parts.resources)]
        report = {"sections": chosen, "files": files, "commands": called, "warnings": warnings}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return 0
    click.echo(sections[section] if section else render(sections))
    for file in files:
        click.echo(f"pi: {file['kind']}: {file['path']}", err=True)
    for text in warnings:
        click.echo(f"pi: {text}", err=True)
    return 0


def _files(parts: PromptParts) -> Iterator[tuple[str, str]]:
    resources = parts.resources
    if resources.system_prompt is not None and parts.system_prompt is None:
        yield "system prompt", str(resources.system_prompt.path)
    if resources.append is not None:
        yield "addendum", str(resources.append.path)
    for file in resources.context_files:
        yield "context file", str(file.path)
    for skill in resources.skills:
        yield f"skill of {skill.origin}", str(skill.path)
    for template in resources.templates:
        yield f"prompt template of {template.origin}", str(template.path)


def _command_json(command: ResourceCommand) -> dict[str, str]:
    data: dict[str, str] = {"name": command.name, "description": command.description, "source": command.source}
    data["path"] = str(command.path)
    return data | ({} if command.argument_hint is None else {"argumentHint": command.argument_hint})
