"""The tolerant and the final parse of streamed tool arguments."""

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import partial_json
from pi_core.partial_json import ArgumentsParser, parse_arguments

CASES = json.loads((Path(__file__).parent / "data" / "partial_json.json").read_text(encoding="utf-8"))


def parser_of(*deltas: str) -> ArgumentsParser:
    parser = ArgumentsParser()
    for delta in deltas:
        parser.feed(delta)
    return parser


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[start:stop] for start, stop in zip([0, *places], [*places, len(text)], strict=True)]


# Recorded cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_snapshots(case: dict[str, Any]) -> None:
    parser = ArgumentsParser()
    for chunk, snapshot in zip(case["chunks"], case["snapshots"], strict=True):
        parser.feed(chunk)
        value = parser.value
        assert isinstance(value, dict)
        assert snapshot is None or value == snapshot


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_final_parse(case: dict[str, Any]) -> None:
    parser = parser_of(*case["chunks"])
    arguments, error = parser.finish()
    assert arguments == case["arguments"]
    assert (error is None) == (case["error"] is None)
    if error is not None:
        message, _, received = error.partition("\n\nReceived arguments:\n")
        assert message
        assert (message == "Tool arguments must be a JSON object") == (case["error"] == "not an object")
        assert received == parser.text


# The tolerant value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":tr', {"a": True}),
        ('{"a":f', {"a": False}),
        ('{"a":n', {"a": None}),
        ('{"a":tr}', {}),
        ('{"a":1.5e', {"a": 1.5}),
        ('{"a":1.5e+', {"a": 1.5}),
        ('{"a":1.5e2', {"a": 150.0}),
        ('{"a":2.', {}),
        ('{"a":-', {}),
        ('{"a":01', {}),
        ('{"a":1e999', {}),
        ('{"a":' + "1" * 64, {"a": int("1" * 64)}),
        ('{"a":' + "1" * 65, {}),
        ('{"a":' + "1" * 65 + "}", {"a": int("1" * 65)}),
        ('{"a":' + "1" * 5000 + ',"b":2}', {"b": 2}),
        ('{"a":"x\ty', {"a": "x\ty"}),
        ('{"a":"\\q\\u12z', {"a": "\\q\\u12z"}),
        ('{"a":"x\\u00e', {"a": "x"}),
        ('{"a":"x\\ud83d', {"a": "x"}),
        ('{"a":"x\\ud83d\\ude0', {"a": "x"}),
        ('{"a":"x\\ud83d\\ude00', {"a": "x😀"}),
        ('{"a":"x\\ud83d!', {"a": "x\ud83d!"}),
        ('{"a":"\\\\ud83d', {"a": "\\ud83d"}),
        ('{"a" "b" "c":[1 2', {"a": "b", "c": [1, 2]}),
        ('{"a","b":1', {"b": 1}),
        ('{"a":x y,"b":1', {"b": 1}),
        ('{"a":-Infinity,"b":1', {"b": 1}),
        ('{1:2,[3]:{"x":4},{"y":5}:6,"b":7', {"b": 7}),
        ('{"a":[1},"b":2}', {"a": [1], "b": 2}),
        ('}]{"a":1', {"a": 1}),
        ('{"a":1}{"b":2}', {"a": 1}),
        ('{"a":1,"a":{"b":[', {"a": {"b": []}}),
        ('[{"a":1}]', {}),
        ("12", {}),
    ],
)
def test_tolerant_value(text: str, value: dict[str, Any]) -> None:
    assert parser_of(text).value == value
    parser = ArgumentsParser()
    for character in text:
        parser.feed(character)
        shown = parser.value
    assert shown == value


def test_value_is_the_same_object_until_it_changes() -> None:
    parser = parser_of('{"a":"x')
    first = parser.value
    assert parser.value is first
    for unchanged in ('"', " ", ',"b', '":'):
        parser.feed(unchanged)
        assert parser.value is first
    parser.feed("1")
    number = parser.value
    for unchanged in ("}", " true", ',{"a":[2]}'):
        parser.feed(unchanged)
        assert parser.value is number
    assert number == {"a": "x", "b": 1}


def test_equal_values_of_different_types_are_a_change() -> None:
    parser = parser_of('{"a":1')
    assert repr(parser.value) == "{'a': 1}"
    parser.feed(".0")
    assert repr(parser.value) == "{'a': 1.0}"
    parser.feed(',"a":true}')
    assert repr(parser.value) == "{'a': True}"


