"""What plugins draw in place of the usual."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.protocol import is_renderable
from rich.text import Text

from pi_core import HookError

from ._text import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pi_plugins.coding_agent import AgentSession


class PluginRenderers:
    """Asks the plugins of a session how something looks. One that fails is named once, and does without.

    :param say: tells the user about a failure.
    """

    def __init__(self, session: AgentSession, say: Callable[[str], None]) -> None:
        self._session = session
        self._say = say
        self._named: set[tuple[str, str]] = set()
        self._offered = {name for name, _, _ in session.agent.hooks.specifications()}

    def wanted(self, hook: str) -> bool:
        """Whether a plugin draws this."""
        return hook in self._offered and self._session.agent.hooks.has(hook)

    async def ask(self, hook: str, **arguments: Any) -> RenderableType | None:
        """Return what a plugin makes of it; ``None`` when none does."""
        try:
            made = await self._session.agent.hooks.call(hook, **arguments)
        except HookError as error:
            self.failed(hook, error.plugin, error.__cause__ or error)
            return None
        if made is None:
            return None
        if isinstance(made, str):
            return Text(plain(made))
        if is_renderable(made):
            return made  # type: ignore[no-any-return]
        self.failed(
            hook, self.owners(hook), TypeError(f"{type(made).__name__} is neither text nor anything rich prints")
        )
        return None

    def owners(self, hook: str) -> str:
        """Return the names of the plugins that draw this."""
        return ", ".join(owner.plugin for owner, _, _ in self._session.agent.hooks.implementations(hook))

    def failed(self, hook: str, plugin: str, error: BaseException) -> None:
        """Tell the user that a plugin could not draw something, once for each hook."""
        if (plugin, hook) in self._named:
            return
        self._named.add((plugin, hook))
        self._say(f"{blame(plugin, hook, error)}. It is shown without the plugin.")


def blame(plugin: str, hook: str, error: BaseException) -> str:
    """Return who failed at what, and why."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"Plugin '{plugin}', hook {hook}: {what}"
