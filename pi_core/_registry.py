"""What plugins contribute: names to objects with their owner, and one policy for names with two owners.

Neither owner of a name gets it; ``owner/name`` always works, and a build can decide. There is no last-wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from ._declared import GROUP, declared, origin
from ._dispatch import Owner
from .commands import CORE_COMMANDS, Command
from .errors import PluginConflictError, PluginError
from .hooks import Hooks
from .messages import CustomMessage, custom_role
from .providers import Provider
from .tools import Tool

T = TypeVar("T")
DEFAULT: Final = "default"
"""The name under which the default command is decided."""


class Contributions(Generic[T]):
    """The contributions of one kind.

    :param kind: what they are, for messages: ``tool``, ``provider api`` ...
    :param qualified: whether ``owner/name`` can be asked for.
    """

    def __init__(self, kind: str, *, qualified: bool = True) -> None:
        self.kind = kind
        self._qualified = qualified
        self._offers: dict[str, list[tuple[Owner, T]]] = {}
        self._decided: dict[str, str] = {}

    def add(self, owner: Owner, name: str, value: T) -> None:
        """Take in a contribution.

        :raises ValueError: its owner has given one of this name before.
        """
        if owner in self.owners(name):
            raise ValueError(f"{self.kind} '{name}' is given twice")
        self._offers.setdefault(name, []).append((owner, value))

    def drop(self, plugin: str) -> None:
        """Forget what a plugin has given."""
        for name, offers in list(self._offers.items()):
            offers[:] = [offer for offer in offers if offer[0].plugin != plugin]
            if not offers:
                del self._offers[name]

    def decide(self, name: str, plugin: str) -> bool:
        """Let one plugin have a name that several own; ``False`` if it does not offer the name."""
        owns = any(owner.plugin == plugin for owner in self.owners(name))
        if owns:
            self._decided[name] = plugin
        return owns

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

    def conflict(self, name: str) -> PluginConflictError | None:
        """Return what is wrong with a name that two plugins own and no decision settles."""
        owners = self.owners(name)
        if len(owners) < 2 or self._find(name) is not None:
            return None
        listed = " and ".join(str(owner) for owner in owners)
        ways = " or ".join(f"'{owner.plugin}/{name}'" for owner in owners)
        use = f"use {ways}, " if self._qualified else ""
        return PluginConflictError(
            f"{self.kind} '{name}' is offered by {listed}, so neither has the name: {use}decide in the build "
            f'([conflicts] {name} = "{owners[0].plugin}"), or block one with PI_BLOCK',
            plugin=owners[0].plugin,
            owners=[owner.plugin for owner in owners],
            distribution=owners[0].distribution,
        )

    def conflicts(self) -> list[PluginConflictError]:
        """Every name that two plugins own and no decision settles."""
        return [conflict for name in self._offers if (conflict := self.conflict(name)) is not None]

    def disputed(self) -> list[str]:
        """The names that two plugins own and no decision settles."""
        return [name for name in self._offers if self.conflict(name) is not None]

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


@dataclass(slots=True)
class Registry:
    """Everything the plugins of a build contribute. ``defaults`` has the command that runs when none is named."""

    providers: Contributions[Provider] = field(default_factory=lambda: Contributions("provider api"))
    tools: Contributions[Tool] = field(default_factory=lambda: Contributions("tool"))
    message_types: Contributions[type[CustomMessage]] = field(default_factory=lambda: Contributions("message role"))
    commands: Contributions[Command] = field(default_factory=lambda: Contributions("command"))
    defaults: Contributions[Command] = field(default_factory=lambda: Contributions("command", qualified=False))

    def kinds(self) -> list[Contributions[Any]]:
        """The kinds."""
        return [self.providers, self.tools, self.message_types, self.commands, self.defaults]

    def conflicts(self) -> list[PluginConflictError]:
        """Every name with two owners, of all kinds."""
        return [conflict for kind in self.kinds() for conflict in kind.conflicts()]

    def decide(self, name: str, plugin: str) -> bool:
        """Let one plugin have a name, of whatever kind, that several own; ``False`` if it offers none of it."""
        decided = [kind.decide(name, plugin) for kind in self.kinds()]
        return any(decided)

    def settle_declared(self) -> list[str]:
        """Let a command that two plugins own be that of the distribution which declares it; a line for each such name.

        It runs without a build, so the others cannot be asked; it is theirs as ``owner/name``.
        """
        settled = []
        for name in self.commands.disputed():
            found = [origin(entry) for entry in declared(name)]
            owners = self.commands.owners(name)
            chosen = [owner for owner in owners if [owner.distribution] == found]
            if len(chosen) == 1 and self.commands.decide(name, chosen[0].plugin):
                listed = " and ".join(str(owner) for owner in owners)
                others = " and ".join(f"'{owner.plugin}/{name}'" for owner in owners if owner is not chosen[0])
                settled.append(
                    f"command '{name}' is offered by {listed}; {chosen[0]} has the name, because its distribution "
                    f"declares it ({GROUP}). The other is called {others}; PI_BLOCK blocks one"
                )
        return settled


def _named(kind: type, value: Any) -> str:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return _text(value, "name")


def _command_name(value: Any) -> str:
    name = _named(Command, value)
    if name in CORE_COMMANDS or name == DEFAULT:
        raise ValueError(f"a command cannot be called '{name}': the core has that name")
    return name


def _provider_api(value: Any) -> str:
    if not callable(getattr(value, "stream", None)):
        raise TypeError(f"expected a provider with a method 'stream', got {value!r}")
    return _text(value, "api")


def _message_role(value: Any) -> str:
    if not (isinstance(value, type) and issubclass(value, CustomMessage)):
        raise TypeError(f"expected a subclass of CustomMessage, got {value!r}")
    return custom_role(value)


def _text(value: Any, attribute: str) -> str:
    name = getattr(value, attribute, None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"expected a text as '{attribute}' of {value!r}, got {name!r}")
    return name


_NAMES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "register_providers": ("providers", _provider_api),
    "register_tools": ("tools", lambda value: _named(Tool, value)),
    "register_message_types": ("message_types", _message_role),
    "register_commands": ("commands", _command_name),
}


def collect_contributions(hooks: Hooks, failed: Callable[[PluginError], None] | None = None) -> Registry:
    """Ask every plugin what it contributes.

    :param failed: told about a plugin that raised or gave something else than its hook says; nothing of that plugin
        is kept. Without it the exception comes out, and so does a name that two plugins own.
    :raises PluginError: without ``failed``.
    """
    registry = Registry()
    broken: set[str] = set()

    def fail(error: PluginError) -> None:
        if failed is None:
            raise error
        broken.add(error.plugin)
        for kind in registry.kinds():
            kind.drop(error.plugin)
        failed(error)

    for hook, (kind, name_of) in _NAMES.items():
        contributions: Contributions[Any] = getattr(registry, kind)
        for owner, value in hooks.contributions(hook, fail):
            if owner.plugin in broken:
                continue
            try:
                contributions.add(owner, name_of(value), value)
                if isinstance(value, Command) and value.default:
                    registry.defaults.add(owner, DEFAULT, value)
            except Exception as error:
                fail(owner.failed(hook, error))
    if failed is None:
        for conflict in registry.conflicts():
            raise conflict
    return registry
