"""The other commands: plugins, hooks, trace, keys, trust, reload, help; and names that are no command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_core import ConfigError, hookimpl
from pi_plugins.coding_agent import SlashCommand
from pi_plugins.config.trust import saved_trust
from pi_plugins.modes.interactive.clipboard import copy_text
from pi_plugins.modes.interactive.commands import interactive_commands
from pi_plugins.modes.interactive.typed import ShellLine, shell_line, unknown_command

from .at_work import at_work
from .fake_ui import FakeUi


class Greeter:
    name = "greeter"

    @hookimpl
    def register_slash_commands(self) -> list[SlashCommand]:
        return [SlashCommand("greet", "Says hello", lambda text, session: f"hello {text}")]

    @hookimpl
    def on_agent_start(self) -> None:
        pass


class OtherHelp:
    name = "other"

    @hookimpl
    def register_slash_commands(self) -> list[SlashCommand]:
        return [SlashCommand("help", "Other help", lambda text, session: "other help")]


async def test_plugins_are_listed_with_their_origin(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        lines = (await case.run("/plugins")).splitlines()
        assert "greeter" in [line.split("  ")[0] for line in lines]


async def test_hooks_are_listed_with_who_implements_them(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        found = dict(line.split(maxsplit=1) for line in (await case.run("/hooks")).splitlines())
        assert found["on_agent_start"] == "application, trace, greeter, limits"
        assert "after_tool_call" not in found


async def test_one_hook_is_shown_with_its_contract_and_order(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        lines = (await case.run("/hooks on_agent_start")).splitlines()
        assert lines[0].startswith("on_agent_start(event, ctx), notify: an exception is reported")
        assert lines[3].startswith("3. plugin 'greeter'")
        assert "Greeter.on_agent_start" in lines[3]


async def test_a_hook_that_is_not_there(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/hooks nope") == "error: /hooks: There is no hook 'nope'"


async def test_calls_of_plugins_are_traced_until_it_is_off(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two", plugins=[Greeter()]) as case:
        file = case.session.cwd / "calls.jsonl"
        assert str(file) in await case.run("/trace on calls.jsonl")
        await case.session.prompt("go")
        assert await case.run("/trace off") == "Nothing is traced any more"
        written = file.read_text()
        await case.session.prompt("on")
        assert file.read_text() == written
        calls = [json.loads(line) for line in written.splitlines()]
        assert "on_agent_start" in [call["hook"] for call in calls if call["plugin"] == "greeter"]
        assert await case.run("/trace off") == "Nothing is traced"


@pytest.mark.parametrize("typed", ["/trace", "/trace on", "/trace maybe"])
async def test_trace_says_what_it_takes(tmp_path: Path, typed: str) -> None:
    async with at_work(tmp_path) as case:
        assert "expected 'on FILE' or 'off'" in await case.run(typed)


async def test_a_trace_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "No such file or directory" in await case.run("/trace on nowhere/calls.jsonl")


async def test_settings_and_resources_are_read_again(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        prompts = tmp_path / "agent" / "prompts"
        prompts.mkdir()
        (prompts / "shout.md").write_text("---\ndescription: Shouts\n---\nSay $1 loudly", encoding="utf-8")
        (tmp_path / "agent" / "settings.json").write_text(
            '{"steeringMode": "all", "retry": {"enabled": false}}', encoding="utf-8"
        )
        said = await case.run("/reload")
        assert "1 template." in said
        assert case.session.message("/shout it").content[0].text == "Say it loudly"  # type: ignore[union-attr]
        assert case.session.steering.mode == "all"
        assert case.session.runs.retrying is False


async def test_settings_that_cannot_be_read_stay_as_they_were_and_are_told(tmp_path: Path) -> None:
    async with at_work(tmp_path, settings={"steeringMode": "all"}) as case:
        (tmp_path / "agent" / "settings.json").write_text("{", encoding="utf-8")
        await case.run("/reload")
        assert case.session.steering.mode == "all"
        assert any("settings.json" in text and level == "warning" for text, level in case.ui.shown)


async def test_trust_is_saved_and_used_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".pi"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text('{"steeringMode": "all"}', encoding="utf-8")
    async with at_work(tmp_path) as case:
        assert case.session.steering.mode == "one-at-a-time"
        said = await case.run("/trust", "Trust it")
        assert str(folder / "settings.json") in case.ui.asked[0].message
        assert said.startswith("Saved.")
        assert saved_trust(case.session.cwd, agent_dir=tmp_path / "agent") is True
        assert case.session.trusted
        assert case.session.steering.mode == "all"
        await case.run("/trust", "Do not")
        assert case.session.steering.mode == "one-at-a-time"


async def test_a_project_without_configuration_needs_no_trust(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "no configuration that would need trust" in await case.run("/trust")


async def test_help_lists_commands_templates_and_inputs(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        lines = (await case.run("/help")).splitlines()
        names = [line.split(" ")[0] for line in lines]
        assert {"/model", "/greet", "@path", "!command"} <= set(names)


async def test_every_command_has_a_short_description(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        for command in interactive_commands(FakeUi(), case.prepared):
            assert command.description[0].isupper()
            assert len(command.description) < 60


async def test_every_command_is_in_the_reference(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "interactive.md").read_text(encoding="utf-8")
    async with at_work(tmp_path) as case:
        names = [command.name for command in interactive_commands(FakeUi(), case.prepared)]
        assert [name for name in names if f"`/{name}" not in page] == []


async def test_a_plugin_with_a_command_of_the_same_name_makes_both_be_named_in_full(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[OtherHelp()]) as case:
        assert "type /other/help or /interactive/help" in await case.run("/help")
        assert await case.run("/other/help") == "other help"
        assert "/interactive/help" in await case.run("/interactive/help")


async def test_login_wants_a_provider_at_most(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "so that it is not shown" in await case.run("/login groq gsk_0123456789")
        assert "There is no provider 'gorq', did you mean 'groq'?" in await case.run("/login gorq")


async def test_login_stores_the_key_of_the_provider_that_was_named(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        said = await case.run("/login work", "any-key")
        assert said.endswith("\n/model chooses one of the models of work")
        assert case.ui.asked[0].secret
        assert json.loads((tmp_path / "agent" / "auth.json").read_text())["work"]["key"] == "any-key"


def test_the_terminal_is_asked_to_copy() -> None:
    written: list[str] = []
    copy_text("añ", written.append, {})
    assert written == ["\x1b]52;c;YcOx\x07"]


def test_inside_of_tmux_the_sequence_is_passed_on() -> None:
    written: list[str] = []
    copy_text("a", written.append, {"TMUX": "/tmp/x"})
    assert written == ["\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"]


def test_what_terminals_do_not_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="use /export instead"):
        copy_text("x" * 100_000, [].append, {})


@pytest.mark.parametrize("typed", ["/quit", "/exit"])
async def test_leaving(tmp_path: Path, typed: str) -> None:
    async with at_work(tmp_path) as case:
        await case.run(typed)
        assert case.ui.left


async def test_a_command_that_does_not_exist_has_a_near_one(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        assert unknown_command("/modle gpt", case.session) == (
            "There is no command /modle, did you mean /model? To send it to the model, put a space before it"
        )
        assert unknown_command("/zzzz", case.session) == (
            "There is no command /zzzz. /help lists those there are. To send it to the model, put a space before it"
        )


@pytest.mark.parametrize(
    "text", ["/model x", "/greet", "/usr/bin/env is slow", " /modle", "a /modle", "/", "/ x", "/interactive/help"]
)
async def test_other_texts_are_not_taken_for_unknown_commands(tmp_path: Path, text: str) -> None:
    async with at_work(tmp_path, plugins=[Greeter()]) as case:
        assert unknown_command(text, case.session) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!ls -l", ShellLine("ls -l")),
        ("!! ls", ShellLine("ls", hidden=True)),
        ("!", ShellLine("")),
        ("say !ls", None),
        ("", None),
    ],
)
def test_lines_for_the_shell(text: str, expected: ShellLine | None) -> None:
    assert shell_line(text) == expected
