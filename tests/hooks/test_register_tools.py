from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pi_core import PluginConflictError, Tool
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .registering import RegisterHook


class TestRegisterTools(RegisterHook):
    hook = "register_tools"
    kind = "tool"
    wrong = (
        "read",
        None,
        len,
        {"name": "read"},
    )

    def contribution(self, name: str) -> Tool:
        return dataclasses.replace(samples.tool(), name=name)

    def test_an_agent_has_the_tools_of_its_plugins(self) -> None:
        plugin: Any = self.offers("files", self.contribution("look"))
        agent, provider, _ = scripted_agent(Reply(Call("look", {"path": "x"})), "done", plugins=[plugin])
        messages = agent.run_sync("go")
        assert provider.requests[0].tool_names == ["look"]
        assert messages[2].content[0].text == "contents of x"  # type: ignore[union-attr]

    def test_an_agent_refuses_two_plugins_that_own_one_tool(self) -> None:
        plugins = [self.offers("a", self.contribution("look")), self.offers("b", self.contribution("look"))]
        with pytest.raises(PluginConflictError, match="tool 'look' is offered by plugin 'a' and plugin 'b'"):
            scripted_agent(plugins=plugins)
