"""What travels between client and proxy, without a network."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import (
    AssistantMessage,
    Context,
    MessageAssembler,
    StreamOptions,
    TextContent,
    ThinkingContent,
    Tool,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL
from pi_plugins.providers._proxy_decode import LineParser, ProxyDecoder
from pi_plugins.providers._proxy_request import SAMPLING, BadRequestError, parse_request
from pi_plugins.providers._proxy_wire import OPTIONS, WireEncoder, request_body, sse

from .fuzz import often, record, values


def test_a_request_survives_the_way() -> None:
    answer = AssistantMessage(
        content=[
            ThinkingContent(thinking="hm", thinking_signature="s", redacted=True),
            TextContent(text="a"),
            ToolCallContent(id="c", name="t", arguments={"x": [1, None]}, thought_signature="g"),
        ],
        api="scripted",
        provider="scripted",
        model="scripted",
        usage=Usage(input=3),
        response_id="r",
    )
    result = ToolResultMessage(tool_call_id="c", tool_name="t", content=[TextContent(text="b")], details={"d": 1})
    tool = Tool("t", "T.", {"type": "object"}, lambda *_: None, constrained_sampling={"type": "json_schema"})
    context = Context("Be kind", [user_message("x"), answer, result], [tool])
    given = StreamOptions(temperature=0.0, max_tokens=5, reasoning="high", thinking_budgets={"high": 1}, session_id="s")
    asked = parse_request(json.dumps(request_body(SCRIPTED_MODEL, context, given)).encode())
    assert (asked.provider, asked.model) == ("scripted", "scripted")
    assert asked.context.system_prompt == "Be kind"
    assert list(asked.context.messages) == context.messages
    assert [each.declaration() for each in asked.context.tools] == [tool.declaration()]
    assert all(getattr(asked.options, name) == getattr(given, name) for name in OPTIONS.values())


def test_thinking_that_is_off_is_not_asked_for() -> None:
    body = request_body(SCRIPTED_MODEL, Context(messages=[user_message("x")]), StreamOptions(reasoning="off"))
    assert parse_request(json.dumps(body).encode()).options.reasoning is None


texts = often(st.text(max_size=4))
message = st.one_of(
    record(role=st.just("user"), content=texts, timestamp=often(st.integers())),
    record(role=st.just("assistant"), content=often(st.just([])), api=texts, provider=texts, model=texts),
    record(role=st.just("toolResult"), toolCallId=texts, toolName=texts, content=often(st.just([]))),
    record(role=st.just("system"), content=texts, sections=often(st.dictionaries(st.text(max_size=2), texts))),
    record(role=texts),
)
tool = record(name=texts, description=texts, parameters=often(st.just({})), constrainedSampling=values)
body = record(
    model=often(st.fixed_dictionaries({"id": texts, "provider": texts})),
    context=often(
        st.fixed_dictionaries(
            {"messages": often(st.lists(often(message), max_size=3))}, optional={"tools": st.lists(tool)}
        )
    ),
    options=often(
        record(temperature=values, maxTokens=values, reasoning=values, samplingParams=values, headers=values, x=values)
    ),
)


@settings(deadline=None)
@given(body)
def test_a_body_is_understood_or_refused(asked: Any) -> None:
    try:
        found = parse_request(json.dumps(asked).encode())
    except BadRequestError:
        return
    assert found.provider
    assert found.model
    assert not found.options.headers
    assert set(found.options.sampling_params or ()) <= SAMPLING
    assert all(each.role in ("user", "assistant", "toolResult") for each in found.context.messages)


def test_an_event_with_half_a_character_can_be_sent() -> None:
    encoder = WireEncoder(SCRIPTED_MODEL)
    made, kept = MessageAssembler("a", "p", "m"), MessageAssembler("a", "p", "m")
    events = [made.start(), made.text_start(0), made.text_delta(0, "\ud83d"), made.text_delta(0, "\ude00")]
    events += [made.text_end(0), made.done("stop")]
    sent = b"".join(sse(one) for event in events for one in encoder.encode(event))
    decoder = ProxyDecoder(kept)
    for data in LineParser().feed(sent):
        decoder.take(data)
    assert decoder.final is not None
    assert kept.message().text == "\U0001f600"
