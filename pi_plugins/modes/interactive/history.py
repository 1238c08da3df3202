"""What the user typed in earlier sessions, kept in a file of the agent's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from pi_plugins.config import replace_file
from pi_plugins.config.json_file import PRIVATE
from pi_plugins.config.secrets import without_secrets

from .api_keys import looks_like_key

HISTORY_FILE: Final = "input-history.jsonl"

_MOST_INPUTS: Final = 1000
_MOST_BYTES: Final = 2 * 1024 * 1024
_LONGEST: Final = 32 * 1024
_WAIT_SECONDS: Final = 2.0


class InputHistory(History):
    """Inputs of all sessions, the newest first when they are looked through.

    A file that cannot be used leaves the history to this process. What holds a secret is kept nowhere, what is very
    long only in memory.

    :param path: the file, one JSON string a line.
    :param tell: called once with why the file cannot be used.
    """

    def __init__(self, path: Path, tell: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.path = path
        self._tell = tell

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, the newest first."""
        return reversed(_distinct(self._read()))

    def append_string(self, string: str) -> None:
        """Keep an input, unless it holds a secret or is the same as the one before."""
        if not string.strip() or holds_secret(string):
            return
        newest = self._loaded_strings[0] if self._loaded_strings else None
        if string != newest:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Write an input to the file."""
        if len(string) > _LONGEST:
            return
        from filelock import FileLock, Timeout

        line = f"{json.dumps(string, ensure_ascii=False)}\n".encode("utf-8", "replace")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_WAIT_SECONDS):
                descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
                with open(descriptor, "ab") as file:
                    file.write(line)
                    full = file.tell() > _MOST_BYTES
                if full:
                    self._shorten()
        except (OSError, Timeout) as error:
            self._failed("written", error)

    def _shorten(self) -> None:
        """Keep the newest inputs that fill half of the file; called under its lock."""
        lines: list[bytes] = []
        size = 0
        for text in reversed(_distinct(self._read())[-_MOST_INPUTS:]):
            line = f"{json.dumps(text, ensure_ascii=False)}\n".encode("utf-8", "replace")
            size += len(line)
            if size > _MOST_BYTES // 2:
                break
            lines.append(line)
        replace_file(self.path, b"".join(reversed(lines)), mode=PRIVATE)

    def _read(self) -> list[str]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            self._failed("read", error)
            return []
        return [text for line in data.split(b"\n") if (text := _text(line))]

    def _failed(self, what: str, error: OSError) -> None:
        if self._tell is not None:
            self._tell(f"What you type is kept for this session only: {self.path} cannot be {what} ({error})")
            self._tell = None


def history_path(agent_dir: Path) -> Path:
    """Return the file of what was typed."""
    return agent_dir / HISTORY_FILE


def holds_secret(text: str) -> bool:
    """Whether a text must not be kept: it logs in, or a part of it looks like a key."""
    if text.lstrip().startswith("/login"):
        return True
    return without_secrets(text) != text or any(map(looks_like_key, text.split()))


def _text(line: bytes) -> str:
    """The input of a line; an empty one when the line is damaged."""
    try:
        value = json.loads(line) if line.strip() else ""
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _distinct(texts: list[str]) -> list[str]:
    """Each text once, where it was typed last."""
    return list(reversed(dict.fromkeys(reversed(texts))))


__all__ = ["HISTORY_FILE", "InputHistory", "history_path", "holds_secret"]
