"""Requests to the four APIs, with models of the catalog that are asked at another address."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_core import Agent, AssistantMessage, Build, SelectionContext
from pi_plugins.models import ModelRuntime, ModelsPlugin
from pi_plugins.providers.anthropic_messages import AnthropicMessagesPlugin
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIPlugin
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin
from pi_plugins.providers.openai_responses import OpenAIResponsesPlugin

from .loopback import Loopback, Quiet

_MESSAGE = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
_TEXT = {"type": "output_text", "text": "k", "annotations": []}
_START = {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "/chat/completions": [{"choices": [{"delta": {"content": "k"}, "finish_reason": "stop"}]}],
    "/responses": [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**_MESSAGE, "content": []}},
        {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "k"},
        {"type": "response.output_item.done", "output_index": 0, "item": {**_MESSAGE, "content": [_TEXT]}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ],
    "/messages": [
        {"type": "message_start", "message": _START},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "k"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    ":streamGenerateContent": [{"candidates": [{"content": {"parts": [{"text": "k"}]}, "finishReason": "STOP"}]}],
}
"""What each API answers, by the end of its path."""


class FourApis(Loopback):
    """A server on this machine that speaks all of them.

    :ivar requests: path, headers and body of each request.
    :ivar refuses: whether it answers each request with 401 and the headers it was sent.
    """

    def __init__(self) -> None:
        self.refuses = False
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        outer = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                path = self.path.partition("?")[0]
                outer.requests.append((path, {name.lower(): value for name, value in self.headers.items()}, body))
                events = next(events for end, events in ANSWERS.items() if path.endswith(end))
                text = "".join(f"event: {one.get('type', 'message')}\ndata: {json.dumps(one)}\n\n" for one in events)
                if path.endswith("/completions"):
                    text += "data: [DONE]\n\n"
                if outer.refuses:
                    text = json.dumps({"error": {"message": f"refused: {dict(self.headers.items())}"}})
                self.send_response(401 if outer.refuses else 200)
                self.send_header("content-type", "application/json" if outer.refuses else "text/event-stream")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        super().__init__(Handler)
        self.address = f"http://127.0.0.1:{self.port}"


@pytest.fixture
def apis() -> Iterator[FourApis]:
    made = FourApis()
    yield made
    made.close()


MODELS = [
    ("groq/openai/gpt-oss-120b", "GROQ_API_KEY", "/chat/completions", ("authorization", "Bearer the-key")),
    ("openai/gpt-5-mini", "OPENAI_API_KEY", "/responses", ("authorization", "Bearer the-key")),
    ("anthropic/claude-sonnet-4-6", "ANTHROPIC_API_KEY", "/v1/messages", ("x-api-key", "the-key")),
    (
        "google/gemini-2.5-flash",
        "GEMINI_API_KEY",
        "/models/gemini-2.5-flash:streamGenerateContent",
        ("x-goog-api-key", "the-key"),
    ),
]
"""A model of each API: its name, the variable of its key, where it is asked, and the header that carries the key."""


@pytest.mark.parametrize("way", ["runtime", "build"])
@pytest.mark.parametrize(("name", "variable", "path", "header"), MODELS)
def test_a_model_of_the_catalog_at_another_address(
    folder: Path, apis: FourApis, way: str, name: str, variable: str, path: str, header: tuple[str, str]
) -> None:
    folder.mkdir()
    provider = name.partition("/")[0]
    entry = {"baseUrl": apis.address, "headers": {"X-Team": "$TEAM"}}
    (folder / "models.json").write_text(json.dumps({"providers": {provider: entry}}))
    runtime = ModelRuntime(agent_dir=folder, environ={variable: "the-key", "TEAM": "search"})
    selection = SelectionContext(environ=runtime.environ)

    async def main() -> None:
        if way == "runtime":
            agent = Agent(model=await runtime.select(name, selection), stream=runtime.stream)
        else:
            providers = [
                AnthropicMessagesPlugin(),
                GoogleGenerativeAIPlugin(),
                OpenAICompletionsPlugin(),
                OpenAIResponsesPlugin(),
            ]
            build = Build([ModelsPlugin(runtime), *providers], only=[])
            agent = await build.create_agent(model=name, selection=selection)
        await agent.prompt("hi")
        answer = agent.state.messages[-1]
        assert isinstance(answer, AssistantMessage)
        assert (answer.text, answer.error_message, answer.provider) == ("k", None, provider)

    asyncio.run(main())
    ((asked, headers, body),) = apis.requests
    assert asked == path
    assert headers[header[0]] == header[1]
    assert headers["x-team"] == "search"
    assert body.get("model", name.partition("/")[2]) == name.partition("/")[2]


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("name", [name for name, *_ in MODELS])
def test_a_key_is_in_no_output_of_a_run(folder: Path, tmp_path: Path, apis: FourApis, name: str, refuses: bool) -> None:
    apis.refuses = refuses
    planted = [f"hunter2-planted-{number}" for number in range(3)]
    provider = name.partition("/")[0]
    folder.mkdir()
    entry = {"baseUrl": apis.address, "headers": {"x-team-token": planted[1], "x-secret": "$PLAIN"}}
    (folder / "models.json").write_text(json.dumps({"providers": {provider: entry}}))
    key = {"type": "api_key", "key": f"!echo {planted[0]}", "env": {"PLAIN": planted[2]}}
    (folder / "auth.json").write_text(json.dumps({provider: key}))
    trace = tmp_path / "trace.jsonl"
    arguments = ["--verbose", "--mode", "json", "--model", name, "--trace-hooks", str(trace), "hi"]
    done = subprocess.run(
        [sys.executable, "-m", "pi_core", *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PI_CODING_AGENT_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (1 if refuses else 0), done.stderr
    ((_, headers, _),) = apis.requests
    assert all(any(secret in value for value in headers.values()) for secret in planted)
    (session,) = (folder / "sessions").rglob("*.jsonl")
    for text in (done.stdout, done.stderr, session.read_text(), trace.read_text()):
        assert not [secret for secret in planted if secret in text]
    if refuses:
        assert "refused: " in done.stdout
