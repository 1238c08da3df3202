"""A session in a file for people or other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pi_core import ConfigError

from ._html import to_html
from ._markdown import to_markdown
from .session import Session


def to_json(session: Session) -> str:
    """Return a session, all of its branches, as one JSON document."""
    document = {
        "session": session.header.to_json(),
        "name": session.name,
        "leafId": session.leaf_id,
        "stats": session.stats().to_json(),
        "entries": [entry.to_json() for entry in session.entries],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


FORMATS: Final[Mapping[str, Callable[[Session], str]]] = {"html": to_html, "md": to_markdown, "json": to_json}
"""What a session can be exported as, by the ending of the file's name."""


def export_session(source: Path, target: Path | None = None) -> Path:
    """Write what a session says into a file, whose ending says how: ``.html``, ``.md`` or ``.json``.

    :param source: the session file; another process may be writing it.
    :param target: the file, or a folder for it; by default a page of HTML in the current folder.
    :returns: the file that was written.
    :raises ConfigError: the source is no session, the ending is none of these, or the file cannot be written.
    """
    session = Session.open(source, read_only=True)
    name = f"pi-session-{source.stem}.html"
    path = Path(name) if target is None else target / name if target.is_dir() else target
    form = FORMATS.get(path.suffix.lower().removeprefix("."))
    if form is None:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise ConfigError(f"{path}: a session is exported to a file that ends in one of {endings}")
    text = form(session).encode("utf-8", "replace")
    from pi_plugins.config.json_file import replace_file

    try:
        replace_file(path, text)
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror or error}") from error
    return path
