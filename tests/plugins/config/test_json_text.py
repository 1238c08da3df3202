"""JSON files as people write them, and the places of what is in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import ConfigError
from pi_plugins.config import read_document, read_json
from pi_plugins.config.json_text import parse_json


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def fault(path: Path, *, comments: bool = False) -> str:
    with pytest.raises(ConfigError) as raised:
        read_json(path, comments=comments)
    return str(raised.value).replace(str(path), "FILE")


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none.json") is None


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert read_json(write(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ a: 1}", "FILE:1:3: expecting property name enclosed in double quotes"),
        ('{\n  "a": 1,\n}', "FILE:2:9: illegal trailing comma before end of object"),
        ("", "FILE:1:1: expecting value"),
        ('{"a": NaN}', "FILE: NaN is not a number that JSON knows"),
        ("[" * 100_000, "FILE: nested too deeply: expected at most 100 objects and lists in each other"),
        (
            '{"a":' * 101 + "1" + "}" * 101,
            "FILE: nested too deeply: expected at most 100 objects and lists in each other",
        ),
        ("[" + "9" * 5000 + "]", "FILE: a number has more than 4300 digits"),
        (b'{\n "a": "\xff"}', "FILE:2:8: not UTF-8; save the file as UTF-8"),
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', "FILE:2: the key 'b.c' is there twice (line 2 and line 2); remove one"),
    ],
)
def test_a_fault_names_file_line_and_column(tmp_path: Path, text: str | bytes, message: str) -> None:
    said = fault(write(tmp_path, text))
    if "trailing comma" not in message:  # Python 3.12 and older say it in other words
        assert said == message
    assert said.startswith("FILE:")


def test_what_is_nested_a_hundred_times_is_read(tmp_path: Path) -> None:
    value = read_json(write(tmp_path, "[" * 100 + "]" * 100))
    assert str(value) == "[" * 100 + "]" * 100


def test_places_of_many_values_are_found_without_reading_the_text_again(tmp_path: Path) -> None:
    class Text(str):
        """Counts the characters that are looked at to number lines."""

        __slots__ = ()
        counted = 0

        def count(self, *arguments: Any) -> int:
            Text.counted += 1
            return super().count(*arguments)

    document = parse_json(Text("[\n" + "1,\n" * 999 + "1\n]"), tmp_path)
    assert [document.place((index,)) for index in (0, 500, 999)] == [f"{tmp_path}:{line}" for line in (2, 502, 1001)]
    assert Text.counted == 0


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert fault(tmp_path / "pipe") == "FILE: not a regular file"
    assert fault(tmp_path) == "FILE: not a regular file"


def test_comments_are_read_over_where_they_are_allowed(tmp_path: Path) -> None:
    text = '// first\n{"a": "// no comment /* */", /* two\nlines */ "b": 2} // last'
    assert read_json(write(tmp_path, text), comments=True) == {"a": "// no comment /* */", "b": 2}
    assert fault(write(tmp_path, text)) == "FILE:1:1: expecting value"


def test_places_stay_right_behind_comments(tmp_path: Path) -> None:
    path = write(tmp_path, '/* a\n b */ { // c\n  "x" 1}')
    assert fault(path, comments=True).startswith("FILE:3:7: ")


def test_a_comment_without_an_end_is_a_fault(tmp_path: Path) -> None:
    assert fault(write(tmp_path, '{"a": 1 /* open }'), comments=True).startswith("FILE:1:9: ")


def test_each_value_has_a_place(tmp_path: Path) -> None:
    path = write(tmp_path, '{\n "a": [1,\n  {"b":\n   "]}"}],\n "c": 2}')
    document = read_document(path)
    assert document is not None
    places = {at: document.place(at) for at in [(), ("a",), ("a", 0), ("a", 1, "b"), ("c",), ("a", 1, "zz"), ("zz",)]}
    assert places == {
        (): f"{path}:1",
        ("a",): f"{path}:2",
        ("a", 0): f"{path}:2",
        ("a", 1, "b"): f"{path}:3",
        ("c",): f"{path}:5",
        ("a", 1, "zz"): f"{path}:3",
        ("zz",): f"{path}:1",
    }


def test_of_a_key_that_is_there_twice_the_last_place_counts() -> None:
    document = parse_json('{"a": {"x": 1},\n "a": {"x": 2}}', Path("f"))
    assert document.value == {"a": {"x": 2}}
    assert document.place(("a", "x")) == "f:2"
    assert document.duplicates() == [(("a",), "line 1 and line 2")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=4), children, max_size=4),
    max_leaves=12,
)


def paths_of(value: object) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = [()]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += [(key, *path) for path in paths_of(item)]
    return found


@given(JSON, st.sampled_from([None, 1]))
def test_every_value_of_any_document_is_found(value: object, indent: int | None) -> None:
    document = parse_json(json.dumps(value, indent=indent), Path("f"))
    found = document._found()
    assert sorted(found, key=repr) == sorted(paths_of(value), key=repr)
    assert not document.duplicates()
