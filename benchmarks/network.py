"""An answer of ``n`` text chunks over loopback HTTP: through the provider and an agent, beside plain httpx.

The address of the server of :mod:`benchmarks.server` is in ``PI_BENCH_URL``.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Final

from .work import DELTA, Work

ADDRESS: Final = "PI_BENCH_URL"
PLUGIN: Final = "pi_plugins.providers.openai_completions:OpenAICompletionsPlugin"
_REPEAT: Final = 5


def raw(n: int) -> Work:
    """Read the lines with httpx and parse each with ``json.loads``."""
    import httpx

    client = httpx.AsyncClient()
    url = os.environ[ADDRESS] + "/chat/completions"
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    parts: list[str] = []

    async def run() -> None:
        parts.clear()
        async with client.stream("POST", url, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    choices = json.loads(line[6:])["choices"]
                    if choices:
                        text = choices[0]["delta"].get("content")
                        if text:
                            parts.append(text)

    def check() -> None:
        assert len(parts) == n
        assert "".join(parts) == DELTA * n

    return Work(run, check, warm_ups=1, repeat=_REPEAT, close=client.aclose)


def provider_plugin() -> Any:
    """Return the plugin of the OpenAI-compatible provider.

    :raises ImportError: it is not there.
    """
    module, _, name = PLUGIN.partition(":")
    return getattr(importlib.import_module(module), name)()


def agent(n: int) -> Work:
    """Let an agent with the provider answer, with one subscriber."""
    from pi_core import Agent, AssistantMessage, Model, StreamOptions

    from .ours import Counter

    model = Model(id="bench", api="openai-completions", provider="openai", base_url=os.environ[ADDRESS])
    plugin = provider_plugin()
    counter = Counter()
    answers: list[Any] = []

    async def run() -> None:
        counter.deltas = 0
        talker = Agent(model=model, plugins=[plugin], options=StreamOptions(api_key="none"))
        talker.subscribe(counter)
        await talker.prompt("hi")
        answers[:] = talker.state.messages[-1:]

    def check() -> None:
        message = answers[0]
        assert isinstance(message, AssistantMessage)
        assert message.stop_reason == "stop", message.error_message
        assert message.text == DELTA * n
        assert counter.deltas == n

    return Work(run, check, warm_ups=1, repeat=_REPEAT)


CASES = {"raw": raw, "agent": agent}
