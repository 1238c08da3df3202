"""What the chunks of the Gemini API mean, and what its servers do otherwise than it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pi_core import AssistantMessage, Context, StreamEvent, TextContent, ThinkingContent, user_message
from pi_plugins.providers import _reader, _stream, _watch
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

PROVIDER = GoogleGenerativeAIProvider
Run = Callable[..., list[StreamEvent]]


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"text": content, **more}


def calling(name: str = "read", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **fields}}


def fragment(*values: tuple[str, Any], more: bool = True, **fields: Any) -> dict[str, Any]:
    """A fragment of a call: places and values; a text with a trailing ``…`` goes on."""
    pieces = []
    for path, value in values:
        if isinstance(value, str):
            piece = {"stringValue": value.removesuffix("…"), **({"willContinue": True} if value.endswith("…") else {})}
        elif isinstance(value, bool):
            piece = {"boolValue": value}
        else:
            piece = {"nullValue": None} if value is None else {"numberValue": value}
        pieces.append({"jsonPath": path, **piece})
    return {"functionCall": {"partialArgs": pieces, **({"willContinue": True} if more else {}), **fields}}


def sse(*chunks: Any) -> bytes:
    lines = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in chunks]
    return b"".join(b"data: " + line + b"\r\n\r\n" for line in lines)


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays a body and returns the events; the last one is the final event."""

    def play(*chunks: Any, then: str = "end", **fields: Any) -> list[StreamEvent]:
        provider, _ = played(reply([sse(*chunks)], then=then))
        context = Context(messages=[user_message("x")])
        return asyncio.run(calls.collect(provider.stream(model(**fields), context, calls.options({"maxRetries": 0}))))

    return play


def final(events: list[StreamEvent]) -> AssistantMessage:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    return events[-1].message


STOP = chunk(finish="STOP")


# --- candidates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(text("a")), {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}],
        [chunk(text("a")), {"candidates": [{"finishReason": "STOP"}]}],
        [chunk(text("a")), {"candidates": [{"content": None, "finishReason": "STOP"}]}],
        [chunk(finish="STOP"), chunk(finish="STOP"), chunk(text("a")), STOP],
        [chunk(finish="STOP"), chunk(text("a"))],
        [{"usageMetadata": {}}, {"promptFeedback": {"safetyRatings": []}}, chunk(text("a")), STOP, {"candidates": []}],
        [
            {"candidates": None},
            [],
            3,
            "x",
            {"candidates": [None]},
            {"candidates": [7]},
            chunk(text("a"), finish="STOP"),
        ],
        [chunk(None, 3, {}, {"inlineData": {"data": "AA"}}, text("a"), {"executableCode": {}}), STOP],
        [chunk(text("a"), finish=None), b'{"candidates":[{"content":{"parts":[]},"finishReason":null}]}', STOP],
        [chunk(text("a"), finish="STOP"), b"[DONE]"],
        [chunk(text("a"), finish="stop")],
    ],
)
def test_every_field_of_a_candidate_is_optional(run: Run, chunks: list[Any]) -> None:
    message = final(run(*chunks))
    assert (message.text, message.stop_reason) == ("a", "stop"), message.error_message


def test_answer_in_one_piece(run: Run, played: Any, reply: Any, calls: Any, model: Any) -> None:
    whole = chunk(text("a"), calling(args={"path": "b"}), finish="STOP", usageMetadata={"promptTokenCount": 2})
    for body in (json.dumps(whole), json.dumps([chunk(text("a")), chunk(calling(args={"path": "b"})), STOP], indent=1)):
        provider, _ = played(reply([body.encode()], headers={"content-type": "application/json"}))
        stream = provider.stream(model(), Context(messages=[user_message("x")]), calls.options({}))
        message = final(asyncio.run(calls.collect(stream)))
        assert (message.text, message.stop_reason) == ("a", "toolUse")
        assert message.tool_calls[0].arguments == {"path": "b"}


def test_ids_and_models(run: Run) -> None:
    first = chunk(text("a"), responseId="r1", modelVersion="gemini-9-001")
    message = final(run(first, chunk(finish="STOP", responseId="r2", modelVersion="other"), id="gemini-9"))
    assert (message.response_id, message.response_model) == ("r1", "gemini-9-001")
    message = final(run(chunk(text("a"), finish="STOP", modelVersion="models/gemini-9"), id="gemini-9"))
    assert (message.response_id, message.response_model) == (None, None)


