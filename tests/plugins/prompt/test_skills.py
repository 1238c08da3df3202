"""Skills: where they are found, what is wrong with them, and what the model is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_plugins.prompt import Resources

from .conftest import Home

USER = ".pi/agent/skills"


def names(resources: Resources) -> list[str]:
    return [skill.name for skill in resources.skills]


class TestWhereTheyAreFound:
    def test_folders_at_any_depth_and_loose_files_at_the_top(self, home: Home) -> None:
        home.skill(USER, "one")
        home.skill(f"{USER}/group/inner", "two")
        home.write(f"{USER}/three.md", "---\ndescription: d\n---\nx")
        home.write(f"{USER}/group/notes.md", "no skill")
        home.write(f"{USER}/four.txt", "no skill")
        resources = home.load()
        assert (sorted(names(resources)), resources.warnings) == (["one", "three", "two"], ())

    def test_what_lies_in_the_folder_of_a_skill_belongs_to_it(self, home: Home) -> None:
        home.skill(USER, "one")
        home.skill(f"{USER}/one/parts", "two")
        assert names(home.load()) == ["one"]

    def test_hidden_folders_and_those_of_packages_are_passed_over(self, home: Home) -> None:
        home.skill(f"{USER}/.git", "one")
        home.skill(f"{USER}/node_modules", "two")
        assert names(home.load()) == []

    def test_a_loop_of_links_ends(self, home: Home) -> None:
        home.skill(USER, "one")
        (home.agent / "skills" / "loop").symlink_to("..")
        (home.agent / "skills" / "again").symlink_to("again")
        resources = home.load()
        assert (names(resources), resources.warnings) == (["one"], ())

    def test_each_folder_is_looked_into_once_however_many_links_lead_back(self, home: Home) -> None:
        home.skill(USER, "one")
        for number in range(12):
            (home.agent / "skills" / f"loop{number}").symlink_to(".")
        assert names(home.load()) == ["one"]

    def test_a_folder_that_is_linked_twice_is_one_skill(self, home: Home) -> None:
        home.skill("shared", "one")
        (home.agent / "skills").mkdir()
        (home.agent / "skills" / "one").symlink_to(home.path / "shared" / "one")
        (home.path / ".agents").mkdir()
        (home.path / ".agents" / "skills").symlink_to(home.path / "shared")
        resources = home.load()
        assert (names(resources), resources.warnings) == (["one"], ())

    def test_loose_files_are_no_skills_in_the_folders_that_agents_share(self, home: Home) -> None:
        home.write(".agents/skills/README.md", "All about us")
        home.skill(".agents/skills", "one")
        resources = home.load()
        assert (names(resources), resources.warnings) == (["one"], ())

    def test_a_folder_without_permission_is_said_and_the_rest_is_found(
        self, closed_home: tuple[Home, Callable[[Path], None]]
    ) -> None:
        home, close = closed_home
        home.skill(USER, "one")
        home.skill(USER, "two")
        close(home.agent / "skills" / "two")
        resources = home.load()
        assert names(resources) == ["one"]
        assert resources.warnings == (f"user: {home.agent}/skills/two cannot be read: Permission denied",)


class TestOfAProject:
    @pytest.fixture
    def project(self, home: Home) -> Home:
        home.skill("work/.pi/skills", "own")
        home.skill("work/.agents/skills", "shared")
        home.skill("work/sub/.agents/skills", "nearer")
        (home.project / ".git").mkdir()
        return home

    def test_that_is_not_trusted_none_is_found(self, project: Home) -> None:
        resources = project.load()
        assert (names(resources), resources.warnings) == ([], ())

    def test_that_is_trusted_its_own_and_the_shared_ones_are_found(self, project: Home) -> None:
        assert names(project.load(trusted=True)) == ["own", "shared"]

    def test_the_shared_ones_are_looked_for_up_to_the_root_of_the_repository(self, project: Home) -> None:
        project.skill(".agents/skills", "users")
        found = project.load(project.project / "sub", trusted=True).skills
        assert [(skill.name, skill.origin) for skill in found] == [
            ("nearer", "project"), ("shared", "project"), ("users", "user"),
        ]  # fmt: skip

    def test_what_is_above_the_repository_is_none_of_its_own(self, project: Home) -> None:
        (project.project / "sub" / ".git").mkdir()
        assert names(project.load(project.project / "sub", trusted=True)) == ["nearer"]

    def test_outside_of_a_repository_every_folder_above_is_looked_in(self, home: Home) -> None:
        home.skill("a/.agents/skills", "above")
        assert names(home.load(home.path / "a" / "b", trusted=True)) == ["above"]

    def test_the_users_own_need_no_trust(self, home: Home) -> None:
        home.skill(".agents/skills", "users")
        assert names(home.load(home.path / "a", trusted=False)) == ["users"]


class TestFaults:
    def load(self, home: Home, text: str) -> tuple[Resources, str]:
        home.write(f"{USER}/demo/SKILL.md", text)
        resources = home.load()
        return resources, "\n".join(resources.warnings).replace(str(home.agent), "AGENT")

    @pytest.mark.parametrize("header", ["name: demo", "name: demo\ndescription:", "name: demo\ndescription: {a: b}"])
    def test_without_a_description_it_is_not_used(self, home: Home, header: str) -> None:
        resources, said = self.load(home, f"---\n{header}\n---\nx")
        assert names(resources) == []
        assert said == "AGENT/skills/demo/SKILL.md: the skill has no description in its frontmatter, so it is not used"

    def test_a_header_that_cannot_be_read_is_said_with_its_line(self, home: Home) -> None:
        resources, said = self.load(home, "---\nname: demo\ndescription: use: often\n---\nx")
        assert names(resources) == []
        assert said.startswith("AGENT/skills/demo/SKILL.md: line 3: mapping values are not allowed")
        assert said.endswith("The skill is not used")

    @pytest.mark.parametrize("name", ["De mo", "démo", "a_b", "a" * 65])
    def test_a_name_that_should_be_another_is_said_and_used(self, home: Home, name: str) -> None:
        resources, said = self.load(home, f"---\nname: {name}\ndescription: d\n---\nx")
        assert names(resources) == [name]
        assert f"the name '{name}' should have at most 64 letters a-z, digits and hyphens" in said

    def test_a_name_that_is_not_the_folders_is_said_and_used(self, home: Home) -> None:
        resources, said = self.load(home, "---\nname: other\ndescription: d\n---\nx")
        assert names(resources) == ["other"]
        assert said.endswith("the skill is called 'other' and its folder 'demo'; give both one name")

    def test_a_loose_file_may_be_called_otherwise(self, home: Home) -> None:
        home.write(f"{USER}/file.md", "---\nname: other\ndescription: d\n---\nx")
        resources = home.load()
        assert (names(resources), resources.warnings) == (["other"], ())

    def test_without_a_name_it_has_its_folders(self, home: Home) -> None:
        resources, said = self.load(home, "---\ndescription: d\n---\nx")
        assert (names(resources), said) == (["demo"], "")

    def test_a_long_description_is_cut_and_said(self, home: Home) -> None:
        resources, said = self.load(home, f"---\ndescription: {'d' * 1025}\n---\nx")
        assert resources.skills[0].description == "d" * 1024
        assert said.endswith("the description has 1025 characters, of which a model is told 1024")

    @pytest.mark.parametrize(("value", "listed"), [("true", False), ("Yes", False), ("false", True), ("", True)])
    def test_one_can_be_kept_from_the_model(self, home: Home, value: str, listed: bool) -> None:
        resources, said = self.load(home, f"---\ndescription: d\ndisable-model-invocation: {value}\n---\nx")
        assert (resources.skills[0].listed, said) == (listed, "")

    def test_a_flag_that_is_none_is_said(self, home: Home) -> None:
        resources, said = self.load(home, "---\ndescription: d\ndisable-model-invocation: perhaps\n---\nx")
        assert resources.skills[0].listed
        assert said.endswith("disable-model-invocation is true or false, not 'perhaps'; taken as false")


def test_what_the_model_is_told_is_escaped(home: Home) -> None:
    home.skill(USER, "demo", description='"<b> & </skill>"')
    assert home.load().skills[0].listing() == (
        f"<skill>\n<name>demo</name>\n<description>&lt;b&gt; &amp; &lt;/skill&gt;</description>\n"
        f"<location>{home.agent}/skills/demo/SKILL.md</location>\n</skill>"
    )
