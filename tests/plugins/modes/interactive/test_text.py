from __future__ import annotations

import pytest

from pi_plugins.modes.interactive._text import cut, plain, seconds, tokens


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b]52;c;c3RvbGVu\x1b\\rest", "rest"),
        ("\x1bPquery\x1b\\rest", "rest"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("one\r\ntwo", "one\ntwo"),
        ("a\x00\x07\x9bb", "ab"),
        ("a\tb", "a   b"),
        ("rm \u202eelif", "rm \ufffdelif"),
        ("half \ud83d", "half \ufffd"),
        ("cafe\u0301 日本", "cafe\u0301 日本"),
    ],
)
def test_nothing_that_steers_the_terminal_is_left(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_text_is_cut_by_columns_and_not_by_letters() -> None:
    assert cut("日本語のテキスト", 7) == "日本語…"
    assert cut("short", 5) == "short"


def test_numbers_are_short() -> None:
    assert [tokens(number) for number in (950, 12_345, 123_456, 1_234_567)] == ["950", "12.3k", "123k", "1.2M"]
    assert [seconds(number) for number in (8.7, 125, 3_720)] == ["8 s", "2 min 5 s", "1 h 2 min"]
