"""What the user types for skills and templates becomes the prompt it stands for."""

from __future__ import annotations

import pytest

from pi_core import ConfigError
from pi_plugins.config import Settings
from pi_plugins.prompt import ResourceCommand, commands, expand

from .conftest import Home


@pytest.fixture
def filled(home: Home) -> Home:
    """A home directory with the skill ``demo`` and the template ``rev``."""
    home.skill(".pi/agent/skills", "demo", "Do the demo.")
    home.write(".pi/agent/prompts/rev.md", "---\nargument-hint: <file>\n---\nReview $1 then $@")
    return home


def block(home: Home) -> str:
    folder = home.agent / "skills" / "demo"
    return (
        f'<skill name="demo" location="{folder}/SKILL.md">\nReferences are relative to {folder}.\n\n'
        "Do the demo.\n</skill>"
    )


def test_a_skill_is_its_text_and_then_what_was_typed(filled: Home) -> None:
    assert expand("/skill:demo go now", filled.load()) == f"{block(filled)}\n\ngo now"


@pytest.mark.parametrize("typed", ["/skill:demo", "/skill:demo  \n"])
def test_a_skill_without_words_is_its_text_alone(filled: Home, typed: str) -> None:
    assert expand(typed, filled.load()) == block(filled)


def test_the_words_for_a_skill_stay_as_they_are(filled: Home) -> None:
    typed = 'see "$1"\n\n  and  $@'
    assert expand(f"/skill:demo\n{typed}", filled.load()) == f"{block(filled)}\n\n{typed}"


def test_a_skill_is_read_when_it_is_called(filled: Home) -> None:
    resources = filled.load()
    filled.skill(".pi/agent/skills", "demo", "Do it anew.")
    assert "Do it anew." in expand("/skill:demo", resources)


def test_a_skill_whose_file_is_gone(filled: Home) -> None:
    resources = filled.load()
    resources.skills[0].path.unlink()
    with pytest.raises(ConfigError, match=r"SKILL\.md cannot be read: No such file"):
        expand("/skill:demo", resources)


def test_a_skill_that_the_model_is_not_told_of_can_be_called(home: Home) -> None:
    home.skill(".pi/agent/skills", "demo", **{"disable-model-invocation": "true"})
    assert expand("/skill:demo", home.load()).startswith('<skill name="demo"')


def test_a_skill_that_is_not_there_is_named_with_those_that_are(filled: Home) -> None:
    with pytest.raises(ConfigError, match=r"There is no skill 'dmeo'\. Skills here: demo"):
        expand("/skill:dmeo", filled.load())
    with pytest.raises(ConfigError, match="Skills here: none"):
        expand("/skill:demo", filled.load(no_skills=True))


def test_with_the_commands_of_skills_switched_off_they_are_words(filled: Home) -> None:
    resources = filled.load(settings=Settings(enable_skill_commands=False))
    assert expand("/skill:demo go", resources) == "/skill:demo go"
    assert [command.name for command in commands(resources)] == ["rev"]


def test_a_template_takes_its_arguments(filled: Home) -> None:
    assert expand('/rev one "two three"', filled.load()) == "Review one then one two three"


def test_the_words_for_a_template_that_takes_none_follow_it(home: Home) -> None:
    home.write(".pi/agent/prompts/tidy.md", "Tidy up.")
    resources = home.load()
    assert expand("/tidy", resources) == "Tidy up."
    assert expand('/tidy but "not" $1', resources) == 'Tidy up.\n\nbut "not" $1'


@pytest.mark.parametrize("typed", ["", "/", "/ rev", "/etc/hosts is broken", "/revx", " /rev", "rev", "skill:demo"])
def test_anything_else_is_sent_as_it_is(filled: Home, typed: str) -> None:
    assert expand(typed, filled.load()) == typed


def test_what_can_be_called_is_listed_with_where_it_comes_from(filled: Home) -> None:
    assert commands(filled.load()) == [
        ResourceCommand("rev", "Review $1 then $@", "prompt", filled.agent / "prompts" / "rev.md", "<file>"),
        ResourceCommand("skill:demo", "What demo does.", "skill", filled.agent / "skills" / "demo" / "SKILL.md"),
    ]
