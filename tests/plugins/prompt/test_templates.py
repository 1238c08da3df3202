"""Prompt templates: how arguments are split and put in, and which files are templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_plugins.prompt.templates import split_arguments, substitute

from .conftest import Home

FOLDER = ".pi/agent/prompts"


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("", []),
        ("  one\n two\tthree ", ["one", "two", "three"]),
        ('one "two three" four', ["one", "two three", "four"]),
        ("'two three'", ["two three"]),
        ('"it\'s" \'a "b"\'', ["it's", 'a "b"']),
        (r'"say \"hi\" now"', ['say "hi" now']),
        (r"'it\'s'", ["it's"]),
        ("it's a dog's", ["it's", "a", "dog's"]),
        ('5" 7"', ['5"', '7"']),
        ('"open end', ['"open', "end"]),
        ('"a"b c', ['"a"b', "c"]),
        (r'"C:\new\dir" \x', [r"C:\new\dir", r"\x"]),
        ('"" x', ["", "x"]),
        ('"two\nlines"', ["two\nlines"]),
        ("日本 「語」", ["日本", "「語」"]),
    ],
)
def test_arguments_are_split_at_white_space_outside_of_quotes(typed: str, arguments: list[str]) -> None:
    assert split_arguments(typed) == arguments


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("$1-$2-$3-$4", "a-b c-d-"),
        ("$@", "a b c d"),
        ("$ARGUMENTS.", "a b c d."),
        ("${1:-x} ${4:-x}", "a x"),
        ("${4:-}", ""),
        ("${4:-a $1 b}", "a $1 b"),
        ("${@:-none}", "a b c d"),
        ("${@:1}", "a b c d"),
        ("${@:0}", "a b c d"),
        ("${@:2}", "b c d"),
        ("${@:2:1}", "b c"),
        ("${@:2:0}|${@:9}|${@:9:2}", "||"),
        ("$0 $ $x ${x} ${1} $ARGUMENTSX $$1", "$0 $ $x ${x} ${1} $ARGUMENTSX $a"),
        ("$11", ""),
        ("costs $1.50", "costs a.50"),
    ],
)
def test_placeholders(body: str, expected: str) -> None:
    assert substitute(body, ["a", "b c", "d"]) == expected


def test_the_tenth_argument() -> None:
    assert substitute("$10", [str(number) for number in range(1, 11)]) == "10"


@pytest.mark.parametrize("body", ["${1:-d}", "${@:-d}"])
@pytest.mark.parametrize("arguments", [[], [""]])
def test_what_is_missing_or_empty_has_its_default(body: str, arguments: list[str]) -> None:
    assert substitute(body, arguments) == "d"


def test_what_an_argument_holds_is_not_looked_at_again() -> None:
    assert substitute("$1 $2 $@", ["$2", "${@:-x}"]) == "$2 ${@:-x} $2 ${@:-x}"


@given(st.lists(st.text()))
def test_any_arguments_come_through_as_they_are(arguments: list[str]) -> None:
    assert substitute("$@", arguments) == " ".join(arguments)


@given(st.text(alphabet="a \"'\\\n"))
def test_nothing_but_quotes_and_white_space_is_lost_in_splitting(typed: str) -> None:
    assert "".join(split_arguments(typed)).count("a") == typed.count("a")


class TestFiles:
    def test_each_markdown_file_directly_in_the_folder_is_one(self, home: Home) -> None:
        home.write(f"{FOLDER}/rev.md", "Review $1")
        home.write(f"{FOLDER}/sub/other.md", "x")
        home.write(f"{FOLDER}/notes.txt", "x")
        home.write(f"{FOLDER}/.hidden.md", "x")
        (home.agent / "prompts" / "folder.md").mkdir()
        resources = home.load()
        assert ([one.name for one in resources.templates], resources.warnings) == (["rev"], ())

    def test_the_header_describes_it(self, home: Home) -> None:
        home.write(f"{FOLDER}/rev.md", '---\ndescription: Look at it\nargument-hint: "<file>"\n---\n\nReview $1\n')
        (found,) = home.load().templates
        assert (found.description, found.argument_hint, found.body) == ("Look at it", "<file>", "Review $1")

    def test_without_a_description_it_has_its_first_line(self, home: Home) -> None:
        home.write(f"{FOLDER}/rev.md", "\nReview $1\nwith care")
        assert home.load().templates[0].description == "Review $1"

    def test_a_header_that_cannot_be_read_is_said_and_the_rest_is_used(self, home: Home) -> None:
        home.write(f"{FOLDER}/rev.md", "---\nargument-hint: [a] [b]\n---\nReview $1")
        resources = home.load()
        assert resources.templates[0].body == "Review $1"
        (said,) = resources.warnings
        assert "prompts/rev.md: line 2: " in said

    def test_an_empty_one_is_said_and_not_used(self, home: Home) -> None:
        home.write(f"{FOLDER}/rev.md", "---\ndescription: d\n---\n")
        resources = home.load()
        assert resources.templates == ()
        assert resources.warnings == (f"{home.agent}/prompts/rev.md: the prompt template is empty, so it is not used",)
