"""A type checker finds wrong argument and result types in a plugin that implements every hook."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pi_core import hookspecs
from pi_core import plugin as typed

ROOT = Path(__file__).parents[2]
HEAD = (
    "from __future__ import annotations\n"
    "from collections.abc import AsyncIterable, Iterable, Mapping\n"
    "from typing import Any\n"
    "from pi_core import *\n"
    "class Wrong: ...\n"
    "class Plugin(TypedPlugin):\n"
)


def functions(source: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: node for node in found}


SPECS = functions(Path(hookspecs.__file__).read_text(encoding="utf-8"))


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[type, list[str], str]:
    arguments = [ast.unparse(argument) for argument in node.args.args if argument.arg != "self"]
    return type(node), arguments, ast.unparse(node.returns) if node.returns is not None else ""


def test_the_typed_plugin_has_every_hook_as_it_is() -> None:
    declared = functions(Path(typed.__file__).read_text(encoding="utf-8"))
    assert {name: signature(node) for name, node in declared.items()} == {
        name: signature(node) for name, node in SPECS.items()
    }


def implementation(node: ast.FunctionDef | ast.AsyncFunctionDef, wrong: str = "") -> str:
    kind, arguments, returns = signature(node)
    if wrong == "result":
        returns = "Wrong"
    if wrong == "argument":
        name, _, _ = arguments[0].partition(":")
        arguments[0] = f"{name}: Wrong"
    define = "async def" if kind is ast.AsyncFunctionDef else "def"
    head = f"    @hookimpl\n    {define} {node.name}({', '.join(['self', *arguments])}) -> {returns}:\n"
    return head + "        raise RuntimeError\n"


def check(tmp_path: Path, wrong: str) -> str:
    chosen = [node for node in SPECS.values() if wrong != "argument" or node.args.args]
    if wrong:  # what may be anything cannot be wrong
        chosen = [node for node in chosen if "Any" not in ast.unparse(node.args) + ast.unparse(node.returns or node)]
    path = tmp_path / "plugin.py"
    path.write_text(HEAD + "".join(implementation(node, wrong) for node in chosen), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--no-error-summary", str(path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if wrong:
        for node in chosen:
            assert f'"{node.name}"' in output, f"nothing is said about {node.name}:\n{output}"
    return output


def test_a_right_plugin_has_no_error(tmp_path: Path) -> None:
    assert check(tmp_path, "") == ""


@pytest.mark.parametrize("wrong", ["argument", "result"])
def test_each_wrong_type_is_an_error(tmp_path: Path, wrong: str) -> None:
    assert "TypedPlugin" in check(tmp_path, wrong)
