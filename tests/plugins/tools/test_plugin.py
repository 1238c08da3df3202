"""The plugin: its contract, its options, and what its tools cost a prompt."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from pydantic import ValidationError

from pi_core import UNSET
from pi_core.testing import assert_plugin_contract
from pi_plugins.tools import ToolsOptions, ToolsPlugin


def test_contract() -> None:
    assert_plugin_contract(ToolsPlugin())


def test_seven_tools_with_short_declarations() -> None:
    tools = ToolsPlugin().register_tools()

    assert [tool.name for tool in tools] == ["read", "bash", "edit", "write", "grep", "find", "ls"]
    for tool in tools:
        assert tool.is_async
        assert len(tool.description) < 140
    # Models on small machines read this before every answer.
    assert len(json.dumps([tool.declaration() for tool in tools])) < 4000


def test_options_change_what_the_tools_say_and_do(work: Any) -> None:
    plugin = ToolsPlugin()
    plugin.configure(ToolsOptions(max_lines=7, max_bytes=2048))

    assert "7 lines or 2.0KB" in plugin.register_tools()[0].description


@pytest.mark.parametrize(
    "options",
    [{"max_lines": 0}, {"timeout": -1}, {"kill_grace_seconds": -1}, {"timeout": float("inf")}, {"max_line": 1}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolsOptions(**options)


def test_without_a_directory_the_working_directory_of_each_call_counts(
    work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.write("one/a.txt", "1")
    work.write("two/a.txt", "2")
    work.options = ToolsOptions()

    for name, text in (("one", "1"), ("two", "2")):
        monkeypatch.chdir(work.root / name)
        assert work.text("read", path="a.txt") == text
        assert work.text("bash", command="pwd") == os.path.realpath(work.root / name) + "\n"


def test_only_reading_tools_may_be_replayed() -> None:
    replayed = {tool.name for tool in ToolsPlugin().register_tools() if tool.replay == "safe"}

    assert replayed == {"read", "grep", "find", "ls"}


def test_structured_content_is_that_of_read_and_bash(work: Any) -> None:
    work.write("a.txt", "a\n")
    arguments: dict[str, dict[str, Any]] = {
        "read": {"path": "a.txt"},
        "bash": {"command": "true"},
        "write": {"path": "b.txt", "content": ""},
        "edit": {"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]},
        "grep": {"pattern": "x"},
        "find": {"pattern": "x"},
        "ls": {},
    }
    structured = {name for name, given in arguments.items()
                  if work.call(name, **given).result.structured_content is not UNSET}  # fmt: skip

    assert structured == {"read", "bash"}
