import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pi_mcp import McpOptions, McpPlugin

from pi_core.testing import Call, Reply, assert_plugin_contract, assert_trace, scripted_agent

SERVER = str(Path(__file__).parent / "server.py")
STDIO = {"command": sys.executable, "args": [SERVER]}


@pytest.fixture
def plugin_with():
    """Makes a plugin of servers, closed at the end of the test."""
    made = []

    def make(**servers):
        made.append(McpPlugin(McpOptions(servers=servers)))
        return made[-1]

    yield make
    for plugin in made:
        plugin.close()


@pytest.fixture
def address():
    """A server over HTTP, as a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def results_of(plugin, *calls, **options):
    agent, _, log = scripted_agent(Reply(*calls), "done", plugins=[plugin], tools=plugin.register_tools(), **options)
    messages = agent.run_sync("go")
    assert_trace(log.events)
    return [message for message in messages if message.role == "toolResult"], log


def test_contract(plugin_with):
    assert_plugin_contract(McpPlugin())


def test_without_servers_there_are_no_tools_and_no_client():
    assert list(McpPlugin().register_tools()) == []


def test_tools_of_a_process(plugin_with):
    plugin = plugin_with(calc=STDIO)
    tools = {tool.name: tool for tool in plugin.register_tools()}
    assert sorted(tools) == ["calc_add", "calc_environment", "calc_fail", "calc_leave", "calc_slow"]
    assert tools["calc_add"].description == "Add two numbers."
    assert tools["calc_add"].schema["required"] == ["a", "b"]
    (result,), _ = results_of(plugin, Call("calc_add", {"a": "1", "b": 2}))
    assert (result.is_error, result.content[0].text) == (False, "3")
    (result,), _ = results_of(plugin, Call("calc_add", {"a": 40, "b": 2}))
    assert result.content[0].text == "42"


def test_tools_over_http(plugin_with, address):
    plugin = plugin_with(web={"url": address, "tools": ["add"]}, calc={**STDIO, "tools": ["add"]})
    assert [tool.name for tool in plugin.register_tools()] == ["web_add", "calc_add"]
    results, _ = results_of(plugin, Call("web_add", {"a": 1, "b": 2}), Call("calc_add", {"a": 3, "b": 4}))
    assert [result.content[0].text for result in results] == ["3", "7"]


def test_a_failure_is_an_error_result(plugin_with):
    (result,), _ = results_of(plugin_with(calc=STDIO), Call("calc_fail"))
    assert result.is_error
    assert "no luck" in result.content[0].text


def test_a_server_gets_what_the_options_give_it_and_no_more(plugin_with, monkeypatch):
    monkeypatch.setenv("TEAM", "docs")
    monkeypatch.setenv("SECRET", "not for servers")
    plugin = plugin_with(calc={**STDIO, "env": {"OWNER": "the $TEAM team"}})
    calls = [Call("calc_environment", {"name": name}) for name in ("OWNER", "SECRET")]
    results, _ = results_of(plugin, *calls)
    assert [result.content[0].text for result in results] == ["the docs team", "not set"]


def test_progress_is_told_and_an_abort_ends_a_call(plugin_with):
    plugin = plugin_with(calc=STDIO)
    agent, _, log = scripted_agent(Reply(Call("calc_slow")), "x", plugins=[plugin], tools=plugin.register_tools())
    agent.subscribe(lambda event, signal: agent.abort() if event.type == "tool_execution_update" else None)
    began = time.monotonic()
    agent.run_sync("go")
    assert time.monotonic() - began < 20
    (update,) = log.of("tool_execution_update")
    assert update.partial_result.content[0].text == "half of it"
    (end,) = log.of("tool_execution_end")
    assert end.is_error
    assert_trace(log.events)


def test_a_call_has_a_limit(plugin_with):
    (result,), _ = results_of(plugin_with(calc={**STDIO, "timeout_seconds": 5}), Call("calc_slow"))
    assert result.is_error
    assert "MCP server 'calc': " in result.content[0].text


def test_a_server_that_ends_is_an_error_of_the_call(plugin_with):
    (result,), _ = results_of(plugin_with(calc=STDIO), Call("calc_leave"))
    assert result.is_error
    assert "MCP server 'calc': " in result.content[0].text


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": "no-such-program-here"}, "no-such-program-here"),
        ({"command": sys.executable, "args": ["-c", "raise SystemExit('broken')"]}, "It said: broken"),
        (
            {"command": sys.executable, "args": ["-c", "input()\nimport time\ntime.sleep(60)"], "timeout_seconds": 2},
            "2 s",
        ),
        ({"url": "http://127.0.0.1:9/mcp"}, "http://127.0.0.1:9/mcp"),
        ({**STDIO, "tools": ["add", "subtract"]}, "has no tool 'subtract' (it has add, "),
        ({**STDIO, "env": {"KEY": "$NOT_SET_ANYWHERE"}}, "NOT_SET_ANYWHERE"),
    ],
    ids=["no-program", "ends", "silent", "no-server", "no-tool", "no-variable"],
)
def test_a_server_that_cannot_be_used_is_named(plugin_with, server, why, caplog):
    with pytest.raises(Exception, match="MCP server 'odd'") as caught:
        plugin_with(odd=server).register_tools()
    assert why in str(caught.value)
    plugin = plugin_with(odd={**server, "required": False}, calc={**STDIO, "tools": ["add"]})
    assert [tool.name for tool in plugin.register_tools()] == ["calc_add"]
    assert "MCP server 'odd'" in caplog.text


@pytest.mark.parametrize(
    "server", [{}, {"command": "x", "url": "y"}, {"comand": "x"}, {"command": "x", "timeout_seconds": 0}]
)
def test_options_that_mean_nothing_are_refused(server):
    with pytest.raises(ValueError, match="validation error"):
        McpOptions(servers={"odd": server})


def test_closing_ends_the_process(plugin_with):
    plugin = plugin_with(calc={"command": sys.executable, "args": ["-c", WITH_PID]})
    plugin.register_tools()
    (result,), _ = results_of(plugin, Call("calc_pid"))
    pid = int(result.content[0].text)
    os.kill(pid, 0)
    plugin.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


WITH_PID = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("pid")

@server.tool()
def pid() -> str:
    return str(os.getpid())

server.run()
"""


