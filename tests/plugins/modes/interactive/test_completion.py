"""What can be completed at the cursor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from prompt_toolkit.completion import Completion
from prompt_toolkit.document import Document

from pi_core import hookimpl
from pi_plugins.coding_agent import SlashCommand
from pi_plugins.modes.interactive.completion import completion_sources

from .at_work import AtWork, at_work
from .fake_ui import FakeUi


class Plugin:
    name = "greeter"

    @hookimpl
    def register_slash_commands(self) -> list[SlashCommand]:
        def broken(text: str, session: object) -> Iterable[str]:
            raise RuntimeError("no")

        return [
            SlashCommand("greet", "Says hello", lambda text, session: "hello", lambda text, session: ["anna", "ben"]),
            SlashCommand("broken", "Cannot complete", lambda text, session: "", broken),
        ]


def completions(case: AtWork, text: str) -> list[Completion]:
    """What the sources offer at the end of a text."""
    document = Document(text)
    sources = completion_sources(case.ui)
    return [found for source in sources for found in source.complete(document.current_line_before_cursor, document)]


def offered(case: AtWork, text: str) -> list[str]:
    """The texts that would be in the editor after each completion."""
    return [text[: len(text) + found.start_position] + found.text for found in completions(case, text)]


async def test_commands_of_the_mode_and_of_plugins_come_with_their_descriptions(tmp_path: Path) -> None:
    async with at_work(tmp_path, plugins=[Plugin()]) as case:
        found = {one.display_text: one.display_meta_text for one in completions(case, "/")}
        assert found["/model"] == "Ask another model"
        assert found["/greet"] == "Says hello"


async def test_names_that_begin_like_that_come_first(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert offered(case, "/re") == ["/reload", "/resume", "/tree"]


async def test_templates_and_skills_are_offered_with_what_they_take(tmp_path: Path) -> None:
    prompts, skill = tmp_path / "agent" / "prompts", tmp_path / "agent" / "skills" / "sums"
    prompts.mkdir(parents=True)
    skill.mkdir(parents=True)
    (prompts / "shout.md").write_text("---\ndescription: Shouts\nargument-hint: WORD\n---\n$1", encoding="utf-8")
    (skill / "SKILL.md").write_text("---\nname: sums\ndescription: Adds\n---\nAdd.", encoding="utf-8")
    async with at_work(tmp_path) as case:
        found = {one.display_text: one.display_meta_text for one in completions(case, "/s")}
        assert found["/shout"] == "WORD  Shouts"
        assert found["/skill:sums"] == "Adds"


async def test_a_name_after_which_something_may_follow_ends_with_a_space(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert offered(case, "/mod") == ["/model "]
        assert offered(case, "/sess") == ["/session"]


async def test_a_name_of_two_plugins_is_offered_in_full_and_hides_templates(tmp_path: Path) -> None:
    prompts = tmp_path / "agent" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "model.md").write_text("Hello", encoding="utf-8")

    class Other:
        name = "other"

        @hookimpl
        def register_slash_commands(self) -> list[SlashCommand]:
            return [SlashCommand("model", "Another one", lambda text, session: "")]

    async with at_work(tmp_path, plugins=[Other()]) as case:
        assert offered(case, "/model") == ["/interactive/model ", "/other/model"]


@pytest.mark.parametrize("text", ["", "say /mo", "/model\n/mo", " /mo"])
async def test_a_slash_elsewhere_is_no_command(tmp_path: Path, text: str) -> None:
    async with at_work(tmp_path) as case:
        assert offered(case, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/model dee", ["/model work/deep-1", "/model work/deep-2"]),
        ("/tools +gr", ["/tools +grep"]),
        ("/tools +ls -wr", ["/tools +ls -write"]),
        ("/tools -gr", []),
        ("/trace o", ["/trace on ", "/trace off"]),
        ("/login groq", ["/login groq"]),
        ("/hooks on_agent_s", ["/hooks on_agent_start"]),
        ("/greet ", ["/greet anna", "/greet ben"]),
        ("/name x", []),
        ("/nothing x", []),
    ],
)
async def test_arguments(tmp_path: Path, text: str, expected: list[str]) -> None:
    async with at_work(tmp_path, plugins=[Plugin()]) as case:
        assert offered(case, text) == expected


async def test_levels_are_those_of_the_model(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep-1")
        assert offered(case, "/thinking m") == ["/thinking minimal", "/thinking medium"]


async def test_a_plugin_that_cannot_complete_breaks_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with at_work(tmp_path, plugins=[Plugin()]) as case:
        assert offered(case, "/broken x") == []
        assert "/broken" in caplog.text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    for name in ("src/main.py", "src/with space.txt", "README.md", ".gitignore", "ignored.log"):
        (folder / name).write_text("", encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("look at @main", ["look at @src/main.py"]),
        ("(@readme", ["(@README.md"]),
        ("@ignored", []),
        ("@smp", ["@src/main.py"]),
        ('@"with', ['@"src/with space.txt"']),
        ("@with", ['@"src/with space.txt"']),
        ("@src", ["@src/", "@src/main.py", '@"src/with space.txt"']),
        ("mail@main", []),
        ("@main and", []),
        ("@./RE", ["@./README.md"]),
        ("@../pro", ["@../project/"]),
    ],
)
async def test_files_of_the_project(tmp_path: Path, project: Path, text: str, expected: list[str]) -> None:
    async with at_work(tmp_path) as case:
        assert offered(case, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!cat RE", ["!cat README.md"]),
        ("!!cat src/ma", ["!!cat src/main.py"]),
        ("!cat src/w", ["!cat src/with\\ space.txt"]),
        ("!cat src/with\\ s", ["!cat src/with\\ space.txt"]),
        ("!REA", []),
        ("!./RE", ["!./README.md"]),
        ("!cat .git", ["!cat .gitignore"]),
        ("!cat @main", []),
        ("!cat nowhere/x", []),
    ],
)
async def test_paths_for_the_shell(tmp_path: Path, project: Path, text: str, expected: list[str]) -> None:
    async with at_work(tmp_path) as case:
        assert offered(case, text) == expected


def test_without_a_session_nothing_is_offered() -> None:
    document = Document("/m")
    assert [list(source.complete("/m", document)) for source in completion_sources(FakeUi())] == [[], [], []]
