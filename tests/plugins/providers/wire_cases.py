"""Recorded cases of an API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pi_core import AbortController, DoneEvent, ErrorEvent, StartEvent, UpdateEvent

# Fields of the original's messages that ours do not have.
FOREIGN_FIELDS = ("thinkingLevel", "durationMs", "diagnostics")


@dataclass(frozen=True)
class Deviation:
    """What this framework does otherwise than the original, on purpose.

    :param why: the reason.
    :param body: fields of the request's body in place of the recorded ones.
    :param contents: the contents of the messages sent, where the original sends nothing.
    :param no_user_agent: the request names no user agent.
    :param text_begins: how the error text begins.
    :param first_arguments: the arguments a call shows before the first piece of them.
    :param final: fields of the final message in place of the recorded ones.
    :param adapt: changes the case itself.
    """

    why: str
    body: Mapping[str, Any] = field(default_factory=dict)
    contents: list[Any] | None = None
    no_user_agent: bool = False
    text_begins: str | None = None
    first_arguments: dict[str, Any] | None = None
    final: Mapping[str, Any] = field(default_factory=dict)
    adapt: Callable[[dict[str, Any]], None] | None = None


SAME = Deviation("")

# Cases without a key: it is missing, or a header has it.
KEYLESS = ("no-api-key", "header-auth")

# These hold for every API.
COMMON = {
    "custom-headers": Deviation(
        "a removed User-Agent is not sent at all; the original's HTTP library puts its own in its place",
        no_user_agent=True,
    ),
    "no-api-key": Deviation(
        "nothing is raised out of a stream: a missing key is the last event, and says what to do about it",
        text_begins="No API key for provider: ",
    ),
    "strict-tool-require-unsupported": Deviation(
        "the text also says what to do",
        text_begins='Tool "read" requires JSON-schema constrained sampling, but strict tools are unsupported. ',
    ),
    "sse-abort-before": Deviation("there is one text for every abort", text_begins="Request was aborted"),
    "sse-connection-drop": Deviation("the words are those of this HTTP library", text_begins="Connection error: "),
    "sse-grammar-tool": Deviation("a call shows no argument before the first piece of one", first_arguments={}),
}


def same(given: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal; a text with ``<text>`` in it stands for any."""
    if isinstance(wanted, str) and "<text>" in wanted:
        return isinstance(given, str) and bool(given)
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict) and given.keys() == wanted.keys() and all(same(given[k], wanted[k]) for k in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(given) == len(wanted) and all(map(same, given, wanted))
    return bool(given == wanted)


@dataclass
class WireRunner:
    """Runs the cases of one API with the fixtures of the module that asks for it."""

    serve: Any
    reply: Any
    rerouted: Any
    played: Any
    calls: Any
    model: Any
    cuts: Any

    def check(self, path: Path, done: bytes, deviation: Deviation | None = None, key: str = "<api-key>") -> None:
        """Run a case.

        :param done: an answer, for cases that are about the request.
        :param deviation: what is expected to differ.
        :param key: the API key.
        """
        case = json.loads(path.read_text("utf-8"))
        deviation = deviation or COMMON.get(path.stem, SAME)
        if deviation.adapt is not None:
            deviation.adapt(case)
        if "sse" in case:
            self._check_stream(path.stem, case, deviation, key)
        elif "requests" in case:
            self._check_series(case, done, key)
        else:
            self._check_request(path.stem, case, done, deviation, key)

    # --- requests ---

    def sent(self, case: dict[str, Any], done: bytes, key: str = "<api-key>") -> list[Any]:
        """Return the bodies of the requests a case leads to."""
        server, _, _ = asyncio.run(self._run(case, done, key))
        return [request.json for request in server.requests]

    async def _run(self, case: dict[str, Any], done: bytes, key: str | None) -> tuple[Any, Any, list[Any]]:
        """The server, the transport and the events of the last answer."""
        async with self.serve(self.reply([done])) as server:
            provider, transport = self.rerouted(server)
            events: list[Any] = []
            for step in case.get("requests", [case]):
                options = self.calls.options({**case["options"], "maxRetries": 0}, api_key=key)
                stream = provider.stream(self.model(**case["model"]), self.calls.context(step["context"]), options)
                events = await self.calls.collect(stream)
            return server, transport, events

    def _check_series(self, case: dict[str, Any], done: bytes, key: str) -> None:
        server, _, events = asyncio.run(self._run(case, done, key))
        assert events[-1].type == "done", events[-1]
        assert len(server.requests) == len(case["requests"])
        for request, wanted in zip(server.requests, case["requests"], strict=True):
            assert same(request.json, wanted["request_body"]), (request.json, wanted["request_body"])
            _check_headers(request, wanted["request_headers"], SAME)

    def _check_request(self, name: str, case: dict[str, Any], done: bytes, deviation: Deviation, key: str) -> None:
        server, transport, events = asyncio.run(self._run(case, done, None if name in KEYLESS else key))
        if case.get("no_request") and deviation.contents is None:
            assert not server.requests
            assert [event.type for event in events] == ["error"]
            wanted = (case["outcome"].get("final") or {}).get("errorMessage")
            _check_text(events[0].message.error_message, wanted, deviation)
            return
        assert [event.type for event in events][-1] == "done", events[-1]
        [request] = server.requests
        if deviation.contents is not None:
            messages = next(request.json[key] for key in ("messages", "input", "contents") if key in request.json)
            assert [message.get("content", message.get("parts")) for message in messages] == deviation.contents
            return
        body = {k: v for k, v in {**case["request_body"], **deviation.body}.items() if v is not None}
        assert same(request.json, body), (request.json, body)
        assert (request.method, transport.urls) == (case["request_method"], [case["request_url"]])
        _check_headers(request, case["request_headers"], deviation)

    # --- streams ---

    def _check_stream(self, name: str, case: dict[str, Any], deviation: Deviation, key: str) -> None:
        bodies = [case["sse"]] if isinstance(case["sse"], str) else case["sse"]
        heads = case.get("responses") or [{"status": 200, "headers": {"content-type": "text/event-stream"}}]
        then = "drop" if name == "sse-connection-drop" else "end"

        async def trace(provider: Any) -> list[dict[str, Any]]:
            controller = AbortController()
            if name == "sse-abort-before":
                controller.abort()
            options = self.calls.options({"maxRetries": 0, **case["options"]}, api_key=key, signal=controller.signal)
            stream = provider.stream(self.model(**case["model"]), self.calls.context(case["context"]), options)
            # The partial message belongs to the moment of its event, so it is read right then.
            return [_shown(event) async for event in stream]

        async def over_sockets(replies: list[Any]) -> list[dict[str, Any]]:
            async with self.serve(*replies) as server:
                shown = await trace(self.rerouted(server)[0])
                assert len(server.requests) == case["requests_seen"]
                return shown

        for way in ("whole", "chunks", "bytes"):
            replies = [
                self.reply(self.cuts(body.encode())[way], head["status"], head["headers"], then=then)
                for body, head in zip(bodies, heads, strict=True)
            ]
            provider, transport = self.played(*replies)
            _compare(case, asyncio.run(trace(provider)), deviation)
            assert transport.requests == case["requests_seen"]
            _compare(case, asyncio.run(over_sockets(replies)), deviation)


def _check_headers(request: Any, wanted: dict[str, str], deviation: Deviation) -> None:
    sent = {key: value for key, value in request.headers.items() if key not in ("host", "content-length")}
    wanted = dict(wanted)
    if deviation.no_user_agent:
        del wanted["user-agent"]
    elif wanted["user-agent"].startswith("pi/"):
        wanted["user-agent"] = sent["user-agent"]
        assert sent["user-agent"].startswith("pi/")
    assert sent == wanted


def _check_text(given: str, wanted: str | None, deviation: Deviation) -> None:
    if deviation.text_begins is not None:
        assert given.startswith(deviation.text_begins)
    else:
        assert given == wanted


def _shown(event: Any) -> dict[str, Any]:
    if isinstance(event, StartEvent):
        return {"type": "start", "partial": event.partial.to_json() | {"timestamp": 0}}
    if isinstance(event, DoneEvent | ErrorEvent):
        message = event.message.to_json() | {"timestamp": 0}
        return {"type": event.type, "reason": event.message.stop_reason, "final": message}
    assert isinstance(event, UpdateEvent)
    return event.to_json() | {"partial_block": event.partial.content[event.content_index].to_json()}


def _compare(case: dict[str, Any], trace: list[dict[str, Any]], deviation: Deviation) -> None:
    final = trace[-1].pop("final")
    events = json.loads(json.dumps(case["events"]))
    for start in (trace[0], events[0]):
        for name in FOREIGN_FIELDS:
            start.get("partial", {}).pop(name, None)
    for event in events if deviation.first_arguments is not None else ():
        if event["type"] == "toolcall_start":
            event["partial_block"]["arguments"] = deviation.first_arguments
    assert comparable(trace) == comparable(events)
    final, wanted = comparable(final), comparable({**case["final"], **deviation.final})
    assert ("errorDetails" in final) == (wanted["stopReason"] == "error")
    for name in ("errorDetails", *FOREIGN_FIELDS):
        final.pop(name, None)
        wanted.pop(name, None)
    if "errorMessage" in wanted:
        _check_text(final.pop("errorMessage"), wanted.pop("errorMessage"), deviation)
    assert final == wanted


def comparable(value: Any) -> Any:
    """A JSON value in which only the kind of an arguments error counts, because every JSON parser has words of its own,
    and in which made up ids are marked."""
    if isinstance(value, dict):
        return {
            key: item.partition("\n\n")[2] if key == "argumentsError" else comparable(item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        return re.sub(r"_\d{13}_\d+$", "_<generated>", value)
    return [comparable(item) for item in value] if isinstance(value, list) else value
