"""What the system prompt of a session is made of: resources, tools, and the texts that options and files give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_core import Tool

from ._tool_choice import choose_tools

if TYPE_CHECKING:
    from pi_plugins.prompt import Resources

    from .factory import Prepared


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a system prompt is made of.

    :param tools: those that the model may call.
    :param system_prompt: replaces the default prompt.
    :param append: texts that are added to it.
    """

    resources: Resources
    tools: list[Tool]
    system_prompt: str | None
    append: list[str]


async def load_prompt_parts(prepared: Prepared) -> PromptParts:
    """Look for the resources and choose the tools, as configuration and options say.

    :raises ConfigError: a tool does not exist, or a file that an option names cannot be read.
    """
    from pi_plugins.prompt import load_resources, text_or_file

    options, build = prepared.options, prepared.build
    resources = await load_resources(
        prepared.cwd,
        agent_dir=prepared.agent_dir,
        trusted=prepared.trusted,
        settings=prepared.settings,
        hooks=build.hooks,
        no_context_files=options.no_context_files,
        no_skills=options.no_skills,
        no_templates=options.no_templates,
        skill_paths=options.skill_paths,
        template_paths=options.template_paths,
        environ=prepared.environ,
    )
    given = options.system_prompt
    if given is None and build.settings is not None:
        given = build.settings.system_prompt
    return PromptParts(
        resources=resources,
        tools=build.tools(choose_tools(build, options, prepared.settings.default_tools)),
        system_prompt=None if given is None else text_or_file(given, "--system-prompt"),
        append=[text_or_file(text, "--append-system-prompt") for text in options.append_system_prompt],
    )
