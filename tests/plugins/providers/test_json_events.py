"""Events as JSON, and the shortcut for events that differ in one string."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_plugins.providers._errors import ResponseError
from pi_plugins.providers._json import EventJson, StringTemplate


def test_lenient_where_servers_are_not_exact() -> None:
    parser = EventJson()
    assert parser.parse('{"a":"é"}'.encode()) == {"a": "é"}
    assert not parser.lenient
    assert parser.parse(b'{"a":"\\ud83d"}') == {"a": "\ud83d"}
    assert parser.lenient
    assert parser.parse(b'{"a":"line\nbreak\xff"}') == {"a": "line\nbreak\ufffd"}


def test_deep_nesting_is_read_or_refused() -> None:
    assert EventJson().parse(b"[" * 300 + b"]" * 300)
    with pytest.raises(ResponseError, match="not JSON"):
        EventJson().parse(b"[" * 200_000)


def test_malformed_event_shows_what_came_and_no_more() -> None:
    with pytest.raises(ResponseError) as error:
        EventJson().parse(b'{"choices": [' + b"x" * 1000)
    assert '{"choices": [xxx' in error.value.text
    assert len(error.value.text) < 400


def chunk(text: str, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return json.dumps({"id": "c", "choices": [choice], **more}, ensure_ascii=False).encode("utf-8", "surrogatepass")


@given(st.text(), st.text(), st.integers(0, 1))
def test_a_match_equals_the_parse(first: str, second: str, created: int) -> None:
    template = StringTemplate("content")
    template.learn(chunk(first, created=0))
    data = chunk(second, created=created)
    found = template.match(data)
    if found is not None:
        assert found == json.loads(data)["choices"][0]["delta"]["content"]
        assert created == 0


@given(st.binary(max_size=12))
def test_only_a_valid_string_fits(middle: bytes) -> None:
    template = StringTemplate("content")
    data = chunk("x")
    template.learn(data)
    before, _, after = data.partition(b'"x"')
    candidate = before + b'"' + middle + b'"' + after
    found = template.match(candidate)
    if found is not None:
        assert json.loads(candidate)["choices"][0]["delta"]["content"] == found


def test_fits_plain_and_escaped_text() -> None:
    template = StringTemplate("content")
    assert template.match(chunk("a")) is None
    template.learn(chunk("a"))
    assert template.match(chunk("b")) == "b"
    assert template.match(chunk("")) == ""
    assert template.match(chunk('say "hi"\n\\')) == 'say "hi"\n\\'
    assert template.match(chunk("é🙈")) == "é🙈"
    assert template.match(chunk("b", usage={"x": 1})) is None
    assert template.match(chunk("a")[:-1]) is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content":"a"}}],"content":"b"}',
        b'{"choices":[{"delta":{"content" : "a"}}],"content":"b"}',
        b'{"choices":[{"delta":{"\\u0063ontent":"a"}}],"content":"b"}',
        b'{"choices":[{"delta":{"type":"content"}}]}',
        b'{"choices":[{"delta":{"content":null}}]}',
        b'{"choices":[{"delta":{"content":"a\\n"}}]}',
        b'{"choices":[]}',
        b'{"choices":[{"delta":{"content":"a',
    ],
)
def test_learns_nothing_where_the_string_is_not_certain(data: bytes) -> None:
    template = StringTemplate("content")
    template.learn(data)
    assert template.match(data) is None


def test_forgets() -> None:
    template = StringTemplate("content")
    template.learn(b'{"content" :  "a"}')
    assert template.match(b'{"content" :  "b"}') == "b"
    template.forget()
    assert template.match(b'{"content" :  "b"}') is None


def test_overlapping_ends_do_not_fit() -> None:
    template = StringTemplate("content")
    template.learn(b'{"content":"a"}')
    assert template.match(b'{"content":"}') is None
    assert template.match(b'{"content":""}') == ""


def test_gives_up_where_every_event_differs() -> None:
    template = StringTemplate("content")
    for number in range(40):
        template.learn(chunk("a", obfuscation="x" * number))
    assert template.match(chunk("b", obfuscation="x" * 39)) is None
