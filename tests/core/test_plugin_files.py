"""Plugins in files: found in the module, named by the file, dropped and reported when they fail."""

from pathlib import Path

import pytest

from pi_core import Build, BuildError

FUNCTIONS = """
from pi_core import hookimpl, tool

@tool
async def weather(city: str) -> str:
    "Tell the weather of a city."
    return city

@hookimpl
def register_tools():
    return [weather]
"""
CLASS = """
from pi_core import hookimpl

class Guard:
    @hookimpl
    def before_tool_call(self, call):
        return None

class Helper:
    pass
"""
TWO = CLASS + CLASS.replace("Guard", "Other")
OBJECT = TWO + "\nplugin = Other()\n"
OPTIONS = """
from pi_core import hookimpl

class Guard:
    seen = []

    @hookimpl
    def configure(self, options):
        self.seen.append(options)
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "hook"), [(FUNCTIONS, "register_tools"), (CLASS, "before_tool_call")])
def test_a_file_is_a_plugin_named_after_it(tmp_path: Path, text: str, hook: str) -> None:
    build = Build(files=[write(tmp_path, "mine.py", text)], only=[])
    assert [owner.plugin for owner, _, _ in build.hooks.implementations(hook)] == ["mine"]
    assert build.problems() == []


def test_a_folder_is_one_too(tmp_path: Path) -> None:
    write(tmp_path, "mine/__init__.py", FUNCTIONS)
    build = Build(files=[tmp_path / "mine"], only=[])
    assert build.registry.tools.names() == ["weather"]


def test_the_name_plugin_decides_between_several(tmp_path: Path) -> None:
    build = Build(files=[write(tmp_path, "mine.py", OBJECT)], only=[])
    ((_, function, _),) = build.hooks.implementations("before_tool_call")
    assert function.__qualname__ == "Other.before_tool_call"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TWO, "found 2 such classes"),
        ("x = 1", "found 0 such classes"),
        ("import nothing_of_this_name", "nothing_of_this_name"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_one_that_fails_is_dropped_and_named(tmp_path: Path, text: str, why: str) -> None:
    path = write(tmp_path, "mine.py", text)
    build = Build(files=[path], only=[])
    (problem,) = build.problems()
    assert why in problem
    assert str(path) in problem
    assert "mine" in problem


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (problem,) = Build(files=[tmp_path / "none.py"], only=[]).problems()
    assert str(tmp_path / "none.py") in problem


def test_two_files_of_one_name_do_not_replace_each_other(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "mine.py", FUNCTIONS)
    second = write(tmp_path / "b", "mine.py", CLASS)
    build = Build(files=[first, second], only=[])
    assert [record.state for record in build.plugins if record.name == "mine"] == ["loaded", "shadowed"]
    assert build.registry.tools.names() == ["weather"]


def test_a_build_is_extended_with_files_and_options(tmp_path: Path) -> None:
    plain = Build(only=[])
    path = write(tmp_path, "mine.py", OPTIONS)
    build = plain.extended(files=[path], options={"mine": {"a": 1}})
    (record,) = [record for record in build.plugins if record.name == "mine"]
    assert record.plugin.seen == [{"a": 1}]  # type: ignore[union-attr]
    assert build.extended().problems() == []
    assert [found.name for found in plain.plugins if found.state == "loaded"] == []


def test_a_build_is_extended_without_some_plugins(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.py", FUNCTIONS)
    plain = Build(files=[path], only=["limits"])
    build = plain.extended(block=["limits", "mine"])
    states = {record.name: record.state for record in build.plugins if record.name in ("limits", "mine")}
    assert states == {"limits": "blocked", "mine": "blocked"}
    assert build.registry.tools.names() == []


def test_a_pinned_build_is_not_extended(tmp_path: Path) -> None:
    (tmp_path / "pi-build.toml").write_text('[build]\nname = "x"\n[[plugins]]\nname = "tools"\n', encoding="utf-8")
    with pytest.raises(BuildError, match="build file says"):
        Build.load(tmp_path).extended(files=[tmp_path / "mine.py"])
