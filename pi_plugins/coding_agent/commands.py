"""Commands that are typed as ``/name arguments``: those of plugins, found once per session, run at once."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pi_core import ConfigError, Owner

from .inputs import SlashCommand

if TYPE_CHECKING:
    from .session import AgentSession


class SlashCommands:
    """The commands of a session. A name that two plugins offer belongs to neither; ``plugin/name`` names one."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._found: dict[str, list[tuple[Owner, SlashCommand]]] = {}
        hooks, hook = session.agent.hooks, "register_slash_commands"
        offered = any(name == hook for name, _, _ in hooks.specifications())  # not in a build without the plugin
        for owner, command in hooks.contributions(hook) if offered else ():
            self.offer(owner, [command])

    def offer(self, owner: Owner, commands: Iterable[SlashCommand]) -> None:
        """Take in further commands, such as those of the mode that runs.

        :param owner: whose they are.
        """
        for command in commands:
            self._found.setdefault(command.name, []).append((owner, command))

    def items(self) -> list[tuple[Owner, SlashCommand]]:
        """Every command with its plugin, by name."""
        return [pair for _, pairs in sorted(self._found.items()) for pair in pairs]

    def find(self, name: str) -> SlashCommand | None:
        """Return the command of a name, or of ``plugin/name``; ``None`` when there is none.

        :raises ConfigError: two plugins offer the name.
        """
        owner, slash, bare = name.rpartition("/")
        found = [command for offered, command in self._found.get(bare, ()) if not slash or offered.plugin == owner]
        if len(found) > 1:
            choices = " or ".join(f"/{offered.plugin}/{bare}" for offered, _ in self._found[bare])
            raise ConfigError(f"Two plugins offer the command /{bare}: type {choices}")
        return found[0] if found else None

    async def run(self, text: str) -> bool:
        """Run the command that a text is; ``False`` when it is none.

        What a command raises is shown to the user.
        """
        if not text.startswith("/"):
            return False
        name, _, arguments = text[1:].partition(" ")
        session = self._session
        try:
            command = self.find(name)
            if command is None:
                return False
            answer = command.run(arguments.strip(), session)
            answer = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            session.notify(f"/{name}: {error}", "error")
            return True
        if answer:
            session.notify(answer)
        return True
