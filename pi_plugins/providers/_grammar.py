"""Tools whose one argument is a free text that a grammar describes.

The servers of OpenAI let the model write such a text as it is. To everybody else here it is an argument like any other,
so its pieces become the JSON text of an object with one string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pi_core import Tool

DEFAULT_ARGUMENT = "input"
"""The argument of a call whose tool is not known."""


def grammar_of(tool: Tool) -> dict[str, str] | None:
    """Return the syntax and the definition of a tool's grammar; Lark is preferred. ``None`` when it has none."""
    sampling = tool.constrained_sampling
    if not isinstance(sampling, Mapping) or sampling.get("type") != "grammar":
        return None
    variants = sampling.get("variants", {})
    for syntax in ("lark", "regex"):
        definition = variants.get(f"openai_{syntax}")
        if isinstance(definition, str):
            return {"syntax": syntax, "definition": definition}
    return None


def grammar_arguments(tools: Sequence[Tool], *, supported: bool) -> dict[str, str]:
    """Return the tools that have a grammar, each with the name of the argument it describes.

    :param supported: whether the server knows grammars; otherwise there are none.
    :raises ValueError: such a tool has other parameters than one required string.
    """
    found: dict[str, str] = {}
    for tool in tools if supported else ():
        if grammar_of(tool) is None:
            continue
        properties = tool.schema.get("properties", {})
        [name, *others] = properties or [""]
        if others or properties.get(name, {}).get("type") != "string" or name not in tool.schema.get("required", ()):
            raise ValueError(f'Tool "{tool.name}" has a grammar, so it needs exactly one required string parameter')
        found[tool.name] = name
    return found


class FreeText:
    """The JSON text of an object with one string, from the pieces of the string.

    :ivar started: whether there was a piece.
    """

    __slots__ = ("_argument", "started")

    def __init__(self, argument: str) -> None:
        self._argument = argument
        self.started = False

    def feed(self, piece: str) -> str:
        """Return the JSON text that a piece adds."""
        if not piece and self.started:
            return ""
        text = json.dumps(piece, ensure_ascii=False)[1:-1]
        if not self.started:
            self.started = True
            text = f'{{{json.dumps(self._argument)}:"{text}'
        return text

    def finish(self) -> str:
        """Return the JSON text that closes the object; nothing if there was no piece."""
        return '"}' if self.started else ""


def free_text(arguments: Mapping[str, Any], argument: str) -> str:
    """Return the text in the arguments of a call."""
    return str(arguments.get(argument, ""))
