"""Prompts from the command line: piped text, @files and words."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pi_core import ConfigError, ImageContent, PiError
from pi_plugins.tools import image_type, prepare_image


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the command line."""

    text: str
    images: tuple[ImageContent, ...] = ()


def read_prompts(words: tuple[str, ...]) -> list[Prompt]:
    """Return one prompt for piped text, files and the first word, and one for each further word.

    :raises ConfigError: a file cannot be read or holds neither text nor an image, or there is no prompt at all.
    """
    texts = [_piped()]
    images: list[ImageContent] = []
    files = [word[1:] for word in words if word.startswith("@") and len(word) > 1]
    prompts = [word for word in words if not (word.startswith("@") and len(word) > 1)]
    for name in files:
        text, image = read_file(Path(name).expanduser())
        texts.append(text)
        if image is not None:
            images.append(image)
    first = "".join(texts) + (prompts[0] if prompts else "")
    if not first.strip() and not images:
        raise ConfigError('There is no prompt: give one, as in pi -p "What is in this folder?", or pipe one in')
    return [Prompt(first, tuple(images)), *map(Prompt, prompts[1:])]


def _piped() -> str:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"The piped input is not UTF-8 text (byte {error.start})") from None
    return text


def read_file(path: Path) -> tuple[str, ImageContent | None]:
    """Return what stands for a file in a prompt, and the image that it is.

    :raises ConfigError: it cannot be read, or holds neither text nor an image.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"@{path}: {error.strerror or error}") from error
    where = path.resolve()
    if image_type(data) is not None:
        try:
            prepared = prepare_image(f"@{path}", data)
        except PiError as error:
            return f'<file name="{where}">[left out: {error}]</file>\n', None
        return f'<file name="{where}">{"".join(f"[{note}]" for note in prepared.notes)}</file>\n', prepared.image
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"@{path} is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP, BMP)") from None
    if "\0" in text:
        raise ConfigError(f"@{path} is a binary file")
    return f'<file name="{where}">\n{text}\n</file>\n', None
