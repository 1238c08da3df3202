"""The head and the body of a request, and what of the options decides about both."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pi_core import ImageContent, Message, Model, StreamOptions, UserMessage

from ._errors import ResponseError, exception_text
from ._text import clean


def encode_json(payload: Any) -> bytes:
    """Return the bytes of a JSON body.

    :raises ResponseError: the payload holds something JSON cannot say.
    """
    import json

    try:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResponseError(f"The request body is not JSON: {exception_text(error)}") from error
    return clean(text).encode()


def merge_headers(*layers: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return headers by lower-case name, of which a later layer wins; ``None`` as a value stays and removes one."""
    merged: dict[str, str | None] = {}
    for layer in layers:
        for name, value in (layer or {}).items():
            merged[name.lower()] = value
    return merged


def check_headers(headers: Mapping[str, str | None]) -> dict[str, str]:
    """Return the headers to send: those with a value.

    :raises ResponseError: a value has a character that HTTP does not allow; the text names the header, not the value.
    """
    checked = {}
    for name, value in headers.items():
        if value is None:
            continue
        text = str(value).strip()
        at = next((at for at, char in enumerate(text) if not (char == "\t" or " " <= char <= "~")), None)
        if at is not None:
            raise ResponseError(
                f"The header {name!r} has a character that HTTP does not allow at position {at + 1}. "
                "Check where its value comes from."
            )
        checked[name] = text
    return checked


def api_address(model: Model) -> str:
    """Return the address of a model's API without a slash at its end.

    :raises ResponseError: the model has none.
    """
    if not model.base_url.startswith(("http://", "https://")):
        raise ResponseError(
            f"Model {model.provider}/{model.id} has the base URL {model.base_url!r}; "
            "it has to begin with http:// or https://"
        )
    return model.base_url.rstrip("/")


def host_of(url: str) -> str:
    """Return the host and port of an address; an empty text when it is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine."""
    host = host_of(url)
    host = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    return host in ("localhost", "::1", "0.0.0.0") or host.endswith(".localhost") or host.startswith("127.")


def environment(name: str, options: StreamOptions) -> str | None:
    """Return an environment variable: the request's own environment wins, an empty value counts as none."""
    return (options.env or {}).get(name) or os.environ.get(name) or None


def cache_retention(options: StreamOptions) -> str:
    """Return how long prompts shall stay cached: ``none``, ``short`` or ``long``."""
    if options.cache_retention is not None:
        return options.cache_retention
    return "long" if environment("PI_CACHE_RETENTION", options) == "long" else "short"


def default_headers() -> dict[str, str | None]:
    """Return the headers every request has unless a later layer replaces them."""
    return {"accept": "application/json", "content-type": "application/json", "user-agent": _user_agent()}


def copilot_headers(messages: Sequence[Message]) -> dict[str, str | None]:
    """Return what GitHub Copilot wants to know about a request: who asks, and whether there are images."""
    asked_by_user = bool(messages) and isinstance(messages[-1], UserMessage)
    headers: dict[str, str | None] = {
        "x-initiator": "user" if asked_by_user else "agent",
        "openai-intent": "conversation-edits",
    }
    if any(not isinstance(m.content, str) and any(isinstance(b, ImageContent) for b in m.content) for m in messages):
        headers["copilot-vision-request"] = "true"
    return headers


@lru_cache(1)
def _user_agent() -> str:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("pi-agent-framework")
    except PackageNotFoundError:
        own = "dev"
    return f"pi/{own} ({sys.platform}; python {platform.python_version()}; {platform.machine()})"
