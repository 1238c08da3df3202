"""Runs of the original's command line, replayed: the same exit code, standard output and requests.

What is different on purpose is in :data:`DIFFERENT` and in :func:`shape`, each with its reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from .model_server import ModelServer, Reply, model_server
from .running import Pi

WORKING = Reply("Working.", call=("bash", {"command": "echo hi"}), finish="tool_calls")
UNAVAILABLE = Reply(status=503, error={"error": {"message": "Service Unavailable"}})
PROVIDER: Final = {
    "baseUrl": "http://127.0.0.1:PORT/v1",
    "api": "openai-completions",
    "apiKey": "sk-e2e",
    "headers": {"x-static": "s", "x-env": "$HV"},
    "models": [{"id": "m1", "reasoning": True, "contextWindow": 32000, "maxTokens": 4000}],
}
NO_KEY: Final = {**PROVIDER, "apiKey": None}
SETTINGS: Final = {"retry": {"baseDelayMs": 10}}
GUARD = """
from pi_core import Block, hookimpl

class Plugin:
    @hookimpl
    def before_tool_call(self, call):
        VERDICT
"""
PAYLOAD = """
from pi_core import hookimpl

class Plugin:
    @hookimpl
    def provider_payload(self, payload):
        return {**payload, "extra_field": 1}
"""
THROWING = """
from pi_core import hookimpl

class Plugin:
    @hookimpl
    def on_turn_start(self, event):
        raise RuntimeError("boom turn_start")

    @hookimpl
    def session_start(self):
        raise RuntimeError("boom session_start")

    @hookimpl
    def on_message_end(self, event):
        raise RuntimeError("boom message_end")
