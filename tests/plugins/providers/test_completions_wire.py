"""Recorded cases of the API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from pi_core import AbortController, DoneEvent, ErrorEvent, StartEvent, UpdateEvent

DONE = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

# Where this framework does something else on purpose: what is compared instead, and why.
REQUEST_DEVIATIONS = {
    "null-content": "an empty message is left out here too; the original raises while it estimates tokens",
    "null-content-stream": "options have one form, the simple one, which always names the most tokens of the answer",
    "custom-headers": "a removed User-Agent is not sent at all; the original's HTTP library puts its own there",
    "no-api-key": "nothing is raised out of a stream: a missing key is the last event, with what to do about it",
    "strict-tool-require-unsupported": "the text also says what to do",
}
STREAM_DEVIATIONS = {
    "sse-abort-before": "one text for every abort",
    "sse-connection-drop": "the text of this HTTP library",
    "sse-grammar-tool": "a call shows no argument before the first piece of one",
}


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and "<text>" in wanted:
        return isinstance(given, str) and bool(given)
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict)
            and given.keys() == wanted.keys()
            and all(_same(given[k], wanted[k]) for k in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(given) == len(wanted) and all(map(_same, given, wanted))
    return bool(given == wanted)


def test_wire(
    wire_case: Path, serve: Any, reply: Any, rerouted: Any, played: Any, calls: Any, model: Any, cuts: Any
) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    if "sse" in case:
        _check_stream(wire_case.stem, case, serve, reply, rerouted, played, calls, model, cuts)
    else:
        _check_request(wire_case.stem, case, serve, reply, rerouted, calls, model)


def _check_request(
    name: str, case: dict[str, Any], serve: Any, reply: Any, rerouted: Any, calls: Any, model: Any
) -> None:
    async def run() -> tuple[Any, Any, Any]:
        async with serve(reply([DONE])) as server:
            provider, transport = rerouted(server)
            key = None if name == "no-api-key" else "<api-key>"
            options = calls.options(case["options"], api_key=key, max_retries=0)
            events = await calls.collect(
                provider.stream(model(**case["model"]), calls.context(case["context"]), options)
            )
            return server, transport, events

    server, transport, events = asyncio.run(run())
    if case.get("no_request") and name != "null-content":
        assert not server.requests
        assert [event.type for event in events] == ["error"]
        outcome = case["outcome"]
        text = outcome.get("thrown") or outcome["final"]["errorMessage"]
        assert events[0].message.error_message.startswith(text)
        return
    assert [event.type for event in events][-1] == "done", events[-1]
    [request] = server.requests
    if name == "null-content":
        assert [message["content"] for message in request.json["messages"]] == ["x", "y", "z"]
        return
    wanted = case["request_body"]
    if name == "null-content-stream":
        wanted = {**wanted, "max_completion_tokens": case["model"]["maxTokens"]}
    assert _same(request.json, wanted), (request.json, wanted)
    assert (request.method, transport.urls) == (case["request_method"], [case["request_url"]])
    headers = {**case["request_headers"]}
    agent = headers.pop("user-agent")
    if name == "custom-headers":
        assert "user-agent" not in request.headers
    else:
        assert agent.startswith("pi/")
        assert request.headers["user-agent"].startswith("pi/")
    sent = {key: value for key, value in request.headers.items() if key not in ("host", "content-length", "user-agent")}
    assert sent == headers


def _check_stream(
    name: str,
    case: dict[str, Any],
    serve: Any,
    reply: Any,
    rerouted: Any,
    played: Any,
    calls: Any,
    model: Any,
    cuts: Any,
) -> None:
    bodies = [case["sse"]] if isinstance(case["sse"], str) else case["sse"]
    heads = case.get("responses") or [{"status": 200, "headers": {"content-type": "text/event-stream"}}]
    then = "drop" if name == "sse-connection-drop" else "end"

    async def trace(provider: Any) -> list[dict[str, Any]]:
        controller = AbortController()
        if name == "sse-abort-before":
            controller.abort()
        given = {"maxRetries": 0, **case["options"]}
        options = calls.options(given, api_key="<api-key>", signal=controller.signal)
        stream = provider.stream(model(**case["model"]), calls.context(case["context"]), options)
        # The partial message belongs to the moment of its event, so it is read right then.
        return [_shown(event) async for event in stream]

    async def over_sockets(replies: list[Any]) -> list[dict[str, Any]]:
        async with serve(*replies) as server:
            shown = await trace(rerouted(server)[0])
            assert len(server.requests) == case["requests_seen"]
            return shown

    for way in ("whole", "chunks", "bytes"):
        replies = [
            reply(cuts(body.encode())[way], head["status"], head["headers"], then=then)
            for body, head in zip(bodies, heads, strict=True)
        ]
        provider, transport = played(*replies)
        _compare(name, case, asyncio.run(trace(provider)))
        assert transport.requests == case["requests_seen"]
        _compare(name, case, asyncio.run(over_sockets(replies)))


def _shown(event: Any) -> dict[str, Any]:
    if isinstance(event, StartEvent):
        return {"type": "start", "partial": event.partial.to_json() | {"timestamp": 0}}
    if isinstance(event, DoneEvent | ErrorEvent):
        message = event.message.to_json() | {"timestamp": 0}
        return {"type": event.type, "reason": event.message.stop_reason, "final": message}
    assert isinstance(event, UpdateEvent)
    return event.to_json() | {"partial_block": event.partial.content[event.content_index].to_json()}


def _compare(name: str, case: dict[str, Any], trace: list[dict[str, Any]]) -> None:
    final = trace[-1].pop("final")
    events = case["events"]
    if name == "sse-grammar-tool":
        assert trace[1]["partial_block"]["arguments"] == {}
        events = [{**event} for event in events]
        events[1]["partial_block"] = {**events[1]["partial_block"], "arguments": {}}
    assert trace == events
    wanted = dict(case["final"])
    details = final.pop("errorDetails", None)
    if wanted["stopReason"] == "error":
        assert details is not None
    if name == "sse-abort-before":
        wanted["errorMessage"] = "Request was aborted"
    if name == "sse-connection-drop":
        assert final["errorMessage"].startswith("Connection error: ")
        assert details["retryable"] is True
        wanted["errorMessage"] = final["errorMessage"]
    assert final == wanted
