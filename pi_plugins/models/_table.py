"""Every model there is: the catalog with ``models.json`` over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ._known import PROVIDERS
from ._matching import Candidate
from .keys import ConfiguredKey
from .models_json import ModelsConfig, ModelsFiles, ProviderEntry
from .templates import Template

if TYPE_CHECKING:
    from pi_core import Model

    from ._compose import Composed
    from .catalog import Catalog

Row: TypeAlias = dict[str, Any]


class ModelTable:
    """Models by provider and id, as rows and as models. What changed in the files shows at the next call.

    :param catalog: the models that ship or were fetched.
    :param files: what the user and the project say.
    """

    def __init__(self, catalog: Catalog, files: ModelsFiles) -> None:
        self.catalog = catalog
        self._files = files
        self._config: ModelsConfig | None = None
        self._rows: dict[str, Mapping[str, Row]] = {}
        self._composed: dict[str, Composed] = {}
        self._models: dict[tuple[str, str], Model] = {}

    def providers(self) -> list[str]:
        """Return the names of all providers, those of the table of known ones first."""
        found = {*self.catalog.providers(), *self.config().providers}
        return [*PROVIDERS, *sorted(found - PROVIDERS.keys())]

    def rows(self, provider: str) -> Mapping[str, Row]:
        """Return the models of a provider as JSON objects, by id; they must not be changed."""
        entry = self.config().providers.get(provider)
        rows = self._rows.get(provider)
        if rows is None:
            rows = {row["id"]: row for row in self.catalog.rows(provider)}
            if entry is not None:
                from ._compose import compose

                self._composed[provider] = made = compose(provider, rows, entry, self.catalog.row)
                rows = made.rows
            self._rows[provider] = rows
        return rows

    def model(self, provider: str, model_id: str) -> Model | None:
        """Return a model, ``None`` if there is none of that name."""
        row = self.rows(provider).get(model_id)
        if row is None:
            return None
        if (provider, model_id) not in self._models:
            from pi_core import Model

            self._models[provider, model_id] = Model.model_validate(row)
        return self._models[provider, model_id]

    def usual(self, provider: str) -> Model | None:
        """Return the model a provider is asked with when none is named, ``None`` if it has none."""
        known = PROVIDERS.get(provider)
        if known is not None and known.model:
            return self.model(provider, known.model) or self._bare(provider, known.model)
        entry, rows = self.entry(provider), self.rows(provider)
        if entry is not None and entry.models:
            ids = [model_id for model_id in entry.models if model_id in rows]
        else:
            newest_first = sorted(rows, reverse=True)
            ids = [model_id for model_id in newest_first if rows[model_id].get("reasoning")] or newest_first
        return self.model(provider, ids[0]) if ids else None

    def custom(self, provider: str, model_id: str, *, reasoning: bool) -> Model | None:
        """Return a model that is not in the table, made after the usual one of its provider; its prices are not known.

        :param reasoning: whether it can think, whatever the usual one can.
        :returns: ``None`` when nothing says where the provider is.
        """
        usual = self.usual(provider)
        if usual is None:
            return self._bare(provider, model_id, reasoning=reasoning)
        row = usual.to_json()
        for key in ("cost", "thinkingLevelMap"):
            row.pop(key, None)
        from pi_core import Model

        return Model.model_validate(
            {**row, "id": model_id, "name": model_id, "reasoning": reasoning or usual.reasoning},
        )

    def candidates(self) -> list[Candidate]:
        """Return every model as far as its name goes."""
        return [
            Candidate(provider, model_id, str(row.get("name") or model_id))
            for provider in self.providers()
            for model_id, row in self.rows(provider).items()
        ]

    def entry(self, provider: str) -> ProviderEntry | None:
        """Return what the files say about a provider."""
        return self.config().providers.get(provider)

    def configured_key(self, provider: str) -> ConfiguredKey | None:
        """Return the key that the files have for a provider."""
        entry = self.entry(provider)
        if entry is None or "apiKey" not in entry.fields:
            return None
        return ConfiguredKey(Template(entry.fields["apiKey"]), entry.key_place)

    def model_headers(self, provider: str, model_id: str) -> Mapping[str, str | None]:
        """Return the headers that the files give to one model, as templates."""
        self.rows(provider)
        made = self._composed.get(provider)
        return {} if made is None else made.headers.get(model_id, {})

    def problems(self) -> list[str]:
        """Return one text for each entry of the files that does not count, and each file that cannot be read."""
        config = self.config()
        for provider in config.providers:
            self.rows(provider)
        composed = [problem for made in self._composed.values() for problem in made.problems]
        return [*config.problems, *composed, *self.catalog.problems()]

    def config(self) -> ModelsConfig:
        """Return what the files say now."""
        config = self._files.config()
        if config is not self._config:
            self._config = config
            self._rows, self._composed, self._models = {}, {}, {}
        return config

    def _bare(self, provider: str, model_id: str, *, reasoning: bool = False) -> Model | None:
        """A model of a provider of which only the address is known."""
        known, entry = PROVIDERS.get(provider), self.entry(provider)
        fields = {} if entry is None else entry.fields
        api = fields.get("api") or (known.api if known is not None else "")
        base_url = fields.get("baseUrl") or (known.base_url if known is not None else "")
        if not base_url:
            return None
        from pi_core import Model

        return Model(
            id=model_id,
            name=model_id,
            api=api or "openai-completions",
            provider=provider,
            base_url=base_url,
            reasoning=reasoning,
            compat=fields.get("compat"),
        )
