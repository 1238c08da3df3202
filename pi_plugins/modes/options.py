"""The options of ``pi``, and the session that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pi_core import StreamOptions, ThinkingLevel

if TYPE_CHECKING:
    from pi_plugins.coding_agent import SessionOptions

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PATH = click.Path(exists=True, path_type=Path)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_OPTIONS = (
    click.argument("words", nargs=-1, metavar="[@FILE]... [PROMPT]..."),
    click.option("-p", "--print", "print_mode", is_flag=True, help="Run the prompts, print the last answer, exit."),
    click.option(
        "--mode",
        type=click.Choice(["text", "json", "rpc"]),
        default="text",
        help="json: print events as JSON lines. rpc: take commands as JSON lines, too.",
    ),
    click.option(
        "-c", "--continue", "continue_last", is_flag=True, help="Go on with the latest session of the folder."
    ),
    click.option("-r", "--resume", is_flag=True, help="Choose the session to go on with."),
    click.option("--session", metavar="FILE|ID", help="Go on with this session."),
    click.option("--session-id", metavar="ID", help="Go on with the session of this id, or make it."),
    click.option("--fork", metavar="FILE|ID", help="Go on in a copy of this session."),
    click.option("--session-dir", type=_FOLDER, help="Where sessions are kept for this run."),
    click.option("--no-session", "in_memory", is_flag=True, help="Keep nothing on disk."),
    click.option("-n", "--name", help="Name of the session for people."),
    click.option(
        "--model", metavar="MODEL", help="provider/id, an id, or a part of one; MODEL:LEVEL sets the thinking."
    ),
    click.option("--provider", help="Look for --model at this provider only."),
    click.option("--models", type=_names, help="Patterns of the models to choose from and to cycle through."),
    click.option("--base-url", help="Address of a server, such as http://127.0.0.1:8080/v1."),
    click.option("--api", help="Wire protocol of --base-url; openai-completions by default."),
    click.option("--api-key", help="Key for this run; needs --model."),
    click.option(
        "--thinking", type=click.Choice(get_args(ThinkingLevel)), help="How much to think; clamped to the model."
    ),
    click.option("--list-models", is_flag=False, flag_value="", metavar="[SEARCH]", help="List models and exit."),
    click.option("-t", "--tools", type=_names, help="Tools the model may call, or changes: +grep,-write."),
    click.option("-xt", "--exclude-tools", type=_names, help="Tools it may not call, whatever else is said."),
    click.option("-nbt", "--no-builtin-tools", is_flag=True, help="Only tools of installed plugins."),
    click.option("-nt", "--no-tools", is_flag=True, help="No tools."),
    click.option("--system-prompt", metavar="TEXT|FILE", help="Replaces the default prompt."),
    click.option("--append-system-prompt", metavar="TEXT|FILE", multiple=True, help="Added to the prompt."),
    click.option(
        "--show-prompt", is_flag=False, flag_value="", metavar="[SECTION]", help="Print the system prompt and exit."
    ),
    click.option("-nc", "--no-context-files", is_flag=True, help="No AGENTS.md."),
    click.option("--skill", "skill_paths", type=_PATH, multiple=True, help="A skill: a folder or a file."),
    click.option("-ns", "--no-skills", is_flag=True, help="No skills but those of --skill."),
    click.option("--prompt-template", "template_paths", type=_PATH, multiple=True, help="A prompt template."),
    click.option("-np", "--no-prompt-templates", "no_templates", is_flag=True, help="No other templates."),
    click.option(
        "-e", "--extension", "plugin_files", type=click.Path(path_type=Path), multiple=True, help="A plugin file."
    ),
    click.option("-ne", "--no-extensions", "no_plugin_files", is_flag=True, help="No other plugin files."),
    click.option("-a/-na", "--approve/--no-approve", "trust", default=None, help="Trust the project, or do not."),
    click.option("--offline", is_flag=True, help="Look for nothing on the network but the model."),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of one answer."),
    click.option("--export", metavar="SESSION", type=_PATH, help="Write a session as HTML; PROMPT names the file."),
    click.option(
        "--trace-hooks",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Append a line of JSON to this file for every call of a plugin; pi trace show FILE reads it.",
    ),
)


def with_options(function: CommandT) -> CommandT:
    """Give a command the options of ``pi``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def session_options(given: dict[str, Any]) -> SessionOptions:
    """Return what the options of a command line ask a session for."""
    from pi_plugins.coding_agent import SessionOptions

    same = (
        "continue_last", "session", "session_id", "fork", "session_dir", "in_memory", "name", "model", "provider",
        "base_url", "api", "api_key", "thinking", "tools", "no_builtin_tools", "no_tools", "system_prompt",
        "append_system_prompt", "no_context_files", "skill_paths", "no_skills", "template_paths", "no_templates",
        "plugin_files", "no_plugin_files", "trust",
    )  # fmt: skip
    options = SessionOptions(**{name: given[name] for name in same})
    options.models = given["models"] or ()
    options.exclude_tools = given["exclude_tools"] or ()
    if given["max_tokens"] is not None:
        options.stream_options = StreamOptions(max_tokens=given["max_tokens"])
    return options
