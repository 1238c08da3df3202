from __future__ import annotations

from typing import Any

import click
import pytest

from pi_core import Command, HookError, PluginConflictError
from pi_core._registry import DEFAULT, collect_contributions
from pi_core.commands import CORE_COMMANDS

from .making import hooks_of
from .registering import RegisterHook


def command(name: str, *, default: bool = False) -> Command:
    return Command(name, "Does it.", lambda: click.Command(name), default=default)


class TestRegisterCommands(RegisterHook):
    hook = "register_commands"
    kind = "command"
    wrong = (
        "deploy",
        click.Command("deploy"),
        command(""),
    )

    def contribution(self, name: str) -> Command:
        return command(name)

    @pytest.mark.parametrize("name", [*CORE_COMMANDS, DEFAULT])
    def test_the_names_of_the_core_are_taken(self, name: str) -> None:
        with pytest.raises(HookError, match=f"a command cannot be called '{name}': the core has that name"):
            self.registered(self.offers("bad", command(name)))

    def test_two_default_commands_are_a_conflict_that_a_build_can_decide(self) -> None:
        plugins: list[Any] = [
            self.offers("a", command("chat", default=True)),
            self.offers("b", command("ask", default=True)),
        ]
        with pytest.raises(PluginConflictError, match="command 'default' is offered by plugin 'a'"):
            self.registered(*plugins)
        registry = collect_contributions(hooks_of(*plugins), lambda error: None)
        assert registry.defaults.get(DEFAULT) is None
        (conflict,) = registry.conflicts()
        assert 'so neither has the name: decide in the build ([conflicts] default = "a")' in str(conflict)
        assert registry.decide(DEFAULT, "b")
        chosen = registry.defaults.get(DEFAULT)
        assert chosen is not None
        assert chosen.name == "ask"
        assert registry.conflicts() == []
