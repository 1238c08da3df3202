"""The options of ``pi``, and the session that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pi_core import StreamOptions, ThinkingLevel

if TYPE_CHECKING:
    from pi_plugins.coding_agent import SessionOptions

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PATH = click.Path(exists=True, path_type=Path)


class _Option(click.Option):
    """An option with a heading of the help text that it stands under."""

    def __init__(self, *arguments: Any, heading: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.heading = heading


def _under(heading: str) -> Callable[..., Callable[[CommandT], CommandT]]:
    """What makes options that stand under a heading."""
    return partial(click.option, cls=_Option, heading=heading)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_run, _model, _tools = _under("What runs"), _under("Model"), _under("Tools")
_session, _prompt, _plugins = _under("Session"), _under("System prompt"), _under("Project and plugins")
_OPTIONS = (
    click.argument("words", nargs=-1, metavar="[@FILE]... [PROMPT]..."),
    _run("-p", "--print", "print_mode", is_flag=True, help="Run the prompts, print the last answer, exit."),
    _run(
        "--mode",
        type=click.Choice(["text", "json", "rpc"]),
        default="text",
        help="json: print events as JSON lines. rpc: take commands as JSON lines, too.",
    ),
    _run("--list-models", is_flag=False, flag_value="", metavar="[SEARCH]", help="List models and exit."),
    _run("--show-prompt", is_flag=False, flag_value="", metavar="[SECTION]", help="Print the system prompt and exit."),
    _run("--export", metavar="SESSION", type=_PATH, help="Write a session as HTML; PROMPT names the file."),
    _model(
        "--model", metavar="MODEL", help="provider/id, an id, or a part of one; MODEL:LEVEL sets the thinking, too."
    ),
    _model("--thinking", type=click.Choice(get_args(ThinkingLevel)), help="How much to think; clamped to the model."),
    _model("--provider", metavar="NAME", help="Look for --model at this provider only."),
    _model("--models", metavar="PATTERN,...", type=_names, help="The models to choose from and to cycle through."),
    _model("--base-url", metavar="URL", help="Address of a server, such as http://127.0.0.1:8080/v1."),
    _model("--api", metavar="NAME", help="Wire protocol of --base-url; openai-completions if absent."),
    _model("--api-key", metavar="KEY", help="Key for this run; needs --model."),
    _model("--max-tokens", metavar="N", type=click.IntRange(min=1), help="Most tokens of one answer."),
    _tools("-t", "--tools", metavar="NAME,...", type=_names, help="Tools to offer, or changes: +grep,-write."),
    _tools("-xt", "--exclude-tools", metavar="NAME,...", type=_names, help="Tools to leave out in any case."),
    _tools("-nbt", "--no-builtin-tools", is_flag=True, help="Only tools of installed plugins."),
    _tools("-nt", "--no-tools", is_flag=True, help="No tools."),
    _session("-c", "--continue", "continue_last", is_flag=True, help="Go on with the latest session of the folder."),
    _session("-r", "--resume", is_flag=True, help="Choose the session to go on with."),
    _session("--session", metavar="FILE|ID", help="Go on with this session."),
    _session("--session-id", metavar="ID", help="Go on with the session of this id, or make it."),
    _session("--fork", metavar="FILE|ID", help="Go on in a copy of this session."),
    _session("--session-dir", metavar="FOLDER", type=_FOLDER, help="Where sessions are kept for this run."),
    _session("--no-session", "in_memory", is_flag=True, help="Keep nothing on disk."),
    _session("-n", "--name", metavar="NAME", help="Name of the session for people."),
    _prompt("--system-prompt", metavar="TEXT|FILE", help="Replaces the default prompt."),
    _prompt("--append-system-prompt", metavar="TEXT|FILE", multiple=True, help="Added to the prompt."),
    _prompt("-nc", "--no-context-files", is_flag=True, help="No AGENTS.md."),
    _prompt("--skill", "skill_paths", type=_PATH, multiple=True, help="A skill: a folder or a file."),
    _prompt("-ns", "--no-skills", is_flag=True, help="No skills but those of --skill."),
    _prompt("--prompt-template", "template_paths", type=_PATH, multiple=True, help="A prompt template."),
    _prompt("-np", "--no-prompt-templates", "no_templates", is_flag=True, help="No other prompt templates."),
    _plugins("-a/-na", "--approve/--no-approve", "trust", default=None, help="Trust the project, or do not."),
    _plugins(
        "-e", "--extension", "plugin_files", type=click.Path(path_type=Path), multiple=True, help="A plugin file."
    ),
    _plugins("-ne", "--no-extensions", "no_plugin_files", is_flag=True, help="No other plugin files."),
    _plugins("--offline", is_flag=True, help="Look for nothing on the network but the model."),
    _plugins(
        "--trace-hooks",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Append a line of JSON for every call of a plugin; pi trace show FILE reads it.",
    ),
)


def with_options(function: CommandT) -> CommandT:
    """Give a command the options of ``pi``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the help of a command's options under their headings."""
    options = (option for option in command.params if isinstance(option, _Option))
    for heading, group in groupby(options, lambda option: option.heading):
        with formatter.section(heading):
            formatter.write_dl([record for record in (option.get_help_record(ctx) for option in group) if record])


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
