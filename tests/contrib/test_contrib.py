"""The distributions of contrib/, each from its wheel in a fresh environment, with its own tests."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.install, pytest.mark.timeout(900)]
CONTRIB = Path(__file__).parents[2] / "contrib"
TESTED_ELSEWHERE = {"pi-local": "its tests ask for an engine and weights"}
NAMES = sorted(
    path.parent.name for path in CONTRIB.glob("*/pyproject.toml") if path.parent.name not in TESTED_ELSEWHERE
)


def project(name: str) -> dict[str, Any]:
    with (CONTRIB / name / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


@pytest.fixture(scope="module")
def wheels(workshop: Any) -> dict[str, Path]:
    """The wheels of all of them, since one may need another."""
    return {name: workshop.wheel(CONTRIB / name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_installed_and_its_tests_pass(name: str, workshop: Any, wheels: dict[str, Path], tmp_path: Path) -> None:
    environment = workshop.environment(tmp_path / "venv", f"{wheels[name]}[test]")
    shutil.copytree(CONTRIB / name / "tests", tmp_path / "tests")
    arguments = ["-m", "pytest", "-q", "--import-mode=importlib", "-W", "error", "tests"]
    done = environment.run("python", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout
    for plugin in project(name).get("entry-points", {}).get("pi", {}):
        said = environment.run("pi", "plugins", "why", plugin, cwd=tmp_path).stdout
        assert re.search(rf"plugin '{plugin}' \(.* from {name} 0\.1\.0\) is loaded", said)
    assert environment.run("pi", "plugins", "check", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_it_has_what_a_distribution_needs(name: str) -> None:
    data = project(name)
    assert {"name", "version", "description", "readme", "license", "license-files", "requires-python"} <= data.keys()
    folder = CONTRIB / name
    assert all((folder / file).is_file() for file in ("README.md", "LICENSE", "tox.ini"))
    assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    assert any(requirement.startswith("pi-agent-framework") for requirement in data["dependencies"])
