"""A session as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ._fences import fenced
from .session import Session
from .transcript import Part, items


def to_markdown(session: Session) -> str:
    """Return the present branch of a session as Markdown."""
    return "\n".join(_lines(session)) + "\n"


def _lines(session: Session) -> Iterator[str]:
    yield f"# {' '.join((session.name or f'Session {session.id}').split())}"
    yield ""
    yield f"Session {session.id} in {session.cwd}, begun {session.header.timestamp}."
    for item in items(session.path_to()):
        label = session.label_of(item.entry.id)
        yield ""
        yield f"## {' '.join(item.title.split())}{f' [{label}]' if label else ''}"
        for part in item.parts:
            yield ""
            yield _part(part)


def _part(part: Part) -> str:
    if part.kind == "image":
        return f"(an image of type {part.text})"
    if part.kind == "thinking":
        return "\n".join(f"> {line}" for line in part.text.splitlines())
    if part.kind == "text":
        return part.text
    return fenced(part.text)
