"""A folder of hand-made distributions on the import path, in place of installed ones."""

from __future__ import annotations

import base64
import hashlib
import importlib
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest


class Site:
    """Writes distributions as a wheel's installer leaves them.

    The module of plugin ``x`` of distribution ``pi-y`` is ``pi_y/x.py``, and its plugin is the class ``Plugin``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packages: set[str] = set()

    def add(
        self,
        name: str,
        plugins: Mapping[str, str],
        version: str = "1.0",
        *,
        requires: Iterable[str] = (),
    ) -> Path:
        """Write a distribution and return the folder of its modules.

        :param plugins: source of the module of each plugin, by plugin name.
        """
        package = name.replace("-", "_")
        self._packages.add(package)
        files = {f"{package}/__init__.py": "", **{f"{package}/{plugin}.py": text for plugin, text in plugins.items()}}
        info = f"{package}-{version}.dist-info"
        entries = "".join(f"{plugin} = {package}.{plugin}:Plugin\n" for plugin in plugins)
        needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
        files[f"{info}/entry_points.txt"] = f"[pi]\n{entries}"
        files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        record = []
        for path, text in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(text.encode())}")
        (self.folder / info / "RECORD").write_text("\n".join([*record, f"{info}/RECORD,,"]) + "\n", encoding="utf-8")
        self.changed()
        return self.folder / package

    def remove(self, name: str) -> None:
        """Take a distribution out."""
        package = name.replace("-", "_")
        shutil.rmtree(self.folder / package)
        for info in self.folder.glob(f"{package}-*.dist-info"):
            shutil.rmtree(info)
        self.changed()

    def changed(self) -> None:
        """Forget what was found and imported so far, as a new process would."""
        from pi_core._loader import installed

        importlib.invalidate_caches()
        installed.cache_clear()
        for module in [name for name in sys.modules if name.split(".")[0] in self._packages]:
            del sys.modules[module]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Distributions of this test, found beside what is really installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Site(folder)
    yield made
    made.changed()
