"""What each model of a session has used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pi_core import AssistantMessage
from pi_plugins.sessions import Entry
from pi_plugins.sessions.bodies import ExtraUsage


@dataclass(slots=True)
class ModelCost:
    """What one model has used.

    :param model: its provider and id.
    :param input: tokens that were read, cached ones too.
    :param cost: US dollars.
    """

    model: str
    input: int = 0
    output: int = 0
    cost: float = 0.0


def costs(entries: Iterable[Entry]) -> list[ModelCost]:
    """Return what each model has used for answers, on all branches, the dearest first."""
    found: dict[str, ModelCost] = {}
    for entry in entries:
        if entry.type != "usage" and entry.role != "assistant":
            continue
        body = entry.body
        if isinstance(body, AssistantMessage | ExtraUsage):
            name = f"{body.provider}/{body.model}"
            row, usage = found.setdefault(name, ModelCost(name)), body.usage
            row.input += usage.input + usage.cache_read + usage.cache_write
            row.output += usage.output
            row.cost += usage.cost.total
    return sorted(found.values(), key=lambda row: row.cost, reverse=True)


__all__ = ["ModelCost", "costs"]
