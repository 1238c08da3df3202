"""Build files: their faults, what a pinned build imports, and the agents it makes."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_core import (
    AssistantMessage,
    Build,
    BuildError,
    ConfigError,
    PluginConflictError,
    PluginLoadError,
    SelectionContext,
)
from pi_core._build_file import read_build_file
from pi_core.cli import run

TOOL = """
from pi_core import hookimpl, tool

@tool
def {name}(text: str) -> str:
    "Say it."
    return "{answer}: " + text

class Plugin:
    @hookimpl
    def register_tools(self):
        return [{name}]
"""
GUARD = """
from pydantic import BaseModel
from pi_core import Block, hookimpl

class Plugin:
    class Options(BaseModel):
        word: str = "secret"

    @hookimpl
    def configure(self, options):
        self.word = options.word

    @hookimpl
    def before_tool_call(self, call):
        return Block("blocked by " + self.word) if self.word in str(call.arguments) else None
"""
MODELS = """
import asyncio
from pi_core import hookimpl
from pi_core.testing import SCRIPTED_MODEL

class Plugin:
    @hookimpl
    async def resolve_model(self, name, ctx):
        if name == "slow/scripted":
            await asyncio.sleep(0)
        elif name != "fast/scripted":
            return None
        return SCRIPTED_MODEL.model_copy(update={"base_url": ctx.base_url or ""})
