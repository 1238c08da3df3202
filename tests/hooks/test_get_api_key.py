from __future__ import annotations

from typing import Any

from pi_core import StreamOptions, hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .kinds import FirstHook
from .making import holding
from .wrapping import WrappedRaising


class TestGetApiKey(FirstHook, WrappedRaising):
    hook = "get_api_key"
    wrong = (
        3,
        b"key",
    )
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"provider": "scripted", "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return f"key-{number}"

    def test_it_is_asked_for_every_request_and_beats_the_agent_s_own_key(self) -> None:
        asked: list[str] = []

        def key(self: Any, provider: str) -> str | None:
            asked.append(provider)
            return "from the plugin" if len(asked) == 1 else None

        agent, provider, _ = scripted_agent(
            "a", "b", plugins=[holding("keys", get_api_key=hookimpl(key))], options=StreamOptions(api_key="own")
        )
        agent.run_sync("one")
        agent.run_sync("two")
        assert asked == ["scripted", "scripted"]
        assert [request.options.api_key for request in provider.requests] == ["from the plugin", "own"]
