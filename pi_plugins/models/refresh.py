"""Fetches the public catalogs and makes of them the set that :class:`~pi_plugins.models.catalog.Catalog` reads.

What a source does not give, or gives broken, stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from pi_core import ConfigError
from pi_plugins.config.secrets import without_secrets

from ._catalog_set import CatalogSet, write_set
from ._fetch import Fetched, SourceError, fetch_all
from ._generations import Step, clean, current_set, publish
from ._quirks import quirks
from ._transform import MODELS_DEV, OPENROUTER, Transformed, from_models_dev, from_openrouter
from .catalog import Catalog

LOCK: Final = ".lock"
_READERS: Final = {MODELS_DEV: from_models_dev, OPENROUTER: from_openrouter}


@dataclass(slots=True)
class SourceReport:
    """What became of one source.

    :ivar size: bytes received.
    :ivar models: how many models it has here now.
    :ivar added: models that are new, as ``provider/id``; ``removed`` and ``changed`` alike.
    :ivar unchanged: whether the source said that nothing is new.
    :ivar error: why nothing of it could be used; empty if something was.
    :ivar faults: a line for each part of it that could not be used.
    """

    name: str
    address: str
    size: int = 0
    models: int = 0
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: bool = False
    error: str = ""
    faults: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether something of the source could not be used."""
        return bool(self.error or self.faults)


def refresh(
    directory: Path,
    addresses: Mapping[str, str],
    *,
    seconds: float = 60,
    proxy: str | None = None,
    allow_drop: bool = False,
    installed: Path | None = None,
    report: Callable[[SourceReport], object] = lambda source: None,
    step: Step = lambda name: None,
) -> list[SourceReport]:
    """Fetch the sources and replace the refreshed set by what they give. Not to be called while an event loop runs.

    Whatever interrupts it, readers find the set of before or the new one, and the next refresh cleans up.

    :param directory: the folder of refreshed data.
    :param addresses: where each source is: ``models.dev``, ``openrouter`` or both.
    :param seconds: time for each answer, and for another refresh that is going on to end.
    :param proxy: address of a proxy; what the environment says without one.
    :param allow_drop: accept that a provider has less than half of the models it had.
    :param installed: the folder of the data that ships.
    :param report: told what became of each source, once it is known.
    :param step: told of each step that is done.
    :raises ConfigError: another refresh does not end, or the folder cannot be written.
    :raises CatalogError: the new set came out unusable; the old one stays.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / LOCK, timeout=seconds):
            step("locked")
            clean(directory)
            step("cleaned")
            made = _Refresh(directory, addresses, installed, allow_drop)
            reports = made.run(asyncio.run(fetch_all(addresses, made.etags(), seconds=seconds, proxy=proxy)), report)
            step("fetched")
            if any(not source.error for source in reports):
                publish(directory, lambda folder: made.write(folder, step), step)
            return reports
    except Timeout:
        raise ConfigError(f"{directory}: another refresh is going on, and did not end within {seconds:g} s") from None
    except OSError as error:
        raise ConfigError(f"{error.filename or directory}: {error.strerror or error}") from error


class _Refresh:
    """One refresh: what there was, and what there is to be."""

    def __init__(self, directory: Path, addresses: Mapping[str, str], installed: Path | None, allow_drop: bool) -> None:
        catalog = Catalog(directory, installed)
        self._addresses = addresses
        self._allow_drop = allow_drop
        self._rules = quirks().digest
        self._now = datetime.now(UTC).isoformat(timespec="seconds")
        self._rows = {name: {row["id"]: row for row in catalog.rows(name)} for name in catalog.providers()}
        self._times = {name: time.isoformat() for name in self._rows if (time := catalog.time(name)) is not None}
        self._sources = self._remembered(directory) if not catalog.problems() else {}

    @staticmethod
    def _remembered(directory: Path) -> dict[str, Any]:
        folder = current_set(directory)
        return {} if folder is None else dict(CatalogSet(folder).sources)

    def etags(self) -> dict[str, str]:
        """What to ask the sources with: only where asking anew could give nothing else."""
        return {
            name: known["etag"]
            for name, known in self._sources.items()
            if without_secrets(self._addresses.get(name, "")) == known.get("address")
            and known.get("rules") == self._rules
            and isinstance(known.get("etag"), str)
        }

    def run(
        self, answers: Mapping[str, Fetched | SourceError], report: Callable[[SourceReport], object]
    ) -> list[SourceReport]:
        """Take over what the sources gave, and say what became of each."""
        reports = []
        for name, answer in answers.items():
            source = SourceReport(name, without_secrets(self._addresses[name]))
            if isinstance(answer, SourceError):
                source.error = str(answer)
            else:
                self._take(answer, source)
            source.models = sum(len(rows) for provider, rows in self._rows.items() if self._gives(name, provider))
            reports.append(source)
            report(source)
        return reports

    def write(self, folder: Path, step: Step) -> None:
        """Write the set there is to be."""
        write_set(
            folder,
            self._rows,
            generated_at=self._now,
            sources=self._sources,
            times={name: time for name, time in self._times.items() if time != self._now},
            written=lambda name: step(f"wrote {name}"),
        )

    def _gives(self, source: str, provider: str) -> bool:
        """Whether a provider's models come from a source: those of OpenRouter from itself, if it is asked."""
        return source == (OPENROUTER if provider == OPENROUTER and OPENROUTER in self._addresses else MODELS_DEV)

    def _take(self, answer: Fetched, source: SourceReport) -> None:
        source.size, source.unchanged = answer.size, answer.unchanged
        if source.unchanged:
            self._times |= {name: self._now for name in self._rows if self._gives(source.name, name)}
        else:
            try:
                made = _READERS[source.name](answer.data, quirks())
            except ValueError as error:
                source.error = f"{source.address}: not the catalog that was expected: {error}"
                return
            if not any(made.providers.values()):
                source.error = f"{source.address}: no model in it can be used"
                return
            source.faults = made.faults
            self._replace(made, source)
        self._sources[source.name] = {
            "address": source.address,
            "etag": answer.etag if not source.failed else None,
            "fetchedAt": self._now,
            "rules": self._rules,
        }

    def _replace(self, made: Transformed, source: SourceReport) -> None:
        for provider, rows in made.providers.items():
            if not self._gives(source.name, provider):
                continue
            old = self._rows.get(provider, {})
            if len(rows) * 2 < len(old) and not self._allow_drop:
                source.faults.append(
                    f"{provider}: {len(rows)} models instead of {len(old)}, so the old ones stay. If it is right: "
                    "pi models refresh --allow-drop"
                )
                continue
            source.added += _named(provider, rows.keys() - old.keys())
            source.removed += _named(provider, old.keys() - rows.keys())
            source.changed += _named(provider, {key for key in rows.keys() & old.keys() if rows[key] != old[key]})
            self._rows[provider] = rows
            self._times[provider] = self._now


def _named(provider: str, ids: set[str]) -> list[str]:
    return [f"{provider}/{model_id}" for model_id in sorted(ids)]
