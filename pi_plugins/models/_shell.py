"""Runs the shell commands that values come from: one line of output is the value, everything else is a reason."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Final

from pi_plugins.tools._process import Pipe, end, start

COMMAND_SECONDS: Final = 10.0
_DRAIN_SECONDS: Final = 0.2
_OUTPUT_BYTES: Final = 64 * 1024
_LINE_CHARS: Final = 200
_PROGRAM: Final = re.compile(r"[\w./@+-]{1,60}")
_OPAQUE: Final = re.compile(r"(?=[\w+/=.~-]*\d)[\w+/=.~-]{16,}")
_SECRET_NAMES: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class CommandError(Exception):
    """A command gave no value; the text is the reason, without what could be a secret."""


async def output_of(command: str, environ: Mapping[str, str], seconds: float = COMMAND_SECONDS) -> str:
    """Run a command in a shell, with nothing to read, and return what it printed without the white space around it.

    The command and everything it started are ended when it takes too long, or when the caller is cancelled.

    :param environ: its whole environment.
    :param seconds: how long it may take.
    :raises CommandError: it cannot be started, fails, takes too long or prints nothing.
    """
    name = f"the command '{program_of(command)}'"
    stdout = await Pipe.open()
    try:
        stderr = await Pipe.open()
    except BaseException:
        stdout.close()
        raise
    printed, said = bytearray(), bytearray()
    readers: list[asyncio.Task[None]] = []
    try:
        try:
            process = await start(
                ["/bin/sh", "-c", command], cwd=os.getcwd(), stdout=stdout, stderr=stderr, env=environ
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"{name} cannot be started: {getattr(error, 'strerror', None) or error}") from None
        readers = [asyncio.create_task(_read(stdout, printed)), asyncio.create_task(_read(stderr, said))]
        try:
            async with asyncio.timeout(seconds):
                code = await process.wait()
        except TimeoutError:
            await end(process, 0)
            raise CommandError(f"{name} was not done after {seconds:g} seconds") from None
        except asyncio.CancelledError:
            await end(process, 0)
            raise
        # A child in the background may hold the pipes open for ever.
        await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    finally:
        for reader in readers:
            reader.cancel()
        stdout.close()
        stderr.close()
    text = printed.decode(errors="replace").strip()
    if code:
        raise CommandError(f"{name} {_ending(code)}{_last_line(said, text, environ)}")
    if not text:
        raise CommandError(f"{name} printed nothing{_last_line(said, text, environ)}")
    if len(printed) > _OUTPUT_BYTES:
        raise CommandError(f"{name} printed more than {_OUTPUT_BYTES // 1024} KiB, which is no key")
    return text


def program_of(command: str) -> str:
    """Return the first word of a command: the rest, and a word with a value in it, may hold a secret."""
    words = command.split(maxsplit=1)
    if not words or not _PROGRAM.fullmatch(words[0]) or _OPAQUE.fullmatch(words[0].rpartition("/")[2]):
        return "…"
    return f"{words[0]} …" if len(words) > 1 else words[0]


async def _read(pipe: Pipe, kept: bytearray) -> None:
    """Read to the end, and keep no more than tells that it is too long."""
    while chunk := await pipe.read():
        kept += chunk[: _OUTPUT_BYTES + 1 - len(kept)]


def _ending(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"


def _last_line(said: bytearray, printed: str, environ: Mapping[str, str]) -> str:
    """The last line a command wrote to stderr, for a reason; what looks like a secret is left out."""
    lines = said.decode(errors="replace").split("\n")
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    named = [value for name, value in environ.items() if any(word in name.upper() for word in _SECRET_NAMES)]
    for secret in sorted((word for word in (*printed.split(), *named) if len(word) > 3), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _OPAQUE.sub("***", text)
    text = "".join(char if char.isprintable() else " " for char in text)
    return f": {text[:_LINE_CHARS]}" if text else ""
