"""Dialects of the chat completions stream: what each chunk means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pi_core import AssistantMessage, Context, StreamEvent, ThinkingContent, user_message

Run = Callable[..., list[StreamEvent]]


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "test-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def sse(*chunks: Any, done: bool = True) -> bytes:
    lines = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in chunks]
    return b"".join(b"data: " + line + b"\n\n" for line in lines) + (b"data: [DONE]\n\n" if done else b"")


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays a body and returns the events; the last one is the final event."""

    def play(body: bytes, headers: dict[str, str] | None = None, **fields: Any) -> list[StreamEvent]:
        given = reply([body], headers=headers or {"content-type": "text/event-stream"})
        provider, _ = played(given)
        context = Context(messages=[user_message("x")])
        return asyncio.run(calls.collect(provider.stream(model(**fields), context, calls.options({"maxRetries": 0}))))

    return play


def final(events: list[StreamEvent]) -> AssistantMessage:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    return events[-1].message


def text(content: str, **more: Any) -> dict[str, Any]:
    return chunk({"content": content}, **more)


def calling(*fragments: Any, finish: str | None = None) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)}, finish)


def fragment(arguments: Any, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {**fields, "function": function}


STOP = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")


@pytest.mark.parametrize(
    "chunks",
    [
        [
            {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []},
            text("a"),
            STOP,
        ],
        [chunk(None), text("a"), chunk(None, "stop")],
        [text("a"), text("", x=1), STOP, {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}],
        [text("a"), STOP, STOP],
        [chunk({"content": "a"}, "stop")],
        [chunk({"role": "assistant", "content": None}), text("a"), STOP],
        [{"choices": None}, [], 3, "x", text("a"), STOP, {"choices": [None]}, {"choices": [{}]}],
        [chunk({}, "stop"), text("a")],
        [chunk({}, "STOP"), text("a")],
        [{"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]}],
        [chunk({"content": [{"type": "text", "text": "a"}, {"type": "other"}, None]}), STOP],
    ],
)
def test_what_is_legal_anywhere(run: Run, chunks: list[Any]) -> None:
    message = final(run(sse(*chunks)))
    assert (message.text, message.stop_reason) == ("a", "stop")


def test_all_text_of_one_shape_arrives(run: Run) -> None:
    pieces = ["Hel", "lo", "", ' "quoted"\n', "é🙈", "\\", "\u2028", "x" * 1000]
    events = run(sse(*(text(piece) for piece in pieces), STOP))
    assert [event.delta for event in events if event.type == "text_delta"] == [piece for piece in pieces if piece]
    assert final(events).text == "".join(pieces)


def test_shape_that_changes_in_between(run: Run) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    chunks = [text("a"), text("b"), chunk({"content": "c", "reasoning": "why"}), text("d"), text("e", usage=usage)]
    message = final(run(sse(*chunks, text("f"), chunk({"content": "g"}, "length"))))
    assert (message.text, message.stop_reason, message.usage.output) == ("abcdefg", "length", 2)
    assert [block.type for block in message.content] == ["text", "thinking"]


def test_second_choice_is_not_mixed_in(run: Run) -> None:
    both = chunk({"content": "a"})
    both["choices"].append({"index": 1, "delta": {"content": "b"}, "finish_reason": None})
    assert final(run(sse(both, both, STOP))).text == "aa"


# --- thinking ---


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_thinking_fields(run: Run, field: str) -> None:
    message = final(run(sse(chunk({field: "be"}), chunk({field: "cause", "content": ""}), text("a"), STOP)))
    assert message.content[0] == ThinkingContent(thinking="because", thinking_signature=field)


def test_the_same_thinking_in_two_fields_counts_once(run: Run) -> None:
    message = final(run(sse(chunk({"reasoning": "why", "reasoning_content": "why"}), STOP)))
    assert message.content == [ThinkingContent(thinking="why", thinking_signature="reasoning_content")]


def test_thinking_in_a_content_list(run: Run) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events = run(sse(chunk({"content": [thought]}), chunk({"content": [{"type": "text", "text": "a"}]}), STOP))
    assert [block.to_json() for block in final(events).content] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
    ]


def test_reasoning_details_alone_are_kept(run: Run) -> None:
    detail = {"type": "reasoning.encrypted", "data": "ENC", "index": 0}
    message = final(run(sse(chunk({"reasoning_details": [detail]}), text("a"), STOP)))
    [thought, _] = message.content
    assert isinstance(thought, ThinkingContent)
    assert thought.thinking == ""
    assert json.loads(thought.thinking_signature or "") == [detail]


def test_reasoning_details_merge_within_one_entry_only(run: Run) -> None:
    def piece(**fields: Any) -> dict[str, Any]:
        return chunk({"reasoning_details": [fields]})

    chunks = [
        piece(type="reasoning.summary", summary="a", index=0),
        piece(type="reasoning.summary", summary="b", index=0, format=None),
        piece(type="reasoning.summary", summary="c", index=1),
        piece(type="reasoning.text", text="d", index=1),
        piece(type="reasoning.text", text=None, signature="S", index=1),
        piece(type="unknown"),
        piece(text="no type"),
    ]
    message = final(run(sse(*chunks, STOP)))
    assert json.loads(message.content[0].thinking_signature) == [
        {"type": "reasoning.summary", "summary": "ab", "index": 0},
        {"type": "reasoning.summary", "summary": "c", "index": 1},
        {"type": "reasoning.text", "text": "d", "signature": "S", "index": 1},
    ]


def test_refusal_is_what_the_model_says(run: Run) -> None:
    message = final(run(sse(chunk({"content": None, "refusal": "I can"}), chunk({"refusal": "not"}), STOP)))
    assert message.text == "I cannot"


# --- tool calls ---


def made(message: AssistantMessage) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


def test_parallel_calls_interleaved_by_index(run: Run) -> None:
    chunks = [
        calling(fragment('{"p":', "read", index=1, id="b")),
        calling(fragment('{"p":', "read", index=3, id="d")),
        calling(fragment("1}", index=1), fragment("3}", index=3)),
        CALLED,
    ]
    assert made(final(run(sse(*chunks)))) == [("b", "read", {"p": 1}), ("d", "read", {"p": 3})]


def test_a_new_id_with_a_name_on_a_used_index_is_a_new_call(run: Run) -> None:
    chunks = [calling(fragment(f'{{"p":{n}}}', "read", index=0, id=f"c{n}")) for n in range(4)]
    assert made(final(run(sse(*chunks, CALLED)))) == [(f"c{n}", "read", {"p": n}) for n in range(4)]


def test_a_new_id_without_a_name_is_the_same_call(run: Run) -> None:
    chunks = [
        calling(fragment('{"p":', "read", index=0, id="c1")),
        calling(fragment("1}", index=0, id="c2")),
        CALLED,
    ]
    assert made(final(run(sse(*chunks)))) == [("c1", "read", {"p": 1})]


def test_id_and_name_in_every_fragment(run: Run) -> None:
    chunks = [calling(fragment(part, "read", index=0, id="c1")) for part in ('{"p"', ":1", "}", "")]
    assert made(final(run(sse(*chunks, CALLED)))) == [("c1", "read", {"p": 1})]


def test_name_and_id_that_come_later(run: Run) -> None:
    chunks = [calling(fragment('{"p":', index=0)), calling(fragment("1}", "read", index=0, id="c1")), CALLED]
    events = run(sse(*chunks))
    assert made(final(events)) == [("c1", "read", {"p": 1})]
    [start] = [event for event in events if event.type == "toolcall_start"]
    assert (start.id, start.name) == ("", "")


def test_free_text_of_a_grammar_tool(run: Run) -> None:
    def piece(**custom: Any) -> dict[str, Any]:
        return {"index": 0, "id": "c1", "type": "custom", "custom": custom}

    chunks = [
        calling(piece(name="patch", input='a"')),
        calling(piece()),
        calling(piece(input="\n"), finish="tool_calls"),
    ]
    events = run(sse(*chunks))
    assert made(final(events)) == [("c1", "patch", {"input": 'a"\n'})]
    deltas = [event.delta for event in events if event.type == "toolcall_delta"]
    assert deltas == ['{"input":"a\\"', "", "\\n", '"}']


@pytest.mark.parametrize("extra", [{}, {"index": None}, {"id": ""}, {"index": None, "id": "", "type": ""}])
def test_fragments_without_index(run: Run, extra: dict[str, Any]) -> None:
    chunks = [
        calling(fragment('{"p":', "read", id="c1")),
        calling(fragment("1}", **extra)),
        calling(fragment('{"p":2}', "read", id="c2")),
        CALLED,
    ]
    assert made(final(run(sse(*chunks)))) == [("c1", "read", {"p": 1}), ("c2", "read", {"p": 2})]


def test_calls_without_id_get_one_each(run: Run) -> None:
    chunks = [calling(fragment("{}", "read", index=0), fragment("{}", "read", index=1)), CALLED]
    message = final(run(sse(*chunks)))
    assert all(call.id.startswith("call_") for call in message.tool_calls)
    assert len({call.id for call in message.tool_calls}) == 2


@pytest.mark.parametrize("arguments", ["", " ", None, {}, "{}"])
def test_no_arguments(run: Run, arguments: Any) -> None:
    message = final(run(sse(calling(fragment(arguments, "now", index=0, id="c")), CALLED)))
    assert made(message) == [("c", "now", {})]
    assert message.tool_calls[0].arguments_error is None


def test_arguments_as_an_object(run: Run) -> None:
    assert made(final(run(sse(calling(fragment({"p": "é"}, "read", id="c")), CALLED)))) == [("c", "read", {"p": "é"})]


@pytest.mark.parametrize(("finish", "reason"), [("length", "length"), ("stop", "stop"), ("tool_calls", "toolUse")])
def test_cut_arguments_are_an_error_whatever_the_reason(run: Run, finish: str, reason: str) -> None:
    chunks = [calling(fragment('{"path":"a.txt","content":"abc', "write", index=0, id="c")), chunk({}, finish)]
    message = final(run(sse(*chunks)))
    assert message.stop_reason == reason
    [call] = message.tool_calls
    assert call.arguments == {}
    assert "abc" in (call.arguments_error or "")


def test_two_objects_as_arguments_are_an_error(run: Run) -> None:
    [call] = final(run(sse(calling(fragment('{"a":1}{"a":2}', "read", index=0, id="c")), CALLED))).tool_calls
    assert call.arguments == {}
    assert call.arguments_error


def test_thought_signature_rides_on_the_call(run: Run) -> None:
    extra = {"extra_content": {"google": {"thought_signature": "SIG"}}}
    message = final(run(sse(calling(fragment("{}", "read", index=0, id="c", **extra)), CALLED)))
    assert message.tool_calls[0].thought_signature == "SIG"


@pytest.mark.parametrize("odd", [None, 3, "x", [], {"function": None}, {"index": 0, "function": {"arguments": 5}}])
def test_odd_fragments(run: Run, odd: Any) -> None:
    message = final(run(sse(calling(odd), calling(fragment("{}", "read", index=7, id="c")), CALLED)))
    assert message.tool_calls[-1].name == "read"


# --- half characters ---


def test_a_pair_split_over_two_deltas_joins(run: Run) -> None:
    raw = [b'{"choices":[{"index":0,"delta":{"content":"%s"}}]}' % part for part in (b"a\\ud83d", b"\\ude48b", b"c")]
    events = run(sse(*raw, STOP))
    assert final(events).text == "a🙈bc"
    assert "".join(event.delta for event in events if event.type == "text_delta") == "a🙈bc"


def test_halves_without_a_partner(run: Run) -> None:
    raw = [b'{"choices":[{"index":0,"delta":{"content":"%s"}}]}' % part for part in (b"\\udcafa", b"b\\ud83d")]
    thought = b'{"choices":[{"index":0,"delta":{"reasoning":"\\ud83d"}}]}'
    events = run(sse(*raw, thought, STOP))
    message = final(events)
    assert message.text == "\ufffdab\ufffd"
    assert message.content[1].thinking == "\ufffd"
    assert "".join(event.delta for event in events if event.type == "text_delta") == message.text


def test_a_half_among_texts_of_one_shape(run: Run) -> None:
    half = b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}'
    other = b'{"choices":[{"index":0,"delta":{"content":"\\ude48"}}]}'
    assert final(run(sse(text("a"), text("b"), half, text("c"), half, other, text("d"), STOP))).text == "ab\ufffdc🙈d"


def test_halves_in_names_and_arguments(run: Run) -> None:
    raw = (
        b'{"id":"x\\ud800","model":"m\\ud800","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c\\ud800",'
        b'"function":{"name":"n\\ud800","arguments":"{\\"k\\\\ud99c\\":[\\"v\\\\ud99c\\"]}"}}]}}]}'
    )
    message = final(run(sse(raw, CALLED)))
    assert (message.response_id, message.response_model) == ("x", "m")
    assert made(message) == [("c", "n", {"k": ["v"]})]
    json.dumps(message.to_json(), ensure_ascii=False).encode()


# --- ends ---


def test_broken_off_before_the_finish(run: Run) -> None:
    message = final(run(sse(text("a"), done=False)))
    assert (message.text, message.stop_reason) == ("a", "error")
    assert message.error_message == "Stream ended without finish_reason"
    assert message.error_details is not None
    assert message.error_details.retryable is True


def test_no_finish_reason_but_usage_and_an_end(run: Run) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    message = final(run(sse(calling(fragment("{}", "now", index=0, id="c")), usage)))
    assert (message.stop_reason, message.raw_stop_reason) == ("toolUse", None)
    assert final(run(sse(text("a"), usage, done=False))).stop_reason == "error"
    assert final(run(sse(text("a"), usage))).stop_reason == "stop"


def test_servers_that_never_give_a_finish_reason(run: Run) -> None:
    compat = {"supportsFinishReason": False}
    assert final(run(sse(text("a"), done=False), compat=compat)).stop_reason == "stop"
    assert final(run(sse(calling(fragment("{}", "now", id="c"))), compat=compat)).stop_reason == "toolUse"


def test_nothing_after_done_counts(run: Run) -> None:
    assert final(run(sse(text("a"), STOP) + sse(text("b")))).text == "a"


@pytest.mark.parametrize(
    ("events", "text_", "kind"),
    [
        (sse({"error": {"message": "Overloaded", "type": "overloaded_error"}}), "Overloaded", "overloaded_error"),
        (b'event: error\ndata: {"message":"gone","type":"x"}\n\n', "gone", "x"),
        (sse({"object": "error", "message": "m", "type": "t"}), "m", "t"),
        (sse({"error": "plain words"}), "plain words", None),
        (sse({**STOP, "error": {"message": "502 from upstream", "code": 502}}), "502 from upstream", None),
        (sse({"choices": [{"error": {"message": "in the choice"}, "finish_reason": "error"}]}), "in the choice", None),
    ],
)
def test_error_inside_the_stream_wins(run: Run, events: bytes, text_: str, kind: str | None) -> None:
    stream = run(sse(text("par"), chunk({}, "stop"), done=False) + events)
    message = final(stream)
    assert (message.stop_reason, message.error_message, message.text) == ("error", text_, "par")
    assert message.error_details is not None
    assert message.error_details.type == kind
    assert "text_end" not in [event.type for event in stream]


def test_request_id_of_a_stream_that_fails(run: Run) -> None:
    headers = {"content-type": "text/event-stream", "x-request-id": "r7"}
    message = final(run(sse({"error": {"message": "m"}}), headers))
    assert message.error_details is not None
    assert message.error_details.request_id == "r7"


def test_event_that_is_not_json(run: Run) -> None:
    message = final(run(sse(text("a"), b'{"choices": [' + b"x" * 5000)))
    assert message.stop_reason == "error"
    assert (message.error_message or "").startswith('The server sent an event that is not JSON: {"choices": [xxx')
    assert len(message.error_message or "") < 400
    assert message.text == "a"


def test_usage_in_many_places(run: Run) -> None:
    def count(n: int) -> dict[str, int]:
        return {"prompt_tokens": 10, "completion_tokens": n}

    assert final(run(sse(text("a", usage=count(1)), text("b", usage=count(2)), STOP))).usage.output == 2
    assert final(run(sse(text("a", usage=count(1)), chunk({}, "stop", usage=None)))).usage.output == 1
    own = chunk({}, "stop")
    own["choices"][0]["usage"] = count(4)
    assert final(run(sse(text("a"), own))).usage.output == 4
    assert final(run(sse(text("a"), chunk({}, "stop", x_groq={"usage": count(5)})))).usage.output == 5
    odd = {"prompt_tokens": "x", "completion_tokens": None, "prompt_tokens_details": 3, "completion_tokens_details": []}
    assert final(run(sse(text("a"), chunk({}, "stop", usage=odd)))).usage.total_tokens == 0


def test_cost_of_a_response(run: Run) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
        "reasoning_tokens": 7,
    }
    prices = {"input": 1_000_000, "output": 2_000_000, "cacheRead": 100_000, "cacheWrite": 500_000}
    message = final(run(sse(text("a"), chunk({}, "stop", usage=usage)), cost=prices))
    own = message.usage
    assert (own.input, own.cache_read, own.cache_write, own.output, own.reasoning) == (50, 40, 10, 20, 7)
    assert own.total_tokens == 120
    assert own.cost.total == pytest.approx(50 + 4 + 5 + 40)


