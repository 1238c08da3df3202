"""How a model is chosen: what was named, else what the settings say, a provider with a key, or a local server."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pi_core import ConfigError

from ._known import PROVIDERS, local_names
from ._matching import Candidate, Matcher, ambiguous, is_pattern, level_of, split_level
from ._servers import LOCAL_API, address_of, local_model, running_model
from ._table import ModelTable
from ._validation import LEVELS
from .keys import KeySource

if TYPE_CHECKING:
    from pi_core import Model, SelectionContext, ThinkingLevel
    from pi_plugins.config import Settings

_NEAR: Final = 0.7
_WORD: Final = re.compile(r"[a-z]{4,}")


class Selector:
    """Chooses models.

    :param table: all models.
    :param usable: whether requests to a provider have what they need.
    :param source: where the key of a provider comes from.
    :param fault: why the key of a provider cannot be had.
    :param settings: gives the settings when they are needed.
    """

    def __init__(
        self,
        table: ModelTable,
        usable: Callable[[str], bool],
        source: Callable[[str], KeySource | None],
        fault: Callable[[str], str | None],
        settings: Callable[[], Settings],
    ) -> None:
        self._table = table
        self._usable = usable
        self._source = source
        self._fault = fault
        self._settings = settings

    async def resolve(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Return the model for a name, or the usual one for ``None``; ``None`` when nothing here fits.

        :raises ConfigError: the name cannot be used; says what to do.
        """
        if ctx.provider is not None:
            self._check_provider(ctx.provider)
        if ctx.base_url:
            return await self._at_address(name, ctx)
        if name is None:
            if ctx.api_key and ctx.provider is None:
                raise ConfigError("--api-key needs a model: a key does not say whose it is. Name one with --model")
            return await self._by_default(ctx) or (None if ctx.provider is not None else await running_model(ctx))
        return self._by_name(name.strip(), ctx)

    def scope(self, patterns: Iterable[str]) -> tuple[list[tuple[Model, ThinkingLevel | None]], list[str]]:
        """Return the models with a key that some patterns name, each with the level named, and what to warn of.

        :param patterns: ids, ``provider/id``, parts of them, or globs; ``:level`` may follow.
        """
        every = [one for one in self._table.candidates() if self._usable(one.provider)]
        matcher = Matcher(every, self._table.providers(), self._usable)
        found: dict[Candidate, ThinkingLevel | None] = {}
        warnings: list[str] = []
        for pattern in patterns:
            for one, level in self._fitting(pattern, matcher, warnings):
                found.setdefault(one, level)
        models = [(self._table.model(one.provider, one.id), level) for one, level in found.items()]
        return [(model, level) for model, level in models if model is not None], warnings

    # --- a name ---

    def _by_name(self, name: str, ctx: SelectionContext) -> Model | None:
        table = self._table
        providers = table.providers()
        wished = name if ctx.provider is None or name.startswith(f"{ctx.provider}/") else f"{ctx.provider}/{name}"
        if self._is_server(wished.partition("/")[0]) and (local := local_model(wished)) is not None:
            return local
        inline = bool(ctx.api_key)
        matcher = Matcher(table.candidates(), providers, (lambda _: False) if inline else self._usable)
        text, level = name, None
        found = matcher.find(name, ctx.provider) if name.lower() not in providers else []
        if not found and (word := level_of((parts := split_level(name))[1])) is not None:
            text, level = parts[0], word
            found = matcher.find(text, ctx.provider)
        if len(found) > 1:
            raise ambiguous(text, found, matcher, inline_key=inline)
        if level is not None:
            ctx.thinking_level = level
        if found:
            self._say(text, found[0], matcher, ctx)
            return table.model(found[0].provider, found[0].id)
        provider, rest = (ctx.provider, text) if ctx.provider is not None else matcher.split(text)
        if provider is not None and rest:
            return self._custom(provider, rest.removeprefix(f"{provider}/"), ctx)
        return self._unknown(text, matcher, ctx)

    def _say(self, text: str, found: Candidate, matcher: Matcher, ctx: SelectionContext) -> None:
        """Tell which model a text was taken for, unless it is that model's name."""
        wish = text.lower()
        if wish == str(found).lower() or (ctx.provider == found.provider and wish == found.id.lower()):
            return
        named = matcher.split(text)[0]
        same = [one for one in matcher.candidates if one.id.lower() == wish]
        if len(same) == 1 and named in (None, found.provider):
            return
        because = self._because(found.provider)
        ctx.notice(f"Taking '{text}' as {found}{because}. Name it as provider/id to choose another")

    def _custom(self, provider: str, model_id: str, ctx: SelectionContext) -> Model | None:
        model = self._table.custom(provider, model_id, reasoning=ctx.thinking_level not in (None, "off"))
        if model is not None:
            near = self._near(model_id, self._table.rows(provider))
            hint = f"; did you mean '{provider}/{near}'?" if near else ""
            ctx.notice(f"{provider} has no model '{model_id}' that is known here: it is asked for as named{hint}")
        return model

    def _unknown(self, text: str, matcher: Matcher, ctx: SelectionContext) -> Model | None:
        """Say what a name could have meant; ``None`` leaves it to other plugins."""
        provider, slash, rest = text.partition("/")
        if not slash and text.lower() in matcher.providers:
            raise ConfigError(f"'{text}' is a provider: name a model too, as {text}/MODEL")
        if slash:
            close = self._near(provider, [*matcher.providers, *local_names()], 0.6)
            if close:
                raise ConfigError(f"There is no provider '{provider}', did you mean '{close}/{rest}'?")
        base, word = split_level(text)
        if word is not None and matcher.is_name(base):
            levels = ", ".join(LEVELS)
            raise ConfigError(f"There is no model '{text}', and '{word}' is none of the thinking levels: {levels}")
        near = self._near_model(text, matcher)
        if near is not None:
            raise ConfigError(
                f"There is no model '{text}', did you mean '{near}'? One that is not known here is named as provider/id"
            )
        usable_provider = next((one for one in matcher.providers if self._source(one) and self._usable(one)), None)
        if slash or usable_provider is None:
            return None
        model = self._table.custom(usable_provider, text, reasoning=ctx.thinking_level not in (None, "off"))
        if model is not None:
            because = self._because(usable_provider)
            ctx.notice(
                f"Taking '{text}' as {usable_provider}/{text}{because}. Name it as provider/id to choose another"
            )
        return model

    def _near_model(self, text: str, matcher: Matcher) -> Candidate | None:
        """The model whose name, or a word of it, is nearest to a text; one that can be used if there is."""
        near = self._near(text, [str(one) if "/" in text else one.id for one in matcher.candidates])
        if near is not None:
            found = [one for one in matcher.candidates if near in (str(one), one.id)]
        else:
            words = {word for one in matcher.candidates for word in _WORD.findall(one.id.lower())}
            word = self._near(text, words, 0.8)
            found = [] if word is None else matcher.find(word)
        return next((one for one in found if matcher.usable(one.provider)), found[0] if found else None)

    def _check_provider(self, provider: str) -> None:
        known = [*self._table.providers(), *local_names()]
        if provider not in known:
            near = self._near(provider, known, 0.6)
            hint = f", did you mean '{near}'?" if near else ". pi auth list shows those that have a key"
            raise ConfigError(f"There is no provider '{provider}'{hint}")

    @staticmethod
    def _near(word: str, names: Iterable[str], cutoff: float = _NEAR) -> str | None:
        folded = {name.lower(): name for name in names}
        found = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
        return folded[found[0]] if found else None

    # --- no name ---

    async def _by_default(self, ctx: SelectionContext) -> Model | None:
        settings = self._settings()
        if ctx.provider is None and not ctx.api_key:
            chosen = self._of_settings(settings, ctx)
            if chosen is not None:
                return chosen
        order = [ctx.provider] if ctx.provider is not None else self._order(settings)
        told = settings.default_provider if settings.default_model else None
        for provider in order:
            if self._is_server(provider) and (model := await running_model(ctx, provider)) is not None:
                return model
            if not self._is_reason(provider, ctx):
                if provider != told:
                    self._say_why_not(provider, ctx)
                continue
            model = self._table.usual(provider)
            if model is not None:
                because = self._because(provider)
                ctx.notice(f"Using {model.provider}/{model.id}{because}. Name another with --model")
                return model
        return None

    def _of_settings(self, settings: Settings, ctx: SelectionContext) -> Model | None:
        """The model that the settings name."""
        if settings.enabled_models:
            models, warnings = self.scope(settings.enabled_models)
            for warning in warnings:
                ctx.notice(warning)
            if models:
                ctx.thinking_level = ctx.thinking_level or models[0][1]
                return models[0][0]
        provider, model_id = settings.default_provider, settings.default_model
        if model_id is None:
            return None
        name = model_id if provider is None else f"{provider}/{model_id}"
        if provider is not None and provider not in local_names() and not self._usable(provider):
            reason = self._why_not(provider) or f"{provider} has no key"
            ctx.notice(f"The settings name {name}, but {reason}: another model takes its place")
            return None
        try:
            model = self._by_name(name, ctx)
        except ConfigError as error:
            ctx.notice(f"The model of the settings cannot be used: {error}")
            return None
        if model is None:
            ctx.notice(f"The settings name the model '{name}', which is not known here: another one takes its place")
        return model

    def _order(self, settings: Settings) -> list[str]:
        """The providers, those first that the settings put first."""
        first = [settings.default_provider] if settings.default_provider and not settings.default_model else []
        return list(dict.fromkeys([*first, *settings.provider_order, *self._table.providers()]))

    def _say_why_not(self, provider: str, ctx: SelectionContext) -> None:
        reason = self._why_not(provider)
        if reason is not None:
            ctx.notice(f"{provider} is passed over: {reason}")

    def _why_not(self, provider: str) -> str | None:
        """Why a provider that was given a key cannot be asked, ``None`` when it can or has none."""
        source, fault = self._source(provider), self._fault(provider)
        return None if source is None or fault is None else f"{source.label}: {fault}"

    def _is_server(self, provider: str) -> bool:
        """Whether a name is that of a server on this machine, and nothing is said about it in the files."""
        return provider in local_names() and self._table.entry(provider) is None

    def _is_reason(self, provider: str, ctx: SelectionContext) -> bool:
        """Whether what a provider has is a reason to ask it without being told to."""
        if ctx.api_key and provider == ctx.provider:
            return True
        if not self._usable(provider):
            return False
        known, source = PROVIDERS.get(provider), self._source(provider)
        by_chance = source is not None and source.kind == "environment" and known is not None and not known.model
        return not by_chance or provider == ctx.provider

    def _because(self, provider: str) -> str:
        source = self._source(provider)
        if source is None:
            return ""
        if source.kind == "environment":
            return f", because {source.label} is set"
        return f", because its key is in {source.label}" if source.kind != "runtime" else ""

    # --- an address ---

    async def _at_address(self, name: str | None, ctx: SelectionContext) -> Model:
        address, name = await address_of(name, ctx)
        base, word = split_level(name)
        level = level_of(word)
        if level is not None:
            name, ctx.thinking_level = base, level
        provider, slash, model_id = name.partition("/")
        if ctx.provider is not None:
            provider, model_id = ctx.provider, name.removeprefix(f"{ctx.provider}/")
        elif not slash or provider not in self._table.providers():
            provider, model_id = "custom", name
        api = ctx.api or LOCAL_API
        known = self._table.model(provider, model_id)
        if known is None:
            from pi_core import Model

            thinks = level not in (None, "off")
            return Model(id=model_id, name=model_id, api=api, provider=provider, base_url=address, reasoning=thinks)
        kept = known.compat if known.api == api else None
        return known.model_copy(update={"api": api, "base_url": address, "compat": kept})

    # --- a pattern ---

    def _fitting(
        self, pattern: str, matcher: Matcher, warnings: list[str]
    ) -> Sequence[tuple[Candidate, ThinkingLevel | None]]:
        base, word = split_level(pattern)
        level = level_of(word)
        tries: list[tuple[str, ThinkingLevel | None]] = [(pattern, None)]
        if word is not None:
            tries.append((base, level))
        for text, wished in tries:
            found = matcher.find(text)
            if is_pattern(text) and not matcher.is_name(text):
                found = matcher.matching(text)
            elif len(found) > 1:
                names = ", ".join(sorted({one.provider for one in found}))
                warnings.append(f"The pattern '{pattern}' fits several providers: {names}. Name one as provider/id")
            if found:
                if text != pattern and level is None:
                    warnings.append(f"'{word}' in the pattern '{pattern}' is no thinking level: the usual one is used")
                return [(one, wished) for one in found]
        warnings.append(f"No model with a key fits the pattern '{pattern}'")
        return []
