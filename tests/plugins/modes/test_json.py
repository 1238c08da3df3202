from __future__ import annotations

import json
import os
import uuid
from datetime import datetime

from .running import Pi, alive, call, events


def test_a_run_as_lines(pi: Pi) -> None:
    done = pi.run("--mode", "json", "go", script=[call("ls"), "done"])
    assert (done.returncode, done.stderr) == (0, "")
    header, *rest = events(done.stdout)
    assert set(header) == {"type", "version", "id", "timestamp", "cwd"}
    assert (header["type"], header["version"], header["cwd"]) == ("session", 3, str(pi.folder.resolve()))
    assert str(uuid.UUID(header["id"])) == header["id"]
    assert datetime.fromisoformat(header["timestamp"]).tzinfo is not None
    types = [event["type"] for event in rest if event["type"] != "message_update"]
    assert types == [
        "agent_start",
        *["turn_start", "message_start", "message_end", "message_start", "message_end"],
        *["tool_execution_start", "tool_execution_end", "message_start", "message_end", "turn_end"],
        *["turn_start", "message_start", "message_end", "turn_end", "agent_end", "agent_settled"],
    ]
    assert rest[-1] == {"type": "agent_settled", "aborted": False}
    assert [message["role"] for message in rest[-2]["messages"]] == ["user", "assistant", "toolResult", "assistant"]


def test_half_a_surrogate_pair_survives(pi: Pi) -> None:
    text = "a \ud83d b \u202e c \0 \\ud83d"
    done = pi.run("--mode", "json", "go", script=[{"text": text}])
    *_, agent_end, _ = events(done.stdout)
    assert agent_end["messages"][-1]["content"] == [{"type": "text", "text": text}]
    done = pi.run("-p", "go", script=[{"text": text}])
    assert (done.returncode, done.stdout) == (0, text.replace("\ud83d", "?") + "\n")


def test_updates_carry_only_what_is_new(pi: Pi) -> None:
    reply = {
        "blocks": [
            {"thinking": "hm"},
            {"text": "hello", "chunks": ["hel", "lo"]},
            {"toolCall": {"name": "ls", "id": "a", "arguments": {}}},
        ]
    }
    done = pi.run("--mode", "json", "go", script=[reply, "done"])
    updates = [event for event in events(done.stdout) if event["type"] == "message_update"]
    assert all(set(update) == {"type", "usage", "assistantMessageEvent"} for update in updates)
    assert updates[0]["usage"]["totalTokens"] == 0
    shown = [update["assistantMessageEvent"] for update in updates][:10]
    assert shown == [
        {"type": "thinking_start", "contentIndex": 0},
        {"type": "thinking_delta", "contentIndex": 0, "delta": "hm"},
        {"type": "thinking_end", "contentIndex": 0, "content": "hm"},
        {"type": "text_start", "contentIndex": 1},
        {"type": "text_delta", "contentIndex": 1, "delta": "hel"},
        {"type": "text_delta", "contentIndex": 1, "delta": "lo"},
        {"type": "text_end", "contentIndex": 1, "content": "hello"},
        {"type": "toolcall_start", "contentIndex": 2, "id": "a", "toolName": "ls"},
        {"type": "toolcall_delta", "contentIndex": 2, "delta": "{}"},
        shown[9],
    ]
    assert (shown[9]["type"], shown[9]["toolCall"]["id"]) == ("toolcall_end", "a")


def test_lines_are_lines_whatever_the_text_holds(pi: Pi) -> None:
    text = "one\ntwo\u2028three\u0085 \ud83d\ude00 \udce9"
    done = pi.run("--mode", "json", "go", script=[text])
    assert done.returncode == 0
    ends = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    shown = next(event for event in ends if event["type"] == "message_end" and event["message"]["role"] == "assistant")
    assert shown["message"]["content"][0]["text"].startswith("one\ntwo\u2028three\u0085 \U0001f600")


def test_a_failure_closes_the_run_and_exits_1(pi: Pi) -> None:
    done = pi.run("--mode", "json", "go", script=[{"blocks": [{"text": "so far"}], "error": "overloaded"}])
    assert (done.returncode, done.stderr) == (1, "pi: overloaded\n")
    *_, turn_end, agent_end, settled = events(done.stdout)
    assert turn_end["message"]["errorMessage"] == "overloaded"
    assert (agent_end["type"], settled) == ("agent_end", {"type": "agent_settled", "aborted": False})


def test_a_prompt_that_cannot_be_made_prints_no_line(pi: Pi) -> None:
    done = pi.run("--mode", "json", "@missing", script=["never"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "pi: @missing: No such file or directory\n")


def test_several_prompts_are_one_stream(pi: Pi) -> None:
    done = pi.run("--mode", "json", "one", "two", script=["a", "b"])
    types = [event["type"] for event in events(done.stdout)]
    assert (types.count("session"), types.count("agent_end"), types.count("agent_settled")) == (1, 2, 2)


def test_a_reader_that_goes_away_ends_the_run_and_its_commands(pi: Pi) -> None:
    os.mkfifo(pi.folder / "pid")
    command = "echo $$ > pid; while true; do echo more; sleep 0.1; done"
    process = pi.start("--mode", "json", "go", script=[call("bash", command=command), "never"])
    assert process.stdout is not None
    assert process.stderr is not None
    pid = int((pi.folder / "pid").read_text())
    assert alive(pid)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (0, b"")
    assert not alive(pid)
