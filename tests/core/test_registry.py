from __future__ import annotations

from typing import Any

import pytest

from pi_core import Command, Hooks, PluginConflictError, PluginError, hookimpl
from pi_core._dispatch import Owner
from pi_core._registry import Contributions, Registry, collect_contributions

A, B = Owner("a", "pi-a 1.0"), Owner("b", "pi-b 2.0")


@pytest.fixture
def tools() -> Contributions[str]:
    found: Contributions[str] = Contributions("tool")
    found.add(A, "read", "a's read")
    found.add(A, "write", "a's write")
    found.add(B, "read", "b's read")
    return found


def test_a_name_with_one_owner(tools: Contributions[str]) -> None:
    assert tools.get("write") == "a's write"
    assert tools.owner("write") == A
    assert tools.get("a/write") == "a's write"
    assert tools.get("b/write") is None


def test_neither_owner_has_a_name_that_two_own(tools: Contributions[str]) -> None:
    assert tools.get("read") is None
    assert tools.owner("read") is None
    assert tools.owners("read") == [A, B]
    assert (tools.get("a/read"), tools.get("b/read")) == ("a's read", "b's read")
    assert tools.names() == ["write"]


def test_a_conflict_names_both_owners_and_every_way_out(tools: Contributions[str]) -> None:
    (conflict,) = tools.conflicts()
    assert isinstance(conflict, PluginConflictError)
    assert conflict.owners == ("a", "b")
    assert str(conflict) == (
        "tool 'read' is offered by plugin 'a' (pi-a 1.0) and plugin 'b' (pi-b 2.0), so neither has the name: use "
        "'a/read' or 'b/read', decide in the build ([conflicts] read = \"a\"), or block one with PI_BLOCK"
    )
    assert tools.conflict("write") is None
    assert tools.conflict("nothing") is None


def test_a_build_decides(tools: Contributions[str]) -> None:
    assert tools.decide("read", "b")
    assert (tools.get("read"), tools.owner("read")) == ("b's read", B)
    assert tools.get("a/read") == "a's read"
    assert tools.conflicts() == []
    assert list(tools.items()) == [("read", "b's read"), ("write", "a's write")]


def test_a_decision_for_a_plugin_that_does_not_offer_the_name_changes_nothing(tools: Contributions[str]) -> None:
    assert not tools.decide("write", "b")
    assert not tools.decide("nothing", "a")
    assert not tools.decide("read", "c")
    assert tools.get("write") == "a's write"
    assert len(tools.conflicts()) == 1


def test_dropping_a_plugin_gives_the_name_to_the_other(tools: Contributions[str]) -> None:
    tools.drop("b")
    assert list(tools.items()) == [("read", "a's read"), ("write", "a's write")]
    tools.drop("a")
    assert (tools.names(), tools.owners("write")) == ([], [])


def test_one_owner_cannot_give_a_name_twice(tools: Contributions[str]) -> None:
    with pytest.raises(ValueError, match="tool 'read' is given twice"):
        tools.add(A, "read", "again")
    assert tools.get("a/read") == "a's read"


def test_a_name_may_hold_a_slash() -> None:
    found: Contributions[str] = Contributions("tool")
    found.add(A, "git/status", "status")
    assert (found.get("git/status"), found.get("a/git/status")) == ("status", "status")


def test_every_kind_takes_part() -> None:
    registry = Registry()
    made: Any = Command("x", "", lambda: None)  # type: ignore[arg-type, return-value]
    for kind in registry.kinds():
        kind.add(A, "x", made)
        kind.add(B, "x", made)
    assert [str(conflict).partition(" 'x'")[0] for conflict in registry.conflicts()] == [
        "provider api",
        "tool",
        "message role",
        "command",
        "command",
    ]
    assert registry.decide("x", "a")
    assert registry.conflicts() == []
    assert not registry.decide("y", "a")


def test_nothing_of_a_plugin_that_fails_is_kept_whatever_it_gives_later() -> None:
    class Half:
        @hookimpl
        def register_providers(self) -> list[Any]:
            raise ValueError("boom")

        @hookimpl
        def register_commands(self) -> list[Any]:
            return [Command("x", "", lambda: None)]  # type: ignore[arg-type, return-value]

    failed: list[PluginError] = []
    registry = collect_contributions(Hooks.over(Half()), failed.append)
    assert registry.commands.owners("x") == []
    assert [error.plugin for error in failed] == ["Half"]
