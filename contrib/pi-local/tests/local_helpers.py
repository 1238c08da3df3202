"""What the tests of this distribution share; found because conftest.py puts this directory on the path."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from pi_local.catalog import KnownModel, Part

HERE = Path(__file__).parent
FAKE_SERVER = (sys.executable, str(HERE / "fake_server.py"))
PIECES = (b"GGUF" + bytes(range(256)) * 9, b"second" * 700, b"and the last one")


def known_model(pieces: tuple[bytes, ...] = PIECES, *, sha256: str = "", name: str = "tiny") -> KnownModel:
    """A catalog entry for pieces, carried by the packages tiny-model-part1, tiny-model-part2 ..."""
    return KnownModel(
        name=name,
        title="A tiny one",
        parts=tuple(
            Part(f"{name}-model-part{number}", "1.0", f"{name}_model_part{number}/data/part.bin", len(piece))
            for number, piece in enumerate(pieces, 1)
        ),
        sha256=sha256 or hashlib.sha256(b"".join(pieces)).hexdigest(),
        origin="made by a test",
        licence="none",
        caution="it is not a model",
        template="chatml-fence",
    )


def write_wheel(directory: Path, part: Part, piece: bytes) -> Path:
    """A wheel that pip takes."""
    stem = f"{part.distribution.replace('-', '_')}-{part.version}"
    info = f"{stem}.dist-info"
    path = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(part.member, piece)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {part.distribution}\nVersion: {part.version}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class Shelf:
    """A fetch that takes wheels from a directory and notes what it was asked for.

    ``before`` is called with the number of each fetch, from 1.
    """

    def __init__(self, directory: Path, known: KnownModel, pieces: tuple[bytes, ...] = PIECES) -> None:
        directory.mkdir(exist_ok=True)
        for part, piece in zip(known.parts, pieces, strict=True):
            write_wheel(directory, part, piece)
        self.directory = directory
        self.log = directory / "fetched.txt"
        self.log.touch()
        self.before: Callable[[int], None] = lambda number: None

    @property
    def fetched(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").split()

    def __call__(self, part: Part, into: Path, on_bytes: Callable[[int], None]) -> Path:
        self.before(len(self.fetched) + 1)
        with self.log.open("a", encoding="utf-8") as stream:
            stream.write(f"{part.distribution}\n")
        on_bytes(1)
        name = f"{part.distribution.replace('-', '_')}-{part.version}-py3-none-any.whl"
        target = into / name
        target.write_bytes((self.directory / name).read_bytes())
        return target
