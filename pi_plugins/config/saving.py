"""Writes single settings, so that no other key of the file changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pi_core import ConfigError

from . import paths
from .checking import check
from .json_file import PRIVATE, LockedJson
from .keys import dotted, split_key, value_at
from .settings import GLOBAL_ONLY
from .typing_in import nested

Scope: TypeAlias = Literal["user", "project"]
"""Whose settings: the user's own, or those of the project."""


def save_setting(
    key: str,
    value: Any,
    *,
    scope: Scope = "user",
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    trusted: bool = False,
    agent_dir: Path | None = None,
) -> Path:
    """Write one setting and return the file. What other processes write meanwhile stays.

    :param key: the dotted path.
    :param value: as JSON has it.
    :param scope: whose settings.
    :param cwd: the project's folder; the current one by default.
    :param environ: environment variables, the process's own by default.
    :param trusted: whether the project is trusted; without that its settings are not written.
    :param agent_dir: the agent's folder; as the environment says by default.
    :raises ConfigError: there is no such setting, the value or the scope is wrong for it, or the file cannot be read.
    """
    path = split_key(key)
    _, faults = check(nested(path, value))
    if faults:
        raise ConfigError(str(faults[0]))
    file = _file(path, scope, cwd, environ, trusted, agent_dir)

    def change(settings: dict[str, Any]) -> None:
        for depth, part in enumerate(path[:-1], 1):
            settings = settings.setdefault(part, {})
            if not isinstance(settings, dict):
                raise ConfigError(f"{file.path}: '{dotted(path[:depth])}' is no object; correct it first")
        settings[path[-1]] = value

    file.update(change)
    return file.path


def remove_setting(
    key: str,
    *,
    scope: Scope = "user",
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    trusted: bool = False,
    agent_dir: Path | None = None,
) -> tuple[Path, bool]:
    """Take one setting out of a file, so that its default or another place counts again.

    :returns: the file, and whether it was there.
    :raises ConfigError: there is no such setting, its scope is wrong, or the file cannot be read.
    """
    path = split_key(key)

    def change(settings: dict[str, Any]) -> bool:
        try:
            value_at(settings, path)
        except (LookupError, TypeError):
            return False
        for length in range(len(path), 0, -1):
            holder = value_at(settings, path[: length - 1])
            if length == len(path) or holder[path[length - 1]] == {}:
                del holder[path[length - 1]]
        return True

    file = _file(path, scope, cwd, environ, trusted, agent_dir)
    return file.path, file.update(change)


def _file(
    path: tuple[str, ...],
    scope: Scope,
    cwd: Path | None,
    environ: Mapping[str, str] | None,
    trusted: bool,
    agent_dir: Path | None,
) -> LockedJson:
    folder = paths.agent_dir(os.environ if environ is None else environ) if agent_dir is None else agent_dir
    if scope == "user":
        return LockedJson(paths.user_settings_file(folder), mode=PRIVATE)
    if path[0] in GLOBAL_ONLY:
        raise ConfigError(f"'{path[0]}' counts in the user's settings only; set it there")
    file = paths.project_settings_file(paths.current_dir() if cwd is None else cwd, folder)
    if file is None:
        raise ConfigError(f"the configuration of {folder} is the user's own; it has no project settings")
    if not trusted:
        raise ConfigError(f"{file} is not written: the project is not trusted. Trust it with: pi config trust")
    return LockedJson(file)


__all__ = ["Scope", "remove_setting", "save_setting"]
