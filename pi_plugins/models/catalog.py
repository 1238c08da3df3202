"""The catalog of models: what ships with the package, or newer data that ``pi models refresh`` fetched.

Rows are JSON objects as they are on disk; a :class:`pi_core.Model` is made only of a row that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ._catalog_set import CatalogError, CatalogSet, said
from ._generations import current_set

if TYPE_CHECKING:
    from pi_core import Model

SHIPPED: Final = Path(__file__).with_name("_data")
FOLDER: Final = "catalog"
"""Where refreshed data is, in the agent's folder."""

_TRIES: Final = 20
"""How often a reader starts again when refreshes take away the set that it reads."""

_T = TypeVar("_T")


class _Gone(Exception):  # noqa: N818 - no error: the reader starts again
    """The set that was being read has been replaced, and removed."""


class Catalog:
    """Models by provider and id. A provider's file is read when it is asked for.

    For each provider the newer data wins, that which was fetched or that which ships. Where the fetched data is damaged
    or lacks a provider, what ships is used.

    :param directory: the folder of refreshed data; ``catalog`` in the agent's folder by default.
    :param installed: the folder of the data that ships.
    """

    def __init__(self, directory: Path | None = None, installed: Path | None = None) -> None:
        self._directory = directory
        self._installed = installed or SHIPPED
        self._forget()

    def _forget(self) -> None:
        self._sets: list[CatalogSet] | None = None
        self._problems: list[str] = []
        self._rows: dict[str, tuple[Path | None, dict[str, dict[str, Any]]]] = {}
        self._models: dict[tuple[str, str], Model] = {}

    @property
    def directory(self) -> Path:
        """The folder of refreshed data."""
        if self._directory is None:
            from pi_plugins.config import agent_dir

            self._directory = agent_dir() / FOLDER
        return self._directory

    def providers(self) -> list[str]:
        """Return the names of all providers."""
        return sorted({provider for opened in self._opened() for provider in opened.providers})

    def rows(self, provider: str | None = None) -> list[dict[str, Any]]:
        """Return models as JSON objects, by provider and id. They belong to the catalog and must not be changed.

        :param provider: only those of this one; none if it is not known.
        """
        if provider is not None:
            return list(self._of(provider)[1].values())
        return self._steady(lambda: [row for name in self.providers() for row in self._load(name)[1].values()])

    def row(self, provider: str, model_id: str) -> dict[str, Any] | None:
        """Return one model as JSON, if there is such a model. It belongs to the catalog and must not be changed."""
        return self._of(provider)[1].get(model_id)

    def model(self, provider: str, model_id: str) -> Model | None:
        """Return one model, if there is such a model."""
        row = self.row(provider, model_id)
        if row is None:
            return None
        if (provider, model_id) not in self._models:
            from pi_core import Model

            self._models[provider, model_id] = Model.model_validate(row)
        return self._models[provider, model_id]

    def time(self, provider: str) -> datetime | None:
        """Return how old the data of a provider is; ``None`` if there is no such provider."""
        file = self.origin(provider)
        return next((opened.time(provider) for opened in self._opened() if opened.path(provider) == file), None)

    def origin(self, provider: str) -> Path | None:
        """Return the file that the models of a provider are read from."""
        return self._of(provider)[0]

    def problems(self) -> list[str]:
        """Return a line for each file that could not be used so far, with what is used instead."""
        self._opened()
        return list(self._problems)

    def _of(self, provider: str) -> tuple[Path | None, dict[str, dict[str, Any]]]:
        return self._steady(lambda: self._load(provider))

    def _steady(self, read: Callable[[], _T]) -> _T:
        """Read from one set, and again from the next one when that set is taken away."""
        for _ in range(_TRIES):
            try:
                return read()
            except _Gone:
                self._forget()
        raise CatalogError(f"{self.directory}: the catalog is replaced faster than it can be read")

    def _load(self, provider: str) -> tuple[Path | None, dict[str, dict[str, Any]]]:
        if provider not in self._rows:
            self._rows[provider] = self._first(provider)
        return self._rows[provider]

    def _first(self, provider: str) -> tuple[Path | None, dict[str, dict[str, Any]]]:
        having = [opened for opened in self._opened() if provider in opened.providers]
        for opened in sorted(having, key=lambda opened: opened.time(provider), reverse=True):
            try:
                return opened.path(provider), opened.rows(provider)
            except FileNotFoundError:
                if opened.folder != self._installed and opened.folder != current_set(self.directory):
                    raise _Gone from None
                self._unusable(opened.folder, f"{opened.path(provider)}: missing")
            except (OSError, CatalogError) as error:
                self._unusable(opened.folder, said(error))
        return None, {}

    def _opened(self) -> list[CatalogSet]:
        """The sets to look in. Of equally old ones the one that ships is the first."""
        if self._sets is None:
            self._sets = [found for found in (self._open_shipped(), self._open_refreshed()) if found is not None]
        return self._sets

    def _open_refreshed(self) -> CatalogSet | None:
        folder = None
        for _ in range(_TRIES):
            try:
                folder = current_set(self.directory)
                return None if folder is None else CatalogSet(folder)
            except FileNotFoundError:
                # Replaced twice between the two lines; or it is not there at all.
                continue
            except (OSError, CatalogError) as error:
                self._unusable(self.directory, said(error))
                return None
        self._unusable(self.directory, f"{folder}: missing")
        return None

    def _open_shipped(self) -> CatalogSet | None:
        try:
            return CatalogSet(self._installed)
        except FileNotFoundError:
            fault = f"{self._installed}: the catalog that ships with the package is missing"
        except (OSError, CatalogError) as error:
            fault = said(error)
        self._unusable(self._installed, fault)
        return None

    def _unusable(self, folder: Path, text: str) -> None:
        way_out = (
            "Install the package again"
            if folder == self._installed
            else "Using the data that ships with the package. To fetch it anew: pi models refresh"
        )
        self._problems.append(f"{text}. {way_out}")
