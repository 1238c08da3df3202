"""Which tools a session starts with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError, Tool, hookimpl, tool

from .sessions import Case


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    return city


class Weather:
    @hookimpl
    def register_tools(self) -> list[Tool]:
        return [weather]


async def names(folder: Path, settings: dict[str, Any] | None = None, **options: Any) -> list[str]:
    session = await Case(folder, [], settings=settings, plugins=[Weather()], **options).session()
    return [found.name for found in session.agent.state.tools]


STANDARD = ["read", "bash", "edit", "write"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [*STANDARD, "weather"]),
        ({"tools": ["read", "gr*"]}, ["read", "grep"]),
        ({"tools": ["+grep", "-write"]}, ["read", "bash", "edit", "weather", "grep"]),
        ({"tools": []}, []),
        ({"no_tools": True}, []),
        ({"no_builtin_tools": True}, ["weather"]),
        ({"exclude_tools": ["w*"]}, ["read", "bash", "edit"]),
        ({"tools": ["tools/read"]}, ["read"]),
    ],
)
async def test_options_choose_tools(tmp_path: Path, options: dict[str, Any], expected: list[str]) -> None:
    assert await names(tmp_path, **options) == expected


@pytest.mark.parametrize(
    ("default", "expected"),
    [(["ls"], ["ls", "weather"]), (["+ls", "-bash"], ["read", "edit", "write", "ls", "weather"]), ([], ["weather"])],
)
async def test_the_setting_changes_the_built_in_ones(tmp_path: Path, default: list[str], expected: list[str]) -> None:
    assert await names(tmp_path, {"defaultTools": default}) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": ["read", "-bash"]}, "--tools: either names"),
        ({"tools": ["reed"]}, "did you mean 'read'"),
        ({"exclude_tools": ["zzz"]}, "--exclude-tools: there is no tool 'zzz'"),
    ],
)
async def test_what_means_nothing_is_said(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await names(tmp_path, **options)


async def test_tools_change_with_the_prompt(tmp_path: Path) -> None:
    session = await Case(tmp_path, [], tools=["read"]).session()
    before = session.agent.state.system_prompt
    await session.set_tools(["read", "bash"])
    assert [found.name for found in session.agent.state.tools] == ["read", "bash"]
    assert session.agent.state.system_prompt != before
