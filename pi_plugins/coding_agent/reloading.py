"""Settings and resources that changed while a session is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .prompt_parts import load_prompt_parts

if TYPE_CHECKING:
    from .factory import Prepared
    from .session import AgentSession


async def reload_session(session: AgentSession, prepared: Prepared, *, trusted: bool | None = None) -> list[str]:
    """Read settings, context files, skills and templates again, and go on with them from the next run.

    Model, thinking level and tools stay as they were chosen. Plugins are loaded once, at the start.

    :param trusted: whether the project is trusted now; as before by default.
    :returns: one sentence for each thing that is wrong and was passed over.
    :raises ConfigError: a file that an option names cannot be read.
    """
    if trusted is not None:
        prepared.trusted = session.trusted = trusted
    prepared.loaded = prepared.loaded.reload(trusted=prepared.trusted)
    parts = await load_prompt_parts(prepared)
    settings = session.settings = prepared.settings
    session.resources = parts.resources
    session.system_prompt, session.append_system_prompt = parts.system_prompt, tuple(parts.append)
    session.steering.mode, session.follow_ups.mode = settings.steering_mode, settings.follow_up_mode
    session.compactor.enabled = settings.compaction.enabled
    session.runs.retrying = settings.retry.enabled
    await session.refresh_prompt()
    return [*prepared.loaded.warnings, *session.models.problems(), *parts.resources.warnings]


__all__ = ["reload_session"]
