"""The permission guard in a run: what the model is told, who is asked, and what an answer changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pi_core import Agent, Build, Hooks, ToolResultMessage, hookimpl, tool
from pi_core.testing import SCRIPTED_MODEL, Barrier, Call, Reply, ScriptedProvider
from pi_plugins.coding_agent import CodingAgentPlugin
from pi_plugins.coding_agent.questions import Answer, Question
from pi_plugins.config import load_settings
from pi_plugins.guards import PermissionOptions, PermissionsPlugin, Rule


@tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


@tool
def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


@tool
def look() -> str:
    """Look."""
    return "seen"


class Asked:
    """Answers questions from a list, and keeps them."""

    def __init__(self, *answers: str | Callable[[Question], Answer | None] | None) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []

    @hookimpl
    async def ask_user(self, question: Question) -> Answer | None:
        self.questions.append(question)
        answer = self.answers.pop(0)
        return answer(question) if callable(answer) else Answer(answer)


def guard(**options: Any) -> PermissionsPlugin:
    plugin = PermissionsPlugin()
    plugin.configure(plugin.Options.model_validate(options))
    return plugin


def run(
    guarding: PermissionsPlugin, *calls: Call, others: Sequence[object] = (CodingAgentPlugin(),)
) -> list[tuple[str, bool]]:
    """Let a model make calls in one message, and return the text and error flag of each result."""
    provider = ScriptedProvider(Reply(*calls), "done")
    plugins = [*others, guarding]
    agent = Agent(
        model=SCRIPTED_MODEL, stream=provider.stream, plugins=plugins, tools=[bash, write, look, move, remote]
    )
    return [
        (result.content[0].text, result.is_error)  # type: ignore[union-attr]
        for result in agent.run_sync("go")
        if isinstance(result, ToolResultMessage)
    ]


def told(*args: Any, **options: Any) -> str:
    """The text of the only result, which is an error."""
    (text, is_error), *more = run(*args, **options)
    assert is_error
    assert not more
    return text


COMMAND = Call("bash", {"command": "make all"})


# --- without a user ---


def test_everything_is_allowed_as_long_as_nothing_is_configured() -> None:
    assert run(PermissionsPlugin(), COMMAND, Call("look")) == [("ran make all", False), ("seen", False)]


def test_a_denied_call_is_not_executed_and_the_model_is_told_what_to_do() -> None:
    text = told(guard(rules=[{"effect": "deny", "command": "make *"}]), COMMAND)
    assert text.startswith("A permission rule denies this: make all.")
    assert "Do not try to reach the same in another way" in text


def test_the_reason_of_a_rule_is_what_the_model_is_told() -> None:
    text = told(guard(rules=[{"effect": "deny", "command": "make *", "reason": "Use tox"}]), COMMAND)
    assert text.startswith("Use tox\n")


def test_a_file_outside_is_denied_with_the_folders_that_are_open(tmp_path: Path) -> None:
    text = told(guard(roots=[str(tmp_path)], outside="deny"), Call("write", {"path": "/etc/passwd"}))
    assert text.startswith(f"/etc/passwd is outside of the folders that tools may work in: {tmp_path}.")


def test_what_nothing_allows_is_denied_in_that_mode() -> None:
    assert told(guard(mode="deny"), Call("look")).startswith("No permission rule allows this: the tool look.")


def test_where_nobody_can_be_asked_the_model_learns_how_the_user_can_allow_it() -> None:
    text = told(guard(mode="ask"), COMMAND)
    assert "nobody can be asked here: make all." in text
    rule = json.loads(text[text.index('{"effect": "allow"') :])
    assert run(guard(mode="ask", rules=[rule]), COMMAND) == [("ran make all", False)]


def test_without_the_hook_there_is_nobody_either() -> None:
    assert "nobody can be asked" in told(guard(mode="ask"), COMMAND, others=())
    assert run(guard(mode="ask", non_interactive="allow"), COMMAND, others=()) == [("ran make all", False)]


def test_an_answerer_that_gives_no_answer_is_nobody() -> None:
    asked = Asked(lambda question: None)
    assert "nobody can be asked" in told(guard(mode="ask"), COMMAND, others=(CodingAgentPlugin(), asked))


# --- with one ---


def asking(plugin: PermissionsPlugin, asked: Asked, *calls: Call) -> list[tuple[str, bool]]:
    results = run(plugin, *calls, others=(CodingAgentPlugin(), asked))
    assert not asked.answers
    return results


def test_the_user_is_shown_what_is_asked_for_and_why() -> None:
    asked = Asked("Allow once")
    assert asking(guard(mode="ask"), asked, COMMAND) == [("ran make all", False)]
    (question,) = asked.questions
    assert (question.kind, question.title) == ("select", "Allow bash: make all")
    assert question.options == ("Allow once", "Allow for this session", "Always allow", "Deny", "Deny and say why")
    assert "No rule is about this." in question.message


def test_the_title_is_one_short_line_and_the_message_is_whole() -> None:
    asked = Asked("Deny")
    line = "make\n" + "x" * 200
    asking(guard(mode="ask"), asked, Call("bash", {"command": line}))
    assert "\n" not in asked.questions[0].title
    assert len(asked.questions[0].title) == 100
    assert line in asked.questions[0].message


def test_a_rule_that_asks_says_so_with_its_reason() -> None:
    asked = Asked("Allow once")
    asking(guard(rules=[{"effect": "ask", "command": "make *", "reason": "It takes an hour."}]), asked, COMMAND)
    assert '"make *"' in asked.questions[0].message
    assert "It takes an hour." in asked.questions[0].message


def test_what_is_not_certain_says_why() -> None:
    asked = Asked("Allow once")
    asking(guard(rules=[{"effect": "deny", "command": "rm *"}]), asked, Call("bash", {"command": "curl x | sh"}))
    assert "It is not certain what this is about: it is not certain where a shell" in asked.questions[0].message


def test_allowed_once_is_asked_about_again() -> None:
    asked = Asked("Allow once", "Deny")
    first, second = asking(guard(mode="ask"), asked, COMMAND, COMMAND)
    assert first == ("ran make all", False)
    assert second[1]


def test_an_answer_for_the_session_is_about_this_command_line_alone() -> None:
    plugin, asked = guard(mode="ask"), Asked("Allow for this session", "Deny")
    other = Call("bash", {"command": "make all; make clean"})
    assert [is_error for _, is_error in asking(plugin, asked, COMMAND, COMMAND, other)] == [False, False, True]
    assert asking(plugin, Asked(), COMMAND) == [("ran make all", False)]


def test_an_answer_for_the_session_is_about_this_file_alone(tmp_path: Path) -> None:
    plugin = guard(roots=[str(tmp_path / "project")])
    asked = Asked("Allow for this session", "Deny")
    one, two = str(tmp_path / "[one]"), str(tmp_path / "o")
    calls = [Call("write", {"path": path}) for path in (one, one, two)]
    assert [is_error for _, is_error in asking(plugin, asked, *calls)] == [False, False, True]


@tool
def move(paths: list[str]) -> str:
    """Move files."""
    return f"moved {', '.join(paths)}"


def test_all_files_of_a_call_are_shown_and_allowed_together() -> None:
    plugin, asked = guard(roots=["/nowhere"]), Asked("Allow for this session", "Deny")
    calls = [Call("move", {"paths": paths}) for paths in (["/a", "/b"], ["/b", "/a"], ["/b", "/c"])]
    assert [is_error for _, is_error in asking(plugin, asked, *calls)] == [False, False, True]
    assert "/a\n/b" in asked.questions[0].message


@tool
def remote(path: str, command: str) -> str:
    """Run a command elsewhere."""
    return f"ran {command} in {path}"


def test_a_line_that_is_allowed_says_nothing_about_the_files_beside_it() -> None:
    plugin = guard(mode="ask", rules=[{"effect": "allow", "command": "make all"}, {"effect": "allow", "path": "/a"}])
    asked = Asked("Deny")
    calls = [Call("remote", {"path": path, "command": "make all"}) for path in ("/a", "/b")]
    assert [is_error for _, is_error in asking(plugin, asked, *calls)] == [False, True]
    assert asked.questions[0].options == ("Allow once", "Deny", "Deny and say why")


def test_what_is_no_file_cannot_be_allowed_for_long() -> None:
    asked = Asked("Always allow")
    ((_, is_error),) = asking(guard(roots=["/"]), asked, Call("write", {"path": "a\0b"}))
    assert is_error
    assert "Always allow" not in asked.questions[0].options


def test_an_answer_for_the_session_never_allows_what_is_denied() -> None:
    plugin = guard(mode="ask", rules=[{"effect": "deny", "command": "make clean"}])
    asked = Asked("Allow for this session")
    assert [is_error for _, is_error in asking(plugin, asked, COMMAND, Call("bash", {"command": "make clean"}))] == [
        False,
        True,
    ]


def test_options_that_are_given_anew_forget_the_session() -> None:
    plugin = guard(mode="ask")
    asking(plugin, Asked("Allow for this session"), COMMAND)
    plugin.configure(plugin.Options(mode="ask"))
    asking(plugin, Asked("Deny"), COMMAND)


def test_always_puts_a_rule_into_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    (tmp_path / "agent").mkdir()
    file = tmp_path / "agent" / "settings.json"
    before = {"effect": "ask", "command": ["make *"]}
    file.write_text(json.dumps({"theme": "dark", "plugins": {"permissions": {"rules": [before]}}}), encoding="utf-8")
    plugin = guard(rules=[before])
    asking(plugin, Asked("Always allow"), COMMAND, COMMAND)
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert saved["theme"] == "dark"
    assert saved["plugins"]["permissions"]["rules"] == [
        {"effect": "allow", "tool": "bash", "command": ["make all"]},
        before,
    ]
    options = load_settings(tmp_path).settings.plugins["permissions"]
    assert asking(guard(**options), Asked(), COMMAND) == [("ran make all", False)]


def test_a_rule_that_cannot_be_saved_holds_for_the_session_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
    (tmp_path / "settings.json").write_text('{"plugins": {"permissions": {"rules": 3}}}', encoding="utf-8")
    plugin = guard(mode="ask")
    assert asking(plugin, Asked("Always allow"), COMMAND, COMMAND) == [("ran make all", False)] * 2
    assert "plugins.permissions.rules is no list" in caplog.text
    assert (tmp_path / "settings.json").read_text(encoding="utf-8") == '{"plugins": {"permissions": {"rules": 3}}}'


def test_a_user_who_denies_can_say_why() -> None:
    asked = Asked("Deny and say why", "  use tox ")
    ((text, is_error),) = asking(guard(mode="ask"), asked, COMMAND)
    assert is_error
    assert text.startswith("The user denied this call: use tox\n")
    assert asked.questions[1].kind == "input"


@pytest.mark.parametrize("answer", ["Deny", None, "", "yes", "Allow"])
def test_any_answer_that_does_not_allow_denies(answer: str | None) -> None:
    ((text, is_error),) = asking(guard(mode="ask"), Asked(answer), COMMAND)
    assert is_error
    assert text.startswith("The user denied this call.\n")


# --- several at once, aborts, failures ---


def test_calls_of_two_runs_are_asked_about_one_after_another() -> None:
    async def main() -> None:
        entered, release = asyncio.Event(), Barrier()
        open_questions: list[int] = []
        count = 0

        class Slow:
            @hookimpl
            async def ask_user(self, question: Question) -> Answer:
                nonlocal count
                count += 1
                open_questions.append(count)
                entered.set()
                await release.wait()
                open_questions.remove(count)
                assert not open_questions
                return Answer("Allow for this session")

        plugin, slow = guard(mode="ask"), Slow()
        agents = [
            Agent(
                model=SCRIPTED_MODEL,
                stream=ScriptedProvider(Reply(COMMAND), "done").stream,
                plugins=[CodingAgentPlugin(), slow, plugin],
                tools=[bash],
            )
            for _ in range(3)
        ]
        running = [asyncio.ensure_future(agent.prompt("go")) for agent in agents]
        await entered.wait()
        release.release()
        for messages in await asyncio.gather(*running):
            assert [message.is_error for message in messages if isinstance(message, ToolResultMessage)] == [False]
        assert count == 1

    asyncio.run(main())


def test_an_abort_ends_the_wait_for_an_answer() -> None:
    async def main() -> None:
        entered = asyncio.Event()

        class Silent:
            @hookimpl
            async def ask_user(self, question: Question) -> Answer:
                entered.set()
                await asyncio.Event().wait()
                raise AssertionError

        provider = ScriptedProvider(Reply(COMMAND), "never asked for")
        plugins = [CodingAgentPlugin(), Silent(), guard(mode="ask")]
        agent = Agent(model=SCRIPTED_MODEL, stream=provider.stream, plugins=plugins, tools=[bash])
        running = asyncio.ensure_future(agent.prompt("go"))
        await entered.wait()
        agent.abort()
        messages = await running
        assert [message.is_error for message in messages if isinstance(message, ToolResultMessage)] == [True]
        assert len(provider.requests) == 1

    asyncio.run(main())


def test_an_answerer_that_fails_blocks_the_call() -> None:
    def fail(question: Question) -> Answer:
        raise ValueError("the screen is gone")

    assert "the screen is gone" in told(guard(mode="ask"), COMMAND, others=(CodingAgentPlugin(), Asked(fail)))


def test_an_answer_of_another_type_blocks_the_call() -> None:
    asked = Asked(lambda question: "Allow once")  # type: ignore[arg-type,return-value]
    assert "ask_user gives an Answer or None, got str" in told(
        guard(mode="ask"), COMMAND, others=(CodingAgentPlugin(), asked)
    )


def test_a_malformed_pattern_blocks_every_call() -> None:
    text = told(guard(rules=[{"effect": "allow", "path": "src/[a"}]), COMMAND)
    assert "plugins.permissions.rules: Invalid glob pattern" in text


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"mode": "off"}, "plugins.permissions.mode: Input should be 'allow', 'ask' or 'deny'"),
        ({"rule": []}, "plugins.permissions.rule: Extra inputs are not permitted"),
        ({"rules": [{"effect": "deny", "comand": "rm *"}]}, "plugins.permissions.rules.0.comand"),
        ({"rules": [{"effect": "deny", "path": "a", "command": "b"}]}, "write two rules"),
        ({"rules": [{"effect": "deny", "command": [""]}]}, "plugins.permissions.rules.0.command.0"),
    ],
)
def test_wrong_options_deny_every_call_rather_than_take_the_guard_away(
    options: dict[str, Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    build = Build(options={"permissions": options}, only=["permissions"])
    assert build.problems() == []
    assert fault in caplog.text
    provider = ScriptedProvider(Reply(Call("look")), "done")
    messages = build.agent(model=SCRIPTED_MODEL, tools=[look], stream=provider.stream).run_sync("go")
    (result,) = [message for message in messages if isinstance(message, ToolResultMessage)]
    assert result.is_error
    assert fault in str(result.content)


def test_the_plugin_can_be_used_without_a_build() -> None:
    plugin = PermissionsPlugin(PermissionOptions(rules=(Rule(effect="deny", tool="look"),)))
    assert told(plugin, Call("look")).startswith("A permission rule denies this: the tool look.")


def test_options_made_in_python_are_refused_when_they_are_wrong() -> None:
    with pytest.raises(ValidationError):
        PermissionOptions.model_validate({"mode": "off"})


def test_options_are_spelt_in_camel_case_or_snake_case() -> None:
    assert PermissionOptions.model_validate({"nonInteractive": "allow"}).non_interactive == "allow"
    assert PermissionOptions.model_validate({"non_interactive": "allow"}).non_interactive == "allow"


def test_relative_paths_start_where_those_of_the_tools_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    options = {"permissions": {"rules": [{"effect": "deny", "path": "./x.txt"}]}}
    build = Build(only=["tools", "permissions"], options=options)
    for folder in ("one", "two"):
        monkeypatch.chdir(tmp_path / folder)
        provider = ScriptedProvider(Reply(Call("write", {"path": "x.txt", "content": "a"})), "done")
        messages = build.agent(model=SCRIPTED_MODEL, tools=["write"], stream=provider.stream).run_sync("go")
        assert [message.is_error for message in messages if isinstance(message, ToolResultMessage)] == [True]
    assert list(tmp_path.glob("*/x.txt")) == []


def test_a_working_directory_can_be_given_to_both(tmp_path: Path) -> None:
    rules = {"mode": "deny", "rules": [{"effect": "allow", "path": "./x"}], "cwd": str(tmp_path)}
    build = Build(
        only=["tools", "permissions"], options={"tools": {"cwd": str(tmp_path)}, "permissions": rules}, strict=True
    )
    provider = ScriptedProvider(Reply(Call("write", {"path": "x", "content": "a"})), "done")
    build.agent(model=SCRIPTED_MODEL, stream=provider.stream).run_sync("go")
    assert (tmp_path / "x").read_text(encoding="utf-8") == "a"


def test_the_plugin_implements_only_what_a_guard_needs() -> None:
    assert Hooks.over(PermissionsPlugin()).implemented() == {"before_tool_call", "configure"}
