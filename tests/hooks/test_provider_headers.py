from __future__ import annotations

from typing import Any

from pi_core import hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .kinds import ChainHook
from .making import holding
from .wrapping import WrappedRaising


class TestProviderHeaders(ChainHook, WrappedRaising):
    hook = "provider_headers"
    wrong = (
        "x-one: 1",
        [("x", "1")],
        {"x": 1},
        {1: "x"},
    )

    def arguments(self) -> dict[str, Any]:
        return {"headers": {"x-one": "1", "x-two": None}, "model": samples.model(1), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return {"x-number": str(number), "x-none": None}

    def test_a_failure_ends_the_response_with_an_error_message_that_names_the_plugin(self) -> None:
        def fail(self: Any) -> None:
            raise ValueError("boom")

        agent, _, _ = scripted_agent("never said", plugins=[holding("bad", provider_headers=hookimpl(fail))])
        last = agent.run_sync("hi")[-1]
        assert (last.stop_reason, last.error_message) == (  # type: ignore[union-attr]
            "error",
            "boom (plugin 'bad', hook provider_headers)",
        )