# --- bodies that are no event stream ---


def test_answer_in_one_piece(run: Run) -> None:
    call = fragment('{"p":1}', "read", id="c1", type="function")
    choice = {"index": 0, "message": {"content": "a", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = {"id": "x", "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    message = final(run(b"\n" + json.dumps(body).encode(), {"content-type": "application/json"}))
    assert (message.text, message.stop_reason, message.usage.output) == ("a", "toolUse", 4)
    assert made(message) == [("c1", "read", {"p": 1})]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":{"message":"no credit","code":402}}', "no credit"),
        (b'{"detail":"wrong path"}', '{"detail":"wrong path"}'),
        (
            b"<!DOCTYPE html><title>Sign in</title>" + b"<p>Please sign in.</p>" * 50,
            'HTML page "Sign in": Sign in Please',
        ),
        (b"<html>hi</html>", "<html>hi</html>"),
        (b"upstream connect error or disconnect", "upstream connect error"),
        (b'{"choices": [', "not JSON"),
        (b"", "without sending anything"),
        (b": keep-alive\n\n", ": keep-alive"),
        (b'{"a":1}\n{"a":2}', "not JSON"),
        (b"[]", "sent this instead: []"),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_success_status_with_something_else(run: Run, body: bytes, words: str, kind: str) -> None:
    events = run(body, {"content-type": kind})
    message = final(events)
    assert message.stop_reason == "error"
    assert words in (message.error_message or "")
    assert len(message.error_message or "") < 500
    assert message.error_details is not None


def test_events_under_another_content_type(run: Run) -> None:
    assert final(run(sse(text("a"), STOP), {"content-type": "application/json"})).text == "a"
    assert final(run(b"\n\n" + sse(text("a"), STOP), {"content-type": "text/plain"})).text == "a"