def test_deep_nesting_is_cut_in_the_value() -> None:
    depth = 100_000
    parser = parser_of('{"a":' + "[" * depth)
    for more in ("", "1", ",2", "]" * depth, ',"b":1}'):
        parser.feed(more)
        level, levels = parser.value["a"], 0
        while level:
            level, levels = level[0], levels + 1
        assert level == []
        assert 50 < levels < 150
    assert parser.value["b"] == 1


# Properties

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
strings = st.text(st.characters() | st.sampled_from('"\\/\n\t😀é\ud83d\ude00'), max_size=8)
values = st.recursive(
    scalars | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=16,
)
objects = st.builds(
    lambda value, indent, ascii_only: json.dumps(value, indent=indent, ensure_ascii=ascii_only),
    st.dictionaries(strings, values, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
)
marks = [*'{}[]",:\\ 1-.eEtfnu', "true", "null", "NaN", '\\"', "\\u00e9", "\\ud83d", "\\ude00", '"a":']
anything = st.lists(st.sampled_from(marks), max_size=30).map("".join) | st.text() | objects
cuts = st.lists(st.integers(0, 200), max_size=8)


@settings(deadline=None)
@given(objects, cuts)
def test_valid_text_ends_in_what_json_says(text: str, cuts: list[int]) -> None:
    expected = repr(json.loads(text))
    parser = ArgumentsParser()
    for delta in split(text, cuts):
        parser.feed(delta)
        assert isinstance(parser.value, dict)
    assert repr(parser.value) == expected
    arguments, error = parser.finish()
    assert (repr(arguments), error) == (expected, None)


@settings(deadline=None)
@given(objects)
def test_valid_text_gives_a_new_object_exactly_when_the_value_changes(text: str) -> None:
    parser = ArgumentsParser()
    before = parser.value
    for character in text:
        parser.feed(character)
        assert (parser.value is before) == (repr(parser.value) == repr(before))
        before = parser.value


@settings(deadline=None)
@given(anything, cuts)
def test_values_do_not_depend_on_the_pieces_and_never_change(text: str, cuts: list[int]) -> None:
    parser = ArgumentsParser()
    seen: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for delta in split(text, cuts):
        parser.feed(delta)
        value = parser.value
        assert repr(value) == repr(parser_of(parser.text).value)
        seen.append((value, copy.deepcopy(value)))
    assert all(repr(value) == repr(then) for value, then in seen)
    assert parser.text == text
    assert parser.length == len(text)
    assert parser.finish() == parse_arguments(text)


@settings(deadline=None)
@given(anything, cuts, st.lists(st.integers(0, 200), max_size=8))
def test_value_at_is_the_value_of_that_prefix(text: str, cuts: list[int], lengths: list[int]) -> None:
    parser = parser_of(*split(text, cuts))
    for length in lengths:
        length = min(length, len(text))
        assert repr(parser.value_at(length)) == repr(parser_of(text[:length]).value)
    assert repr(parser.value) == repr(parser_of(text).value)


@settings(deadline=None)
@given(anything)
def test_final_parse_never_raises_and_reports_what_it_rejects(text: str) -> None:
    arguments, error = parse_arguments(text)
    assert isinstance(arguments, dict)
    if error is not None:
        assert arguments == {}
        assert error.endswith(f"\n\nReceived arguments:\n{text}")


# Reading old lengths


def test_value_at_the_current_length_is_the_value() -> None:
    parser = parser_of('{"a":"x', "y")
    assert parser.value_at(parser.length) is parser.value


def test_value_at_an_old_length_leaves_the_value_alone() -> None:
    parser = parser_of('{"a":"x', 'y"}')
    current = parser.value
    assert parser.value_at(7) == {"a": "x"}
    assert parser.value is current == {"a": "xy"}


@pytest.mark.parametrize("length", [-1, 4])
def test_value_at_refuses_a_length_outside_the_text(length: int) -> None:
    with pytest.raises(ValueError, match=f"length {length} is not within the 3 characters"):
        parser_of('{"a').value_at(length)


# The final parse


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0"])
def test_blank_text_means_no_arguments(text: str) -> None:
    assert parse_arguments(text) == ({}, None)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a":"x\n\ty\x00"}', {"a": "x\n\ty\x00"}),
        ('{"a":"C:\\dir\\new \\\\d \\" \\u00e9 \\u12"}', {"a": 'C:\\dir\new \\d " é \\u12'}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":"\\ud83d"}', {"a": "\ud83d"}),
    ],
)
def test_forgiven_texts(text: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(text) == (arguments, None)
    assert parser_of(text).value == arguments


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":NaN}', "NaN is not valid JSON"),
        ('{"a":[-Infinity]}', "-Infinity is not valid JSON"),
        ('{"a":1e999}', "The number 1e999 is out of range"),
        ('{"a":' + "1" * 5000 + "}", "Exceeds the limit"),
        ('{"a":' + "[" * 100_000, "Tool arguments are nested too deeply"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "Tool arguments are nested too deeply"),
        ("[1]", "Tool arguments must be a JSON object"),
        ('{"a":1} x', "Extra data"),
        ('{"a":1,}', ("Expecting property name", "Illegal trailing comma")),  # the latter since Python 3.13
        ('{"a":"b', "Unterminated string"),
        ('{"a":"b\\', "Unterminated string"),
        ("{'a':1}", "Expecting property name"),
    ],
    ids=lambda text: text[:20],
)
def test_rejected_texts(text: str, message: str | tuple[str, ...]) -> None:
    arguments, error = parse_arguments(text)
    assert arguments == {}
    assert error is not None
    assert error.startswith(message)
    assert error.endswith(f"\n\nReceived arguments:\n{text}")


