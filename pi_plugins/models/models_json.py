"""``models.json``: providers, models and overrides, the user's own and those of a trusted project.

A wrong entry costs only itself: everything else counts, and what is wrong is said with file, line and path.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pi_core import ConfigError
from pi_plugins.config.json_file import read_document
from pi_plugins.config.json_text import JsonDocument, JsonPath

MODELS_FILE: Final = "models.json"
_SAYS_SOMETHING: Final = (
    "baseUrl",
    "headers",
    "compat",
    "modelOverrides",
    "models",
    "apiKey",
    "oauth",
    "authHeader",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One model, or the override of one, as the file says it.

    :param fields: the keys of the file; those that are not there are not in it.
    :param place: the file and the line.
    :param path: where it is in the file, as ``providers.acme.models[0]``.
    """

    fields: Mapping[str, Any] = field(repr=False)
    place: str
    path: str


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """One provider as the files say it.

    :param fields: the keys of the provider, without models and overrides.
    :param models: by id, in the order of the files.
    :param overrides: by the id of a model; of two files the later one's are put over the earlier one's.
    :param place: the file and the line; those of the key are in ``key_place``.
    """

    fields: Mapping[str, Any] = field(repr=False)
    models: Mapping[str, Entry]
    overrides: Mapping[str, tuple[Entry, ...]]
    place: str
    key_place: str = ""


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """What the files say.

    :param problems: one text for each entry that does not count, or not as it was meant.
    """

    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class ModelsFiles:
    """The files, read again when one of them changed.

    A file that cannot be read any more leaves what it said before.

    :param paths: the later ones win, key by key.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self._revisions: tuple[object, ...] | None = None
        self._good: dict[Path, ModelsConfig] = {}
        self._config = ModelsConfig()

    def config(self) -> ModelsConfig:
        """Return what the files say now; the same object as before while they stay as they are."""
        revisions = tuple(_revision(path) for path in self.paths)
        if revisions != self._revisions:
            self._config = _merged([self._load(path) for path in self.paths])
            self._revisions = revisions
        return self._config

    def _load(self, path: Path) -> ModelsConfig:
        try:
            document = read_document(path, comments=True)
        except ConfigError as error:
            before = self._good.get(path, ModelsConfig())
            return replace(before, problems=(str(error), *before.problems))
        config = ModelsConfig() if document is None else _Reader(document).read()
        self._good[path] = config
        return config


class _Reader:
    """Reads one file."""

    def __init__(self, document: JsonDocument) -> None:
        self._document = document
        self._problems: list[str] = []

    def read(self) -> ModelsConfig:
        """Return what the file says."""
        for path, lines in self._document.duplicates():
            self._report(path, f"is there twice ({lines}); the last one counts")
        value = self._document.value
        providers = value.get("providers", {}) if isinstance(value, dict) else None
        if not isinstance(providers, dict):
            self._report((), 'expected an object: {"providers": {"NAME": {...}}}')
            providers = {}
        read = {name: self._provider(name, entry) for name, entry in providers.items()}
        found = {name: entry for name, entry in read.items() if entry is not None}
        return ModelsConfig(found, tuple(self._problems))

    def _provider(self, name: str, value: Any) -> ProviderEntry | None:
        from ._models_schema import ProviderFields, check, provider_fault

        at: JsonPath = ("providers", name)
        fault = provider_fault(name)
        if fault is not None:
            self._report(at, f"the name: {fault}")
            return None
        fields, faults = check(ProviderFields, value)
        self._report_all(at, faults)
        if fields is None:
            return None
        given = fields.given()
        api = given.get("api", "")
        self._check_compat(at, given, api)
        if not any(key in given for key in _SAYS_SOMETHING):
            self._report(at, 'must specify "baseUrl", "headers", "compat", "modelOverrides", "models" or "apiKey"')
            return None
        if "oauth" in given:
            self._report((*at, "oauth"), f'logins are not made here; give it "apiKey", or: pi auth login {name}')
        return ProviderEntry(
            fields={key: value for key, value in given.items() if key not in ("models", "modelOverrides", "oauth")},
            models=self._models((*at, "models"), given.get("models", []), api),
            overrides=self._overrides((*at, "modelOverrides"), given.get("modelOverrides", {}), api),
            place=self._document.place(at),
            key_place=self._document.place((*at, "apiKey")),
        )

    def _models(self, at: JsonPath, values: list[Any], api: str) -> dict[str, Entry]:
        from ._models_schema import ModelEntry, check

        models: dict[str, Entry] = {}
        for index, value in enumerate(values):
            fields, faults = check(ModelEntry, value)
            self._report_all((*at, index), faults)
            if fields is not None:
                if fields.id in models:
                    self._report((*at, index), f"the model '{fields.id}' is there twice; the last one counts")
                models[fields.id] = self._entry((*at, index), fields.given(), fields.api or api)
        return models

    def _overrides(self, at: JsonPath, values: Mapping[str, Any], api: str) -> dict[str, tuple[Entry, ...]]:
        from ._models_schema import ModelOverride, check

        overrides: dict[str, tuple[Entry, ...]] = {}
        for model_id, value in values.items():
            fields, faults = check(ModelOverride, value)
            self._report_all((*at, model_id), faults)
            if fields is not None:
                overrides[model_id] = (self._entry((*at, model_id), fields.given(), api),)
        return overrides

    def _entry(self, at: JsonPath, fields: dict[str, Any], api: str) -> Entry:
        self._check_compat(at, fields, api)
        return Entry(fields, self._document.place(at), _dotted(at))

    def _check_compat(self, at: JsonPath, fields: dict[str, Any], api: str) -> None:
        """Take the switches out of an entry that do not fit its API."""
        if "compat" in fields:
            from ._compat_check import checked_compat

            fields["compat"], faults = checked_compat(fields["compat"], api)
            self._report_all((*at, "compat"), faults)

    def _report_all(self, at: JsonPath, faults: list[tuple[JsonPath, str]]) -> None:
        for path, text in faults:
            self._report((*at, *path), text)

    def _report(self, path: JsonPath, text: str) -> None:
        named = f"{_dotted(path)}: " if path else ""
        self._problems.append(f"{self._document.place(path)}: {named}{text}")


def _dotted(path: JsonPath) -> str:
    from pi_plugins.config.keys import dotted

    return dotted(path)


def _merged(configs: list[ModelsConfig]) -> ModelsConfig:
    providers: dict[str, ProviderEntry] = {}
    for config in configs:
        for name, entry in config.providers.items():
            providers[name] = _over(providers[name], entry) if name in providers else entry
    return ModelsConfig(providers, tuple(problem for config in configs for problem in config.problems))


def _over(below: ProviderEntry, above: ProviderEntry) -> ProviderEntry:
    fields = {**below.fields, **above.fields}
    for key in ("headers", "compat"):
        if key in below.fields and key in above.fields:
            fields[key] = {**below.fields[key], **above.fields[key]}
    overrides = dict(below.overrides)
    for model_id, entries in above.overrides.items():
        overrides[model_id] = (*overrides.get(model_id, ()), *entries)
    return ProviderEntry(
        fields=fields,
        models={**below.models, **above.models},
        overrides=overrides,
        place=above.place,
        key_place=above.key_place if "apiKey" in above.fields else below.key_place,
    )


def _revision(path: Path) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
