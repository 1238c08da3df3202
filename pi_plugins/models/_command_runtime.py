"""The runtime that a command of ``pi`` asks: with the models of the project, when the project is trusted."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pi_plugins.config import current_dir, project_dir

from .models_json import MODELS_FILE
from .runtime import ModelRuntime


def command_runtime() -> ModelRuntime:
    """Return the runtime for the current directory. What of the project is left out is said on standard error.

    :raises ConfigError: the current directory is gone, or the saved decisions about trust cannot be read.
    """
    cwd = current_dir()
    return ModelRuntime(cwd=cwd, trusted=_is_trusted(cwd))


def _is_trusted(cwd: Path) -> bool:
    """Whether the project's own models count. Without any nobody has to decide."""
    if not os.path.exists(project_dir(cwd) / MODELS_FILE):
        return False
    import asyncio

    from pi_plugins.config import decide_trust, load_settings

    context = click.get_current_context(silent=True)
    hooks = getattr(context and context.obj, "hooks", None)  # of the build, when the command was given one
    trust = asyncio.run(decide_trust(cwd, settings=load_settings(cwd).settings, hooks=hooks))
    if trust.notice:
        click.echo(f"pi: {trust.notice}", err=True)
    return trust.trusted
