"""Which resources win, what trust decides, and what settings and plugins add and leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_core import HookError, Hooks, hookimpl
from pi_plugins.config import Settings
from pi_plugins.prompt import PromptPlugin, Resources

from .conftest import Home


def skills(resources: Resources) -> list[str]:
    return [skill.name for skill in resources.skills]


def templates(resources: Resources) -> list[str]:
    return [template.name for template in resources.templates]


def settings(**fields: Any) -> Settings:
    return Settings.model_validate(fields)


class Folders:
    """A plugin that names folders of resources."""

    def __init__(self, *folders: Any) -> None:
        self.folders = folders

    @hookimpl
    def resources_discover(self) -> Any:
        return self.folders[0] if isinstance(self.folders[0], str) else list(self.folders)


def over(*plugins: object) -> Hooks:
    return Hooks.over(PromptPlugin(), *plugins)


PLACES = (
    "given", "work/.pi/named", "work/.pi/skills", "work/.agents/skills", ".pi/agent/listed", ".pi/agent/skills",
    ".agents/skills", "plugin/skills",
)  # fmt: skip
"""Folders with a skill of the same name, in order of precedence."""


class TestPrecedence:
    @pytest.mark.parametrize("first", range(len(PLACES)), ids=PLACES)
    def test_the_first_of_one_name_wins_and_the_others_are_said(self, home: Home, first: int) -> None:
        (home.path / "plugin").mkdir()
        paths = [home.skill(place, "demo") for place in PLACES[first:]]
        resources = home.load(
            trusted=True,
            skill_paths=["../given"],
            settings=settings(skills=["listed", "named"]),
            hooks=over(Folders(home.path / "plugin")),
        )
        assert [skill.path for skill in resources.skills] == [paths[0]]
        said = [text for text in resources.warnings if "demo" in text]
        assert said == [f"{path}: the skill 'demo' is not used, that of {paths[0]} is" for path in paths[1:]]


class TestTemplatePrecedence:
    def test_given_then_project_then_user_then_plugin(self, home: Home) -> None:
        for folder in ("given", "work/.pi/prompts", ".pi/agent/prompts", "plugin/prompts"):
            home.write(f"{folder}/rev.md", folder)
        hooks = over(Folders(home.path / "plugin"))
        given = {"trusted": True, "hooks": hooks}
        chosen = [
            home.load(**given, template_paths=[str(home.path / "given")]),
            home.load(**given),
            home.load(hooks=hooks),
        ]
        assert [one.templates[0].body for one in chosen] == ["given", "work/.pi/prompts", ".pi/agent/prompts"]


class TestOptions:
    def test_a_skill_is_named_by_its_file_its_folder_or_the_folder_of_several(self, home: Home) -> None:
        path = home.skill("x", "one")
        for named in (path, path.parent, path.parent.parent, "../x", "~/x"):
            assert skills(home.load(skill_paths=[named])) == ["one"]

    def test_what_is_named_and_not_there_is_said(self, home: Home) -> None:
        resources = home.load(skill_paths=["gone"], template_paths=["gone.md"])
        assert resources.warnings == (
            f"--skill: {home.project}/gone cannot be read: No such file or directory",
            f"--prompt-template: {home.project}/gone.md cannot be read: No such file or directory",
        )

    def test_without_skills_only_those_that_are_named_are_there(self, home: Home) -> None:
        home.skill(".pi/agent/skills", "one")
        home.skill("x", "two")
        assert skills(home.load(no_skills=True, skill_paths=["../x"])) == ["two"]

    def test_without_templates_only_those_that_are_named_are_there(self, home: Home) -> None:
        home.write(".pi/agent/prompts/one.md", "x")
        home.write("two.md", "x")
        assert templates(home.load(no_templates=True, template_paths=["../two.md"])) == ["two"]

    def test_without_skills_and_templates_no_plugin_is_asked(self, home: Home) -> None:
        resources = home.load(no_skills=True, no_templates=True, hooks=over(Folders(home.path / "gone")))
        assert resources.warnings == ()

    def test_the_home_directory_is_that_of_the_environment_given(self, home: Home, tmp_path: Path) -> None:
        home.skill(".agents/skills", "one")
        assert skills(home.load(environ={"HOME": str(tmp_path)})) == []


class TestSettings:
    def test_paths_add_files_folders_and_what_a_pattern_matches(self, home: Home) -> None:
        home.skill("x", "one")
        home.skill("y/web-a", "two")
        home.skill("y/web-b", "three")
        home.skill("y/cli-c", "four")
        added = ["~/x/one/SKILL.md", "../../y/web-*"]
        assert sorted(skills(home.load(settings=settings(skills=added)))) == ["one", "three", "two"]

    def test_a_path_starts_from_the_folder_of_the_project_then_from_the_users(self, home: Home) -> None:
        home.write("work/.pi/more/a.md", "project")
        home.write(".pi/agent/more/a.md", "user")
        added = settings(prompts=["more/a.md"])
        assert home.load(settings=added, trusted=True).templates[0].body == "project"
        assert home.load(settings=added).templates[0].body == "user"

    def test_an_absolute_path_is_the_users(self, home: Home) -> None:
        home.skill("x", "one")
        for entry in ("~/x", str(home.path / "x")):
            (found,) = home.load(settings=settings(skills=[entry]), trusted=True).skills
            assert found.origin == "user settings"

    def test_a_path_that_names_nothing_is_said(self, home: Home) -> None:
        resources = home.load(settings=settings(prompts=["gone", "*.none"]), trusted=True)
        searched = f"relative to {home.project}/.pi and {home.agent}"
        assert resources.warnings == (
            f"settings, prompts: there is no 'gone' ({searched})",
            f"settings, prompts: there is no '*.none' ({searched})",
        )

    @pytest.mark.parametrize(
        ("entries", "left"),
        [
            (["!web-*"], ["cli"]),
            (["!*", "+cli"], ["cli"]),
            (["!skills/web-a"], ["cli", "web-b"]),
            (["!skills/web-a/SKILL.md"], ["cli", "web-b"]),
            (["!./skills/web-a/"], ["cli", "web-b"]),
            (["!~/.pi/agent/skills/web-*"], ["cli"]),
            (["-web-a"], ["cli", "web-b"]),
            (["-web-a", "+web-a"], ["cli", "web-b"]),
            (["-web-*"], ["cli", "web-a", "web-b"]),
            (["!web-*", "+web-*"], ["cli"]),
            (["!other"], ["cli", "web-a", "web-b"]),
        ],
    )
    def test_patterns_leave_out_and_bring_back(self, home: Home, entries: list[str], left: list[str]) -> None:
        for name in ("cli", "web-a", "web-b"):
            home.skill(".pi/agent/skills", name)
        assert skills(home.load(settings=settings(skills=entries))) == left

    def test_patterns_hold_for_templates_and_loose_skills_by_name(self, home: Home) -> None:
        home.write(".pi/agent/prompts/a.md", "x")
        home.write(".pi/agent/prompts/b.md", "x")
        home.write(".pi/agent/skills/c.md", "---\ndescription: d\n---\n")
        resources = home.load(settings=settings(prompts=["!a"], skills=["-c"]))
        assert (templates(resources), skills(resources)) == (["b"], [])

    def test_what_an_option_names_is_not_left_out(self, home: Home) -> None:
        home.skill("x", "one")
        assert skills(home.load(settings=settings(skills=["!*", "-one"]), skill_paths=["../x"])) == ["one"]

    def test_one_that_is_left_out_hides_no_other_of_its_name(self, home: Home) -> None:
        home.skill("work/.pi/skills", "one")
        home.skill(".pi/agent/skills", "one")
        (found,) = home.load(trusted=True, settings=settings(skills=["-skills/one/SKILL.md", "+x"])).skills or (None,)
        assert found is None
        (found,) = home.load(trusted=True, settings=settings(skills=[f"-{home.project}/.pi/skills/one"])).skills
        assert found.origin == "user"


class TestPlugins:
    def test_the_folders_they_name_are_looked_in(self, home: Home) -> None:
        home.skill("pack/skills", "one")
        home.write("pack/prompts/rev.md", "x")
        resources = home.load(hooks=over(Folders(home.path / "pack")))
        assert (skills(resources), templates(resources)) == (["one"], ["rev"])
        assert resources.skills[0].origin == "plugin Folders"

    def test_one_folder_needs_no_list(self, home: Home) -> None:
        home.skill("work/pack/skills", "one")
        assert skills(home.load(hooks=over(Folders("pack")))) == ["one"]

    def test_a_folder_that_is_not_there_is_said(self, home: Home) -> None:
        resources = home.load(hooks=over(Folders(home.path / "gone")))
        assert resources.warnings == (f"plugin Folders: there is no folder {home.path}/gone of skills and prompts",)

    def test_one_that_fails_is_named(self, home: Home) -> None:
        class Broken:
            @hookimpl
            def resources_discover(self) -> None:
                raise ValueError("no disk")

        with pytest.raises(HookError, match=r"no disk .plugin 'Broken', hook resources_discover"):
            home.load(hooks=over(Broken()))

    def test_an_agent_without_this_plugin_has_the_rest(self, home: Home) -> None:
        home.skill(".pi/agent/skills", "one")
        assert skills(home.load(hooks=Hooks.over())) == ["one"]


class TestSystemFiles:
    @pytest.mark.parametrize(("name", "field"), [("SYSTEM.md", "system_prompt"), ("APPEND_SYSTEM.md", "append")])
    def test_that_of_a_trusted_project_replaces_the_users(self, home: Home, name: str, field: str) -> None:
        home.write(f".pi/agent/{name}", "user")
        home.write(f"work/.pi/{name}", "project")
        assert getattr(home.load(), field).text == "user"
        assert getattr(home.load(trusted=True), field).text == "project"

    def test_one_that_cannot_be_read_is_said(self, home: Home) -> None:
        home.write("work/.pi/SYSTEM.md").write_bytes(b"\xff")
        home.write(".pi/agent/SYSTEM.md", "user")
        resources = home.load(trusted=True)
        assert resources.system_prompt is None
        assert "work/.pi/SYSTEM.md is not UTF-8 text" in resources.warnings[0]


def test_a_project_that_is_not_trusted_gives_context_files_and_nothing_else(home: Home) -> None:
    home.skill("work/.pi/skills", "one")
    home.skill("work/.agents/skills", "two")
    for path in (".pi/prompts/rev.md", ".pi/SYSTEM.md", ".pi/APPEND_SYSTEM.md", "AGENTS.md"):
        home.write(f"work/{path}", "x")
    resources = home.load()
    assert [file.path.name for file in resources.context_files] == ["AGENTS.md"]
    assert (resources.skills, resources.templates) == ((), ())
    assert (resources.system_prompt, resources.append, resources.warnings) == (None, None, ())