"""
BROKEN = "raise RuntimeError('no such device')"


def write(folder: Path, text: str) -> Path:
    path = folder / "pi-build.toml"
    path.write_text(text, encoding="utf-8")
    return path


def plugin(name: str, *lines: str) -> str:
    return "\n".join(["[[plugins]]", f'name = "{name}"', *lines, ""])


HEAD = '[build]\nname = "team"\n'


# --- the file -----------------------------------------------------------------------------------------------------


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system.md").write_text("Be brief.\n", encoding="utf-8")
    path = write(
        tmp_path,
        """
        block = ["noisy"]
        [build]
        name = "team"
        model = "openai/gpt-5-mini"
        base_url = "http://127.0.0.1:1/v1"
        api = "openai-completions"
        thinking = "high"
        tools = ["read", "files/write"]
        system_prompt_file = "prompts/system.md"
        environment = ["OPENAI_API_KEY"]
        [limits]
        turns = 3
        [conflicts]
        read = "files"
        [[plugins]]
        name = "files"
        version = ">=1,<2"
        distribution = "pi-files"
        [plugins.options]
        root = "/srv"
        [[plugins]]
        name = "guard"
        """,
    )
    file = read_build_file(tmp_path)
    assert file.path == path
    assert file.lock_path == tmp_path / "pi-build.lock"
    assert file.build.model_dump(exclude={"system_prompt_file"}) == {
        "name": "team",
        "model": "openai/gpt-5-mini",
        "base_url": "http://127.0.0.1:1/v1",
        "api": "openai-completions",
        "thinking": "high",
        "tools": ["read", "files/write"],
        "system_prompt": "Be brief.\n",
        "environment": ["OPENAI_API_KEY"],
    }
    assert file.names == ["files", "guard", "limits"]
    assert file.plugins[0].options == {"root": "/srv"}
    assert file.plugins[2].options == {"turns": 3}
    assert file.block == {"noisy"}
    assert file.conflicts == {"read": "files"}


def test_limits_keep_the_place_they_are_given(tmp_path: Path) -> None:
    text = HEAD + plugin("limits", 'version = ">=0.1"') + plugin("guard") + "[limits]\nseconds = 2\n"
    file = read_build_file(write(tmp_path, text))
    assert file.names == ["limits", "guard"]
    assert (file.plugins[0].version, file.plugins[0].options) == (">=0.1", {"seconds": 2.0})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "build: is missing"),
        ("[build]\n", "build.name: is missing"),
        ("[build]\nname = 3\n", "build.name: Input should be a valid string"),
        (HEAD + 'modle = "a/b"\n', "build.modle: there is no such key, did you mean 'model'?"),
        (HEAD + 'thinking = "very"\n', "build.thinking: Input should be 'off', 'minimal'"),
        (HEAD + 'tools = ["read", "read"]\n', "build.tools[1]: 'read' is named twice"),
        (HEAD + 'environment = ["A-B"]\n', "build.environment[0]: "),
        (
            HEAD + 'system_prompt = "a"\nsystem_prompt_file = "b"\n',
            "build.system_prompt_file: there is a system_prompt",
        ),
        (HEAD + 'system_prompt_file = "none.md"\n', "none.md: No such file"),
        (HEAD + plugin("a") + plugin("a"), "plugins[1].name: plugin 'a' is listed twice"),
        (HEAD + plugin("a", 'version = "1.x"'), "plugins[0].version (plugin 'a'): '1.x' is no version specifier"),
        (HEAD + plugin("a") + plugin("b", "optoins = {}"), "plugins[1].optoins (plugin 'b'): there is no such key"),
        (HEAD + '[plugins]\nname = "a"\n', "plugins: Input should be a valid list"),
        ('block = ["a"]\n' + HEAD + plugin("a"), "plugins[0].name: plugin 'a' is blocked too"),
        (HEAD + plugin("guard") + '[conflicts]\nread = "gaurd"\n', "conflicts.read: plugin 'gaurd' is not one of"),
        (HEAD + "[limits]\nturns = 0\n", "limits.turns: Input should be greater than or equal to 1"),
        (HEAD + "[limits]\nseconds = inf\n", "limits.seconds: Input should be a finite number"),
        (HEAD + "[limits]\ncost = 1\n", "limits.cost: there is no such key, did you mean 'cost_usd'?"),
        (HEAD + plugin("limits", "options = {turns = 1}") + "[limits]\nturns = 1\n", "limits: plugin 'limits' has"),
        ("[build\n", "is not TOML: "),
    ],
)
def test_a_fault_is_named_with_file_and_key(tmp_path: Path, text: str, fault: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BuildError) as raised:
        read_build_file(path)
    assert str(raised.value).startswith(str(path))
    assert fault in str(raised.value)


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        read_build_file(write(tmp_path, '[build]\nmodle = "x"\n[limits]\nturns = -1\n'))
    assert [line.split(": ")[1] for line in str(raised.value).splitlines()] == [
        "build.name",
        "build.modle",
        "limits.turns",
    ]


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"There is no build file .*pi build new"):
        read_build_file(tmp_path)


# --- what is loaded -----------------------------------------------------------------------------------------------


def test_only_the_named_plugins_are_imported_in_their_order(tmp_path: Path, site: Any) -> None:
    site.add("pi-two", {"guard": GUARD, "other": BROKEN})
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    site.add("pi-noise", {"noise": BROKEN})
    build = Build.load(write(tmp_path, HEAD + plugin("guard") + plugin("echo", 'version = "~=1.0"')))
    assert [(record.name, record.state, record.origin) for record in build.plugins] == [
        ("guard", "loaded", "pi-two 1.0"),
        ("echo", "loaded", "pi-one 1.0"),
    ]
    assert build.registry.tools.names() == ["echo"]
    assert build.hooks.has("before_tool_call")
    assert not build.problems()
    assert {"pi_two.other", "pi_noise"}.isdisjoint(sys.modules)


@pytest.mark.parametrize("known_by", ["file", "lock", "framework"])
def test_there_is_no_scan_when_the_distribution_is_known(
    tmp_path: Path, site: Any, monkeypatch: pytest.MonkeyPatch, known_by: str
) -> None:
    from importlib import metadata

    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    text = {"file": plugin("echo", 'distribution = "pi-one"'), "lock": plugin("echo"), "framework": plugin("modes")}
    path = write(tmp_path, HEAD + text[known_by])
    if known_by == "lock":
        Build.lock(path)
        site.changed()

    def scan(**_: Any) -> Any:
        raise AssertionError("all distributions were read")

    monkeypatch.setattr(metadata, "entry_points", scan)
    monkeypatch.setattr(metadata, "distributions", scan)
    assert len(Build.load(path).plugins) == 1


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (
            ['version = ">=2"', 'distribution = "pi-one"'],
            "plugin 'echo': pi-one >=2 is wanted, 1.0 is installed. Run: pip install 'pi-one>=2'",
        ),
        (['version = ">=2"'], "pi-one >=2 is wanted, 1.0 is installed"),
        (
            ['distribution = "pi-none"', 'version = "~=1.2"'],
            "pi-none ~=1.2 is wanted, but it is not installed. Run: pip install 'pi-none~=1.2'",
        ),
        (['distribution = "pi-two"'], "plugin 'echo': pi-two 1.0 does not offer it; it offers guard"),
    ],
)
def test_a_missing_or_other_version_says_what_to_do(tmp_path: Path, site: Any, lines: list[str], fault: str) -> None:
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    site.add("pi-two", {"guard": GUARD})
    path = write(tmp_path, HEAD + plugin("echo", *lines) + plugin("missing"))
    with pytest.raises(BuildError) as raised:
        Build.load(path)
    first, second = str(raised.value).splitlines()
    assert fault in first
    assert "plugin 'missing' is not installed: install the distribution that offers it" in second
    assert "pi_one" not in sys.modules


def test_a_plugin_of_two_distributions_has_to_be_chosen(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    site.add("pi-two", {"echo": TOOL.format(name="echo", answer="two")})
    with pytest.raises(BuildError, match="plugin 'echo' is offered by pi-one and pi-two: choose with distribution = "):
        Build.load(write(tmp_path, HEAD + plugin("echo")))
    chosen = Build.load(write(tmp_path, HEAD + plugin("echo", 'distribution = "Pi_Two"')))
    blocked = Build.load(write(tmp_path, 'block = ["pi.one"]\n' + HEAD + plugin("echo")))
    assert [build.plugins[0].origin for build in (chosen, blocked)] == ["pi-two 1.0"] * 2
    with pytest.raises(BuildError, match="plugin 'echo' comes from pi-two, which is blocked"):
        Build.load(write(tmp_path, 'block = ["pi-two"]\n' + HEAD + plugin("echo", 'distribution = "pi-two"')))


def test_what_the_environment_lacks_is_named_before_anything_runs(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    path = write(tmp_path, HEAD + 'environment = ["TEAM_KEY", "TEAM_URL", "HOME"]\n' + plugin("echo"))
    with pytest.raises(BuildError, match=r"build\.environment: TEAM_KEY, TEAM_URL are not set"):
        Build.load(path, environ={"HOME": "/", "TEAM_URL": ""})
    assert "pi_one" not in sys.modules
    assert Build.load(path, environ={"HOME": "/", "TEAM_URL": "x", "TEAM_KEY": "y"}).settings is not None


@pytest.mark.parametrize("blocked", ["guard", "PI.two"])
def test_a_pinned_build_is_not_run_in_part(tmp_path: Path, site: Any, blocked: str) -> None:
    site.add("pi-two", {"guard": GUARD})
    path = write(tmp_path, HEAD + plugin("guard"))
    with pytest.raises(BuildError, match=r"plugin 'guard' \(pi-two 1\.0\) is blocked by PI_BLOCK"):
        Build.load(path, environ={"PI_BLOCK": f"other, {blocked}"})
    assert Build.load(path, environ={"PI_BLOCK": "other"}).hooks.has("before_tool_call")


def test_a_plugin_that_fails_fails_the_build(tmp_path: Path, site: Any) -> None:
    site.add("pi-bad", {"bad": BROKEN})
    path = write(tmp_path, HEAD + plugin("bad"))
    with pytest.raises(PluginLoadError) as raised:
        Build.load(path)
    assert "plugin 'bad' (pi-bad 1.0)" in str(raised.value)
    assert str(raised.value).endswith(f"no such device. To run without it, take it out of {path}")


def test_options_reach_the_plugin_and_are_checked(tmp_path: Path, site: Any) -> None:
    site.add("pi-two", {"guard": GUARD})
    Build.load(write(tmp_path, HEAD + plugin("guard", 'options = {word = "x"}')))
    with pytest.raises(PluginLoadError, match=r"guard\.word: Input should be a valid string"):
        Build.load(write(tmp_path, HEAD + plugin("guard", "options = {word = 3}")))


def test_a_conflict_is_decided_in_the_file(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"one": TOOL.format(name="echo", answer="one")})
    site.add("pi-two", {"two": TOOL.format(name="echo", answer="two")})
    both = HEAD + plugin("one") + plugin("two")
    with pytest.raises(PluginConflictError, match="tool 'echo' is offered by plugin 'one'"):
        Build.load(write(tmp_path, both))
    build = Build.load(write(tmp_path, both + '[conflicts]\necho = "two"\n'))
    assert str(build.registry.tools.owner("echo")) == "plugin 'two' (pi-two 1.0)"
    with pytest.raises(BuildError, match="'ecko' is to come from plugin 'two', which offers nothing of that name"):
        Build.load(write(tmp_path, both + '[conflicts]\necho = "two"\necko = "two"\n'))


def test_a_tool_that_nobody_offers_is_named_with_its_key(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    with pytest.raises(BuildError, match=r"pi-build\.toml: build\.tools: .*'ecko'"):
        Build.load(write(tmp_path, HEAD + 'tools = ["ecko"]\n' + plugin("echo")))


def test_builds_in_one_process_do_not_see_each_other(tmp_path: Path, site: Any) -> None:
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one")})
    site.add("pi-two", {"guard": GUARD})
    (tmp_path / "b").mkdir()
    first = Build.load(write(tmp_path, HEAD + plugin("echo") + plugin("guard", 'options = {word = "a"}')))
    second = Build.load(write(tmp_path / "b", '[build]\nname = "b"\n' + plugin("guard", 'options = {word = "b"}')))
    assert (first.registry.tools.names(), second.registry.tools.names()) == (["echo"], [])
    guards: list[Any] = [build.plugins[-1].plugin for build in (first, second)]
    assert [guard.word for guard in guards] == ["a", "b"]
    assert [build.settings.name for build in (first, second) if build.settings] == ["team", "b"]


# --- its agents ---------------------------------------------------------------------------------------------------


@pytest.fixture
def team(tmp_path: Path, site: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build on the scripted provider whose first reply calls a tool with a forbidden word."""
    site.add("pi-one", {"echo": TOOL.format(name="echo", answer="one"), "shout": TOOL.format(name="shout", answer="!")})
    site.add("pi-two", {"guard": GUARD, "models": MODELS})
    call = {"blocks": [{"toolCall": {"name": "echo", "arguments": {"text": "the secret"}}}]}
    script = tmp_path / "script.json"
    script.write_text(json.dumps([call, "done"]), encoding="utf-8")
    (tmp_path / "prompt.md").write_text("Be kind.", encoding="utf-8")
    return write(
        tmp_path,
        HEAD
        + 'model = "fast/scripted"\nbase_url = "http://127.0.0.1:9"\nthinking = "low"\ntools = ["echo"]\n'
        + 'system_prompt_file = "prompt.md"\n'
        + plugin("guard")
        + plugin("echo")
        + plugin("shout")
        + plugin("models", 'distribution = "pi-two"')
        + plugin("modes")
        + plugin("scripted", f'options = {{script = "{script}"}}'),
    )


