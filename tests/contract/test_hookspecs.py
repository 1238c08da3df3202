"""Every hook has a contract, a method, a docstring, a place in the documentation and a file of tests."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from pi_core import Build, Contract, Hooks, Kind, OnError, contract_of, hookspecs

ROOT = Path(__file__).parents[2]
SPECS = {name: spec for name, spec in vars(hookspecs).items() if contract_of(spec) is not None}
BUILD_TIME = {name for name in SPECS if name.startswith("register_")} | {"configure"}
RUN_TIME = sorted(SPECS.keys() - BUILD_TIME)

OBSERVERS = (
    "agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_update", "message_end",
    "tool_execution_start", "tool_execution_update", "tool_execution_end",
)  # fmt: skip
TABLE: dict[str, tuple[Kind, OnError]] = {
    "register_hookspecs": (Kind.REGISTER, OnError.FAIL_BUILD),
    "configure": (Kind.NOTIFY, OnError.FAIL_BUILD),
    "register_providers": (Kind.REGISTER, OnError.FAIL_BUILD),
    "register_tools": (Kind.REGISTER, OnError.FAIL_BUILD),
    "register_message_types": (Kind.REGISTER, OnError.FAIL_BUILD),
    "register_commands": (Kind.REGISTER, OnError.FAIL_BUILD),
    "resolve_model": (Kind.FIRST, OnError.FAIL_RUN),
    "steering_messages": (Kind.COLLECT, OnError.FAIL_RUN),
    "follow_up_messages": (Kind.COLLECT, OnError.FAIL_RUN),
    "transform_context": (Kind.CHAIN, OnError.FAIL_RUN),
    "convert_to_llm": (Kind.FIRST, OnError.FAIL_RUN),
    "get_api_key": (Kind.FIRST, OnError.FAIL_RUN),
    "stream": (Kind.FIRST, OnError.FAIL_RUN),
    "provider_headers": (Kind.CHAIN, OnError.ERROR_MESSAGE),
    "provider_payload": (Kind.CHAIN, OnError.ERROR_MESSAGE),
    "provider_response": (Kind.NOTIFY, OnError.ISOLATE),
    "before_tool_call": (Kind.GUARD, OnError.BLOCK),
    "execute_tool": (Kind.FIRST, OnError.ERROR_RESULT),
    "after_tool_call": (Kind.CHAIN, OnError.ERROR_RESULT),
    "record_tool_result": (Kind.RECORD, OnError.FAIL_RUN),
    "prepare_next_turn": (Kind.CHAIN, OnError.FAIL_RUN),
    "should_stop_after_turn": (Kind.FIRST, OnError.FAIL_RUN),
    "record_message": (Kind.RECORD, OnError.FAIL_RUN),
    **{f"on_{event}": (Kind.NOTIFY, OnError.ISOLATE) for event in OBSERVERS},
    "plugin_error": (Kind.NOTIFY, OnError.LOG),
}
"""What a plugin may rely on; changing a row breaks plugins."""


def contract(name: str) -> Contract:
    found = contract_of(SPECS[name])
    assert found is not None
    return found


def test_the_hooks_are_these_in_this_order() -> None:
    assert list(SPECS) == list(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_kind_and_error_policy(name: str) -> None:
    assert (contract(name).kind, contract(name).on_error) == TABLE[name]


@pytest.mark.parametrize("name", TABLE)
def test_what_is_called_while_a_run_goes_on_may_be_async(name: str) -> None:
    assert contract(name).is_async == (name not in BUILD_TIME | {"plugin_error"})


def test_what_may_not_be_wrapped() -> None:
    refused = {name for name in SPECS if not contract(name).wrappers}
    assert refused == BUILD_TIME | {"before_tool_call", "plugin_error"}


@pytest.mark.parametrize("name", RUN_TIME)
def test_the_facade_has_a_method_with_the_parameters_of_the_hook(name: str) -> None:
    wanted = dict(inspect.signature(SPECS[name]).parameters)
    method = inspect.unwrap(getattr(Hooks, name))
    given = dict(inspect.signature(method).parameters)
    del given["self"]
    if name == "stream":
        assert list(given).pop() == "core"
        del given["core"]
    assert [(one.name, one.annotation, one.default) for one in given.values()] == [
        (one.name, one.annotation, one.default) for one in wanted.values()
    ]
    assert inspect.iscoroutinefunction(method) == contract(name).is_async


def test_the_facade_has_no_method_that_looks_like_a_hook_and_is_none() -> None:
    public = {name for name, value in vars(Hooks).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert public - SPECS.keys() == {"notify_event"}


@pytest.mark.parametrize("name", TABLE)
def test_the_docstring_says_when_it_is_called_and_what_comes_back(name: str) -> None:
    text = inspect.getdoc(SPECS[name]) or ""
    assert text.startswith("Called ")
    returns_nothing = inspect.signature(SPECS[name]).return_annotation == "None"
    assert (":returns:" in text) != returns_nothing


COPIES = {
    "configure": ("options",),
    "transform_context": ("messages",),
    "convert_to_llm": ("messages",),
    "stream": ("context", "options"),
    "provider_headers": ("headers",),
    "provider_payload": ("payload",),
    "provider_response": ("headers",),
    "after_tool_call": ("result",),
    "prepare_next_turn": ("turn",),
    "should_stop_after_turn": ("turn",),
}
"""The arguments that can be edited in place; a call gives copies itself, events are copied for all observers."""


@pytest.mark.parametrize("name", TABLE)
def test_each_implementation_gets_copies_of_what_it_could_edit(name: str) -> None:
    assert contract(name).copies == COPIES.get(name, ())


@pytest.mark.parametrize("name", TABLE)
def test_every_hook_has_a_file_of_tests(name: str) -> None:
    text = (ROOT / "tests" / "hooks" / f"test_{name}.py").read_text(encoding="utf-8")
    assert f'"{name}"' in text or f"{name}=hookimpl" in text


def test_the_reference_has_every_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("fake")
    fake.Sphinx = fake.Element = fake.nodes = fake
    for name in ("docutils", "docutils.nodes", "sphinx", "sphinx.application"):
        monkeypatch.setitem(sys.modules, name, fake)
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "_ext" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    page = reference.hook_page()
    for name, function in SPECS.items():
        assert f".. function:: {name}({', '.join(inspect.signature(function).parameters)})" in page
        assert f":func:`~pi_core.hookspecs.{name}`" in page
    page = reference.offered_page()
    offered = Build.from_environment(built_in_only=True).hooks.specifications()[len(SPECS) :]
    assert offered
    for name, arguments, _ in offered:
        assert f".. function:: {name}({', '.join(arguments)})" in page
    assert set(reference.KINDS) == {kind.value for kind in Kind}
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "reference/hooks\nreference/offered-hooks\n" in index
