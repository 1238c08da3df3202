"""The runtimes that a process shares: one for each folder of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pi_core import StashKey
from pi_plugins.config import agent_dir

from .runtime import ModelRuntime

_RUNTIMES: Final[dict[Path, ModelRuntime]] = {}

RUNTIME: Final[StashKey[ModelRuntime]] = StashKey("model runtime")
"""The runtime of a run, for an application whose agents have different ones: set it when a run starts."""


def shared_runtime(environ: Mapping[str, str] | None = None) -> ModelRuntime:
    """Return the runtime for the agent's folder that the environment names; made at the first call.

    The plugin ``models`` of every build asks it, unless it was made with one of its own.

    :param environ: environment variables, the process's own by default.
    """
    folder = agent_dir(environ)
    if folder not in _RUNTIMES:
        _RUNTIMES[folder] = ModelRuntime(agent_dir=folder)
    return _RUNTIMES[folder]


def share_runtime(runtime: ModelRuntime) -> None:
    """Make a runtime the one that :func:`shared_runtime` returns for its folder.

    An application that trusts a project, or has read the settings, does so before its first request.
    """
    _RUNTIMES[runtime.agent_dir] = runtime
