"""The providers against a server of another make: ``llmock`` from the package index, found on the path or named by
``PI_TEST_LLMOCK``. It answers from no model, and calls each tool once. The vendor's schema must accept each request."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from pi_core import Agent, Model, RunContext, ToolResultMessage, hookimpl, tool
from pi_plugins.providers.anthropic_messages import AnthropicMessagesPlugin
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIPlugin
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin
from pi_plugins.providers.openai_responses import OpenAIResponsesPlugin

from .test_responses_schema import as_of_the_schema
from .vendor_schema import problems

pytestmark = pytest.mark.servers


class SchemaPlugin:
    """Refuses to send what the vendor's schema refuses, and counts what it lets through."""

    def __init__(self) -> None:
        self.accepted = 0

    @hookimpl
    async def provider_payload(self, payload: Any, model: Model, ctx: RunContext) -> None:
        found = problems(model.api, as_of_the_schema(payload) if model.api == "openai-responses" else payload)
        assert not found, found
        self.accepted += 1


PLUGINS = [OpenAICompletionsPlugin(), OpenAIResponsesPlugin(), AnthropicMessagesPlugin(), GoogleGenerativeAIPlugin()]
MODELS = {
    "openai-completions": ("/v1", "gpt-4o"),
    "openai-responses": ("/v1", "gpt-4o"),
    "anthropic-messages": ("/anthropic", "claude-sonnet-4-5"),
    "google-generative-ai": ("/gemini/v1beta", "gemini-2.5-flash"),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Runs the server on a free port."""
    command = os.environ.get("PI_TEST_LLMOCK") or shutil.which("llmock")
    assert command is not None, "llmock is not on the path, and PI_TEST_LLMOCK does not name it"
    process = subprocess.Popen(
        [command, "serve", "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    try:
        lines = (re.search(r"running on (http://127\.0\.0\.1:\d+)", line) for line in process.stdout)
        yield next(found[1] for found in lines if found is not None)
    finally:
        process.kill()
        process.communicate()


def model(api: str, address: str) -> Model:
    path, model_id = MODELS[api]
    return Model(id=model_id, api=api, provider="llmock", base_url=address + path)


@pytest.mark.parametrize("api", MODELS)
def test_text(api: str, address: str) -> None:
    schema = SchemaPlugin()
    agent = Agent(model=model(api, address), plugins=[*PLUGINS, schema])
    message = agent.run_sync("Say hello.")[-1]
    assert message.stop_reason == "stop", message.error_message
    assert message.text
    assert message.usage.output > 0
    assert schema.accepted == 1


@pytest.mark.parametrize("api", MODELS)
def test_tool_call_and_its_result(api: str, address: str) -> None:
    @tool
    def read(path: str) -> str:
        """Read a text file."""
        return f"{path} says kestrel"

    events: list[str] = []
    schema = SchemaPlugin()
    agent = Agent(model=model(api, address), plugins=[*PLUGINS, schema], tools=[read])
    agent.subscribe(lambda event, signal: events.append(event.type))
    messages = agent.run_sync("Read package.json with the read tool.")
    assert len(messages) == 4, messages[-1]
    *_, asked, result, answer = messages
    [call] = asked.tool_calls
    assert (asked.stop_reason, call.name, call.arguments_error) == ("toolUse", "read", None)
    assert isinstance(result, ToolResultMessage)
    assert not result.is_error
    assert (answer.stop_reason, bool(answer.text)) == ("stop", True), answer.error_message
    assert events.count("message_update") > 2
    assert schema.accepted == 2


@pytest.mark.parametrize("api", MODELS)
def test_refused_request(api: str, address: str) -> None:
    wrong = model(api, address).model_copy(update={"base_url": f"{address}/nowhere"})
    message = Agent(model=wrong, plugins=PLUGINS).run_sync("Say hello.")[-1]
    assert message.stop_reason == "error"
    assert message.error_details is not None
    assert message.error_details.status == 404
    assert message.error_message
