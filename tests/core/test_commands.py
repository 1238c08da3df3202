from __future__ import annotations

import subprocess
import sys

import click

from pi_core import Command
from pi_core.cli import _CORE
from pi_core.commands import CORE_COMMANDS


def test_the_click_object_is_made_when_it_is_asked_for() -> None:
    made: list[str] = []

    def load() -> click.Command:
        made.append("x")
        return click.Command("x")

    command = Command("x", "Does it.", load)
    assert (made, command.default) == ([], False)
    assert isinstance(command.load(), click.Command)
    assert made == ["x"]


def test_declaring_a_command_does_not_import_click() -> None:
    code = "import sys, pi_core; pi_core.Command('x', 'Does it.', lambda: None); print('click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_names_that_plugins_cannot_take_are_those_of_the_core() -> None:
    assert sorted(CORE_COMMANDS) == sorted(_CORE)
