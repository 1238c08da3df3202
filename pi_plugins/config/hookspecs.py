"""The hook that decides whether a project is trusted."""

from __future__ import annotations

from pathlib import Path

from pi_core import Kind, hookspec


@hookspec(Kind.FIRST)
async def project_trust(cwd: Path) -> bool | None:
    """Called before the configuration and the plugins of a project are used, when no flag decides.

    :param cwd: the project's folder.
    :returns: whether it is trusted for this run; ``None`` leaves it to the saved decisions and the settings.
    """
