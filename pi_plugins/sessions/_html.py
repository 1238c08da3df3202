"""A session as one page of HTML that loads nothing and runs nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from html import escape
from typing import Final

from pi_core import ImageContent

from .session import Session
from .transcript import Item, Part, items

_SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#ddd, #444); --soft: light-dark(#f5f5f5, #222); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
header, article { border-bottom: 1px solid var(--line); padding: 1rem 0; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: .9rem; margin: 0 0 .5rem; } h2 small { font-weight: normal; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 0 0; } dd { margin: 0; }
.user { background: var(--soft); padding: 1rem; } .note { padding: .25rem 0; opacity: .7; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
pre { background: var(--soft); padding: .75rem; font-size: .85rem; max-height: 30rem; overflow: auto; }
.error { color: light-dark(#a00, #f88); } img { max-width: 100%; } a { color: inherit; text-decoration: none; }
"""


def to_html(session: Session) -> str:
    """Return the present branch of a session as a page."""
    return "".join(_page(session))


def _page(session: Session) -> Iterator[str]:
    title = escape(session.name or f"Session {session.id}")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
    yield "style-src 'unsafe-inline'\">\n"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>\n"
    for term, text in _facts(session):
        yield f"<dt>{term}</dt><dd>{escape(text)}</dd>\n"
    yield "</dl>\n</header>\n"
    for item in items(session.path_to()):
        yield from _article(item, session.label_of(item.entry.id))
    yield "</body>\n</html>\n"


def _facts(session: Session) -> Iterator[tuple[str, str]]:
    stats = session.stats()
    yield "Id", session.id
    yield "Folder", session.cwd
    yield "Begun", session.header.timestamp
    yield "Messages", f"{stats.user_messages} of the user, {stats.assistant_messages} of models"
    yield "Tool calls", str(stats.tool_calls)
    yield "Tokens", f"{stats.input} in, {stats.output} out, {stats.cache_read} from the cache"
    yield "Cost", f"${stats.cost:.4f}"


def _article(item: Item, label: str | None) -> Iterator[str]:
    anchor = escape(f"e-{item.entry.id}", quote=True)
    yield f'<article class="{escape(item.kind)}" id="{anchor}">\n<h2><a href="#{anchor}">{escape(item.title)}</a> '
    yield f"<small>{escape(item.entry.timestamp)}</small>{f' [{escape(label)}]' if label else ''}</h2>\n"
    for part in item.parts:
        yield _part(part)
    yield "</article>\n"


def _part(part: Part) -> str:
    text = escape(part.text)
    if part.kind == "image" and part.image is not None:
        return _image(part.image)
    if part.kind == "thinking":
        return f'<details><summary>Thinking</summary><div class="text">{text}</div></details>\n'
    if part.kind == "text":
        return f'<div class="text">{text}</div>\n'
    return f'<pre class="{part.kind}">{text}</pre>\n'


def _image(image: ImageContent) -> str:
    try:
        base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return "<p>(an image that is no base64)</p>\n"
    if image.mime_type not in _SHOWN or re.search(r"[^A-Za-z0-9+/=]", image.data):
        return f"<p>(an image of type {escape(image.mime_type)})</p>\n"
    return f'<img alt="image" src="data:{image.mime_type};base64,{image.data}">\n'
