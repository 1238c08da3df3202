from __future__ import annotations

from typing import Any, Literal

from pi_core import CustomMessage, UserMessage, parse_message
from pi_core._registry import collect_contributions

from .making import hooks_of
from .registering import RegisterHook


class TestRegisterMessageTypes(RegisterHook):
    hook = "register_message_types"
    kind = "message role"
    wrong = (
        "note",
        CustomMessage,
        UserMessage,
        CustomMessage(role="note"),
    )

    def contribution(self, name: str) -> Any:
        return type(name.title(), (CustomMessage,), {"__annotations__": {"role": Literal[name]}, "role": name})

    def test_a_stored_message_becomes_its_type_again(self) -> None:
        note = self.contribution("note")
        registry = collect_contributions(hooks_of(self.offers("notes", note)))
        types = dict(registry.message_types.items())
        assert type(parse_message({"role": "note", "timestamp": 1}, types)) is note
        assert type(parse_message({"role": "other", "timestamp": 1}, types)) is CustomMessage