"""


@dataclass
class Run:
    """What a recorded run needs besides its arguments.

    :param files: texts or JSON by path below the user's folder; ``project/`` is where it runs.
    :param plugin: the source of a plugin file, in place of the original's extension.
    """

    replies: Sequence[Reply] = (Reply("k"),)
    files: dict[str, Any] = field(default_factory=dict)
    plugin: str = ""
    stdin: list[dict[str, Any]] | None = None
    after: str = ""


def models(provider: dict[str, Any]) -> dict[str, Any]:
    return {".pi/agent/models.json": {"providers": {"local": provider}}}


SKILL = "---\nname: demo\ndescription: Demo skill. Use for demos.\n---\nDo the demo.\n"
PROJECT = {"project/.pi/settings.json": {"defaultTools": ["read"]}}
LONG: Final = {".pi/agent/settings.json": {"compaction": {"reserveTokens": 12000, "keepRecentTokens": 600}}}
SUMMARY: Final = "## Goal\nsummary text"
RUNS: Final[dict[str, Run]] = {
    "auth-command-fails": Run(
        [], {**models(NO_KEY), ".pi/agent/auth.json": {"local": {"type": "api_key", "key": "!exit 3"}}}
    ),
    "auth-env-block-template": Run(
        files={
            ".pi/agent/auth.json": {
                "local": {"type": "api_key", "key": "envblock-$A$$y", "env": {"A": "x"}},
            }
        }
    ),
    "auth-stored-beats-models-json": Run(
        files={".pi/agent/auth.json": {"local": {"type": "api_key", "key": "from-auth-json"}}}
    ),
    "bad-flag": Run([]),
    "bad-short-flag": Run([]),
    "cli-api-key-without-model": Run([]),
    "ext-block": Run([WORKING, Reply("Done.")], plugin=GUARD.replace("VERDICT", 'return Block("nope")')),
    "ext-payload": Run([WORKING, Reply("Done.")], plugin=PAYLOAD),
    "ext-throw-all": Run([WORKING, Reply("Done.")], plugin=THROWING),
    "ext-throw-tool-call": Run(
        [WORKING, Reply("Done.")], plugin=GUARD.replace("VERDICT", 'raise RuntimeError("hook exploded")')
    ),
    "json-length-early": Run([Reply("cut", finish="length")]),
    "json-retry-then-ok": Run([UNAVAILABLE, Reply("ok")]),
    "json-tool-run": Run([WORKING, Reply("Done.")], plugin=PAYLOAD.replace('{**payload, "extra_field": 1}', "None")),
    "list-models": Run([]),
    "model-thinking-suffix": Run(),
    "models-json-invalid": Run([], {".pi/agent/models.json": {"providers": {"local": {"models": [{"id": 5}]}}}}),
    "no-tools": Run(),
    "print-error-401": Run([Reply(status=401, error={"error": {"message": "bad key"}})]),
    "print-length-at-cap": Run([Reply("cut", finish="length", usage=(100, 4000))]),
    "print-length": Run([Reply("cut", finish="length")]),
    "print-missing-key": Run([], models(NO_KEY)),
    "print-multi": Run([Reply("1"), Reply("2")]),
    "print-skill": Run([Reply("s")], {".pi/agent/skills/demo/SKILL.md": SKILL}),
    "print-template": Run(
        [Reply("s")], {".pi/agent/prompts/rev.md": "---\ndescription: Review\n---\nReview $1 then $@"}
    ),
    "settings-invalid": Run([], {**models(NO_KEY), ".pi/agent/settings.json": "{ nonsense"}),
    "system-prompt-flags": Run(),
    "tools-modifiers": Run(),
    "trust-approve": Run(files=PROJECT),
    "trust-untrusted-print": Run(files=PROJECT),
}
DIFFERENT: Final = {
    "json-length-early": "a cut answer is kept and told: exit code 1, and no edit that takes it out of the context",
    "print-length": "a cut answer is printed, told on standard error, and the exit code is 1",
}
NOT_HERE: Final = {
    "json-compaction-threshold": "has a test of its own",
    "json-continue-after-compaction": "has a test of its own, since it goes on from the one above",
    "rpc-basic": "its own test: the commands were not recorded",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        folder = metafunc.config.getoption("cli_dir") or Path(__file__).parent / "data" / "cli"
        metafunc.parametrize("case", sorted(folder.glob("*.json")), ids=lambda path: path.stem)


def write(home: Path, run: Run, server: ModelServer) -> None:
    files = {**models(PROVIDER), ".pi/agent/settings.json": SETTINGS, **run.files}
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text.replace("PORT", str(server.port)), encoding="utf-8")


def shape(record: dict[str, Any]) -> Any:
    """What is compared of a line of standard output.

    Prompt and tools travel outside of the messages here, so the original's system messages are left out.
    """
    kind = record["type"]
    if kind in ("message_start", "message_end"):
        message = record["message"]
        content = None if kind == "message_start" and message["role"] == "assistant" else message["content"]
        stop = message.get("stopReason") if kind == "message_end" else None
        return kind, message["role"], plain(content), stop
    if kind == "message_update":
        return kind, sorted(record), record["assistantMessageEvent"]
    if kind == "agent_end":
        roles = [message["role"] for message in record["messages"] if message["role"] != "system"]
        return kind, roles, record["willRetry"]
    if kind == "tool_execution_end":
        return kind, record["toolCallId"], plain(record["result"]["content"]), record["isError"]
    if kind == "entry_appended":
        return kind, record["entry"]["type"], record["entry"].get("replacement")
    if kind == "turn_end":
        return kind, record["message"]["stopReason"], len(record["toolResults"])
    if kind == "compaction_end":
        result = record["result"]
        return kind, record["reason"], record["aborted"], record["willRetry"], sorted(result), result["tokensBefore"]
    kept = (
        "reason",
        "version",
        "toolCallId",
        "toolName",
        "args",
        "attempt",
        "maxAttempts",
        "delayMs",
        "success",
        "aborted",
    )
    return kind, {name: record[name] for name in kept if name in record}


def plain(content: Any) -> Any:
    """A content without the name of the plugin that an error came from, which the original does not tell."""
    return json.loads(re.sub(r" \(plugin '\w+', hook \w+\)", "", json.dumps(content)))


def shapes(records: list[dict[str, Any]]) -> list[Any]:
    """The comparable lines; progress of tools and errors of plugins are timing and wording."""
    return [
        shape(record)
        for record in records
        if record["type"] not in ("tool_execution_update", "extension_error")
        and record.get("message", {}).get("role") != "system"
    ]


def request_shape(request: dict[str, Any], home: str) -> Any:
    body = request["body"]
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    messages = [
        (
            message["role"],
            plain(message.get("content")) if message["role"] != "system" else "",
            message.get("tool_calls"),
        )
        for message in body["messages"]
    ]
    headers = {name: request["headers"].get(name) for name in ("authorization", "x-static", "x-env")}
    rest = {name: value for name, value in body.items() if name not in ("messages", "tools")}
    return request["url"], headers, json.loads(json.dumps(messages).replace(home, "<home>")), sorted(tools), rest


def test_a_recorded_run_does_the_same_here(case: Path, tmp_path: Path) -> None:
    recorded = json.loads(case.read_text(encoding="utf-8"))
    name = recorded["name"]
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    run = RUNS[name]
    (tmp_path / "project").mkdir()
    with model_server(run.replies) as server:
        write(tmp_path, run, server)
        pi = Pi(tmp_path)
        pi.folder = tmp_path / "project"
        arguments = list(recorded["args"])
        if "-e" in arguments:
            (tmp_path / "plugin.py").write_text(run.plugin, encoding="utf-8")
            arguments[arguments.index("-e") + 1] = str(tmp_path / "plugin.py")
        done = pi.run(*arguments, environ={"HV": "hv", "PI_RETRY_ENABLED": "true"})
    printed = done.stdout
    if name in DIFFERENT:
        assert done.returncode == 1, done.stderr
        assert "cut" in printed
        assert "cut" in done.stderr
        return
    assert done.returncode == recorded["exit_code"], done.stderr
    if isinstance(recorded["stdout"], list):
        assert shapes([json.loads(line) for line in printed.splitlines()]) == shapes(recorded["stdout"])
    elif name == "list-models":
        columns = [line.split()[:6] for line in printed.splitlines()]  # a column with prices follows here
        assert columns == [line.split() for line in recorded["stdout"].splitlines()]
    else:
        assert printed == recorded["stdout"], done.stderr
    assert bool(done.stderr) or not recorded["stderr"]
    asked = [request_shape(request, str(tmp_path)) for request in server.requests]
    assert asked == [request_shape(request, "<home>") for request in recorded["requests"]]


def answers(recorded: dict[str, Any]) -> list[Reply]:
    """The answers of a recorded run, in order."""
    found = [record["message"] for record in recorded["stdout"] if record["type"] == "message_end"]
    return [
        Reply(message["content"][0]["text"], usage=(message["usage"]["input"], message["usage"]["output"]))
        for message in found
        if message["role"] == "assistant"
    ]


def test_a_compacted_session_does_the_same_and_goes_on(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = request.config.getoption("cli_dir")
    if folder is None:
        pytest.skip("the recorded runs are not here")
    first, second = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("json-compaction-threshold", "json-continue-after-compaction")
    )
    one, two, three = answers(first)
    (tmp_path / "project").mkdir()
    pi = Pi(tmp_path)
    pi.folder = tmp_path / "project"
    with model_server([one, two, Reply(SUMMARY), three, *answers(second)]) as server:
        write(tmp_path, Run(files=LONG), server)
        for recorded in (first, second):
            arguments = [argument for argument in recorded["args"] if argument not in ("-e", "<path>")]
            before = len(server.requests)
            done = pi.run(*arguments, environ={"HV": "hv"})
            assert done.returncode == 0, done.stderr
            assert shapes([json.loads(line) for line in done.stdout.splitlines()]) == shapes(recorded["stdout"])
            asked = server.requests[before:]
            # The summary is asked for, and told to the model, in words of our own.
            roles = [[message["role"] for message in request["body"]["messages"]] for request in recorded["requests"]]
            assert [[message["role"] for message in asked_["body"]["messages"]] for asked_ in asked] == roles
            assert ["tools" in asked_["body"] for asked_ in asked] == [
                "tools" in r["body"] for r in recorded["requests"]
            ]
