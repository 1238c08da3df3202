"""Who may import what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pluggy
import pytest

import pi_core
from pi_core._loader import installed
from pi_core.testing import heavy_imports

ROOT = Path(__file__).parents[2]


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if not {"build", ".venv"} & set(path.parts)]


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a file imports: module and name, the name empty for ``import module``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.module or "", alias.name) for alias in node.names)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


OURS = sources("pi_core", "pi_plugins", "contrib", "benchmarks")


def test_there_is_something_to_check() -> None:
    assert len(sources("pi_core")) > 20
    assert len(sources("pi_plugins")) > 5


@pytest.mark.parametrize("path", OURS, ids=named)
def test_no_private_name_of_pluggy(path: Path) -> None:
    for module, name in imports(path):
        if module.split(".")[0] == "pluggy":
            assert module == "pluggy"
            assert not name or name in pluggy.__all__
    text = path.read_text(encoding="utf-8")
    private = [name for name in vars(pluggy.PluginManager) if name.startswith("_") and not name.startswith("__")]
    private += ["_hookexec", "_inner_hookexec", "_multicall", "_plugin_distinfo", "_name2plugin", "spec.opts"]
    used = {name for name in private if re.search(rf"\b(self|manager|pm|super\(\))\.{name}\b", text)}
    ours = {name for name in used if re.search(rf"def {name}\(", text) or re.search(rf"self\.{name}(: .*)? = ", text)}
    assert used == ours


@pytest.mark.parametrize("path", sources("pi_core"), ids=named)
def test_the_core_does_not_know_the_plugins(path: Path) -> None:
    assert not [module for module, _ in imports(path) if module.split(".")[0] == "pi_plugins"]


PUBLIC_MODULES = {"hookspecs", "testing"}


@pytest.mark.parametrize("path", sources("pi_plugins", "contrib", "benchmarks"), ids=named)
def test_plugins_use_public_names_of_the_core_only(path: Path) -> None:
    for module, name in imports(path):
        root, _, rest = module.partition(".")
        if root != "pi_core":
            continue
        assert not rest or rest in PUBLIC_MODULES, f"{module}: import from pi_core"
        if not rest and name:
            assert name in pi_core.__all__ or name in PUBLIC_MODULES or name == "__version__"
        assert not name.startswith("_") or name == "__version__"


@pytest.mark.parametrize("path", OURS, ids=named)
def test_no_private_module_of_pytest(path: Path) -> None:
    assert not [module for module, _ in imports(path) if module.split(".")[0] == "_pytest"]


BUILT_IN = sorted({offer.target.partition(":")[0] for offer in installed() if offer.built_in})


@pytest.mark.parametrize("module", BUILT_IN)
def test_the_entry_points_of_the_built_ins_are_light(module: str) -> None:
    assert heavy_imports(module) == []


def test_hooks_are_not_called_through_pluggy() -> None:
    """pluggy does not await, so that an async hook called through it would do nothing."""
    calls = re.compile(r"\.hook\.\w+\(")
    assert [named(path) for path in OURS if calls.search(path.read_text(encoding="utf-8"))] == []
