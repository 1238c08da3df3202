"""Copies text through the terminal, which works over ssh too (OSC 52)."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from typing import Final

from pi_core import ConfigError

_MOST_BYTES: Final = 75_000  # terminals take sequences of about 100,000 characters, which is this as base64


def copy_text(
    text: str, write: Callable[[str], object] | None = None, environ: Mapping[str, str] | None = None
) -> None:
    """Ask the terminal to put a text into its clipboard.

    :param write: writes to the terminal; the application that runs does by default.
    :param environ: environment variables, the process's own by default.
    :raises ConfigError: the text is too long for terminals, or there is no terminal.
    """
    data = text.encode("utf-8", "replace")
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"The text has {len(data):,} bytes, terminals take {_MOST_BYTES:,}: use /export instead")
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    if "TMUX" in (os.environ if environ is None else environ):
        inner = sequence.replace("\x1b", "\x1b\x1b")
        sequence = f"\x1bPtmux;{inner}\x1b\\"
    (write or _write)(sequence)


def _write(sequence: str) -> None:
    from prompt_toolkit.application.current import get_app_or_none

    app = get_app_or_none()
    if app is None:
        raise ConfigError("There is no terminal to copy with")
    app.output.write_raw(sequence)
    app.output.flush()


__all__ = ["copy_text"]
