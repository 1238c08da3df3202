"""The header of a Markdown file."""

from __future__ import annotations

import pytest

from pi_plugins.prompt._frontmatter import parse


def test_values_are_texts_as_they_are_written() -> None:
    document = parse("---\na: no\nb: 1.10\nc: 2026-01-01\nd: 'x: y'\n---\nBody\n")
    assert dict(document.header) == {"a": "no", "b": "1.10", "c": "2026-01-01", "d": "x: y"}
    assert (document.body, document.problem) == ("Body", None)


@pytest.mark.parametrize("value", [">\n  one\n  two", "|\n  one\n  two", "one\n  two", '"one\n  two"'])
def test_a_text_of_several_lines_is_one_line(value: str) -> None:
    assert parse(f"---\na: {value}\n---\n").text("a") == "one two"


def test_a_list_of_texts_is_the_text_it_looks_like() -> None:
    assert parse("---\na: [file, line]\n---\n").text("a") == "[file, line]"


@pytest.mark.parametrize("value", ["", "''", "{b: c}", "[[b]]"])
def test_a_value_without_a_text_is_none(value: str) -> None:
    assert parse(f"---\na: {value}\n---\n").text("a") is None


@pytest.mark.parametrize("text", ["Body", "----\na: b\n---\nx", "\n---\na: b\n---", "--- a\nb", "---\na: b\n"])
def test_a_text_without_a_header_is_all_body(text: str) -> None:
    document = parse(text)
    assert (dict(document.header), document.body) == ({}, text.strip())


def test_an_empty_header() -> None:
    assert parse("---\n---\nBody").body == "Body"
    assert parse("---\n# nothing\n---\nBody") == parse("Body")


def test_lines_of_dashes_in_the_body_stay() -> None:
    assert parse("---\na: b\n---\nx\n\n---\n\ny").body == "x\n\n---\n\ny"


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("name: x\ndescription: use it: often", "line 3: mapping values are not allowed in this context"),
        ("hint: [a] [b]", "line 2: did not find expected key"),
        ("just words", "line 2: expected lines of name: value"),
        ("- a\n- b", "line 2: expected lines of name: value"),
    ],
)
def test_a_header_that_is_none_says_where(header: str, problem: str) -> None:
    document = parse(f"---\n{header}\n---\nBody")
    assert document.problem is not None
    assert document.problem.startswith(problem)
    assert (dict(document.header), document.body) == ({}, "Body")


@pytest.mark.parametrize("deep", ["[" * 60_000, "{a: " * 60_000, "- " * 60_000 + "x", "? " * 60_000 + "x"])
def test_a_header_too_deep_to_be_loaded_is_a_problem(deep: str) -> None:
    document = parse(f"---\nname: x\ndeep:\n  {deep}\n---\nBody")
    assert (dict(document.header), document.body) == ({}, "Body")
    assert document.problem is not None
    assert document.problem.startswith("line 4: ")


@pytest.mark.parametrize("hostile", ["a: !!python/object/apply:os.getcwd []", "\x00", "a: &x [*x]"])
def test_a_hostile_header_is_a_problem_or_text(hostile: str) -> None:
    document = parse(f"---\n{hostile}\n---\nBody")
    assert document.body == "Body"
    assert document.text("a") in (None, "[]")
