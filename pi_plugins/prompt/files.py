"""Reads the text files that go into prompts: their encoding, their size, and what is wrong with them."""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_core import ConfigError

MAX_BYTES: Final = 64 * 1024
"""Most bytes of one file that a model is told; what is left out is said at the end of the text."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A text for the model and the file it comes from.

    :param text: what the model is told, with the notice of what was left out.
    :param size: bytes of the whole file.
    """

    path: Path
    text: str
    size: int

    @property
    def cut(self) -> bool:
        """Whether a part of the file was left out."""
        return self.size > MAX_BYTES


def read_file(path: Path) -> PromptFile:
    """Read a text file, in UTF-8 or in UTF-16 with a byte order mark.

    :raises ConfigError: it cannot be read, or is no text.
    """
    try:
        # A pipe is not opened: that would wait for somebody to write into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is not a regular file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} cannot be the path of a file: {error}") from None
    encoding = "utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data, final=size <= MAX_BYTES)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if size > MAX_BYTES:
        whole_lines = text[: text.rfind("\n") + 1] or text
        text = f"{whole_lines.rstrip()}\n\n[Only the beginning of this file is shown. All {size} bytes: {path}]"
    return PromptFile(path, text, size)


def read_file_or_warn(path: Path, warnings: list[str]) -> PromptFile | None:
    """Read a text file; what is wrong with it, or left out of it, is added to the warnings."""
    try:
        file = read_file(path)
    except ConfigError as error:
        warnings.append(str(error))
        return None
    if file.cut:
        warnings.append(f"{path} has {file.size} bytes, of which a model is told the first {MAX_BYTES}")
    return file


def text_or_file(given: str, option: str) -> str:
    """Return the text that an option of the command line means: the content of the file of that name, or the words.

    :param option: its name, for the error.
    :raises ConfigError: there is such a file and it cannot be read.
    """
    if not _is_file(given):
        return given
    try:
        return read_file(Path(given)).text
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from None


def _is_file(given: str) -> bool:
    try:
        return os.path.isfile(given)
    except ValueError:
        return False


__all__ = ["MAX_BYTES", "PromptFile", "read_file", "read_file_or_warn", "text_or_file"]
