"""What a session is asked for, by a command line or an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pi_core import StreamOptions, ThinkingLevel

from .inputs import InputSource


@dataclass(slots=True, kw_only=True)
class SessionOptions:
    """What a session is made with; everything has a default.

    :param cwd: the folder it works in; the process's own by default.
    :param agent_dir: where configuration and sessions are; ``PI_CODING_AGENT_DIR`` or ``~/.pi/agent`` by default.
    :param model: a name or pattern; the session's last model, else what the settings and credentials lead to.
    :param models: patterns of the models that cycling goes through.
    :param api_key: a key for this run, for the provider of the model.
    :param tools: names and patterns, or changes (``+name``, ``-name``).
    :param system_prompt: replaces the default prompt.
    :param continue_last: go on with the latest session of the folder.
    :param session: a session file, or the beginning of an id, to go on with.
    :param session_id: the id of a session to go on with, or to make.
    :param fork: a session file or id to copy into a new session.
    :param session_dir: where sessions are kept for this run.
    :param in_memory: keep nothing on disk.
    :param plugin_files: plugins that are files.
    :param trust: use the project's configuration, or do not; the saved decisions by default.
    :param overrides: settings for this run, by dotted path.
    """

    cwd: Path | None = None
    agent_dir: Path | None = None
    environ: Mapping[str, str] | None = None
    source: InputSource = "plugin"
    provider: str | None = None
    model: str | None = None
    models: Sequence[str] = ()
    base_url: str | None = None
    api: str | None = None
    api_key: str | None = field(default=None, repr=False)
    thinking: ThinkingLevel | None = None
    tools: Sequence[str] | None = None
    exclude_tools: Sequence[str] = ()
    no_tools: bool = False
    no_builtin_tools: bool = False
    system_prompt: str | None = None
    append_system_prompt: Sequence[str] = ()
    continue_last: bool = False
    session: str | None = None
    session_id: str | None = None
    fork: str | None = None
    session_dir: Path | None = None
    in_memory: bool = False
    name: str | None = None
    plugin_files: Sequence[Path] = ()
    no_plugin_files: bool = False
    skill_paths: Sequence[Path] = ()
    no_skills: bool = False
    template_paths: Sequence[Path] = ()
    no_templates: bool = False
    no_context_files: bool = False
    trust: bool | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    stream_options: StreamOptions | None = None
