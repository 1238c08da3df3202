"""The reader that joins HTTP chunks, against the parser that has to understand what it makes."""

from __future__ import annotations

from collections.abc import Sequence

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_plugins.providers._transport import ChunkJoiner

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(parts: Sequence[bytes], extension: bytes = b"") -> bytes:
    framed = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts if part]
    return HEAD + b"".join(framed) + b"0\r\n\r\n"


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    pieces, position = [], 0
    for size in sizes:
        pieces.append(data[position : position + size])
        position += size
    return [piece for piece in [*pieces, data[position:]] if piece]


def joined(pieces: Sequence[bytes]) -> list[bytes]:
    joiner = ChunkJoiner()
    return [*(joiner.feed(piece) for piece in pieces), joiner.finish()]


def parsed(pieces: Sequence[bytes]) -> tuple[int | None, bytes, str]:
    """Status, body and how it ended, as h11 reads it."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    status, body = None, b""
    try:
        for piece in [*(piece for piece in pieces if piece), b""]:
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return status, body, "end"
                elif event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                    break
    except h11.RemoteProtocolError:
        return status, body, "error"
    return status, body, "open"


bodies = st.lists(st.binary(max_size=40), max_size=8)
sizes = st.lists(st.integers(1, 30), max_size=60)


@given(bodies, sizes, st.sampled_from([b"", b";name=value", b" ", b"; x"]))
def test_the_body_stays_the_same(parts: list[bytes], lengths: list[int], extension: bytes) -> None:
    data = chunked(parts, extension)
    for pieces in ([data], cut(data, lengths), [data[at : at + 1] for at in range(len(data))]):
        assert parsed(joined(pieces)) == (200, b"".join(parts), "end")


@given(bodies, sizes, st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))
def test_damage_is_passed_on(parts: list[bytes], lengths: list[int], at: int, put: bytes, remove: int) -> None:
    data = chunked(parts)
    at = len(HEAD) + at % (len(data) - len(HEAD))
    data = data[:at] + put + data[at + remove :]
    status, body, ended = parsed(cut(data, lengths))
    assert parsed(joined(cut(data, lengths))) == (status, body, ended)


@given(bodies, st.integers(0, 400))
def test_what_arrived_before_a_break_arrives(parts: list[bytes], length: int) -> None:
    data = chunked(parts)[: len(HEAD) + length]
    assert parsed(joined([data])) == parsed([data])


def test_chunks_of_one_read_become_one() -> None:
    joiner = ChunkJoiner()
    assert joiner.feed(HEAD) == HEAD
    assert joiner.feed(b"3\r\nabc\r\n2\r\nde\r\n4\r\nfg") == b"7\r\nabcdefg\r\n"
    assert joiner.feed(b"hi\r") == b"2\r\nhi\r\n"
    assert joiner.feed(b"\n") == b""
    assert joiner.feed(b"0\r\n") == b"0\r\n"
    assert joiner.feed(b"x: y\r\n\r\n") == b"x: y\r\n\r\n"


def test_a_new_request_expects_a_new_head() -> None:
    joiner = ChunkJoiner()
    joiner.feed(chunked([b"one"]))
    joiner.restart()
    second = chunked([b"two", b"three"])
    assert parsed([joiner.feed(second)]) == (200, b"twothree", "end")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n3\r\nab",
        b"HTTP/1.0 200 OK\r\n\r\n3\r\nabc\r\n",
        b"\x05\x00\x00\x01",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n3\r\nabc\r\n",
        b"nonsense",
    ],
)
def test_other_bytes_pass(data: bytes) -> None:
    assert b"".join(joined([data])) == data
    assert b"".join(joined([data[at : at + 1] for at in range(len(data))])) == data


def test_head_after_an_interim_response() -> None:
    data = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + chunked([b"a", b"b"])
    assert b"2\r\nab\r\n" in b"".join(joined([data]))
    assert parsed(joined([data[at : at + 1] for at in range(len(data))])) == (200, b"ab", "end")


def test_a_head_without_end_is_not_held() -> None:
    data = b"HTTP/1.1 200 OK\r\n" + b"x" * 70000
    assert b"".join(joined(cut(data, [1000] * 69))) == data