def test_an_agent_is_as_the_file_says(team: Path) -> None:
    agent = Build.load(team).agent()
    state = agent.state
    assert (state.model.id, state.model.base_url) == ("scripted", "http://127.0.0.1:9")
    assert (state.thinking_level, state.system_prompt) == ("low", "Be kind.")
    assert [tool.name for tool in state.tools] == ["echo"]
    messages = agent.run_sync("go")
    assert messages[2].to_json()["content"] == [{"type": "text", "text": "blocked by secret"}]
    assert isinstance(messages[-1], AssistantMessage)
    assert messages[-1].text == "done"


def test_arguments_beat_the_file(team: Path) -> None:
    build = Build.load(team)
    agent = build.agent(model="slow/scripted", tools=["shout"], thinking_level="off", system_prompt="")
    assert [tool.name for tool in agent.state.tools] == ["shout"]
    assert (agent.state.thinking_level, agent.state.system_prompt) == ("off", "")
    with pytest.raises(ConfigError, match="No plugin knows the model 'x/y'"):
        build.agent(model="x/y")


def test_inside_a_running_loop_a_model_that_needs_waiting_is_awaited(team: Path) -> None:
    async def main() -> None:
        build = Build.load(team)
        assert build.agent().state.model.id == "scripted"
        with pytest.raises(BuildError, match=r"await build\.create_agent\(\)"):
            build.agent(model="slow/scripted")
        selection = SelectionContext(base_url="http://127.0.0.1:7")
        agent = await build.create_agent(model="slow/scripted", selection=selection, system_prompt="Other.")
        assert (agent.state.model.base_url, agent.state.system_prompt) == ("http://127.0.0.1:7", "Other.")
        assert [tool.name for tool in agent.state.tools] == ["echo"]

    asyncio.run(main())


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [["build", "run", "{file}"], ["build", "run", "{file.parent}"], ["build", "run"], ["--build", "{file}"]]
)
def test_run_takes_its_defaults_from_the_file(
    team: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], how: list[str]
) -> None:
    monkeypatch.chdir(team.parent)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert run([*(part.format(file=team) for part in how), "--mode", "json", "go"]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    events = [json.loads(line) for line in out.splitlines()]
    results = [event["message"] for event in events if event["type"] == "message_end"]
    assert results[2]["content"][0]["text"] == "blocked by secret"
    assert results[-1]["content"][0]["text"] == "done"


@pytest.mark.parametrize(
    ("named", "options", "result"),
    [
        ('["echo"]', [], "Tool shout not found"),
        ('["echo"]', ["--tools", "shout"], "!: aloud"),
        (None, [], "!: aloud"),
    ],
)
def test_the_tools_of_a_run_are_the_option_the_file_or_all(
    team: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    named: str | None,
    options: list[str],
    result: str,
) -> None:
    text = team.read_text(encoding="utf-8")
    team.write_text(text.replace('tools = ["echo"]', f"tools = {named}" if named else ""), encoding="utf-8")
    call = {"blocks": [{"toolCall": {"name": "shout", "arguments": {"text": "aloud"}}}]}
    (team.parent / "script.json").write_text(json.dumps([call, "done"]), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert run(["--build", str(team), "--mode", "json", *options, "go"]) == 0
    events = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    results = [event["message"] for event in events if event["type"] == "message_end"]
    assert results[2]["content"][0]["text"] == result


def test_the_commands_of_pi_see_the_build(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "run", str(team), "plugins", "why", "shout"]) == 0
    assert "tool 'shout' comes from plugin 'shout' (pi-one 1.0)" in capsys.readouterr().out
    assert run([f"--build={team}", "plugins", "why", "openai_completions"]) == 1
