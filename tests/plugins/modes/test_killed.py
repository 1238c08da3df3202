"""A process that is killed at any moment: its session opens, goes on, and has all that was announced as ended."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pi_plugins.sessions import Session

from .model_server import Reply, model_server
from .running import Pi, call

KILLS = int(os.environ.get("PI_TEST_KILLS", "20"))
TURNS = 60
SUMMARY = "## Goal\nA goal.\n\n## Progress\nDone.\n\n## Next Steps\nNone."


def batch(number: int) -> dict[str, Any]:
    """A reply that makes two calls, of which the first one takes longer."""
    calls = [
        ("bash", {"command": "sleep 0.01; echo slow"}),
        ("write", {"path": "f.txt", "content": f"{number}\n" * 50}),
    ]
    return {"blocks": [{"toolCall": {"name": name, "arguments": arguments}} for name, arguments in calls]}


def ended(printed: bytes) -> list[dict[str, Any]]:
    """The messages whose end was announced in whole lines."""
    whole = printed.rpartition(b"\n")[0].splitlines()
    records = [json.loads(line) for line in whole]
    return [record["message"] for record in records if record["type"] == "message_end"]


def finished(printed: bytes) -> list[str]:
    """The ids of the calls whose end was announced in whole lines."""
    records = [json.loads(line) for line in printed.rpartition(b"\n")[0].splitlines()]
    return [record["toolCallId"] for record in records if record["type"] == "tool_execution_end"]


@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_session_whose_process_was_killed_has_what_was_announced_and_goes_on(pi: Pi) -> None:
    script = [batch(number) if number % 2 else call("bash", command="echo hi") for number in range(TURNS)]
    chance = random.Random(20)
    cut = 0
    for number in range(KILLS):
        printed = killed_run(pi, f"run{number}", [*script, "done"], chance.randrange(1, 40_000))
        announced = ended(printed)
        (path,) = pi.folder.rglob(f"*_run{number}.jsonl") if announced else (None,)
        if path is None:
            continue
        cut += announced[-1]["role"] != "assistant" or announced[-1]["stopReason"] == "toolUse"
        assert_whole(path, announced, finished(printed))
        assert_goes_on(pi, number)
    assert cut, "no run was cut in the middle: the test shows nothing"


@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_session_that_was_being_compacted_when_its_process_was_killed_goes_on(pi: Pi) -> None:
    agent_dir = pi.folder / ".pi" / "agent"
    agent_dir.mkdir(parents=True)
    (agent_dir / "settings.json").write_text(json.dumps({"compaction": {"keepRecentTokens": 5}}))
    full = Reply(call=("bash", {"command": "echo hi"}), usage=(120_000, 5))
    chance = random.Random(21)
    within = 0
    for number in range(max(KILLS // 4, 5)):
        with model_server([full, Reply(SUMMARY)] * (TURNS // 2)) as server:
            known = {"baseUrl": server.base_url, "api": "openai-completions", "models": [{"id": "m1"}]}
            (agent_dir / "models.json").write_text(json.dumps({"providers": {"loop": known}}))
            arguments = "--model", "loop/m1"
            printed = killed_run(pi, f"run{number}", [], chance.randrange(2_000, 40_000), *arguments)
        announced = ended(printed)
        kinds = [json.loads(line)["type"] for line in printed.rpartition(b"\n")[0].splitlines()]
        begun, over = kinds.count("compaction_start"), kinds.count("compaction_end")
        within += begun
        (path,) = pi.folder.rglob(f"*_run{number}.jsonl") if announced else (None,)
        if path is None:
            continue
        with Session.open(path) as session:
            assert session.problems == []
            stored = [entry.message.to_json() for entry in session.entries if entry.message is not None]
            assert all(message in stored for message in announced)
            compactions = sum(entry.type == "compaction" for entry in session.entries)
            assert over <= compactions <= begun or begun == over
            first = session.projection().messages[0]
            assert first.role == ("compactionSummary" if compactions else "user")
        assert_goes_on(pi, number)
    assert within, "nothing was compacted: the test shows nothing"


def killed_run(pi: Pi, identifier: str, script: list[Any], stop_after: int, *arguments: str) -> bytes:
    """Run in JSON mode, kill the process and its children when it has printed so much, and return what it printed.

    :param stop_after: bytes.
    """
    process = pi.start("--mode", "json", "--session-id", identifier, *arguments, "go", script=script)
    assert process.stdout is not None
    assert process.stderr is not None
    printed = b""
    while len(printed) < stop_after and (data := os.read(process.stdout.fileno(), 4096)):
        printed += data
    os.killpg(process.pid, signal.SIGKILL)
    printed += process.stdout.read()
    process.stdout.close()
    process.stderr.close()
    process.wait()
    return printed


def assert_whole(path: Path, announced: list[dict[str, Any]], calls: list[str]) -> None:
    with Session.open(path) as session:
        stored = [entry.message.to_json() for entry in session.entries if entry.message is not None]
        for message in announced:
            assert message in stored
        messages = session.projection().messages
        results = [message.tool_call_id for message in messages if message.role == "toolResult"]
        assert len(results) == len(set(results))
        for identifier in calls:
            result = next(found for found in messages if getattr(found, "tool_call_id", "") == identifier)
            assert not result.is_error  # type: ignore[union-attr]
        wanted = [call.id for message in messages if message.role == "assistant" for call in message.tool_calls]
        assert results == wanted


def assert_goes_on(pi: Pi, number: int) -> None:
    done = pi.run("-p", "--session-id", f"run{number}", "more", script=["went on"])
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_the_next_request_is_made_when_the_messages_are_on_disk(pi: Pi) -> None:
    command = "cat $PI_SESSION_FILE > seen.jsonl"
    done = pi.run("-p", "go", script=[call("bash", command=command), "done"])
    assert done.returncode == 0
    seen = [json.loads(line) for line in (pi.folder / "seen.jsonl").read_text(encoding="utf-8").splitlines()]
    roles = [line["message"]["role"] for line in seen if line["type"] == "message"]
    assert roles == ["user", "assistant"]


def test_a_killed_process_leaves_the_session_free(pi: Pi) -> None:
    process = pi.start("--mode", "json", "--session-id", "x", "go", script=[call("bash", command="sleep 10")])
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "tool_execution_start":
            break
    refused = subprocess.run(
        pi.command("-p", "--session-id", "x", "more", script=["never"]),
        cwd=pi.folder,
        env=pi.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert refused.returncode == 1
    assert "--fork" in refused.stderr
    os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.stderr.close()
    process.wait()
    assert_goes_on_as(pi, "x")


def assert_goes_on_as(pi: Pi, identifier: str) -> None:
    done = pi.run("-p", "--session-id", identifier, "more", script=["went on"])
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
