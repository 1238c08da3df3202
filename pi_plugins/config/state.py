"""What the programs of the framework remember and no user sets: ids, the last version that was seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import paths
from .json_file import PRIVATE, LockedJson


def state_file(*, environ: Mapping[str, str] | None = None, agent_dir: Path | None = None) -> LockedJson:
    """Return the file of the state, ``state.json`` in the agent's folder.

    :param environ: environment variables, the process's own by default.
    :param agent_dir: the agent's folder; as the environment says by default.
    """
    folder = paths.agent_dir(environ) if agent_dir is None else agent_dir
    return LockedJson(folder / paths.STATE_FILE, mode=PRIVATE)


__all__ = ["state_file"]
