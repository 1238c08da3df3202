"""Names of the packages of plugins: imported when they are first used, each from where it says."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import pi_plugins

FOLDER = Path(pi_plugins.__file__).parent
PACKAGES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py") if "names_of(" in path.read_text("utf-8"))


def promised(package: str) -> set[str]:
    """The names that a package imports for type checkers."""
    tree = ast.parse((FOLDER / package / "__init__.py").read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in ast.walk(block) if isinstance(node, ast.ImportFrom)]
    return {name.asname for node in imports if node.level == 1 for name in node.names if name.asname == name.name}


def test_there_are_such_packages() -> None:
    assert {"coding_agent", "config", "models", "prompt", "sessions", "tools"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_type_checkers_see_is_what_there_is(package: str) -> None:
    module = import_module(f"pi_plugins.{package}")
    names = promised(package)
    assert names <= set(dir(module))
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = import_module(f"pi_plugins.{package}").nothing
