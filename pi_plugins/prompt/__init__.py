"""The system prompt: sections, context files, skills and prompt templates.

The names are imported when they are first used, so that a start without a prompt costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_core import hookimpl
from pi_plugins._lazy import names_of

from . import hookspecs

if TYPE_CHECKING:
    from .expansion import ResourceCommand as ResourceCommand
    from .expansion import commands as commands
    from .expansion import expand as expand
    from .files import PromptFile as PromptFile
    from .files import text_or_file as text_or_file
    from .resources import Resources as Resources
    from .resources import load_resources as load_resources
    from .skills import Skill as Skill
    from .system_prompt import build_system_prompt as build_system_prompt
    from .system_prompt import prompt_sections as prompt_sections
    from .system_prompt import render as render
    from .templates import Template as Template

__getattr__, __dir__ = names_of(
    __name__,
    expansion=("ResourceCommand", "commands", "expand"),
    files=("PromptFile", "text_or_file"),
    resources=("Resources", "load_resources"),
    skills=("Skill",),
    system_prompt=("build_system_prompt", "prompt_sections", "render"),
    templates=("Template",),
)


class PromptPlugin:
    """Offers the hooks with which plugins change the system prompt and bring skills and templates."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]
