"""The places that settings come from: files, environment variables, the command line; and what is right in each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pi_core import ConfigError

from .checking import Fault, check
from .environment import editor, variables
from .json_file import read_document
from .json_text import JsonDocument, JsonPath
from .keys import dotted, split_key
from .migrations import migrate
from .paths import expand
from .settings import ADDED_UP, ELSEWHERE, GLOBAL_ONLY


@dataclass(frozen=True, slots=True)
class Source:
    """What one place says.

    :param values: nested, as JSON has them; only what is right.
    :param place: tells where the value of a path is, for messages.
    :param origin: the same, with the kind of the place.
    :param faults: what is wrong in it.
    :param warnings: a sentence for each other thing that is wrong.
    :param unused: a sentence for each key that has a meaning in the TypeScript original only.
    :param unread: whether it is a file that could not be read so far.
    """

    values: Mapping[str, Any]
    place: Callable[[JsonPath], str]
    origin: Callable[[JsonPath], str]
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    unread: bool = False


def file_source(path: Path, kind: str, environ: Mapping[str, str], last: Source | None = None) -> Source:
    """Read a settings file. One that cannot be read counts as it was last read, or as empty, with a warning.

    :param kind: how messages name it.
    """
    try:
        document = read_document(path)
        if document is not None and not isinstance(document.value, dict):
            raise ConfigError(f"{document.place()}: expected an object: {{...}}")
    except ConfigError as error:
        if last is None or last.unread:
            return Source({}, str, str, warnings=(f"{error}; the {kind} do not count",), unread=True)
        return replace(last, warnings=(f"{error}; the {kind} count as they were read before",))
    if document is None:
        return Source({}, str, str)
    return _document_source(document, kind, environ)


def project_source(source: Source) -> Source:
    """Leave out of a project's settings what only the user can set."""
    refused = [key for key in source.values if key in GLOBAL_ONLY]
    warnings = tuple(f"{source.place((key,))}: '{key}' counts in the user's settings only; ignored" for key in refused)
    values = {key: value for key, value in source.values.items() if key not in GLOBAL_ONLY}
    return replace(source, values=values, warnings=(*source.warnings, *warnings))


def editor_source(environ: Mapping[str, str]) -> Source:
    """Return the user's editor, which counts when no setting names one."""
    found = editor(environ)
    if found is None:
        return Source({}, str, str)
    name, command = found
    return Source({"externalEditor": command}, str, lambda at: f"environment {name}")


def environment_source(environ: Mapping[str, str], cwd: Path) -> Source:
    """Read the environment variables."""
    values: dict[str, Any] = {}
    names: dict[JsonPath, str] = {}
    faults = []
    for name, path, value, fault in variables(environ):
        names[path] = name
        if fault is not None:
            faults.append(fault)
        else:
            _put(values, path, value)
    _anchor(values, cwd, environ)

    def origin(at: JsonPath) -> str:
        return f"environment {next(names[at[:length]] for length in range(len(at), 0, -1) if at[:length] in names)}"

    return Source(values, origin, origin, tuple(faults))


def override_source(overrides: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> Source:
    """Check values given for this run.

    :param overrides: by dotted path.
    :raises ConfigError: one is wrong.
    """
    values: dict[str, Any] = {}
    for key, value in overrides.items():
        try:
            path = split_key(key)
        except ConfigError as error:
            raise ConfigError(f"command line: {error}") from None
        _put(values, path, value)
    values, faults = check(values)
    if faults:
        raise ConfigError(f"command line: {faults[0]}")
    _anchor(values, cwd, environ)
    return Source(values, str, lambda at: "command line")


def _document_source(document: JsonDocument, kind: str, environ: Mapping[str, str]) -> Source:
    twice = tuple(
        f"{document.place(at)}: the key '{dotted(at)}' is there twice ({lines}); using the last"
        for at, lines in document.duplicates()
    )
    unused = tuple(
        f"{document.place((key,))}: '{key}' is a setting of the TypeScript original and has no effect here"
        for key in sorted(ELSEWHERE & document.value.keys())
    )
    data = {key: copy.deepcopy(value) for key, value in document.value.items() if key not in ELSEWHERE}
    moved = migrate(data)

    def place(at: JsonPath) -> str:
        for length in range(len(at), 0, -1):
            if at[:length] in moved:
                return document.place((*moved[at[:length]], *at[length:]))
        return document.place(at)

    values, faults = check(data)
    _anchor(values, document.path.parent, environ)
    return Source(values, place, lambda at: f"{kind} {place(at)}", tuple(faults), twice, unused)


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        values = values.setdefault(part, {})
    values[path[-1]] = value


def _anchor(values: dict[str, Any], base: Path, environ: Mapping[str, str]) -> None:
    """Make the entries of lists of files absolute. A filter without a slash goes by name and stays as it is."""
    for key in ADDED_UP & values.keys():
        values[key] = [_anchored(entry, base, environ) for entry in values[key]]


def _anchored(entry: str, base: Path, environ: Mapping[str, str]) -> str:
    sign = entry[:1] if entry[:1] in ("!", "+", "-") else ""
    path = entry[len(sign) :]
    return entry if not path or (sign and "/" not in path) else f"{sign}{expand(path, base, environ)}"


__all__ = ["Source", "editor_source", "environment_source", "file_source", "override_source", "project_source"]