# --- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("STOP", "toolUse"), ("FUNCTION_CALL", "toolUse"), ("MAX_TOKENS", "length"), ("CONTINUATION", "length")],
)
def test_why_an_answer_with_a_call_ended(run: Run, finish: str, reason: str) -> None:
    message = final(run(chunk(calling(args={}), finish=finish)))
    assert (message.stop_reason, message.raw_stop_reason) == (reason, finish)


def test_all_tokens_went_into_thoughts(run: Run) -> None:
    usage = {"promptTokenCount": 3, "thoughtsTokenCount": 99, "totalTokenCount": 102}
    message = final(run(chunk(finish="MAX_TOKENS", usageMetadata=usage)))
    assert (message.stop_reason, message.content) == ("length", [])
    assert (message.usage.input, message.usage.output, message.usage.reasoning) == (3, 99, 99)


@pytest.mark.parametrize(
    ("candidate", "error"),
    [
        ({"finishReason": "SAFETY"}, "Provider stopped with: SAFETY"),
        ({"finishReason": "MISSING_THOUGHT_SIGNATURE"}, "Provider stopped with: MISSING_THOUGHT_SIGNATURE"),
        (
            {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed: sleep(429)"},
            "Provider stopped with: MALFORMED_FUNCTION_CALL. Malformed: sleep(429)",
        ),
        ({"finishReason": "NEVER_HEARD"}, "Unhandled stop reason: NEVER_HEARD"),
    ],
)
def test_bad_ends(run: Run, candidate: dict[str, Any], error: str) -> None:
    message = final(run(chunk(text("so far")), {"candidates": [candidate]}))
    assert (message.stop_reason, message.error_message, message.text) == ("error", error, "so far")
    assert message.error_details is not None
    assert (message.error_details.type, message.error_details.retryable) == (candidate["finishReason"], False)


def test_blocked_prompts(run: Run) -> None:
    feedback = {"blockReason": "BLOCKLIST", "blockReasonMessage": "A word on the list."}
    message = final(run({"promptFeedback": feedback}))
    assert message.error_message == "Google blocked the prompt: BLOCKLIST. A word on the list."
    assert message.error_details is not None
    assert (message.error_details.type, message.error_details.retryable) == ("BLOCKLIST", False)
    assert message.raw_stop_reason is None


def test_stream_without_an_end(run: Run) -> None:
    message = final(run(chunk(text("so far"))))
    assert (message.text, message.error_message) == ("so far", "Google stream ended without a finish reason")
    assert message.error_details is not None
    assert message.error_details.retryable is True


def test_connection_that_breaks(run: Run) -> None:
    whole = final(run(chunk(text("a"), finish="STOP"), then="drop"))
    assert (whole.text, whole.stop_reason) == ("a", "stop")
    for chunks in ([chunk(text("a"))], [STOP, chunk(text("a"))], [STOP]):
        broken = final(run(*chunks, then="drop"))
        assert broken.stop_reason == "error"
        assert "the connection broke" in (broken.error_message or "")


def test_text_after_an_early_end_may_take_its_time(played: Any, reply: Any, model: Any, calls: Any) -> None:
    """A reason to stop before anything was said does not shorten the wait for what follows."""
    limits: list[int | None] = []

    class Watch(_watch.Watch):
        def restart(self, limit_ms: int | None = None) -> None:
            limits.append(limit_ms)
            super().restart(limit_ms)

    provider, _ = played(reply([sse(STOP), sse(chunk(text("a"))), sse(STOP)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stream, "Watch", Watch)
        stream = provider.stream(model(), Context(messages=[user_message("x")]), calls.options({}))
        message = final(asyncio.run(calls.collect(stream)))
    assert (message.text, message.stop_reason) == ("a", "stop")
    assert limits == [None, None, _reader.FINISHED_MS]


def test_errors_inside_the_stream(run: Run) -> None:
    error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    message = final(run(chunk(text("so far")), {"error": error}))
    assert (message.text, message.error_message) == ("so far", "The model is overloaded.")
    assert message.error_details is not None
    assert (message.error_details.status, message.error_details.type) == (503, "UNAVAILABLE")
    assert message.error_details.retryable is True
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
    message = final(run({"error": {"code": 429, "message": "quota", "details": [retry]}}))
    assert message.error_details is not None
    assert (message.error_details.retry_after_ms, message.error_details.retryable) == (1500, True)


# --- text and thinking --------------------------------------------------------------------------------------------


def test_blocks_follow_the_parts(run: Run) -> None:
    events = run(
        chunk(text("t1", thought=True)),
        chunk(text("t2", thought=True), text("a")),
        chunk(text("b"), text("t3", thought=True)),
        chunk(text("c"), finish="STOP"),
    )
    assert [block.to_json() for block in final(events).content] == [
        {"type": "thinking", "thinking": "t1t2"},
        {"type": "text", "text": "ab"},
        {"type": "thinking", "thinking": "t3"},
        {"type": "text", "text": "c"},
    ]
    assert [(event.type, event.content_index) for event in events[1:4]] == [
        ("thinking_start", 0),
        ("thinking_delta", 0),
        ("thinking_delta", 0),
    ]


def test_signatures_stay_with_their_block(run: Run) -> None:
    message = final(
        run(
            chunk(text("t", thought=True, thoughtSignature="AAAA")),
            chunk(text("u", thought=True)),
            chunk(text("a")),
            chunk({"functionCall": {"name": "read"}, "thoughtSignature": "BBBB"}, calling("read")),
            chunk(text("b"), text("c", thoughtSignature="CCCC")),
            chunk(text("", thoughtSignature="DDDD"), finish="STOP"),
        )
    )
    thinking, first, call, second, last = message.content
    assert isinstance(thinking, ThinkingContent)
    assert (thinking.thinking, thinking.thinking_signature) == ("tu", "AAAA")
    assert (first.text_signature, call.thought_signature, second.thought_signature) == (None, "BBBB", None)
    assert (last.text, last.text_signature) == ("bc", "DDDD")


def test_part_with_nothing_but_a_signature(run: Run) -> None:
    message = final(run(chunk(text("a", thought=True)), chunk({"thoughtSignature": "AAAA"}, finish="STOP")))
    assert message.content[1] == TextContent(text="", text_signature="AAAA")
    message = final(run(chunk(text("a")), chunk({"thoughtSignature": "AAAA"}, finish="STOP")))
    assert message.content == [TextContent(text="a", text_signature="AAAA")]


def test_characters_cut_in_two_parts(run: Run) -> None:
    halves = rb'{"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]}}]}'
    rest = rb'{"candidates":[{"content":{"parts":[{"text":"\ude48b"}]},"finishReason":"STOP"}]}'
    assert final(run(halves, rest)).text == "a\U0001f648b"
    lonely = final(run(chunk(text("ok")), halves, chunk(calling(), finish="STOP")))
    assert lonely.text == "oka\ufffd"


def test_alike_chunks_are_read_alike(run: Run) -> None:
    pieces = ["a", "b", "", 'c"\\', "é", "d"]
    usage = {"promptTokenCount": 1}
    events = run(*(chunk(text(piece), usageMetadata=usage) for piece in pieces), chunk(text("t", thought=True)), STOP)
    assert [event.delta for event in events if event.type == "text_delta"] == pieces
    again = run(*(chunk(text(piece)) for piece in pieces), chunk(calling()), chunk(text("z")), STOP)
    assert [block.type for block in final(again).content] == ["text", "toolCall", "text"]
    assert final(again).text == "".join(pieces) + "z"


# --- calls --------------------------------------------------------------------------------------------------------


def test_call_in_one_part(run: Run) -> None:
    events = run(chunk(calling(args={"path": "é"}, id="c1")), STOP)
    assert [event.type for event in events[1:-1]] == ["toolcall_start", "toolcall_delta", "toolcall_end"]
    assert all(event.partial.tool_calls[0].arguments == {"path": "é"} for event in events[1:-1])
    assert events[2].delta == '{"path":"é"}'


def test_every_call_has_an_id_of_its_own(run: Run) -> None:
    message = final(run(chunk(calling(), calling(id=""), calling(id="x")), chunk(calling(id="x"), calling(id=7)), STOP))
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 5
    assert ids[2] == "x"
    assert all(call_id.startswith("read_") for call_id in ids if call_id != "x")


@pytest.mark.parametrize(
    ("arguments", "wanted", "fails"),
    [
        (None, {}, False),
        ({}, {}, False),
        ('{"path":"a"}', {"path": "a"}, False),
        ("", {}, False),
        ('{"path":', {}, True),
        ([1], {}, True),
    ],
)
def test_shapes_of_arguments(run: Run, arguments: Any, wanted: dict[str, Any], fails: bool) -> None:
    [call] = final(run(chunk(calling(args=arguments)), STOP)).tool_calls
    assert call.arguments == wanted
    assert (call.arguments_error is not None) == fails


def test_arguments_that_come_value_by_value(run: Run) -> None:
    events = run(
        chunk({**calling("cook", id="c1", willContinue=True), "thoughtSignature": "AAAA"}),
        chunk(fragment(("$.recipe.name", "Las…"))),
        chunk(fragment(("$.recipe.name", "agna…"))),
        chunk(fragment(("$.recipe.name", ""))),
        chunk({"functionCall": {"willContinue": True}}),
        chunk(fragment(("$.recipe.steps[0]", "cut"), ("$.recipe.steps[1]", "co…"), ("$.recipe.steps[1]", "ok"))),
        chunk(fragment(("$['odd key'][0][\"it's\"]", 0.5), ("$.hot", True), ("$.note", None))),
        chunk(fragment(("$.rows[0].n", 1), ("$.rows[1].n", 2))),
        chunk({"functionCall": {}}, finish="STOP"),
    )
    message = final(events)
    [call] = message.tool_calls
    assert call.arguments == {
        "recipe": {"name": "Lasagna", "steps": ["cut", "cook"]},
        "odd key": [{"it's": 0.5}],
        "hot": True,
        "note": None,
        "rows": [{"n": 1}, {"n": 2}],
    }
    assert (call.id, call.name, call.thought_signature, message.stop_reason) == ("c1", "cook", "AAAA", "toolUse")
    assert [event.type for event in events[1:-1]] == ["toolcall_start", "toolcall_delta", "toolcall_end"]


def test_last_fragment_ends_the_call_without_an_empty_one(run: Run) -> None:
    message = final(
        run(
            chunk(calling("write", willContinue=True)),
            chunk(fragment(("$.path", "a"), more=False)),
            chunk(calling("write", partialArgs=[{"jsonPath": "$.path", "stringValue": "b"}])),
            chunk(calling("read", args={"path": "c"})),
            chunk(text(""), finish="STOP"),
        )
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        ("write", {"path": "a"}),
        ("write", {"path": "b"}),
        ("read", {"path": "c"}),
    ]
    assert message.stop_reason == "toolUse"


@pytest.mark.parametrize(
    "chunks",
    [
        [STOP],
        [chunk(finish="MAX_TOKENS")],
        [chunk(calling("read", id="c2", args={})), STOP],
        [chunk(calling("read", args={})), STOP],
    ],
)
def test_call_that_did_not_arrive_whole_is_not_run(run: Run, chunks: list[Any]) -> None:
    begin = [chunk(calling("write", id="c1", willContinue=True)), chunk(fragment(("$.path", "keep.txt")))]
    call = final(run(*begin, *chunks)).tool_calls[0]
    assert (call.name, call.arguments) == ("write", {})
    assert call.arguments_error == "The arguments did not arrive whole"


@pytest.mark.parametrize(
    "values",
    [
        [("$.a[5]", 1)],
        [("$.a[999999999]", "x")],
        [("$.a", 1), ("$.a.b", 2)],
        [("$.a[0]", 1), ("$.a.b", "x…")],
        [("$", 1)],
        [("a.b", 1)],
        [("$..a", "x")],
        [("$.a[", "x")],
    ],
)
def test_values_without_a_place(run: Run, values: list[tuple[str, Any]]) -> None:
    [call] = final(
        run(chunk(calling("write", willContinue=True)), chunk(fragment(*values, more=False)), STOP)
    ).tool_calls
    assert call.arguments == {}
    assert (call.arguments_error or "").startswith("There is no place ")


# --- usage --------------------------------------------------------------------------------------------------------


def test_what_was_used(run: Run) -> None:
    early = {"promptTokenCount": 7, "candidatesTokenCount": 1}
    late = {
        "promptTokenCount": 19,
        "cachedContentTokenCount": 4,
        "toolUsePromptTokenCount": 69,
        "candidatesTokenCount": 46,
        "thoughtsTokenCount": 138,
        "totalTokenCount": 272,
    }
    prices = {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 0}
    usage = final(
        run(chunk(text("a"), usageMetadata=early), chunk(finish="STOP", usageMetadata=late), cost=prices)
    ).usage
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == (84, 4, 184, 138)
    assert usage.total_tokens == 272
    assert usage.cost.total == pytest.approx((84 + 2 * 184 + 0.5 * 4) / 1e6)


def test_counts_that_are_none(run: Run) -> None:
    odd = {"promptTokenCount": "7", "candidatesTokenCount": -1, "thoughtsTokenCount": None}
    usage = final(run(chunk(text("a"), finish="STOP", usageMetadata=odd))).usage
    assert (usage.input, usage.output, usage.total_tokens) == (0, 0, 0)
    parts = {"promptTokenCount": 7, "cachedContentTokenCount": 9, "candidatesTokenCount": 2}
    usage = final(run(chunk(text("a"), finish="STOP", usageMetadata=parts))).usage
    assert (usage.input, usage.cache_read, usage.output, usage.total_tokens) == (0, 9, 2, 11)
    whole = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 12}
    assert final(run(chunk(text("a"), finish="STOP", usageMetadata=whole))).usage.total_tokens == 12
