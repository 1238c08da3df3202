"""Where sessions are, and how one is found again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from pydantic import ValidationError

from pi_core import ConfigError

from ._lines import first_record
from .entries import SessionHeader

if TYPE_CHECKING:
    from pi_plugins.config.settings import Settings


def sessions_dir(
    cwd: Path,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    agent_dir: Path | None = None,
    directory: Path | str | None = None,
) -> Path:
    """Return the folder of all sessions.

    The first of these that is there: ``directory``, ``PI_CODING_AGENT_SESSION_DIR``, ``sessionDir`` of the settings,
    the folder ``sessions`` of the agent's folder.

    :param cwd: what relative paths start from.
    :param settings: settings of which those of a project that is not trusted are no part.
    :param environ: the environment; that of the process if absent.
    :param agent_dir: the agent's folder; that of the environment if absent.
    :param directory: what the command line names.
    """
    from pi_plugins.config import paths

    named = (os.environ if environ is None else environ).get("PI_CODING_AGENT_SESSION_DIR")
    chosen = directory or named or (None if settings is None else settings.session_dir)
    if chosen:
        return paths.expand(str(chosen), cwd, environ)
    return (agent_dir or paths.agent_dir(environ)) / "sessions"


def project_folder(directory: Path, cwd: Path | str) -> Path:
    """Return the folder of the sessions that work in ``cwd``.

    :param directory: the folder of all sessions.
    """
    text = str(cwd)
    name = text[1:] if text.startswith(("/", "\\")) else text
    return directory / f"--{name.translate(str.maketrans('/:', '--')).replace(chr(92), '-')}--"


def session_file(directory: Path, header: SessionHeader) -> Path:
    """Return where the file of a session belongs; its name begins with the time, so that names sort by age."""
    time = header.timestamp.replace(":", "-").replace(".", "-")
    return project_folder(directory, header.cwd) / f"{time}_{header.id}.jsonl"


@dataclass(frozen=True, slots=True)
class SessionRef:
    """A session file and its header.

    :param modified: when something was last written to it, in nanoseconds since 1970.
    """

    path: Path
    header: SessionHeader
    modified: int

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.header.id


def refs(directory: Path, cwd: Path | str | None = None) -> list[SessionRef]:
    """Return the sessions there are, the one written last first; files that are no sessions are left out.

    :param directory: the folder of all sessions.
    :param cwd: only those that work in this folder.
    """
    folders = [directory] if cwd is None else [directory, project_folder(directory, cwd)]
    paths = [path for folder in folders for path in folder.glob("*.jsonl")]
    paths += directory.glob("*/*.jsonl") if cwd is None else ()
    found = [ref for ref in map(ref_of, paths) if ref is not None and (cwd is None or ref.header.cwd == str(cwd))]
    return sorted(found, key=lambda ref: (ref.modified, ref.path.name), reverse=True)


def ref_of(path: Path) -> SessionRef | None:
    """Return the header of a session file; ``None`` if it is none."""
    try:
        with path.open("rb") as file:
            record = first_record(file.readline())
            modified = os.fstat(file.fileno()).st_mtime_ns
        if record is None or record.get("type") != "session":
            return None
        return SessionRef(path, header_of(record, path), modified)
    except (OSError, ValidationError):
        return None


def header_of(record: Mapping[str, object], path: Path) -> SessionHeader:
    """Return the header in the first record of a file; version 1 of the format had no number.

    :raises pydantic.ValidationError: a field is wrong.
    """
    return SessionHeader.model_validate({"version": 1, "id": path.stem.rpartition("_")[2], **record})


def latest_session(cwd: Path | str, directory: Path) -> Path | None:
    """Return the session of a folder that was written last."""
    return next((ref.path for ref in refs(directory, cwd)), None)


@overload
def find_session(text: str, cwd: Path, directory: Path, *, exact: bool = False) -> Path: ...


@overload
def find_session(
    text: str, cwd: Path, directory: Path, *, exact: bool = False, missing_ok: Literal[True]
) -> Path | None: ...


def find_session(
    text: str, cwd: Path, directory: Path, *, exact: bool = False, missing_ok: bool = False
) -> Path | None:
    """Return the session file that a user means.

    :param text: the path of a session file, or the beginning of an id.
    :param cwd: sessions of this folder come first, and relative paths start here.
    :param directory: the folder of all sessions.
    :param exact: only a whole id of a session of ``cwd`` counts.
    :param missing_ok: return ``None`` when there is no such session.
    :raises ConfigError: there is none, or the beginning fits several.
    """
    if exact:
        found = [ref for ref in refs(directory, cwd) if ref.id == text][:1]
    elif "/" in text or os.sep in text or text.endswith(".jsonl"):
        return _at(cwd / Path(text).expanduser())
    else:
        found = _by_beginning(text, refs(directory, cwd)) or _by_beginning(text, refs(directory))
    if len(found) == 1:
        return found[0].path
    if found:
        ids = ", ".join(sorted(ref.id for ref in found)[:5])
        raise ConfigError(f"{len(found)} sessions have an id that begins with {text!r}: {ids}. Type more of it")
    if missing_ok:
        return None
    what = "the id" if exact else "an id that begins with"
    raise ConfigError(f"No session has {what} {text!r}. Those there are: pi sessions list --all")


def _at(path: Path) -> Path:
    if ref_of(path) is None:
        raise ConfigError(f"{path} {'is no session file' if path.exists() else 'does not exist'}")
    return path


def _by_beginning(text: str, among: list[SessionRef]) -> list[SessionRef]:
    exact = [ref for ref in among if ref.id == text]
    if len(exact) == 1:
        return exact
    return [ref for ref in among if text and ref.id.lower().startswith(text.lower())]
