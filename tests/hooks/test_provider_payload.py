from __future__ import annotations

from typing import Any

from pi_core import hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .kinds import ChainHook
from .making import holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


class TestProviderPayload(ChainHook, WrappedRaising):
    hook = "provider_payload"
    wrong = ()

    def arguments(self) -> dict[str, Any]:
        payload = {"model": "m", "messages": [{"content": ["hi"]}]}
        return {"payload": payload, "model": samples.model(1), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return {"model": f"m{number}"}

    def test_a_failure_ends_the_response_with_an_error_message_that_names_the_plugin(self) -> None:
        def fail(self: Any) -> None:
            raise ValueError("boom")

        agent, _, _ = scripted_agent("never said", plugins=[holding("bad", provider_payload=hookimpl(fail))])
        last = agent.run_sync("hi")[-1]
        assert last.error_message == "boom (plugin 'bad', hook provider_payload)"  # type: ignore[union-attr]

    def test_a_body_nested_too_deep_to_copy_is_no_failure(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        hooks = hooks_of(plugin(self.hook, "a", lambda given: None))
        arguments = {**self.arguments(), "payload": {"deep": deep}}
        assert run(hooks.provider_payload(**arguments)) is arguments["payload"]
