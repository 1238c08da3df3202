"""Distributions for tests: hand-made ones on the import path, and wheels for environments of their own."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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


class Environment:
    """A virtual environment without pip.

    :param home: the home directory of what runs in it.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        venv.create(folder, with_pip=False)
        self.home = home
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"

    def install(self, *what: str | Path, wheels: Path | None = None) -> None:
        """Install with the pip of this process.

        :param wheels: a folder of wheels that may be needed.
        """
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        command += [] if wheels is None else ["--find-links", str(wheels)]
        done = subprocess.run([*command, *map(str, what)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, program: str, *arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment with nothing of this process's but the path."""
        return subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=cwd,
            env={"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.home), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


class Workshop:
    """Builds wheels and makes environments.

    :param folder: where everything is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self._builder = Environment(folder / "builder", folder)
        self._builder.install("hatchling>=1.25")
        self.project = self.wheel(ROOT)

    def wheel(self, source: Path) -> Path:
        """Build the wheel of a project."""
        done = self._builder.run(
            "python", "-m", "hatchling", "build", "-t", "wheel", "-d", str(self.wheels), cwd=source
        )
        assert done.returncode == 0, done.stderr
        return self.wheels / Path((done.stdout + done.stderr).strip().splitlines()[-1]).name

    def plugin(self, distribution: str, version: str, plugin: str, source: str) -> Path:
        """Build the wheel of a plugin of one module, whose class is ``Plugin``."""
        project = self.folder / "sources" / distribution
        project.mkdir(parents=True)
        module = distribution.replace("-", "_")
        (project / f"{module}.py").write_text(source, encoding="utf-8")
        (project / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
            f'[project]\nname = "{distribution}"\nversion = "{version}"\n\n'
            f'[project.entry-points.pi]\n{plugin} = "{module}:Plugin"\n\n'
            f'[tool.hatch.build.targets.wheel]\ninclude = ["{module}.py"]\n',
            encoding="utf-8",
        )
        return self.wheel(project)

    def environment(self, folder: Path, *what: str | Path) -> Environment:
        """Make a fresh environment with the project from its wheel, and more."""
        made = Environment(folder, self.folder)
        made.install(self.project, *what, wheels=self.wheels)
        return made


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Builds wheels, that of the project first."""
    return Workshop(tmp_path_factory.mktemp("workshop"))
