"""Plugins that say what they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pydantic
import pytest

from pi_core import Hooks, PluginLoadError, __version__, hookimpl
from pi_core._loader import Offer, load_plugins
from pi_core._requires import unmet

HERE = f"installed is {__version__}"
ABSENT = "which is not installed. Run: pip install"
OLD = f"it needs pydantic<1, installed is {pydantic.VERSION}. Run: pip install 'pydantic<1'"


class SiteLike(Protocol):
    def add(self, name: str, plugins: dict[str, str], version: str = ..., *, requires: list[str] = ...) -> Path: ...


def plugin(requires: Any) -> type:
    def fail(self: Any) -> None:
        raise AssertionError("nothing of it is to be called")

    return type("Newer", (), {"requires": requires, "register_hookspecs": hookimpl(fail), "no_hook": hookimpl(fail)})


@pytest.mark.parametrize(
    "requires",
    [
        None,
        f"pi-agent-framework>={__version__}",
        "pi-agent-framework",
        "PI_Agent.Framework>=0.0.1,<99",
        f"pi-agent-framework>=0.0.1, pydantic=={pydantic.VERSION}",
        f"pydantic=={pydantic.VERSION},pi-agent-framework<99,>=0.0.1",
        "pi-agent-framework>=99; python_version < '3'",
    ],
)
def test_what_is_met(requires: Any) -> None:
    assert unmet(type("Plugin", (), {"requires": requires})()) == ""
    assert unmet(object()) == ""


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        (
            "pi-agent-framework>=99.1",
            f"it needs pi-agent-framework>=99.1, {HERE}. Run: pip install 'pi-agent-framework>=99.1'",
        ),
        (
            "pi-agent-framework>=0.0.1,<0.0.2",
            f"it needs pi-agent-framework<0.0.2,>=0.0.1, {HERE}. Run: pip install 'pi-agent-framework<0.0.2,>=0.0.1'",
        ),
        ("pydantic<1", OLD),
        (
            "pi-not-here-at-all>=1, pydantic",
            f"it needs pi-not-here-at-all>=1, {ABSENT} 'pi-not-here-at-all>=1'",
        ),
        ("pydantic<1, pi-not-here-at-all", f"{OLD}; it needs pi-not-here-at-all, {ABSENT} 'pi-not-here-at-all'"),
        (
            ">=1",
            f"its 'requires' cannot be read: '>=1'; write it as in requires = 'pi-agent-framework>={__version__}'",
        ),
        ("", f"its 'requires' cannot be read: ''; write it as in requires = 'pi-agent-framework>={__version__}'"),
        (3, f"its 'requires' is to be a text, got 3; write it as in requires = 'pi-agent-framework>={__version__}'"),
    ],
)
def test_what_is_not_met_is_refused_by_name_before_anything_is_called(requires: Any, why: str) -> None:
    with pytest.raises(PluginLoadError) as caught:
        Hooks.over(plugin(requires)())
    assert str(caught.value) == f"plugin 'Newer': {why}"
    made = plugin(requires)
    made.__init__ = made.no_hook  # type: ignore[attr-defined,misc]
    offer = Offer("newer", "newer:Plugin", "pi-newer", "3.0", lambda: made)
    loaded = load_plugins(offers=[offer])
    (record,) = loaded.records
    assert (record.state, record.plugin) == ("failed", None)
    assert record.reason == f"plugin 'newer' (pi-newer 3.0): {why}. To run without it: PI_BLOCK=newer"
    assert loaded.problems() == [record.reason]
    with pytest.raises(PluginLoadError, match="plugin 'newer'"):
        load_plugins(offers=[offer], strict=True)


@pytest.mark.parametrize(
    "requires", [["pi-agent-framework>=99"], ["pydantic", "pi-agent-framework>=99 ; extra == 'x'"]]
)
def test_a_plugin_that_does_not_import_is_looked_at_through_its_metadata(site: SiteLike, requires: list[str]) -> None:
    site.add("pi-newer", {"newer": "from pi_core import Nothing"}, requires=requires)
    record = next(record for record in load_plugins().records if record.name == "newer")
    needs = f"It needs pi-agent-framework>=99, {HERE}. Run: pip install 'pi-agent-framework>=99'. "
    assert record.reason.endswith("To run without it: PI_BLOCK=newer")
    assert "ImportError: cannot import name 'Nothing'" in record.reason
    assert (needs in record.reason, "It needs" in record.reason) == ((len(requires) == 1,) * 2)


def test_without_a_statement_nothing_is_imported_for_it() -> None:
    code = """
import sys
from pi_core import Hooks, hookimpl
class P:
    @hookimpl
    def on_turn_end(self): pass
class Q(P):
    requires = "pi-agent-framework"
before = set(sys.modules)
Hooks.over(P())
print("packaging.requirements" in set(sys.modules) - before)
Hooks.over(Q())
print("packaging.requirements" in set(sys.modules) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
