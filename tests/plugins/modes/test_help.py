"""The help of ``pi``."""

from __future__ import annotations

import re

import click
import pytest

from pi_core.cli import run
from pi_plugins.modes.command import prompt

NAMES = [max(option.opts, key=len) for option in prompt.params if isinstance(option, click.Option)]


@pytest.mark.parametrize("arguments", [["--help"], ["prompt", "--help"]])
def test_every_option_is_there_once_on_a_narrow_terminal(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    shown = [name for line in lines for name in re.findall(r"^ {2,4}(?:-\w+, )?(--[\w-]+)", line)]
    assert set(NAMES) <= set(shown)
    assert len(shown) == len(set(shown))


def test_related_options_stand_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    _, _, session = capsys.readouterr().out.partition("\n  Session:\n")
    assert re.findall(r" (--[\w-]+)", session.partition("\n\n")[0])[:4] == [
        "--continue",
        "--resume",
        "--session",
        "--session-id",
    ]
