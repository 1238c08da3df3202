"""A server on this machine is reached directly, whatever proxies the environment names."""

import asyncio

import pytest

from pi_core import Context, DoneEvent, Model, StreamOptions, UserMessage
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider

BODY = (
    b'data: {"choices":[{"delta":{"content":"here"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_between(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(BODY)
        writer.write(head + BODY)
        await writer.drain()
        writer.close()

    async def run() -> str:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = Model(id="m", api="openai-completions", provider="p", base_url=f"http://{host}:{port}/v1")
        context = Context(messages=[UserMessage(content="hi")])
        async with server:
            events = OpenAICompletionsProvider().stream(model, context, StreamOptions(max_retries=0))
            last = [event async for event in events][-1]
        assert isinstance(last, DoneEvent), last
        return last.message.text

    assert asyncio.run(run()) == "here"
