"""Ctrl-C and its relatives: the run closes, the exit code says so, and nothing is left running."""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import signal
import subprocess
import termios
import time
from typing import Any

import pytest

from .running import Pi, alive, call, state

STUCK = {"blocks": [{"text": "so far"}, {"wait": True}]}


def until(process: subprocess.Popen[bytes], wanted: str) -> re.Match[str]:
    """Read lines until a pattern is found in one."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(wanted, line.decode())
        if found is not None:
            return found
    raise AssertionError(f"{wanted} never came")


def rest(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str]:
    """Wait for the end and return the remaining lines and what was said on stderr."""
    out, err = process.communicate(timeout=60)
    return [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_response_that_hangs(pi: Pi, number: signal.Signals, code: int) -> None:
    process = pi.start("--mode", "json", "go", script=[STUCK])
    until(process, '"text_end"')
    process.send_signal(number)
    lines, said = rest(process)
    assert process.returncode == code
    assert said == "pi: Request was aborted\n"
    message, turn, end, settled = lines
    assert [line["type"] for line in (message, turn, end)] == ["message_end", "turn_end", "agent_end"]
    assert message["message"]["stopReason"] == "aborted"
    assert message["message"]["content"] == [{"type": "text", "text": "so far"}]
    assert settled == {"type": "agent_settled", "aborted": True}


def test_print_mode_says_what_happened(pi: Pi) -> None:
    os.mkfifo(pi.folder / "started")
    process = pi.start("-p", "go", script=[call("bash", command="echo yes > started; sleep 300"), "never"])
    assert (pi.folder / "started").read_text() == "yes\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"pi: Request was aborted\n")


def test_a_running_command_is_ended_with_everything_it_started(pi: Pi) -> None:
    command = "trap '' INT; sleep 300 & echo pids=$!=$$=; wait"
    process = pi.start("--mode", "json", "go", script=[call("bash", command=command), "never"])
    pids = [int(pid) for pid in until(process, r"pids=(\d+)=(\d+)=").groups()]
    assert all(map(alive, pids))
    process.send_signal(signal.SIGINT)
    lines, said = rest(process)
    assert process.returncode == 130
    assert said == "pi: Request was aborted\n"
    assert not any(map(alive, pids))
    types = [line["type"] for line in lines if line["type"] != "tool_execution_update"]
    assert types[0] == "tool_execution_end"
    assert types[-3:] == ["turn_end", "agent_end", "agent_settled"]
    assert [types.count(kind) for kind in ("agent_end", "agent_settled", "tool_execution_end")] == [1, 1, 1]
    assert lines[-1]["aborted"] is True
    result = next(line["message"] for line in lines if line["type"] == "message_end")
    assert (result["role"], result["isError"]) == ("toolResult", True)


def test_later_prompts_are_not_started(pi: Pi) -> None:
    process = pi.start("--mode", "json", "one", "two", script=[STUCK, "never"])
    until(process, '"text_end"')
    process.send_signal(signal.SIGINT)
    lines, _ = rest(process)
    assert process.returncode == 130
    assert "agent_start" not in [line["type"] for line in lines]


@pytest.mark.parametrize("body", ["await asyncio.Event().wait()", "time.sleep(300)"])
def test_a_second_signal_ends_the_process_whatever_goes_on(pi: Pi, body: str) -> None:
    (pi.folder / "deaf.py").write_text(
        "import asyncio\nimport time\nfrom pi_core import hookimpl\n\nclass Deaf:\n"
        f"    @hookimpl\n    async def stream(self):\n        print('deaf', flush=True)\n        {body}\n"
    )
    info = pi.folder / "deaf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deaf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pi]\ndeaf = deaf:Deaf\n")
    pi.environment["PYTHONPATH"] = str(pi.folder)
    process = pi.start("-p", "go", script=["never"])
    assert process.stdout is not None
    assert process.stdout.readline() == b"deaf\n"
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode in (130, 143)
    assert out == b""


def test_ctrl_c_while_a_pipe_is_read(pi: Pi) -> None:
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            pi.command("-p", "go", script=["never"]),
            cwd=pi.folder,
            env=pi.environment,
            stdin=read,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(read)
        os.write(write, b"some, and more to come")
        while _unread(write) or state(process.pid) != "S":
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        os.close(write)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def _unread(pipe: int) -> int:
    """How many bytes of a pipe nobody has read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
