import asyncio
import json
import os
from pathlib import Path

import httpx
import pytest
from pi_example_provider import MistralPlugin, MistralProvider
from pi_example_provider._request import build_payload

from pi_core import (
    AbortController,
    Agent,
    Context,
    ImageContent,
    Model,
    RunContext,
    StreamOptions,
    Tool,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
    parse_message,
    tool,
)
from pi_core.testing import EventLog, assert_plugin_contract, assert_trace, scripted_message

WIRE = Path(__file__).parent / "wire"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(WIRE.glob("*.json"))}
REQUESTS = {name: case for name, case in CASES.items() if "request_body" in case}
ANSWERS = {name: case for name, case in CASES.items() if "sse" in case}
MODEL = Model(id="m", api="mistral-conversations", provider="mistral", base_url="http://mistral.test")
DONE = b'data: {"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
OPTION_NAMES = {"temperature": "temperature", "reasoning": "reasoning", "sessionId": "session_id", "headers": "headers"}
OPTION_NAMES["cacheRetention"] = "cache_retention"


def context_of(case):
    """The context of a recorded case."""
    given = case["context"]
    tools = [Tool(each["name"], each["description"], each["parameters"], lambda: "") for each in given.get("tools", ())]
    messages = [parse_message(message) for message in given["messages"]]
    return Context(given.get("systemPrompt", ""), messages, tools)


def played(answer, model=MODEL, context=None, **options):
    """The events of an answer, and the requests that were made."""
    requests = []

    def handle(request):
        requests.append(request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, content=answer)

    provider = MistralProvider(httpx.MockTransport(handle))
    given = StreamOptions(**{"api_key": "<api-key>", **options})

    async def main():
        context_ = context or Context(messages=[UserMessage(content="hi")])
        return [event async for event in provider.stream(model, context_, given)]

    return asyncio.run(main()), requests


def test_contract():
    assert_plugin_contract(MistralPlugin())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_context_becomes_this_request(name):
    case = REQUESTS[name]
    options = {OPTION_NAMES[key]: value for key, value in case["options"].items()}
    events, (request,) = played(DONE, Model.model_validate(case["model"]), context_of(case), **options)
    assert events[-1].type == "done"
    assert json.loads(request.content) == case["request_body"]
    assert str(request.url) == case["request_url"]
    wanted = {key: value for key, value in case["request_headers"].items() if key != "user-agent"}
    assert {key: request.headers.get(key) for key in wanted} == wanted
    assert ("user-agent" in request.headers) == (case["options"].get("headers", {}).get("User-Agent", "") is not None)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_answer_becomes_these_events(name, size):
    case = ANSWERS[name]
    body = case["sse"].encode()

    async def pieces():
        for start in range(0, len(body), size):
            yield body[start : start + size]

    answer = httpx.Response(200, content=pieces())
    events, _ = played(answer, Model.model_validate(case["model"]), context_of(case))
    told = [event.to_json() for event in events[1:-1]]
    recorded = [{k: v for k, v in event.items() if k != "partial_block"} for event in case["events"][1:-1]]
    assert told == recorded
    final = events[-1].message.to_json()
    for key in ("content", "stopReason", "rawStopReason", "responseId"):
        assert final.get(key) == case["final"].get(key)
    counts = ("input", "output", "cacheRead", "totalTokens")
    assert [final["usage"][key] for key in counts] == [case["final"]["usage"][key] for key in counts]
    assert final["usage"]["cost"]["total"] == pytest.approx(case["final"]["usage"]["cost"]["total"])


