"""Locks: what is written, and that a check names each difference and imports nothing that changed."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_core import Build, BuildError, PluginConflictError
from pi_core._freeze import freeze
from pi_core._lock import Lock, read_lock
from pi_core.cli import run

GUARD = """
from pi_core import hookimpl

class Plugin:
    @hookimpl{how}
    def before_tool_call(self, call):
        return None
"""
WRAPPER = """
from pi_core import hookimpl, tool

@tool
def echo(text: str) -> str:
    "Say it."
    return text

class Plugin:
    @hookimpl
    def register_tools(self):
        return [echo]

    @hookimpl
    async def execute_tool(self, call, ctx, *, proceed):
        return await proceed()

    @hookimpl
    def on_agent_end(self):
        pass
"""
PLAIN = GUARD.format(how="")
FILE = '[build]\nname = "team"\n'


def listed(*names: str) -> str:
    return FILE + "".join(f'[[plugins]]\nname = "{name}"\n' for name in names)


@pytest.fixture
def build(tmp_path: Path, site: Any) -> Path:
    """A locked build of three plugins of two distributions, which need a third and a missing fourth."""
    site.add("lib-of-one", {}, "3.1")
    site.add("pi-one", {"first": PLAIN, "wraps": WRAPPER}, requires=["lib-of-one>=3", "not-here; extra == 'more'"])
    site.add("pi-two", {"second": PLAIN})
    path = tmp_path / "pi-build.toml"
    path.write_text(listed("first", "second", "wraps"), encoding="utf-8")
    Build.lock(path)
    site.changed()
    return path


def lock_of(path: Path) -> Lock:
    lock = read_lock(path.with_suffix(".lock"))
    assert lock is not None
    return lock


# --- what is written ----------------------------------------------------------------------------------------------


def test_a_lock_holds_versions_hashes_and_order(build: Path) -> None:
    lock = lock_of(build)
    assert [(found.name, found.distribution, found.target) for found in lock.plugins] == [
        ("first", "pi-one", "pi_one.first:Plugin"),
        ("second", "pi-two", "pi_two.second:Plugin"),
        ("wraps", "pi-one", "pi_one.wraps:Plugin"),
    ]
    assert lock.hooks["before_tool_call"] == ["first", "second"]
    assert lock.hooks["execute_tool"] == ["wraps (wrapper)"]
    assert lock.names == {"tool": {"echo": "wraps"}}
    assert lock.requirements["lib-of-one"] == "3.1"
    assert {"pluggy", "pydantic-core"} <= lock.requirements.keys()
    assert "not-here" not in lock.requirements
    one = lock.distributions["pi-one"]
    assert (one.version, one.editable) == ("1.0", False)
    assert sorted(one.files) == [
        "pi_one-1.0.dist-info/entry_points.txt",
        "pi_one/__init__.py",
        "pi_one/first.py",
        "pi_one/wraps.py",
    ]
    assert one.files["pi_one/__init__.py"] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert "pi_core/loop.py" in lock.distributions["pi-agent-framework"].files


def test_the_same_build_has_the_same_lock(build: Path, site: Any) -> None:
    before = build.with_suffix(".lock").read_bytes()
    site.changed()
    Build.lock(build)
    assert build.with_suffix(".lock").read_bytes() == before


def test_a_file_changed_before_the_lock_is_pointed_out(
    build: Path, site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (site.folder / "pi_one" / "wraps.py").write_text(WRAPPER + "# more\n", encoding="utf-8")
    (site.folder / "pi_two" / "__init__.py").unlink()
    assert run(["build", "lock", str(build)]) == 0
    err = capsys.readouterr().err
    assert "pi-one 1.0: file pi_one/wraps.py was changed after it was installed; locked as it is" in err
    assert "pi-two 1.0: file pi_two/__init__.py is missing; it is locked without" in err


def test_an_installation_from_sources_is_locked_by_its_modules(tmp_path: Path, site: Any) -> None:
    site.add("pi-edit", {"edit": PLAIN})
    info = site.folder / "pi_edit-1.0.dist-info"
    sources = tmp_path / "src"
    sources.mkdir()
    os.rename(site.folder / "pi_edit", sources / "pi_edit")
    (info / "RECORD").write_text("pi_edit-1.0.dist-info/METADATA,,\n", encoding="utf-8")
    (info / "direct_url.json").write_text('{"url": "file:///src", "dir_info": {"editable": true}}', encoding="utf-8")
    sys.path.insert(0, str(sources))
    try:
        path = tmp_path / "pi-build.toml"
        path.write_text(listed("edit"), encoding="utf-8")
        Build.lock(path)
        locked = lock_of(path).distributions["pi-edit"]
        assert (locked.editable, sorted(locked.files)) == (True, ["pi_edit/__init__.py", "pi_edit/edit.py"])
        (sources / "pi_edit" / "more.py").write_text("", encoding="utf-8")
        assert Build.check(path) == ["pi-edit 1.0: file pi_edit/more.py is new"]
    finally:
        sys.path.remove(str(sources))


# --- what a check says --------------------------------------------------------------------------------------------


def test_what_is_locked_has_no_difference(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Build.check(build) == []
    assert run(["build", "check", str(build)]) == 0
    assert capsys.readouterr().out == "As locked\n"


def test_a_changed_file_is_named_and_not_imported(build: Path, site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (site.folder / "pi_one" / "first.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    (site.folder / "pi_one" / "wraps.py").unlink()
    assert run(["build", "check", str(build)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "pi-one 1.0: file pi_one/first.py has changed",
        "pi-one 1.0: file pi_one/wraps.py is gone",
        "note: hooks and names were not compared, since that imports code that is not the locked one",
    ]
    assert "pi_one" not in sys.modules


def test_another_version_is_named(build: Path, site: Any) -> None:
    site.remove("pi-two")
    site.add("pi-two", {"second": PLAIN}, "1.1")
    site.remove("lib-of-one")
    site.add("lib-of-one", {}, "3.2")
    assert Build.check(build) == [
        "pi-two: version 1.0 in the lock, 1.1 is installed",
        "lib-of-one: version 3.1 in the lock, 3.2 is installed",
    ]
    with pytest.raises(BuildError) as raised:
        Build.load(build)
    assert str(raised.value) == (
        f"{build}: plugin 'second': pi-two 1.0 is locked, 1.1 is installed. Run: pip install 'pi-two==1.0', or accept "
        f"what is installed with: pi build lock {build}"
    )
    Build.lock(build)
    assert Build.check(build) == []
    assert len(Build.load(build).plugins) == 3


def test_a_removed_plugin_is_named(build: Path, site: Any) -> None:
    site.remove("pi-two")
    (difference,) = Build.check(build)
    assert difference.startswith("plugin 'second': pi-two is wanted, but it is not installed. Run: pip install 'pi-two")


def test_an_extra_installed_plugin_is_a_note(build: Path, site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-extra", {"extra": "raise SystemExit"})
    assert run(["build", "check", str(build)]) == 0
    assert "note: plugin 'extra' (pi-extra 1.0) is installed, but not part of the build" in capsys.readouterr().out
    assert run(["build", "check", "--exact", str(build)]) == 1


def test_plugins_added_to_and_taken_out_of_the_file_are_named(build: Path, site: Any) -> None:
    site.add("pi-extra", {"extra": PLAIN})
    build.write_text(listed("extra", "wraps", "second"), encoding="utf-8")
    assert Build.check(build) == [
        "plugin 'first' is in the lock, but not in the build file",
        "plugin 'extra' (pi-extra) is in the build file, but not in the lock",
        "the call order is wraps, second; in the lock it is second, wraps",
    ]
    assert "pi_extra" not in sys.modules


def test_the_order_of_hooks_is_compared(build: Path) -> None:
    build.write_text(listed("second", "first", "wraps"), encoding="utf-8")
    assert Build.check(build) == [
        "the call order is second, first, wraps; in the lock it is first, second, wraps",
        "hook before_tool_call: second, first; in the lock first, second",
    ]


def test_a_plugin_taken_out_is_missed_by_its_hooks_and_names(build: Path) -> None:
    build.write_text(listed("first", "second"), encoding="utf-8")
    assert Build.check(build) == [
        "plugin 'wraps' is in the lock, but not in the build file",
        "hook execute_tool: nobody; in the lock wraps (wrapper)",
        "hook on_agent_end: nobody; in the lock wraps",
        "hook register_tools: nobody; in the lock wraps",
        "tool 'echo': of nobody; in the lock of plugin 'wraps'",
    ]


def test_a_decision_about_a_conflict_is_compared(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"one": WRAPPER, "two": WRAPPER})
    path = tmp_path / "pi-build.toml"
    path.write_text(listed("one", "two") + '[conflicts]\necho = "one"\n', encoding="utf-8")
    Build.lock(path)
    path.write_text(listed("one", "two") + '[conflicts]\necho = "two"\n', encoding="utf-8")
    assert Build.check(path) == ["tool 'echo': of plugin 'two'; in the lock of plugin 'one'"]
    path.write_text(listed("one", "two"), encoding="utf-8")
    (difference,) = Build.check(path)
    assert difference.startswith("tool 'echo' is offered by plugin 'one' (pi-one 1.0) and plugin 'two'")
    with pytest.raises(PluginConflictError):
        Build.lock(path)


def test_a_plugin_that_moves_to_another_place_is_named(build: Path, site: Any) -> None:
    site.add("pi-other", {"second": PLAIN})
    text = listed("first", "second", "wraps").replace('"second"\n', '"second"\ndistribution = "pi-other"\n')
    build.write_text(text, encoding="utf-8")
    assert Build.check(build) == [
        "plugin 'second': distribution pi-two in the lock, pi-other now",
        "plugin 'second': target pi_two.second:Plugin in the lock, pi_other.second:Plugin now",
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', "{", '{"version": 1, "plugins": 3}'])
def test_what_is_no_lock_is_refused(build: Path, text: str) -> None:
    build.with_suffix(".lock").write_text(text, encoding="utf-8")
    for ask in (Build.check, Build.load):
        with pytest.raises(BuildError, match=r"pi-build\.lock is no lock of a build: .*pi build lock"):
            ask(build)


def test_without_a_lock_there_is_nothing_to_check(build: Path) -> None:
    build.with_suffix(".lock").unlink()
    with pytest.raises(BuildError, match=r"There is no lock .*pi-build\.lock\. Write it with: pi build lock"):
        Build.check(build)


def test_requirements_are_printed_for_pip(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "show", "--requirements", str(build)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"pi-one==1.0", "pi-two==1.0", "lib-of-one==3.1"} <= set(lines)
    assert lines == sorted(lines)


def test_locks_are_json_with_sorted_keys(build: Path) -> None:
    text = build.with_suffix(".lock").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


# --- freezing -----------------------------------------------------------------------------------------------------


def test_what_differs_from_its_lock_is_not_frozen(build: Path, site: Any) -> None:
    (site.folder / "pi_one" / "first.py").write_text("", encoding="utf-8")
    with pytest.raises(BuildError, match=r"is not as locked(.|\n)*file pi_one/first\.py has changed"):
        freeze(build, build.parent / "out.pyz")
    assert not (build.parent / "out.pyz").exists()


def test_freezing_without_its_tool_says_how_to_get_it(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pex" else found(name))
    with pytest.raises(BuildError, match=r"pip install 'pi-agent-framework\[freeze\]'"):
        freeze(build, build.parent / "out.pyz")
