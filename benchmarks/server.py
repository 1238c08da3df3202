"""A model server on loopback for the network row: ``python -m benchmarks.server N`` prints its port and serves.

Every request is answered with the same bytes, made beforehand: a chat completion of ``N`` text chunks, each server-sent
event in an HTTP chunk of its own, as providers send them, and the whole in writes of 16 KB.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from .work import DELTA

_WRITE: Final = 16 * 1024
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _event(choice: dict[str, Any] | None, usage: dict[str, int] | None = None) -> bytes:
    data = {
        "id": "chatcmpl-B7f2c9a1e4d8",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_34a54ae93c",
        "choices": [] if choice is None else [{"index": 0, "logprobs": None, "finish_reason": None, **choice}],
        "usage": usage,
    }
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def response(n: int) -> bytes:
    """Return the bytes of an answer of ``n`` text chunks."""
    events = [
        _event({"delta": {"role": "assistant", "content": "", "refusal": None}}),
        *[_event({"delta": {"content": DELTA}})] * n,
        _event({"delta": {}, "finish_reason": "stop"}),
        _event(None, {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": n + 10}),
        b"data: [DONE]\n\n",
    ]
    return _HEAD + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


async def serve(n: int) -> None:
    """Answer requests until the process is ended."""
    answer = response(n)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
                await reader.readexactly(int(fields.get(b"content-length", b"0")))
                for start in range(0, len(answer), _WRITE):
                    writer.write(answer[start : start + _WRITE])
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
