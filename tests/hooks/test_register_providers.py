from __future__ import annotations

from typing import Any

from pi_core import Agent
from pi_core.testing import SCRIPTED_MODEL, ScriptedProvider

from .registering import RegisterHook


class WithoutApi:
    api = ""

    def stream(self) -> None:
        """Never called."""


class BrokenApi:
    @property
    def api(self) -> str:
        raise RuntimeError("not ready")

    def stream(self) -> None:
        """Never called."""


class WithoutStream:
    api = "other"


class TestRegisterProviders(RegisterHook):
    hook = "register_providers"
    kind = "provider api"
    wrong = (
        "scripted",
        object(),
        WithoutApi(),
        BrokenApi(),
    )

    def contribution(self, name: str) -> Any:
        provider = ScriptedProvider("hello")
        provider.api = name
        return provider

    def test_an_agent_asks_the_provider_of_its_model_s_api(self) -> None:
        provider = self.contribution("scripted")
        agent = Agent(model=SCRIPTED_MODEL, plugins=[self.offers("p", provider)])
        assert agent.run_sync("hi")[-1].text == "hello"  # type: ignore[union-attr]
        provider.assert_exhausted()
