from __future__ import annotations

from typing import Any

from pi_core import hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .making import holding
from .wrapping import WrappedNotify


class TestProviderResponse(WrappedNotify):
    hook = "provider_response"

    def arguments(self) -> dict[str, Any]:
        return {"status": 200, "headers": {"x-id": "1"}, "model": samples.model(1), "ctx": samples.ctx()}

    def test_it_is_called_for_every_response(self) -> None:
        seen: list[Any] = []

        def observe(self: Any, status: int, model: Any) -> None:
            seen.append((status, model.id))

        agent, _, _ = scripted_agent("a", "b", plugins=[holding("w", provider_response=hookimpl(observe))])
        agent.run_sync("one")
        agent.run_sync("two")
        assert seen == [(200, "scripted")] * 2
