"""One set of the catalog on disk: a file for each provider, and a manifest that has the hash of each file.

A file is read when its provider is asked for, and compared with the manifest then.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pi_core import ConfigError

from ._validation import row_faults

SCHEMA_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
_SUFFIX: Final = ".json"


class CatalogError(ConfigError):
    """A set of the catalog that is incomplete, damaged, or of another version."""


class CatalogSet:
    """A set that is read file by file.

    :param folder: where its files are.
    :ivar manifest: what was written of it: its version, time, sources and the hash of each file.
    :ivar generated_at: when it was made.
    :raises FileNotFoundError: there is no set.
    :raises CatalogError: its manifest cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / MANIFEST
        self.manifest: Mapping[str, Any] = _object(path, path.read_bytes())
        version = self.manifest.get("schemaVersion")
        if version != SCHEMA_VERSION:
            raise CatalogError(f"{path}: expected schemaVersion {SCHEMA_VERSION}, got {version!r}")
        files = self.manifest.get("files")
        if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
            raise CatalogError(f"{path}: 'files' must be an object of file names and their SHA-256")
        self._files: Mapping[str, str] = files
        self.generated_at = _time(path, "generatedAt", self.manifest.get("generatedAt"))
        times = self.manifest.get("times", {})
        if not isinstance(times, dict):
            raise CatalogError(f"{path}: 'times' must be an object of providers and times")
        self._times = {provider: _time(path, f"times.{provider}", text) for provider, text in times.items()}

    @property
    def providers(self) -> list[str]:
        """The providers that have a file."""
        return sorted(name.removesuffix(_SUFFIX) for name in self._files)

    def time(self, provider: str) -> datetime:
        """How old the data of a provider is: when a source last told of it."""
        return self._times.get(provider, self.generated_at)

    @property
    def sources(self) -> Mapping[str, Any]:
        """Where its data came from, by the source's name."""
        found = self.manifest.get("sources")
        return found if isinstance(found, dict) else {}

    def path(self, provider: str) -> Path:
        """The file of a provider."""
        return self.folder / f"{provider}{_SUFFIX}"

    def rows(self, provider: str) -> dict[str, dict[str, Any]]:
        """Read the models of a provider, by id.

        :raises FileNotFoundError: the file is not there.
        :raises CatalogError: it is not the file that was written.
        """
        path = self.path(provider)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self._files[path.name]:
            raise CatalogError(f"{path}: damaged: its SHA-256 is not the one in {MANIFEST}")
        models = _object(path, content).get("models")
        if not isinstance(models, dict):
            raise CatalogError(f"{path}: 'models' must be an object")
        return models

    def faults(self) -> list[str]:
        """Return a line for each file that is missing, damaged or too many, and each model that cannot be used."""
        surplus = {path.name for path in self.folder.iterdir()} - {*self._files, MANIFEST}
        found = [f"{self.folder / name}: not part of the set" for name in sorted(surplus)]
        for provider in self.providers:
            try:
                rows = self.rows(provider)
            except FileNotFoundError:
                found.append(f"{self.path(provider)}: missing")
            except CatalogError as error:
                found.append(str(error))
            else:
                for key, row in rows.items():
                    found += [f"{self.path(provider)}: {fault}" for fault in row_faults(row, provider, key)]
        return found


def write_set(
    folder: Path,
    providers: Mapping[str, Mapping[str, Mapping[str, Any]]],
    *,
    generated_at: str,
    sources: Mapping[str, Any],
    times: Mapping[str, str] | None = None,
    written: Callable[[str], object] = lambda name: None,
) -> None:
    """Write a set into a folder that is not there yet.

    :param providers: for each provider its models by id.
    :param generated_at: when it was made, as ISO 8601 with a time zone.
    :param sources: what to remember of where it came from.
    :param times: how old the data of single providers is, where it is not as new as the set.
    :param written: told the name of each file that is complete.
    """
    folder.mkdir(parents=True)
    files = {}
    for provider, models in sorted(providers.items()):
        lines = ",\n".join(f"{_json(key)}: {_json(row)}" for key, row in sorted(models.items()))
        name = f"{provider}{_SUFFIX}"
        files[name] = _write(folder / name, f'{{"provider": {_json(provider)}, "models": {{\n{lines}\n}}}}\n')
        written(name)
    manifest = {
        "schemaVersion": SCHEMA_VERSION,
        "generatedAt": generated_at,
        "sources": sources,
        "times": times or {},
        "files": files,
    }
    _write(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    written(MANIFEST)


def said(error: OSError | CatalogError) -> str:
    """Return a failure to read as a sentence that begins with the file."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _write(path: Path, text: str) -> str:
    content = text.encode()
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


def _object(path: Path, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise CatalogError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise CatalogError(f"{path}: expected an object, got {type(found).__name__}")
    return found


def _time(path: Path, key: str, text: object) -> datetime:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise CatalogError(f"{path}: '{key}' must be a time with a time zone, got {text!r}")
    return found
