"""Sessions of a pinned build: model, tools, thinking level and prompt are those of its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_core import Build
from pi_plugins.coding_agent import AgentSession, SessionOptions, create_session

FILE = """
[build]
name = "team"
model = "scripted/scripted"
tools = ["read", "ls"]
thinking = "low"
system_prompt = "You are ours."

[[plugins]]
name = "tools"

[[plugins]]
name = "scripted"

[[plugins]]
name = "coding_agent"

[[plugins]]
name = "models"
"""


async def session(folder: Path, settings: dict[str, Any], **options: Any) -> AgentSession:
    (folder / "pi-build.toml").write_text(FILE, encoding="utf-8")
    (folder / "agent").mkdir(exist_ok=True)
    (folder / "agent" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    wanted = SessionOptions(cwd=folder, agent_dir=folder / "agent", environ={"HOME": str(folder)}, **options)
    wanted.in_memory = True
    return await create_session(wanted, Build.load(folder))


async def test_the_file_says_what_the_settings_would(tmp_path: Path) -> None:
    settings = {"enabledModels": ["openai/*"], "defaultTools": ["bash"], "defaultThinkingLevel": "high"}
    made = await session(tmp_path, settings)
    assert (made.model.provider, made.model.id, made.thinking_level) == ("scripted", "scripted", "low")
    assert [tool.name for tool in made.agent.state.tools] == ["read", "ls"]
    assert made.agent.state.system_prompt.startswith("You are ours.")


async def test_options_of_the_run_come_before_the_file(tmp_path: Path) -> None:
    made = await session(tmp_path, {}, thinking="high", tools=["-ls"], system_prompt="Mine.")
    assert made.thinking_level == "high"
    assert [tool.name for tool in made.agent.state.tools] == ["read"]
    assert made.agent.state.system_prompt.startswith("Mine.")
