"""Puts the settings together: defaults, the user's file, a trusted project's file, environment variables, overrides."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import paths
from .checking import Fault
from .environment import misspelt
from .json_text import JsonPath
from .keys import dotted, value_at
from .settings import ADDED_UP, Settings
from .sources import Source, editor_source, environment_source, file_source, override_source, project_source


@dataclass(frozen=True, slots=True)
class _Request:
    cwd: Path
    agent_dir: Path
    environ: Mapping[str, str] = field(repr=False)
    trusted: bool
    overrides: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and where they came from.

    :param origins: by the dotted path of a key, where its value came from; a key that is not there has its default.
    :param warnings: a sentence for each thing that is wrong and was not taken.
    :param unused: a sentence for each key that has a meaning in the TypeScript original only.
    """

    settings: Settings
    origins: Mapping[str, str]
    warnings: list[str]
    unused: list[str]
    _request: _Request = field(repr=False)
    _files: Mapping[Path, Source] = field(repr=False)

    def reload(self, *, trusted: bool | None = None) -> LoadedSettings:
        """Read the files again. One that cannot be read now counts as it did before, with a warning.

        :param trusted: whether the project is trusted now; as before by default.
        """
        request = self._request if trusted is None else replace(self._request, trusted=trusted)
        return _load(request, self._files)


def load_settings(
    cwd: Path,
    *,
    environ: Mapping[str, str] | None = None,
    trusted: bool = False,
    overrides: Mapping[str, Any] | None = None,
    agent_dir: Path | None = None,
) -> LoadedSettings:
    """Read the settings for a folder. What is wrong in them is left out, each with a warning.

    Later ones win: defaults, the user's file, the project's file, environment variables, overrides. Objects are merged;
    other values replace, but for lists of files, in which the project's come before the user's.

    :param cwd: the folder that the agent works in.
    :param environ: environment variables, the process's own by default.
    :param trusted: whether the project's file counts.
    :param overrides: values of this run, by dotted path.
    :param agent_dir: the agent's folder; as the environment says by default.
    :raises ConfigError: an override is wrong.
    """
    environ = os.environ if environ is None else environ
    folder = paths.agent_dir(environ) if agent_dir is None else agent_dir
    return _load(_Request(cwd, folder, environ, trusted, overrides or {}), {})


def _load(request: _Request, last: Mapping[Path, Source]) -> LoadedSettings:
    environ = request.environ
    user = paths.user_settings_file(request.agent_dir)
    project = paths.project_settings_file(request.cwd, request.agent_dir)
    files = {user: file_source(user, "user settings", environ, last.get(user))}
    if request.trusted and project is not None:
        files[project] = project_source(file_source(project, "project settings", environ, last.get(project)))
    sources = [
        editor_source(environ),
        *files.values(),
        environment_source(environ, request.cwd),
        override_source(request.overrides, environ, request.cwd),
    ]
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        _merge(merged, origins, source.values, source.origin)
    settings = Settings.model_validate(merged, by_alias=True, by_name=False)
    final = settings.model_dump(mode="json")
    warnings = [text for source in sources for text in source.warnings]
    warnings += [_said(source, fault, final) for source in sources for fault in source.faults]
    warnings += misspelt(environ)
    unused = [text for source in sources for text in source.unused]
    return LoadedSettings(settings, origins, warnings, unused, request, files)


def _said(source: Source, fault: Fault, final: Any) -> str:
    """Return a fault as a warning: where it is, what it is, and what counts in its place."""
    text = f"{source.place(fault.path)}: {fault}"
    if fault.kind == "unknown":
        return text
    if any(isinstance(part, int) for part in fault.path):
        return f"{text}; left out"
    try:
        used = value_at(final, fault.path)
    except LookupError:
        return f"{text}; left out"
    if isinstance(used, dict):
        return f"{text}; ignored"
    return f"{text}; using {'none' if used in (None, []) else used}"


def _merge(
    into: dict[str, Any],
    origins: dict[str, str],
    values: Mapping[str, Any],
    origin: Callable[[JsonPath], str],
    path: tuple[str, ...] = (),
) -> None:
    for key, value in values.items():
        here = (*path, key)
        name = dotted(here)
        if isinstance(value, dict) and isinstance(into.get(key, {}), dict):
            _merge(into.setdefault(key, {}), origins, value, origin, here)
        elif name in ADDED_UP and into.get(key):
            into[key] = [*value, *into[key]]
            origins[name] = f"{origin(here)}, then {origins[name]}"
        else:
            into[key] = copy.deepcopy(value)
            for old in [old for old in origins if old.startswith(f"{name}.")]:
                del origins[old]
            origins[name] = origin(here)


__all__ = ["LoadedSettings", "load_settings"]
