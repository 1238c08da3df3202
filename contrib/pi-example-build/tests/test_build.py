import json
import shutil

import pytest
from pi_example_build import FILE, agent

from pi_core import Build, BuildError
from pi_core.testing import SCRIPTED_MODEL, Call, EventLog, Reply, ScriptedProvider, assert_trace


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not needed here")


def test_the_plugins_are_those_of_the_file_in_its_order():
    build = Build.load(FILE)
    names = ["glossary", "notes", "tools", "models", "openai_completions", "openai_responses", "modes", "limits"]
    assert [record.name for record in build.plugins] == names
    assert build.problems() == []


def test_its_agent_has_what_the_file_says():
    made = agent()
    assert made.state.model.id == "gpt-5-mini"
    assert [tool.name for tool in made.state.tools] == ["glossary", "read", "grep"]
    assert made.state.system_prompt.startswith("You answer questions about this project.")


def test_it_answers(tmp_path):
    provider = ScriptedProvider(Reply(Call("glossary", {"word": "turn"})), "One response and its tool calls.")
    made = agent(model=SCRIPTED_MODEL, stream=provider.stream)
    log = EventLog(made)
    messages = made.run_sync("What is a turn?")
    assert messages[2].content[0].text == "one response and its tool calls"
    assert_trace(log.events)


def test_it_stops_where_its_limits_are():
    provider = ScriptedProvider(*[Reply(Call("glossary", {"word": "turn"})) for _ in range(30)])
    last = agent(model=SCRIPTED_MODEL, stream=provider.stream).run_sync("go")[-1]
    assert (last.stop_reason, len(provider.requests)) == ("aborted", 20)
    assert "limits.turns is 20" in last.error_message


def test_the_lock_says_what_the_build_is_made_of(tmp_path):
    folder = tmp_path / "build"
    shutil.copytree(FILE.parent, folder)
    kept = json.loads((folder / "pi-build.lock").read_text(encoding="utf-8"))
    made = json.loads(Build.lock(folder).read_text(encoding="utf-8"))
    for part in ("plugins", "hooks", "names"):
        assert made[part] == kept[part], f"{part} differ: run pi build lock and look at the difference"
    assert Build.check(folder) == []


def test_without_the_key_it_says_so(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(BuildError, match="OPENAI_API_KEY"):
        agent()