# Cost, counted in characters scanned and members copied


class CountedPattern:
    """A compiled pattern that adds up the characters its matches span."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern.pattern
        self.scanned = 0
        self._match = pattern.match

    def match(self, text: str, position: int) -> re.Match[str] | None:
        match = self._match(text, position)
        self.scanned += match.end() - position if match else 0
        return match


class Work:
    """What the parser has done: characters scanned, members of open containers copied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patterns = [CountedPattern(partial_json._TOKEN), CountedPattern(partial_json._CHARACTERS)]
        monkeypatch.setattr(partial_json, "_TOKEN", self._patterns[0])
        monkeypatch.setattr(partial_json, "_CHARACTERS", self._patterns[1])
        self.copied = 0

    @property
    def scanned(self) -> int:
        return sum(pattern.scanned for pattern in self._patterns)

    def profile(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ == "copy" and frame.f_code.co_filename == partial_json.__file__:
            self.copied += len(function.__self__)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    work = Work(monkeypatch)
    previous = sys.getprofile()
    sys.setprofile(work.profile)
    yield work
    sys.setprofile(previous)


def test_feeding_does_no_work_and_one_read_scans_once(work: Work) -> None:
    text = json.dumps({"path": "a.txt", "content": 'line "x"\n' * 2000, "n": list(range(2000))})
    parser = ArgumentsParser()
    for character in text:
        parser.feed(character)
    assert parser.length == len(text)
    assert work.scanned == 0
    assert parser.value == json.loads(text)
    assert work.scanned <= len(text)
    assert work.copied == 1


def test_reading_after_each_delta_scans_each_character_once(work: Work) -> None:
    text = json.dumps({"content": 'line "x"\n' * 2000})
    parser = ArgumentsParser()
    for character in text:
        parser.feed(character)
        assert parser.value is parser.value
    assert parser.value == json.loads(text)
    assert work.scanned <= len(text)


def test_reading_old_values_forwards_scans_each_character_once(work: Work) -> None:
    text = json.dumps({"content": "x" * 5000})
    parser = parser_of(*text)
    for length in range(len(text) + 1):
        parser.value_at(length)
    assert work.scanned <= len(text)


def test_a_long_open_container_may_lag_but_is_copied_in_linear_work(work: Work) -> None:
    count = 20_000
    parser = parser_of('{"done":true,"n":[')
    lagged = 0
    for _ in range(count):
        parser.feed("1,")
        lagged += len(parser.value["n"]) < parser.length // 2 - 9
    assert lagged
    assert work.copied <= 1100 * count
    assert parser.value_at(parser.length - 1)["n"] == [1] * count
    parser.feed("1,1]")
    assert parser.value_at(parser.length - 2)["n"] == [1] * (count + 1)
    assert parser.value == {"done": True, "n": [1] * (count + 2)}
    parser.feed("}")
    assert parser.finish() == (parser.value, None)


@pytest.mark.parametrize(("depth", "fits"), [(199, True), (201, False), (5000, False)])
def test_arguments_are_not_nested_deeper_than_a_message_can_be_written(depth: int, fits: bool) -> None:
    from pi_core import ToolCallContent

    arguments, error = parse_arguments('{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}")
    assert (error is None) is fits
    if error is None:
        ToolCallContent(id="c", name="n", arguments=arguments).model_dump_json()
    else:
        assert error.startswith("Tool arguments are nested too deeply")
