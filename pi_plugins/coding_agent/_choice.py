"""Which model a session asks, and how much it thinks: set, cycled, clamped, and noted in the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_core import Model, ThinkingLevel
from pi_plugins.models.levels import clamp_level, supported_levels

from .events import ThinkingLevelEvent

if TYPE_CHECKING:
    from .session import AgentSession


class ModelChoice:
    """Chooses model and thinking level of a session.

    :param scoped: the models that cycling goes through, with the level of each; all available ones when empty.
    """

    def __init__(self, session: AgentSession, scoped: Sequence[tuple[Model, ThinkingLevel | None]]) -> None:
        self._session = session
        self._asked: ThinkingLevel | None = None
        self.scoped = tuple(scoped)

    def note(self) -> None:
        """Note model and level in a session that does not say them, or says others."""
        session = self._session
        noted = session.store.projection()
        model = session.model
        if noted.model != (model.provider, model.id):
            session.store.append_model_change(model.provider, model.id)
        if noted.thinking_level != session.thinking_level:
            session.store.append_thinking_level_change(session.thinking_level)

    @property
    def levels(self) -> list[ThinkingLevel]:
        """The thinking levels of the model."""
        return supported_levels(self._session.model)

    async def set_model(self, model: Model, *, level: ThinkingLevel | None = None, source: str = "set") -> None:
        """Ask another model from the next request on.

        :param level: how much it thinks; what the settings say of it, else what was asked for last, by default.
        """
        session = self._session
        previous = session.model
        session.agent.state.model = model
        if (previous.provider, previous.id) != (model.provider, model.id):
            session.store.append_model_change(model.provider, model.id)
            await session.call_hook("model_select", session=session, model=model, previous=previous, source=source)
        self._asked = self._asked or session.thinking_level
        await self._apply(level or self._level_of(model) or self._asked)

    def _level_of(self, model: Model) -> ThinkingLevel | None:
        return self._session.settings.model_thinking_levels.get(f"{model.provider}/{model.id}")

    async def set_level(self, level: ThinkingLevel) -> ThinkingLevel:
        """Set how much the model thinks, clamped to what it can, and return the level that holds.

        A model that is chosen later thinks as much as was asked for, as far as it can.
        """
        self._asked = level
        return await self._apply(level)

    def restore(self, level: ThinkingLevel) -> None:
        """Take over the level of a session that is gone on with."""
        self._asked = None
        self._session.agent.state.thinking_level = clamp_level(self._session.model, level)

    async def _apply(self, level: ThinkingLevel) -> ThinkingLevel:
        session = self._session
        clamped = clamp_level(session.model, level)
        previous = session.thinking_level
        if clamped != previous:
            session.agent.state.thinking_level = clamped
            session.store.append_thinking_level_change(clamped)
            await session.say(ThinkingLevelEvent(clamped))
            await session.call_hook("thinking_level_select", session=session, level=clamped, previous=previous)
        return clamped

    async def cycle_model(self, step: int = 1) -> tuple[Model, ThinkingLevel] | None:
        """Go on to the next model; ``None`` when there is no other.

        :param step: -1 goes back.
        """
        session = self._session
        known: list[tuple[Model, ThinkingLevel | None]] = list(self.scoped) or [
            (model, None) for model in session.models.available()
        ]
        if len(known) < 2:
            return None
        names = [(model.provider, model.id) for model, _ in known]
        now = (session.model.provider, session.model.id)
        position = names.index(now) + step if now in names else 0
        model, level = known[position % len(known)]
        await self.set_model(model, level=level, source="cycle")
        return model, session.thinking_level

    async def cycle_level(self) -> ThinkingLevel | None:
        """Go on to the next thinking level; ``None`` when the model has one only."""
        levels = self.levels
        if len(levels) < 2:
            return None
        now = self._session.thinking_level
        following = levels[(levels.index(now) + 1) % len(levels)] if now in levels else levels[0]
        return await self.set_level(following)
