"""The system prompt: its sections, what replaces and adds to them, and what plugins make of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pi_core import Build, ConfigError, HookError, Hooks, Tool, hookimpl
from pi_plugins.prompt import PromptPlugin, build_system_prompt, prompt_sections

from .conftest import Home

BUILD = Build(built_in_only=True)


def built(home: Home, tools: Sequence[Tool] = (), *plugins: object, **options: Any) -> str:
    return asyncio.run(build_system_prompt(*arguments(home, tools, plugins, options), **options))


def sections(home: Home, tools: Sequence[Tool] = (), *plugins: object, **options: Any) -> dict[str, str]:
    return asyncio.run(prompt_sections(*arguments(home, tools, plugins, options), **options))


def arguments(home: Home, tools: Sequence[Tool], plugins: Sequence[object], options: dict[str, Any]) -> Any:
    options["hooks"] = Hooks.over(PromptPlugin(), *plugins)
    return home.load(trusted=True), tools, home.project


def tool(name: str, snippet: str | None = None, *guidelines: str) -> Tool:
    return Tool(name, name, {}, lambda given, ctx: None, prompt_snippet=snippet, prompt_guidelines=guidelines)


class TestSections:
    def test_they_stand_in_this_order(self, home: Home) -> None:
        home.write("work/AGENTS.md", "Use tabs.")
        home.skill(".pi/agent/skills", "demo")
        home.write(".pi/agent/APPEND_SYSTEM.md", "Be kind.")
        found = sections(home, BUILD.tools(["read", "bash"]))
        assert list(found) == [
            "preamble", "tools", "rules", "docs", "addendum", "project_context", "skills", "cwd",
        ]  # fmt: skip

    def test_each_but_the_preamble_stands_between_tags_of_its_name(self, home: Home) -> None:
        tools = BUILD.tools(["read", "bash"])
        text = built(home, tools)
        found = sections(home, tools)
        assert text.startswith(f"{found.pop('preamble')}\n\n<tools>\n")
        assert text.endswith(f"<cwd>\n{home.project}\n</cwd>")
        assert re.findall(r"<(\w+)>\n(.*?)\n</\1>(?:\n\n|\Z)", text, re.DOTALL) == list(found.items())

    def test_those_without_a_text_are_left_out(self, home: Home) -> None:
        home.write("work/AGENTS.md", " \n")
        assert list(sections(home)) == ["preamble", "rules", "cwd"]

    def test_twice_the_same_is_the_same_text(self, home: Home) -> None:
        home.write("work/AGENTS.md", "Use tabs.")
        tools = BUILD.tools()
        assert built(home, tools) == built(home, tools)


class TestTools:
    def test_a_tool_has_one_line_if_it_says_what_it_is_for(self, home: Home) -> None:
        found = sections(home, [tool("a", "do a"), tool("b"), tool("c", "do c")])
        assert found["tools"] == "- a: do a\n- c: do c"

    def test_a_rule_of_two_tools_stands_once_and_before_the_general_ones(self, home: Home) -> None:
        lines = sections(home, [tool("a", None, "Be careful."), tool("b", None, "Look.", "Be careful.")])["rules"]
        assert lines.splitlines()[:2] == ["- Be careful.", "- Look."]
        assert lines.count("Be careful.") == 1
        assert len(lines.splitlines()) > 2

    @pytest.mark.parametrize("one", BUILD.tools(), ids=lambda one: one.name)
    def test_each_that_ships_has_one_short_line(self, one: Tool) -> None:
        assert one.prompt_snippet is not None
        assert len(one.prompt_snippet) < 60
        assert "\n" not in one.prompt_snippet

    def test_without_tools_the_model_is_told_that_it_has_none(self, home: Home) -> None:
        assert "no tools" in sections(home)["preamble"]
        assert "no tools" not in sections(home, [tool("a")])["preamble"]

    def test_how_to_learn_about_the_program_is_told_to_who_can_run_it(self, home: Home) -> None:
        assert "pi --help" in sections(home, [tool("bash")])["docs"]
        assert "docs" not in sections(home, [tool("read")])


class TestReplacedAndAdded:
    def test_a_prompt_of_ones_own_replaces_what_the_framework_says_and_keeps_the_rest(self, home: Home) -> None:
        home.write("work/AGENTS.md", "Use tabs.")
        home.skill(".pi/agent/skills", "demo")
        found = sections(home, BUILD.tools(), custom="SP", append=["APP1", "APP2"])
        assert list(found) == ["preamble", "addendum", "project_context", "skills", "cwd"]
        assert (found["preamble"], found["addendum"]) == ("SP", "APP1\n\nAPP2")

    def test_the_file_does_the_same(self, home: Home) -> None:
        home.write("work/.pi/SYSTEM.md", "From the file.\n")
        found = sections(home, BUILD.tools())
        assert list(found) == ["preamble", "cwd"]
        assert found["preamble"] == "From the file."

    def test_the_option_counts_before_the_file(self, home: Home) -> None:
        home.write("work/.pi/SYSTEM.md", "From the file.")
        assert sections(home, custom="SP")["preamble"] == "SP"

    def test_an_empty_prompt_of_ones_own_is_one(self, home: Home) -> None:
        home.write("work/.pi/SYSTEM.md", "From the file.")
        assert list(sections(home, BUILD.tools(), custom="")) == ["cwd"]

    def test_what_options_add_follows_what_the_file_adds(self, home: Home) -> None:
        home.write("work/.pi/APPEND_SYSTEM.md", "File.\n")
        assert sections(home, append=["Option.\n"])["addendum"] == "File.\n\nOption."


class TestContext:
    def test_each_file_stands_between_tags_with_its_path(self, home: Home) -> None:
        home.write("AGENTS.md", "Use tabs.\n")
        home.write('work/"a" & b/AGENTS.md', "Use <b>.\n")
        resources = home.load(home.project / '"a" & b')
        found = asyncio.run(prompt_sections(resources, [], home.project))
        _, first, second = found["project_context"].split("\n\n")
        assert first == f'<project_instructions path="{home.path}/AGENTS.md">\nUse tabs.\n</project_instructions>'
        assert second == (
            f'<project_instructions path="{home.project}/&quot;a&quot; &amp; b/AGENTS.md">\n'
            "Use <b>.\n</project_instructions>"
        )


class TestSkills:
    @pytest.mark.parametrize(("tools", "told"), [(["read"], True), (["bash"], True), (["ls"], False), ([], False)])
    def test_who_can_read_their_files_is_told_of_them(self, home: Home, tools: list[str], told: bool) -> None:
        home.skill(".pi/agent/skills", "demo")
        found = sections(home, BUILD.tools(tools))
        assert ("skills" in found) == told

    def test_one_that_is_kept_from_the_model_is_not_told(self, home: Home) -> None:
        home.skill(".pi/agent/skills", "one")
        home.skill(".pi/agent/skills", "two", **{"disable-model-invocation": "true"})
        text = sections(home, BUILD.tools(["read"]))["skills"]
        assert "<name>one</name>" in text
        assert "two" not in text


class TestPlugins:
    def test_they_change_add_and_leave_out_sections_one_after_the_other(self, home: Home) -> None:
        class First:
            @hookimpl
            def system_prompt(self, sections: dict[str, str]) -> dict[str, str]:
                del sections["rules"]
                return {**sections, "team": "We test.", "preamble": "Hello."}

        class Second:
            @hookimpl
            async def system_prompt(self, sections: dict[str, str], cwd: object) -> dict[str, str]:
                return {**sections, "team": f"{sections['team']} In {cwd}."}

        found = sections(home, (), First(), Second())
        assert found == {"preamble": "Hello.", "cwd": str(home.project), "team": f"We test. In {home.project}."}

    def test_a_section_that_is_made_empty_is_left_out(self, home: Home) -> None:
        class Empty:
            @hookimpl
            def system_prompt(self, sections: dict[str, str]) -> dict[str, str]:
                return {**sections, "rules": " "}

        assert list(sections(home, (), Empty())) == ["preamble", "cwd"]

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("text", "expected sections by name, got str"),
            ({"a b": "x"}, "'a b' cannot be the name of a section"),
            ({"a": None}, "section 'a' is NoneType, not a text"),
        ],
    )
    def test_an_answer_that_cannot_be_a_prompt_is_refused(self, home: Home, answer: Any, said: str) -> None:
        class Wrong:
            @hookimpl
            def system_prompt(self) -> Any:
                return answer

        with pytest.raises((ConfigError, HookError), match=said):
            built(home, (), Wrong())

    def test_one_that_fails_is_named(self, home: Home) -> None:
        class Broken:
            @hookimpl
            def system_prompt(self) -> None:
                raise ValueError("no words")

        with pytest.raises(HookError, match=r"no words .plugin 'Broken', hook system_prompt"):
            built(home, (), Broken())

    def test_an_agent_without_this_plugin_has_the_sections_of_the_framework(self, home: Home) -> None:
        text = asyncio.run(build_system_prompt(home.load(), [], home.project, hooks=Hooks.over()))
        assert text == built(home)
