"""Recorded cases of the API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from pi_core import AbortController, DoneEvent, ErrorEvent, StartEvent, UpdateEvent

DONE = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

# Where this framework does something else on purpose: why, and what is expected instead. All other cases match exactly.
DEVIATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "null-content": (
        "a message refuses a null content; callers pass an empty list and it is left out; the original fails",
        {"contents": ["x", "y", "z"]},
    ),
    "null-content-stream": (
        "options have one form, the simple one, and that always names the most tokens of the answer",
        {"body": {"max_completion_tokens": 32000}},
    ),
    "custom-headers": (
        "a removed User-Agent is not sent at all; the original's HTTP library puts its own in its place",
        {"user_agent": None},
    ),
    "no-api-key": (
        "nothing is raised out of a stream: a missing key is the last event, and says what to do about it",
        {"text_begins": "No API key for provider: openai. Set the environment variable OPENAI_API_KEY"},
    ),
    "strict-tool-require-unsupported": (
        "the text also says what to do",
        {"text_begins": 'Tool "read" requires JSON-schema constrained sampling, but strict tools are unsupported. '},
    ),
    "sse-abort-before": ("there is one text for every abort", {"text_begins": "Request was aborted"}),
    "sse-connection-drop": ("the words are those of this HTTP library", {"text_begins": "Connection error: "}),
    "sse-grammar-tool": ("a call shows no argument before the first piece of one", {"first_arguments": {}}),
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
    _, instead = DEVIATIONS.get(name, ("", {}))
    if case.get("no_request") and "contents" not in instead:
        assert not server.requests
        assert [event.type for event in events] == ["error"]
        _check_text(events[0].message.error_message, (case["outcome"].get("final") or {}).get("errorMessage"), instead)
        return
    assert [event.type for event in events][-1] == "done", events[-1]
    [request] = server.requests
    if "contents" in instead:
        assert [message["content"] for message in request.json["messages"]] == instead["contents"]
        return
    wanted = case["request_body"] | instead.get("body", {})
    assert _same(request.json, wanted), (request.json, wanted)
    assert (request.method, transport.urls) == (case["request_method"], [case["request_url"]])
    sent = {key: value for key, value in request.headers.items() if key not in ("host", "content-length")}
    agent = sent.pop("user-agent", None)
    if "user_agent" in instead:
        assert agent is instead["user_agent"]
    else:
        assert (agent or "").startswith("pi/")
    assert sent == {key: value for key, value in case["request_headers"].items() if key != "user-agent"}


def _check_text(given: str, wanted: str | None, instead: dict[str, Any]) -> None:
    if "text_begins" in instead:
        assert given.startswith(instead["text_begins"])
    else:
        assert given == wanted


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
    _, instead = DEVIATIONS.get(name, ("", {}))
    final = trace[-1].pop("final")
    events = json.loads(json.dumps(case["events"]))
    if "first_arguments" in instead:
        events[1]["partial_block"]["arguments"] = instead["first_arguments"]
    assert trace == events
    wanted = dict(case["final"])
    assert ("errorDetails" in final) == (wanted["stopReason"] == "error")
    final.pop("errorDetails", None)
    if "errorMessage" in wanted:
        _check_text(final.pop("errorMessage"), wanted.pop("errorMessage"), instead)
    assert final == wanted
