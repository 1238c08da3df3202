"""One object for models: what there is, who has a key, which one is chosen, and how its requests are made."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pi_core import ConfigError
from pi_plugins.config import agent_dir as default_agent_dir
from pi_plugins.config import project_dir

from ._auth import AbortedError, RequestAuth, merged_headers, request_auth, unless_aborted
from ._known import local_names
from ._table import ModelTable, Row
from .catalog import FOLDER, Catalog
from .credentials import AUTH_FILE, CredentialStore
from .keys import Keys, KeySource
from .models_json import MODELS_FILE, ModelsFiles
from .templates import UnresolvedError

if TYPE_CHECKING:
    from pi_core import (
        Context,
        Model,
        Provider,
        SelectionContext,
        StreamEvent,
        StreamOptions,
        ThinkingLevel,
    )
    from pi_plugins.config import Settings

    from .selection import Selector

_BUILT_IN: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic-messages": ("anthropic_messages", "AnthropicMessagesProvider"),
    "google-generative-ai": ("google_generative_ai", "GoogleGenerativeAIProvider"),
    "openai-completions": ("openai_completions", "OpenAICompletionsProvider"),
    "openai-responses": ("openai_responses", "OpenAIResponsesProvider"),
}
_KEY_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cf-aig-authorization"})


class ProviderRegistry(Protocol):
    """Gives the provider that speaks a wire protocol, as ``build.registry.providers`` does."""

    def get(self, name: str) -> Provider | None:
        """Return the provider of an api, ``None`` if there is none."""


class HasProviders(Protocol):
    """What the plugins of a build contribute, as ``build.registry`` is."""

    @property
    def providers(self) -> ProviderRegistry:
        """The providers."""


class ModelRuntime:
    """The models of a user: those of the catalog and of ``models.json``, with their credentials.

    Files are read when they are needed, and again when they changed. Nothing here shows a key: not an error, not a
    problem, not a ``repr``.

    :param agent_dir: the agent's folder, with ``models.json`` and ``auth.json``; as the environment says by default.
    :param cwd: the project's folder; the current one by default.
    :param environ: environment variables, the process's own by default.
    :param settings: the settings that choose a model; read from their files by default.
    :param trusted: whether the project's ``.pi/models.json`` counts.
    :param registry: whose providers make the requests, such as ``build.registry``; the built-in ones by default.
    :param catalog: the models that ship or were fetched.
    """

    def __init__(
        self,
        *,
        agent_dir: Path | None = None,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        trusted: bool = False,
        registry: HasProviders | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.agent_dir = default_agent_dir(self.environ) if agent_dir is None else agent_dir
        self._cwd = cwd
        self._trusted = trusted
        self._settings = settings
        files = [self.agent_dir / MODELS_FILE]
        if trusted:
            files.append(project_dir(self.cwd) / MODELS_FILE)
        if len({os.path.realpath(file) for file in files}) < len(files):  # the user's own folder is the project's too
            files.pop()
        self.table = ModelTable(catalog or Catalog(self.agent_dir / FOLDER), ModelsFiles(files))
        self.credentials = CredentialStore(self.agent_dir / AUTH_FILE)
        self._keys = Keys(self.credentials, self.environ, self.table.configured_key)
        self._registry = registry
        self._built_in: dict[str, Provider] = {}
        self._told: set[str] = set()

    def __repr__(self) -> str:
        return f"ModelRuntime({str(self.agent_dir)!r})"

    @property
    def cwd(self) -> Path:
        """The project's folder."""
        return Path.cwd() if self._cwd is None else self._cwd

    @property
    def settings(self) -> Settings:
        """The settings that choose a model."""
        if self._settings is None:
            from pi_plugins.config import load_settings

            loaded = load_settings(self.cwd, environ=self.environ, trusted=self._trusted, agent_dir=self.agent_dir)
            self._settings = loaded.settings
        return self._settings

    # --- models ---

    def providers(self) -> list[str]:
        """Return the names of all providers."""
        return self.table.providers()

    def rows(self, provider: str | None = None) -> list[Row]:
        """Return models as JSON objects, which must not be changed; those of one provider, or all."""
        named = self.providers() if provider is None else [provider]
        return [row for one in named for row in self.table.rows(one).values()]

    def model(self, provider: str, model_id: str) -> Model | None:
        """Return a model, ``None`` if there is none of that name."""
        return self.table.model(provider, model_id)

    def models(self) -> list[Model]:
        """Return all models."""
        return self._models(self.providers())

    def available(self) -> list[Model]:
        """Return the models whose provider has what requests need. No command is run to find out."""
        return self._models([provider for provider in self.providers() if self.has_auth(provider)])

    def problems(self) -> list[str]:
        """Return a text for everything in the files that does not count, with file, line and what was expected.

        Those that were returned once are not told again as notices of a selection.
        """
        problems = self.table.problems()
        self.credentials.list()
        if self.credentials.problem is not None:
            problems.append(
                f"{self.credentials.problem}. What is stored there later is not used until that is put right"
            )
        self._told.update(problems)
        return problems

    # --- credentials ---

    def has_auth(self, provider: str) -> bool:
        """Whether requests to a provider have what they need, as far as that is known without running a command."""
        return self._usable(provider, self._keys)

    def key_source(self, provider: str) -> KeySource | None:
        """Return where the key of a provider comes from, ``None`` when there is none."""
        return self._keys.source(provider)

    def key_fault(self, provider: str) -> str | None:
        """Return why the key of a provider cannot be had, as far as that is known without running a command."""
        return self._keys.fault(provider)

    def set_runtime_key(self, provider: str, key: str | None) -> None:
        """Use a key in this process, before all others; ``None`` takes it back."""
        self._keys.give(provider, key)

    async def api_key(self, provider: str) -> str | None:
        """Return the key of a provider, ``None`` when nothing is there to give one.

        :raises ConfigError: what should give the key does not; says where it is, and why.
        """
        try:
            found = await self._keys.key(provider)
        except UnresolvedError as error:
            raise ConfigError(f"No API key for provider: {provider}. {error}") from None
        return None if found is None else found.value

    async def request_auth(self, model: Model, *, api_key: str | None = None) -> RequestAuth:
        """Return what a request to a model carries.

        :param api_key: a key that was given with the request; no other is looked for then.
        :raises ConfigError: a key, a header or the address is configured and cannot be had; says where, and why.
        """
        return await request_auth(self.table, self._keys, model, api_key)

    # --- requests ---

    async def prepared(self, model: Model, options: StreamOptions) -> tuple[Model, StreamOptions]:
        """Return model and options of a request with key, headers, address and environment.

        A model behind a proxy is left as it is: the proxy has those of the provider, and must not see this machine's.

        :raises ConfigError: one of them is configured and cannot be had; says where, and why.
        :raises AbortedError: the signal of the request was aborted meanwhile.
        """
        from pi_plugins.providers.proxy import API as PROXY

        if model.api == PROXY:
            return model, options
        auth = await unless_aborted(self.request_auth(model, api_key=options.api_key or None), options.signal)
        changes: dict[str, Any] = {}
        if auth.api_key != options.api_key:
            changes["api_key"] = auth.api_key
        if auth.headers:
            changes["headers"] = merged_headers(auth.headers, options.headers)
        if auth.env:
            changes["env"] = {**auth.env, **(options.env or {})}
        if auth.base_url is not None:
            model = model.model_copy(update={"base_url": auth.base_url})
        return model, options.replace(**changes) if changes else options

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        """Make one request, as ``Agent(stream=runtime.stream)`` does. What goes wrong before it is its only event."""
        try:
            model, options = await self.prepared(model, options)
            provider = self._provider(model.api)
        except AbortedError:
            return failed(model, "Request was aborted", aborted=True)
        except ConfigError as error:
            return failed(model, str(error))
        except Exception as error:
            return failed(model, f"{type(error).__name__}: {error}")
        return provider.stream(model, context, options)

    def _provider(self, api: str) -> Provider:
        if self._registry is not None:
            found = self._registry.providers.get(api)
            if found is not None:
                return found
        elif api in _BUILT_IN:
            if api not in self._built_in:
                module, name = _BUILT_IN[api]
                made = getattr(import_module(f"pi_plugins.providers.{module}"), name)()
                self._built_in[api] = cast("Provider", made)
            return self._built_in[api]
        raise ConfigError(f"No provider speaks '{api}': install the plugin of one that does")

    # --- choosing ---

    async def resolve(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Return the model for a name, or the usual one for ``None``; ``None`` when nothing here fits.

        Problems of the files, and what was chosen without being named, are told as notices.

        :raises ConfigError: the name cannot be used; says what to do.
        """
        told = frozenset(self._told)
        for problem in self.problems():
            if problem not in told:
                ctx.notice(problem)
        keys = self._keys if ctx.environ is self.environ else self._keys.within(ctx.environ)
        model = await self._selector(keys).resolve(name, ctx)
        if model is not None and ctx.api_key:
            self._keys.give(model.provider, ctx.api_key)
        return model

    async def select(self, name: str | None, ctx: SelectionContext) -> Model:
        """Return the model for a name, or the usual one for ``None``, as :meth:`resolve` does.

        :raises ConfigError: the name cannot be used, or there is no model; says what to do.
        """
        model = await self.resolve(name, ctx)
        if model is not None:
            return model
        if name is not None:
            raise ConfigError(f"There is no model '{name}'. pi models list shows those there are")
        raise ConfigError(
            "No provider has a key, and no local server answers. Store a key with: pi auth login PROVIDER"
        )

    def scope(self, patterns: Iterable[str]) -> tuple[list[tuple[Model, ThinkingLevel | None]], list[str]]:
        """Return the models with a key that some patterns name, each with the level named, and what to warn of."""
        return self._selector(self._keys).scope(patterns)

    def _selector(self, keys: Keys) -> Selector:
        from .selection import Selector

        return Selector(
            self.table,
            usable=lambda provider: self._usable(provider, keys),
            source=keys.source,
            fault=keys.fault,
            settings=lambda: self.settings,
        )

    def _models(self, providers: Sequence[str]) -> list[Model]:
        found = [self.table.model(provider, one) for provider in providers for one in self.table.rows(provider)]
        return [model for model in found if model is not None]

    def _usable(self, provider: str, keys: Keys) -> bool:
        if keys.source(provider) is not None:
            return keys.fault(provider) is None
        if provider in local_names():
            return True
        entry = self.table.entry(provider)
        if entry is None:
            return False
        if _KEY_HEADERS & {name.lower() for name in entry.fields.get("headers", {})}:
            return True
        from pi_plugins.providers._headers import is_loopback

        return is_loopback(entry.fields.get("baseUrl", ""))


async def failed(model: Model, text: str, *, aborted: bool = False) -> AsyncIterator[StreamEvent]:
    """Yield the one event of a request that could not be made."""
    from pi_core import ErrorDetails, MessageAssembler

    assembler = MessageAssembler(model.api, model.provider, model.id)
    details = None if aborted else ErrorDetails(retryable=False)
    yield assembler.error(text, aborted=aborted, error_details=details)
