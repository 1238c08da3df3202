"""The public names: sorted, documented, found lazily, and cheap."""

from __future__ import annotations

import ast
import inspect
import itertools
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pi_core

ROOT = Path(pi_core.__file__).parent
HOMES = {name: module for module, names in pi_core._HOMES.items() for name in names}


def in_a_new_process(code: str) -> list[str]:
    """Run code and return the words it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _place(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted_and_has_every_public_name_once() -> None:
    assert pi_core.__all__ == sorted(pi_core.__all__, key=_place)
    assert set(pi_core.__all__) == set(HOMES)
    assert len(pi_core.__all__) == len(HOMES)


def test_a_type_checker_sees_the_same_names() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: imported.module
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
        if alias.asname == alias.name
    }
    assert seen == HOMES


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(pi_core, name)
    assert value is getattr(import_module(f"pi_core.{HOMES[name]}"), name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
    else:
        assert name in documented(HOMES[name])


def documented(module: str) -> set[str]:
    """The assignments of a module that a docstring follows."""
    body = ast.parse((ROOT / f"{module}.py").read_text(encoding="utf-8")).body
    found = set()
    for node, following in itertools.pairwise(body):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_dir_lists_them_and_other_names_are_errors() -> None:
    assert set(pi_core.__all__) <= set(dir(pi_core))
    with pytest.raises(AttributeError, match="module 'pi_core' has no attribute 'Agnet'"):
        pi_core.Agnet  # noqa: B018


def test_importing_the_package_imports_none_of_its_modules() -> None:
    assert in_a_new_process("import sys, pi_core; print(*[m for m in sys.modules if m.startswith('pi_core')])") == [
        "pi_core"
    ]


HEAVY = {
    "httpx", "jsonschema", "click", "rich", "prompt_toolkit", "pytest", "importlib.metadata", "ssl",
    "pi_plugins", "pi_core.cli", "pi_core.build", "pi_core.testing", "pi_core._loader",
}  # fmt: skip


def test_an_agent_imports_nothing_it_does_not_need() -> None:
    code = """
import sys, asyncio
before = set(sys.modules)
from pi_core import Agent, Hooks, hookimpl, tool
class P:
    @hookimpl
    def on_turn_end(self): pass
@tool
def echo(text: str) -> str: return text
Agent(stream=lambda *given: None, plugins=[P()], tools=[echo])
print(*sorted(set(sys.modules) - before))
"""
    needed = set(in_a_new_process(code))
    # pydantic looks for its own plugins, and pluggy for distributions, through importlib.metadata.
    assert needed & (HEAVY - {"importlib.metadata"}) == set()


def test_the_command_line_imports_no_network_before_a_command_needs_it() -> None:
    code = """
import sys
from pi_core.cli import run
code = run(["plugins", "list"])
print("|", *sorted({m.partition(".")[0] for m in sys.modules}))
"""
    said = in_a_new_process(code)
    imported = set(said[said.index("|") :])
    assert imported & {"httpx", "jsonschema", "rich", "prompt_toolkit", "pytest"} == set()


@pytest.mark.parametrize("package", ["pi_core", "pi_plugins"])
def test_the_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT.parent / package / "py.typed").is_file()
