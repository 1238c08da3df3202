"""Where sessions are, and how one is found again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from pi_core import ConfigError

from ._lines import first_record
from .entries import SessionHeader

if TYPE_CHECKING:
    from pi_plugins.config.settings import Settings


def sessions_dir(cwd: Path, settings: Settings | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of all sessions.

    :param cwd: what a relative ``sessionDir`` starts from.
    :param settings: settings of which those of a project that is not trusted are no part.
    :param environ: the environment; that of the process if absent.
    """
    from pi_plugins.config.paths import agent_dir, expand

    named = (os.environ if environ is None else environ).get("PI_CODING_AGENT_SESSION_DIR")
    chosen = named or (None if settings is None else settings.session_dir)
    return expand(chosen, cwd, environ) if chosen else agent_dir(environ) / "sessions"


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


def latest_session(cwd: Path | str, directory: Path) -> SessionRef | None:
    """Return the session of a folder that was written last."""
    return next(iter(refs(directory, cwd)), None)


def find_session(text: str, cwd: Path, directory: Path) -> SessionRef:
    """Return the session that a user means.

    :param text: the path of a session file, or the beginning of an id.
    :param cwd: sessions of this folder come first, and relative paths start here.
    :param directory: the folder of all sessions.
    :raises ConfigError: there is none, or the beginning fits several.
    """
    path = cwd / Path(text).expanduser()
    if "/" in text or os.sep in text or text.endswith(".jsonl") or path.is_file():
        ref = ref_of(path)
        if ref is None:
            what = "is no session file" if path.exists() else "does not exist"
            raise ConfigError(f"{path} {what}")
        return ref
    for found in _by_id(text, cwd, directory):
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(sorted(ref.id for ref in found)[:5])
            raise ConfigError(f"{len(found)} sessions have an id that begins with {text!r}: {ids}. Type more of it")
    raise ConfigError(f"No session has an id that begins with {text!r}. The sessions there are: pi sessions list --all")


def _by_id(text: str, cwd: Path, directory: Path) -> Iterator[list[SessionRef]]:
    for where in (cwd, None):
        found = [ref for ref in refs(directory, where) if text and ref.id.lower().startswith(text.lower())]
        exact = [ref for ref in found if ref.id == text]
        yield exact if len(exact) == 1 else found
