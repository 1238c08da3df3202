"""The choice of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..ui import Choice

if TYPE_CHECKING:
    from pi_core import Model
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui

DEFAULT: Final = "c-s"
"""The key that makes a model the default too."""


async def pick_model(ui: Ui, session: AgentSession, rows: Sequence[Mapping[str, Any]]) -> tuple[Model, str] | None:
    """Let the user choose one of some models, the present one first marked.

    :param rows: models as JSON objects.
    :returns: the model, and the key it was chosen with; ``None`` when the user left.
    """
    from pi_plugins.models._listing import price, tokens

    now = (session.model.provider, session.model.id)
    choices, selected = [], 0
    for position, row in enumerate(rows):
        name = (row["provider"], row["id"])
        if name == now:
            selected = position
        detail = f"{tokens(row.get('contextWindow', 0))}  {price(row.get('cost'))}"
        choices.append(Choice(name, "/".join(name), f"{detail}  now" if name == now else detail))
    keys = {DEFAULT: "also the default"}
    chosen = await ui.select("Model", choices, keys=keys, selected=selected)
    if chosen is None:
        return None
    model = session.models.model(*chosen[0].value)
    return None if model is None else (model, chosen[1])


__all__ = ["DEFAULT", "pick_model"]
