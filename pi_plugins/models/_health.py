"""Whether the catalog is in order: what ships, and what was refreshed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from ._catalog_set import CatalogError, CatalogSet, said
from ._generations import current_set
from ._quirks import quirks
from .catalog import SHIPPED

STALE: Final = timedelta(days=30)


@dataclass(slots=True)
class Health:
    """What was found.

    :ivar lines: what there is, in words.
    :ivar faults: what is missing or damaged, with the way out.
    :ivar notes: what is in order, and yet should be known.
    """

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check(directory: Path, installed: Path = SHIPPED, now: datetime | None = None) -> Health:
    """Look at every file of the catalog.

    :param directory: the folder of refreshed data.
    :param installed: the folder of the data that ships.
    :param now: the time that ages are counted from.
    """
    health = Health()
    shipped = _look(health, "shipped", installed, "Install the package again")
    refreshed = None
    try:
        folder = current_set(directory)
    except (OSError, CatalogError) as error:
        health.faults.append(f"{said(error)}. Run: pi models refresh")
    else:
        if folder is not None:
            refreshed = _look(health, "refreshed", folder, "Run: pi models refresh")
    found = [one for one in (shipped, refreshed) if one is not None]
    _note_age(health, found, now or datetime.now(UTC))
    if refreshed is not None and shipped is not None:
        if all(shipped.time(provider) >= refreshed.time(provider) for provider in refreshed.providers):
            health.notes.append("The refreshed data is older than what ships, and not used")
        elif any(source.get("rules") != quirks().digest for source in refreshed.sources.values()):
            health.notes.append("The refreshed data was made by another version of the package. Run: pi models refresh")
    return health


def _note_age(health: Health, sets: list[CatalogSet], now: datetime) -> None:
    providers = sorted({provider for one in sets for provider in one.providers})
    ages = {
        provider: now - max(one.time(provider) for one in sets if provider in one.providers) for provider in providers
    }
    old = [provider for provider, age in ages.items() if age > STALE]
    if old:
        whose = "all providers" if len(old) == len(providers) else ", ".join(old)
        days = max(ages[provider] for provider in old).days
        health.notes.append(f"The data of {whose} is {days} days old. Run: pi models refresh")


def _look(health: Health, what: str, folder: Path, way_out: str) -> CatalogSet | None:
    try:
        found = CatalogSet(folder)
        faults = found.faults()
    except FileNotFoundError as error:
        health.faults.append(f"{error.filename}: missing. {way_out}")
        return None
    except (OSError, CatalogError) as error:
        health.faults.append(f"{said(error)}. {way_out}")
        return None
    health.faults += [f"{fault}. {way_out}" for fault in faults]
    if not faults:
        count = sum(len(found.rows(provider)) for provider in found.providers)
        when = f"{found.generated_at:%Y-%m-%d}"
        health.lines.append(f"{what}: {len(found.providers)} providers, {count} models of {when}, in {folder}")
    return found
