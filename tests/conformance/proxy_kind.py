"""Scenarios of the proxy: the client against an HTTP layer that plays a response."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
from pi_core import AbortController, Context, DoneEvent, ErrorEvent, StreamEvent, StreamOptions, Tool
from pi_plugins.providers._connections import Connections
from pi_plugins.providers.proxy import ProxyProvider
from pydantic.alias_generators import to_snake

from .specs import Json, messages, model, normalized
from .world import World

_URL, _TOKEN = "https://proxy.test", "TOKEN"
_NAMES = {"authorization": "Authorization", "content-type": "Content-Type"}
_OF_HTTP = {"accept", "accept-encoding", "connection", "content-length", "host", "user-agent"}
"""Headers that every HTTP client sends in its own way."""


async def play_proxy(world: World) -> Json:
    """Make requests through a proxy."""
    results = [await _case(world, case) for case in world.scenario["cases"]]
    # The generators inside httpx end in tasks of their own when they are found.
    gc.collect()
    await world.ticks(1)
    return {"results": results}


async def _case(world: World, case: Json) -> Json:
    http = _Http(world, case["http"])
    if case.get("abort") == "before":
        # The original hands the request to fetch, which refuses it; here none is made. So that what would have been
        # asked is compared all the same, the case is played once more without the abort.
        http.controller.abort()
        events = await _events(http, case)
        assert http.requests == []
        unaborted = _Http(world, case["http"])
        await _events(unaborted, case)
        http.requests = unaborted.requests
    else:
        events = await _events(http, case)
    seen = [event if isinstance(event, dict) else _shown(event) for event in events]
    last = seen[-1]
    return {
        "name": case["name"],
        "ok": True,
        "value": last.get("message", last.get("error")),
        "consumed": len(seen),
        "events": seen,
        "requests": http.requests,
    }


async def _events(http: _Http, case: Json) -> list[Any]:
    given = {to_snake(name): value for name, value in case.get("options", {}).items()}
    options = StreamOptions(**given, signal=http.controller.signal)
    tools = [Tool(**tool, execute=_not_executed) for tool in case.get("tools", ())]
    context = Context(case.get("systemPrompt", ""), messages(case.get("messages", ["hi"])), tools)
    provider = ProxyProvider(_URL, _TOKEN, connections=Connections(lambda: http))
    # Connections that nobody needs any more close themselves in a task; these stay until the play is over.
    http.world.kept.append(provider)
    stream = provider.stream(model(case.get("model", "prov/remote-model")), context, options)
    return [event if http.world.variant.late else _shown(event) async for event in stream]


async def _not_executed(arguments: Json, context: Any) -> None:
    raise AssertionError("only declared")


def _shown(event: StreamEvent) -> Json:
    data = event.to_json()
    if not isinstance(event, DoneEvent | ErrorEvent):
        data["partial"] = event.partial.to_json()
    elif "error" in data:
        # What a failure means as data; the original has only its text.
        data["error"].pop("errorDetails", None)
    shown: Json = normalized(data)
    return shown


class _Http(httpx.AsyncBaseTransport):
    """An HTTP layer that records requests and plays one response."""

    def __init__(self, world: World, script: Json) -> None:
        self.world = world
        self.controller = AbortController()
        self.requests: list[Json] = []
        self._script = script

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread())
        headers = {_NAMES.get(name, name): value for name, value in request.headers.items() if name not in _OF_HTTP}
        self.requests.append(
            {
                "url": str(request.url),
                "method": request.method,
                "headers": headers,
                "body": normalized(body),
                "bodyKeys": list(body),
            }
        )
        await self.world.delay()
        if "networkError" in self._script:
            raise httpx.ReadError(self._script["networkError"])
        words = self._script.get("statusText", "OK").encode()
        return httpx.Response(
            self._script.get("status", 200), stream=_Body(self), extensions={"reason_phrase": words}, request=request
        )

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        if "json" in self._script:
            yield json.dumps(self._script["json"]).encode()
        for chunk in self._script.get("chunks", ()):
            await self.world.delay()
            if isinstance(chunk, str):
                yield chunk.encode()
            elif "event" in chunk:
                yield f"data: {json.dumps(chunk['event'])}\n\n".encode()
            elif "bytes" in chunk:
                yield bytes(chunk["bytes"])
            elif "abort" in chunk:
                self.controller.abort()
                await self.world.ticks(1)
            else:
                raise httpx.ReadError(chunk["error"])


class _Body(httpx.AsyncByteStream):
    def __init__(self, http: _Http) -> None:
        self._chunks = http.chunks()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()