@pytest.mark.parametrize(
    ("answer", "text", "retryable"),
    [
        (httpx.Response(422, text='{"detail":"bad"}'), 'Mistral API error (422): {"detail":"bad"}', False),
        (httpx.Response(503), "Mistral API error (503): no explanation", True),
        (b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n', "Mistral's answer ended without a finish reason", None),
        (b'data: {"choices":[{"delta":{},"finish_reason":"error"}]}\n\n', "Mistral server error", None),
        (b"data: [3]\n\n", "unexpected chunk: [3]", None),
        (b"data: {\n\n", "Expecting property name", None),
    ],
)
def test_whatever_goes_wrong_is_the_last_event(answer, text, retryable):
    events, _ = played(answer)
    assert [event.type for event in events].count("error") == 1
    message = events[-1].message
    assert message.stop_reason == "error"
    assert message.error_message.startswith(text)
    assert getattr(message.error_details, "retryable", None) is retryable


def test_a_connection_that_fails():
    def handle(request):
        raise httpx.ConnectError("refused")

    async def main():
        provider = MistralProvider(httpx.MockTransport(handle))
        stream = provider.stream(MODEL, Context(messages=[UserMessage(content="x")]), StreamOptions(api_key="k"))
        return [event async for event in stream]

    (event,) = asyncio.run(main())
    assert (event.message.error_message, event.message.error_details.retryable) == ("Connection error: refused", True)


def test_without_a_key_it_says_what_to_do():
    ((event,), requests) = played(DONE, api_key=None)
    assert event.message.error_message == "There is no API key for Mistral: set MISTRAL_API_KEY"
    assert requests == []


def test_the_hooks_of_a_provider_are_called():
    seen = []

    async def on_payload(payload, model):
        return {**payload, "seed": 1}

    async def transform_headers(headers):
        return {**headers, "x-team": "docs", "user-agent": None}

    async def on_response(response, model):
        seen.append(response.status)

    hooks = {"on_payload": on_payload, "transform_headers": transform_headers, "on_response": on_response}
    _, (request,) = played(DONE, **hooks)
    assert json.loads(request.content)["seed"] == 1
    assert request.headers["x-team"] == "docs"
    assert "user-agent" not in request.headers
    assert seen == [200]


def test_an_abort_ends_a_wait_for_the_answer():
    async def main():
        controller = AbortController()
        asked = asyncio.Event()

        async def body():
            yield b'data: {"choices":[{"delta":{"content":"so far"}}]}\n\n'
            asked.set()
            await asyncio.Event().wait()

        provider = MistralProvider(httpx.MockTransport(lambda request: httpx.Response(200, content=body())))
        options = StreamOptions(api_key="k", signal=controller.signal)
        events = []

        async def read():
            context = Context(messages=[UserMessage(content="x")])
            events.extend([event async for event in provider.stream(MODEL, context, options)])

        reading = asyncio.create_task(read())
        await asked.wait()
        controller.abort()
        await asyncio.wait_for(reading, 10)
        return events[-1].message, controller

    message, _ = asyncio.run(main())
    assert (message.stop_reason, message.text) == ("aborted", "so far")


def test_an_abort_before_the_request_makes_none():
    controller = AbortController()
    controller.abort("enough")
    (event,), requests = played(DONE, signal=controller.signal)
    assert (event.message.stop_reason, event.message.error_message, requests) == ("aborted", "enough", [])


def test_calls_of_another_model_get_ids_the_api_takes():
    foreign = scripted_message(ToolCallContent(id="call_AbC|fc_0123456789+/=", name="read", arguments={}))
    result = ToolResultMessage(tool_call_id="call_AbC|fc_0123456789+/=", tool_name="read", content=[])
    context = Context(messages=[UserMessage(content="x"), foreign, result])
    _, assistant, answered = build_payload(MODEL, context, StreamOptions())["messages"]
    made = assistant["tool_calls"][0]["id"]
    assert (len(made), made.isalnum()) == (9, True)
    assert answered["tool_call_id"] == made


def test_images_are_only_sent_to_a_model_that_sees():
    message = UserMessage(content=[ImageContent(data="aGk=", mime_type="image/png")])
    blind = build_payload(MODEL, Context(messages=[message]), StreamOptions())
    assert blind["messages"][0]["content"][0]["text"] == "(image omitted: the model does not see images)"
    seeing = MODEL.model_copy(update={"input": ["text", "image"]})
    (part,) = build_payload(seeing, Context(messages=[message]), StreamOptions())["messages"][0]["content"]
    assert part == {"type": "image_url", "image_url": "data:image/png;base64,aGk="}


def test_the_plugin_knows_the_models_and_the_key(run_hook, monkeypatch):
    plugin = MistralPlugin()
    model = run_hook("resolve_model", plugin, name="mistral/mistral-small-latest")
    assert (model.id, model.base_url) == ("mistral-small-latest", "https://api.mistral.ai")
    assert run_hook("resolve_model", plugin, name="other/x") is None
    assert run_hook("resolve_model", plugin, name=None) is None
    monkeypatch.setenv("MISTRAL_API_KEY", "secret")
    assert run_hook("get_api_key", plugin, provider="mistral", ctx=RunContext()) == "secret"
    assert run_hook("get_api_key", plugin, provider="openai") is None


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


def test_a_whole_run_from_a_cassette(cassette, golden, run_hook, monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", os.environ.get("MISTRAL_API_KEY", "not needed to play"))
    plugin = MistralPlugin()
    provider = MistralProvider(cassette("run").transport())
    model = run_hook("resolve_model", plugin, name="mistral/mistral-small-latest")
    agent = Agent(model=model, stream=provider.stream, tools=[read], plugins=[plugin])
    log = EventLog(agent)
    agent.run_sync("Read a.txt")
    assert "content of a.txt" in agent.state.messages[-1].text
    assert_trace(log.events)
    golden(log.events)
