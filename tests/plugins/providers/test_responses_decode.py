"""Dialects of the responses API stream: what the items of an answer mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_core import ThinkingContent, Tool
from pi_plugins.providers._errors import is_retryable
from pi_plugins.providers._responses_input import HOSTED_ITEMS
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .responses_events import (
    COMPLETED,
    CREATED,
    Run,
    added,
    custom,
    delta,
    done,
    event,
    final,
    function,
    kinds,
    last,
    message,
)

PROVIDER = OpenAIResponsesProvider

GRAMMAR = {"type": "grammar", "variants": {"openai_lark": "start: /.+/"}}
SCHEMA = {"type": "object", "properties": {"patch": {"type": "string"}}, "required": ["patch"]}
PATCH = Tool("apply_patch", "", SCHEMA, print, constrained_sampling=GRAMMAR)


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays events."""
    return Run(played, reply, calls, model)


# --- text ---


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([added(**message()), delta("a"), delta("b"), done(**message("ab"))], "ab"),
        ([added(**message()), delta("a"), done(**message("final"))], "final"),
        ([added(**message()), delta("a"), event("output_text.done", text="given", content_index=0)], "given"),
        ([added(**message()), delta("a"), event("output_text.done", text="given"), done(**message())], "given"),
        ([added(**message()), delta("a"), done(**message())], "a"),
        ([added(**message()), delta("a"), done(**message(""))], "a"),
        ([added(**message()), delta("a")], "a"),
        ([done(**message("only"))], "only"),
        ([delta("lost"), done(**message("kept"))], "kept"),
        ([added(**message()), done(**message("once")), done(**message("once"))], "once"),
        ([added(**message()), delta("a"), added(**message()), delta("b"), done(**message("ab"))], "ab"),
        (
            [
                added(**message()),
                delta("a"),
                delta("late", 1),
                event("output_text.delta", delta=None),
                done(**message("a")),
            ],
            "a",
        ),
        ([done(content="no type"), done(**{**message("a"), "content": ["odd", {"text": "a"}]})], "a"),
        ([{"type": "response.keepalive"}, [], 3, None, {}, {"type": 3}, done(**message("a"))], "a"),
    ],
)
def test_text(run: Run, events: list[Any], text: str) -> None:
    made = final(run(CREATED, *events, COMPLETED))
    assert (made.text, made.stop_reason, made.raw_stop_reason) == (text, "stop", "completed")
    assert made.response_id == "r"


def test_ids_that_change_from_event_to_event(run: Run) -> None:
    made = final(
        run(
            {"type": "response.created", "response": {"id": "r1"}},
            added(**message(item_id="a")),
            delta("x", item_id="b"),
            added(1, **function(id="c", call_id="k")),
            event("function_call_arguments.delta", 1, item_id="d", delta="{}"),
            done(**message("x", item_id="e")),
            done(1, **function("{}", id="f", call_id="k")),
            {"type": "response.completed", "response": {"id": "r2", "status": "completed"}},
        )
    )
    assert (made.text, made.response_id, made.stop_reason) == ("x", "r2", "toolUse")
    assert [(call.id, call.arguments) for call in made.tool_calls] == [("k|c", {})]
    assert json.loads(made.content[0].text_signature or "") == {"v": 1, "id": "e"}


def test_items_without_index(run: Run) -> None:
    first, second = function(id="fc_1", call_id="c1"), function(id="fc_2", call_id="c2")
    made = final(
        run(
            added(None, **message()),
            delta("a", None, item_id="m0"),
            delta("b", None),
            delta("lost", None, item_id="other"),
            added(None, **first),
            added(None, **second),
            event("function_call_arguments.delta", None, item_id="fc_1", delta='{"a":1}'),
            event("function_call_arguments.delta", None, item_id="fc_2", delta='{"a":2}'),
            done(None, **message("ab")),
            done(None, **{**first, "arguments": '{"a":1}'}),
            done(None, **{**second, "arguments": '{"a":2}'}),
            last(output=[message("ab"), first, second]),
        )
    )
    assert made.text == "ab"
    assert [(call.id, call.arguments) for call in made.tool_calls] == [("c1|fc_1", {"a": 1}), ("c2|fc_2", {"a": 2})]


