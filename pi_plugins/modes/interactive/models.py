"""The models that can be asked, found by what the user types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from pi_core import ConfigError, SelectionContext, ThinkingLevel

if TYPE_CHECKING:
    from pi_core import Model
    from pi_plugins.coding_agent import AgentSession

Row: TypeAlias = Mapping[str, Any]
LEVELS: Final[Sequence[ThinkingLevel]] = get_args(ThinkingLevel)


def usable_rows(session: AgentSession) -> list[Row]:
    """Return the models whose provider has what requests need, as JSON objects; those that are cycled through first."""
    runtime = session.models
    scoped = {(model.provider, model.id) for model, _ in session.choice.scoped}
    rows = [row for provider in runtime.providers() if runtime.has_auth(provider) for row in runtime.rows(provider)]
    return sorted(rows, key=lambda row: (row["provider"], row["id"]) not in scoped)


def split_level(text: str) -> tuple[str, ThinkingLevel | None]:
    """Return a text without the thinking level at its end, and that level."""
    base, colon, word = text.rpartition(":")
    level = next((level for level in LEVELS if level == word.lower()), None)
    return (base, level) if colon and base and level is not None else (text, None)


def rows_for(text: str, rows: Sequence[Row]) -> list[Row]:
    """Return the models that a text means: the one of that name, else those that have all of its words."""
    from pi_plugins.models._listing import search

    wish = text.lower()
    exact = [row for row in rows if wish in (row["id"].lower(), f"{row['provider']}/{row['id']}".lower())]
    return exact or search(rows, text)


async def named_model(session: AgentSession, text: str) -> Model:
    """Return a model that no list has, by its full name, such as one of a local server.

    :raises ConfigError: there is none, or its provider has no key; says what to do.
    """
    from pi_plugins.models._listing import nearest

    runtime = session.models
    if "/" in text:
        model = await runtime.select(text, SelectionContext(environ=runtime.environ))
        if runtime.has_auth(model.provider):
            return model
        raise ConfigError(f"{model.provider} has no key. Store one with: /login {model.provider}")
    known = [row["provider"] for row in runtime.rows() if text.lower() in row["id"].lower()]
    if known:
        providers = ", ".join(list(dict.fromkeys(known))[:5])
        raise ConfigError(f"No provider with a key has a model '{text}'; these have one: {providers}. See /login")
    near = nearest(usable_rows(session), text)
    raise ConfigError(f"There is no model '{text}'" + (f", did you mean '{near}'?" if near else ""))


__all__ = ["LEVELS", "Row", "named_model", "rows_for", "split_level", "usable_rows"]