def test_from_a_build_file(tmp_path):
    (tmp_path / "pi-build.toml").write_text(
        '[build]\nname = "x"\nmodel = "scripted/scripted"\ntools = ["calc_add"]\n'
        f'[[plugins]]\nname = "mcp"\n[plugins.options.servers.calc]\ncommand = {json.dumps(sys.executable)}\n'
        f"args = [{json.dumps(SERVER)}]\n"
        '[[plugins]]\nname = "modes"\n[[plugins]]\nname = "models"\n[[plugins]]\nname = "scripted"\n',
        encoding="utf-8",
    )
    script = [{"blocks": [{"toolCall": {"name": "calc_add", "arguments": {"a": 1, "b": 2}}}]}, "three"]
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pi_core", "--build", str(tmp_path), "--mode", "json", "go"],
        capture_output=True,
        text=True,
        env={**os.environ, "PI_SCRIPT": str(tmp_path / "script.json"), "HOME": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (end,) = [
        json.loads(line) for line in done.stdout.splitlines() if '"type":"tool_execution_end"' in line.replace(" ", "")
    ]
    assert end["result"]["content"][0]["text"] == "3"


def test_several_event_loops_use_one_connection(plugin_with):
    (add,) = plugin_with(calc={**STDIO, "tools": ["add"]}).register_tools()

    class Context:
        signal = None

    for number in range(3):
        result = asyncio.run(add.execute({"a": number, "b": 1}, Context()))
        assert result.content[0].text == str(number + 1)