def test_every_item_at_the_same_index(run: Run) -> None:
    made = final(run(done(0, **function("{}", call_id="c1")), done(0, **function('{"a":1}', call_id="c2", id="fc_1"))))
    assert [call.id for call in made.tool_calls] == ["c1|fc_0", "c2|fc_1"]


def test_halves_of_pairs(run: Run) -> None:
    halves = [
        b'{"type":"response.output_text.delta","output_index":0,"delta":"%s"}' % half
        for half in (rb"a\ud83d", rb"\ude00", rb"\ud83d")
    ]
    made = final(run(added(**message()), *halves, COMPLETED))
    assert made.text == "a\U0001f600\ufffd"
    item = json.dumps(message("\ud83dx", "m\ud83d"))
    made = final(run(f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}'.encode(), COMPLETED))
    assert made.text == "x"
    assert made.content[0].text_signature == '{"v":1,"id":"m"}'


# --- calls ---


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        ([added(**function()), done(**function('{"a":1}'))], {"a": 1}),
        ([done(**function('{"a":1}'))], {"a": 1}),
        ([done(**function({"a": 1}))], {"a": 1}),
        ([added(**function('{"a":1}')), done(**function())], {"a": 1}),
        ([done(**function(""))], {}),
        ([done(**function(None))], {}),
        (
            [
                added(**function()),
                event("function_call_arguments.delta", delta='{"a"'),
                event("function_call_arguments.done", arguments='{"a":1}'),
                done(**function()),
            ],
            {"a": 1},
        ),
        (
            [
                added(**function()),
                event("function_call_arguments.delta", delta='{"b"'),
                event("function_call_arguments.done", arguments='{"a":1}'),
                done(**function()),
            ],
            {"a": 1},
        ),
    ],
)
def test_where_arguments_come_from(run: Run, events: list[Any], arguments: dict[str, Any]) -> None:
    made = final(run(*events, COMPLETED))
    [call] = made.tool_calls
    assert (call.id, call.name, call.arguments, call.arguments_error) == ("c0|fc_0", "read", arguments, None)
    assert made.stop_reason == "toolUse"


def test_the_end_of_arguments_adds_what_is_missing(run: Run) -> None:
    events = run(
        added(**function()),
        event("function_call_arguments.delta", delta='{"a"'),
        event("function_call_arguments.done", arguments='{"a":1}'),
        done(**function('{"a":1}')),
        COMPLETED,
    )
    assert [event.delta for event in events if event.type == "toolcall_delta"] == ['{"a"', ":1}"]


def test_ids_of_calls(run: Run) -> None:
    made = final(
        run(
            done(0, **function(id="")),
            done(1, **function(call_id=None, id="fc_1")),
            done(2, type="function_call", name="read", arguments="{}"),
            done(3, **function(id="fc_3", call_id="c3", namespace="crm")),
            COMPLETED,
        )
    )
    bare, item_only, made_up, named = made.tool_calls
    assert (bare.id, item_only.id) == ("c0", "fc_1")
    assert made_up.id.startswith("call_")
    assert (named.id, named.namespace) == ("c3|fc_3", "crm")


def test_a_call_whose_end_is_only_in_the_whole_answer(run: Run) -> None:
    events = run(
        added(**function()),
        event("function_call_arguments.delta", delta='{"a":1}'),
        last(output=[function('{"a":1}')]),
    )
    assert kinds(events)[-2:] == ["toolcall_end", "done"]
    assert final(events).stop_reason == "toolUse"


def test_an_unfinished_call_may_be_tried_again(run: Run) -> None:
    made = final(run(added(**function()), event("function_call_arguments.delta", delta='{"a":1}'), COMPLETED))
    assert made.error_message == "OpenAI Responses stream completed with an unfinished tool call: read (c0|fc_0)"
    assert is_retryable(made)


def test_a_call_cut_by_the_token_limit(run: Run) -> None:
    incomplete = last("incomplete", incomplete_details={"reason": "max_output_tokens"})
    made = final(run(added(**function()), event("function_call_arguments.delta", delta='{"a":"b'), incomplete))
    assert made.stop_reason == "length"
    [call] = made.tool_calls
    assert call.arguments == {}
    assert (call.arguments_error or "").endswith('{"a":"b')


