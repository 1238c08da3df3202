"""The plugin: the ``pi local`` commands, the models ``local/NAME``, and a server started when one of them is asked."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pi_core import Command, ConfigError, hookimpl

if TYPE_CHECKING:
    import click

    from pi_core import Context, Model, RunContext, SelectionContext, StreamEvent, StreamOptions

    from .store import StoredModel

PROVIDER: Final = "local"
_API: Final = "openai-completions"
_COMPAT: Final[dict[str, Any]] = {
    "maxTokensField": "max_tokens",
    "supportsDeveloperRole": False,
    "supportsLongCacheRetention": False,
    "supportsReasoningEffort": False,
    "supportsStore": False,
}


class LocalPlugin:
    """Serves GGUF files on this machine as the provider ``local``.

    :param command: what to start instead of llama.cpp's server.
    """

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer ``pi local``."""
        return [
            Command(name="local", help="Models that run on this machine: pull, add, list, rm, stop.", load=_commands)
        ]

    @hookimpl(trylast=True)
    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Answer the names of stored models and, when no model was named, the default one. Starts nothing."""
        from .store import open_store

        if ctx.base_url:
            return None
        store = open_store()
        if name is None:
            chosen = store.default()
            if chosen is not None:
                ctx.notice(
                    f"Using {PROVIDER}/{chosen.name}, which runs on this machine: {_caution(chosen)}. "
                    "Name another with --model"
                )
            return None if chosen is None else _model(chosen)
        provider, slash, model_id = name.partition("/")
        if slash and provider != PROVIDER:
            return None
        wanted = model_id if slash else name
        found = store.get(wanted)
        if found is not None:
            return _checked(found)
        if slash:
            raise ConfigError(_unknown(wanted, [model.name for model in store.models()]))
        return None

    @hookimpl
    async def stream(
        self, model: Model, context: Context, options: StreamOptions, ctx: RunContext, *, proceed: Any
    ) -> AsyncIterable[StreamEvent]:
        """Start or reuse the server of a local model, and send the request there with its key."""
        if model.provider != PROVIDER or model.base_url:
            return await _proceed(proceed)
        from .server import COMMAND, StartAbortedError, ensure, spec_of
        from .store import open_store

        store = open_store()
        stored = store.get(model.id)
        if stored is None:
            raise ConfigError(_unknown(model.id, [found.name for found in store.models()]))
        try:
            state = await ensure(spec_of(stored, store), signal=options.signal, command=self._command or COMMAND)
        except StartAbortedError:
            return await _proceed(proceed)  # the provider turns the aborted signal into an aborted message
        served = model.model_copy(update={"base_url": state.base_url})
        return await _proceed(proceed, model=served, options=options.replace(api_key=state.token))


async def _proceed(proceed: Any, **changes: Any) -> AsyncIterable[StreamEvent]:
    stream: AsyncIterable[StreamEvent] = await proceed(**changes)
    return stream


def _commands() -> click.Group:
    from .commands import local

    return local


def _model(stored: StoredModel) -> Model:
    from pi_core import Model

    from .server import CONTEXT_WINDOW, MAX_TOKENS

    return Model(
        id=stored.name,
        name=f"{stored.name} (on this machine)",
        api=_API,
        provider=PROVIDER,
        context_window=CONTEXT_WINDOW,
        max_tokens=MAX_TOKENS,
        compat=dict(_COMPAT),
    )


def _checked(stored: StoredModel) -> Model:
    from .server import check_file

    check_file(stored)
    return _model(stored)


def _caution(stored: StoredModel) -> str:
    from .catalog import KNOWN

    known = KNOWN.get(stored.name)
    return known.caution if known is not None else "small models can be wrong"


def _unknown(name: str, stored: list[str]) -> str:
    from .catalog import KNOWN

    if name in KNOWN:
        return f"The weights of {PROVIDER}/{name} are not here yet: run 'pi local pull {name}'"
    names = f"Stored: {', '.join(stored)}" if stored else "None is stored: 'pi local pull' fetches one"
    return f"There is no local model '{name}'. {names}; 'pi local add FILE' adds a GGUF file"
