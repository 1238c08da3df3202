"""What plugins contribute: names to objects with their owner, and one policy for names with two owners.

Neither owner of a name gets it; ``owner/name`` always works, and a build can decide. There is no last-wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ._dispatch import Owner
from .commands import Command
from .errors import PluginConflictError, PluginLoadError
from .hooks import Hooks
from .messages import CustomMessage, custom_role
from .providers import Provider
from .tools import Tool

T = TypeVar("T")


class Contributions(Generic[T]):
    """The contributions of one kind.

    :param kind: what they are, for messages: ``tool``, ``provider api`` ...
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._offers: dict[str, list[tuple[Owner, T]]] = {}
        self._decided: dict[str, str] = {}

    def add(self, owner: Owner, name: str, value: T) -> None:
        """Take in a contribution."""
        self._offers.setdefault(name, []).append((owner, value))

    def decide(self, name: str, plugin: str) -> None:
        """Let one plugin have a name that several own."""
        self._decided[name] = plugin

    def owners(self, name: str) -> list[Owner]:
        """Who offers a name, in call order."""
        return [owner for owner, _ in self._offers.get(name, ())]

    def get(self, name: str) -> T | None:
        """Return the object of a name or of ``owner/name``; ``None`` if there is none or two own the name."""
        found = self._find(name)
        return None if found is None else found[1]

    def owner(self, name: str) -> Owner | None:
        """Return who has a name."""
        found = self._find(name)
        return None if found is None else found[0]

    def conflicts(self) -> list[PluginConflictError]:
        """Every name that two plugins own and no decision settles."""
        return [
            self._conflict(name, [owner for owner, _ in offers])
            for name, offers in self._offers.items()
            if len(offers) > 1 and self._find(name) is None
        ]

    def items(self) -> Iterator[tuple[str, T]]:
        """Every name that has one object, with it, in call order."""
        for name in self._offers:
            found = self._find(name)
            if found is not None:
                yield name, found[1]

    def names(self) -> list[str]:
        """Every name that has one object."""
        return [name for name, _ in self.items()]

    def _find(self, name: str) -> tuple[Owner, T] | None:
        offers = self._offers.get(name, [])
        plugin = self._decided.get(name)
        if not offers and "/" in name:
            plugin, _, bare = name.partition("/")
            offers = self._offers.get(bare, [])
        if plugin is not None:
            offers = [offer for offer in offers if offer[0].plugin == plugin]
        return offers[0] if len(offers) == 1 else None

    def _conflict(self, name: str, owners: list[Owner]) -> PluginConflictError:
        listed = " and ".join(str(owner) for owner in owners)
        ways = " or ".join(f"'{owner.plugin}/{name}'" for owner in owners)
        return PluginConflictError(
            f"{self.kind} '{name}' is offered by {listed}, so neither has the name: use {ways}, decide in the build "
            f'([conflicts] {name} = "{owners[0].plugin}"), or block one with PI_BLOCK',
            plugin=owners[0].plugin,
            owners=[owner.plugin for owner in owners],
            distribution=owners[0].distribution,
        )


@dataclass(slots=True)
class Registry:
    """Everything the plugins of a build contribute."""

    providers: Contributions[Provider] = field(default_factory=lambda: Contributions("provider api"))
    tools: Contributions[Tool] = field(default_factory=lambda: Contributions("tool"))
    message_types: Contributions[type[CustomMessage]] = field(default_factory=lambda: Contributions("message role"))
    commands: Contributions[Command] = field(default_factory=lambda: Contributions("command"))

    def kinds(self) -> list[Contributions[Any]]:
        """The four kinds."""
        return [self.providers, self.tools, self.message_types, self.commands]

    def conflicts(self) -> list[PluginConflictError]:
        """Every name with two owners, of all kinds."""
        return [conflict for kind in self.kinds() for conflict in kind.conflicts()]


_NAMES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "register_providers": ("providers", lambda provider: provider.api),
    "register_tools": ("tools", lambda tool: tool.name),
    "register_message_types": ("message_types", custom_role),
    "register_commands": ("commands", lambda command: command.name),
}


def collect_contributions(hooks: Hooks, decisions: Mapping[str, str] | None = None) -> Registry:
    """Ask every plugin what it contributes.

    :param decisions: which plugin has a name that several own.
    :raises HookError: a plugin raised.
    :raises PluginLoadError: a contribution is not what its hook says.
    """
    registry = Registry()
    for hook, (kind, name_of) in _NAMES.items():
        contributions: Contributions[Any] = getattr(registry, kind)
        for owner, value in hooks.contributions(hook):
            try:
                name = name_of(value)
            except (AttributeError, TypeError) as error:
                raise PluginLoadError(
                    f"{owner}: {hook} gave {value!r}, which is no {contributions.kind}: {error}",
                    plugin=owner.plugin,
                    distribution=owner.distribution,
                ) from error
            contributions.add(owner, name, value)
        for name, plugin in (decisions or {}).items():
            if name in contributions.names() or contributions.owners(name):
                contributions.decide(name, plugin)
    return registry