@pytest.mark.parametrize(
    ("events", "deltas"),
    [
        (["a", 'b"\n'], ['{"patch":"a', 'b\\"\\n', '"}']),
        (["ab"], ['{"patch":"ab', '\\"\\n', '"}']),
        (["other"], ['{"patch":"other']),
        ([], []),
    ],
)
def test_free_text(run: Run, events: list[str], deltas: list[str]) -> None:
    made = run(
        added(**custom()),
        *(event("custom_tool_call_input.delta", delta=piece) for piece in events),
        *([event("custom_tool_call_input.done", input='ab"\n')] if events else []),
        done(**custom('ab"\n')),
        COMPLETED,
        tools=[PATCH],
        compat={"supportsOpenAIGrammarTools": True},
    )
    assert [event.delta for event in made if event.type == "toolcall_delta"] == deltas
    [call] = final(made).tool_calls
    assert (call.id, call.arguments) == ("c0|ctc_0", {"patch": 'ab"\n'})


def test_free_text_whose_rest_comes_at_the_end(run: Run) -> None:
    made = run(
        added(**custom()),
        event("custom_tool_call_input.delta", delta="a"),
        done(**custom("ab")),
        COMPLETED,
        tools=[PATCH],
        compat={"supportsOpenAIGrammarTools": True},
    )
    assert [event.delta for event in made if event.type == "toolcall_delta"] == ['{"patch":"a', "b", '"}']
    assert final(made).tool_calls[0].arguments == {"patch": "ab"}


def test_halves_of_pairs_in_arguments(run: Run) -> None:
    [call] = final(run(done(**function('{"a":"x\\ud83d"}')), COMPLETED)).tool_calls
    assert call.arguments == {"a": "x"}


# --- reasoning ---


def test_summaries(run: Run) -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "E"}
    events = run(
        added(type="reasoning", id="rs", summary=[]),
        event("reasoning_summary_text.delta", delta="one", summary_index=0),
        event("reasoning_summary_part.done", summary_index=0),
        event("reasoning_summary_text.delta", delta="two", summary_index=1),
        event("reasoning_summary_part.done", summary_index=1),
        done(**item),
        COMPLETED,
    )
    assert [event.delta for event in events if event.type == "thinking_delta"] == ["one", "\n\n", "two", "\n\n"]
    [block] = final(events).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "one\n\ntwo"
    assert json.loads(block.thinking_signature or "") == item


@pytest.mark.parametrize(
    "events",
    [
        [event("reasoning_text.delta", delta="deep"), done(type="reasoning", id="rs", summary=[])],
        [event("reasoning_text.done", text="deep", content_index=0), done(type="reasoning", id="rs")],
        [done(type="reasoning", id="rs", summary=[], content=[{"type": "reasoning_text", "text": "deep"}])],
        [event("reasoning_text.delta", delta="deep")],
    ],
)
def test_plain_reasoning(run: Run, events: list[Any]) -> None:
    [block] = final(run(added(type="reasoning", id="rs"), *events, COMPLETED)).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "deep"


def test_encrypted_reasoning_that_comes_at_the_end(run: Run) -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "s"}]}
    late = {**item, "id": "other", "encrypted_content": "LATE"}
    [block] = final(run(done(**item), last(output=[late, {**late, "id": "more"}, None]))).content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "s"
    assert json.loads(block.thinking_signature or "") == {**item, "encrypted_content": "LATE"}


# --- what tools of the server leave ---


def test_hosted_items(run: Run) -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "\ud83d"}}
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    made = final(
        run(
            done(0, **reasoning),
            added(1, type="web_search_call", id="ws"),
            event("web_search_call.searching", 1),
            json.dumps(done(1, **search)).encode(),
            done(2, **message("found")),
            last(output=[reasoning, search, message("found")]),
        )
    )
    assert [block.type for block in made.content] == ["thinking", "text"]
    kept = {**search, "action": {"query": ""}}
    assert made.to_json()[HOSTED_ITEMS] == [{"before": 1, "item": kept}]
