"""``bash``: what it shows, what it keeps, and that nothing it started survives its end."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_core import AbortController, RunContext, ToolContext, ToolResult
from pi_plugins.tools import SHELL_ENVIRONMENT, ToolsPlugin, _process
from pi_plugins.tools._output import Output


def bash(work: Any) -> Any:
    return next(tool for tool in ToolsPlugin(work.options).register_tools() if tool.name == "bash")


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return not os.path.isdir("/proc/self")


def pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.glob("*.pid")]


FAMILY = """
trap '' TERM
sh -c 'echo $$ > child.pid; exec sleep 1000' &
setsid sh -c 'echo $$ > daemon.pid; trap "" TERM; sleep 1000' &
(sh -c 'echo $$ > grandchild.pid; exec sleep 1000' &)
echo $$ > shell.pid
while [ ! -s child.pid ] || [ ! -s daemon.pid ] || [ ! -s grandchild.pid ]; do sleep 0.01; done
echo started
wait
"""


def stopped_by(work: Any, stop: Callable[[AbortController, asyncio.Task[ToolResult]], None]) -> ToolResult | None:
    """Run a family of processes that do not want to end, stop it once all run, and return what came of the call."""

    async def run() -> ToolResult | None:
        controller, started = AbortController(), asyncio.Event()

        def update(result: ToolResult) -> None:
            if "started" in result.content[0].text:
                started.set()

        context = ToolContext("1", signal=controller.signal, on_update=update)
        task = asyncio.create_task(bash(work).run({"command": FAMILY}, context))
        await asyncio.wait_for(started.wait(), 30)
        assert len(pids(work.root)) == 4
        assert all(running(pid) for pid in pids(work.root))
        stop(controller, task)
        await asyncio.wait({task})
        return None if task.cancelled() else task.result()

    return asyncio.run(run())


def test_abort_leaves_no_process(work: Any) -> None:
    work.configure(kill_grace_seconds=0.2)

    result = stopped_by(work, lambda controller, task: controller.abort())

    assert result.is_error
    assert result.content[0].text == "started\n\n\nCommand aborted"
    assert not any(running(pid) for pid in pids(work.root))


def test_cancellation_leaves_no_process(work: Any) -> None:
    work.configure(kill_grace_seconds=0.2)

    assert stopped_by(work, lambda controller, task: task.cancel()) is None
    assert not any(running(pid) for pid in pids(work.root))


def test_a_second_cancellation_does_not_wait_for_the_grace(work: Any) -> None:
    work.configure(kill_grace_seconds=600)

    def cancel_twice(controller: AbortController, task: asyncio.Task[ToolResult]) -> None:
        task.cancel()
        asyncio.get_running_loop().call_later(0.2, task.cancel)

    assert stopped_by(work, cancel_twice) is None
    assert not any(running(pid) for pid in pids(work.root))


def test_timeout_leaves_no_process_and_shows_what_there_was(work: Any) -> None:
    work.configure(kill_grace_seconds=0.2)

    outcome = work.call("bash", command="echo some; sleep 1000 & echo $! > a.pid; sleep 1000", timeout=0.5)

    assert outcome.is_error
    assert outcome.result.content[0].text == "some\n\n\nCommand timed out after 0.5 seconds"
    assert outcome.result.structured_content["output"] == "some\n"
    assert not any(running(pid) for pid in pids(work.root))


def test_without_proc_the_process_group_is_ended(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_process, "_processes", lambda: None)
    work.configure(kill_grace_seconds=0.2)
    command = "trap '' TERM; sh -c 'echo $$ > a.pid; exec sleep 1000' & echo $$ > b.pid; wait"

    assert "timed out" in work.error("bash", command=command, timeout=0.5)
    assert len(pids(work.root)) == 2
    assert not any(running(pid) for pid in pids(work.root))


def test_a_program_may_clean_up_before_it_ends(work: Any) -> None:
    command = "trap 'echo cleaned; exit 0' TERM; echo on; while :; do sleep 0.05; done"

    text = work.error("bash", command=command, timeout=0.5)

    assert text.startswith("on\n")
    assert text.endswith("cleaned\n\n\nCommand timed out after 0.5 seconds")


def test_a_default_timeout(work: Any) -> None:
    work.configure(timeout=0.3)

    assert work.error("bash", command="sleep 1000") == "Command timed out after 0.3 seconds"


@pytest.mark.parametrize("timeout", [0, -1, float("inf")])
def test_a_timeout_that_makes_no_sense_is_an_error(work: Any, timeout: float) -> None:
    assert "timeout must be above 0 seconds" in work.error("bash", command="touch ran", timeout=timeout)
    assert not (work.root / "ran").exists()


def test_an_aborted_run_starts_no_command(work: Any) -> None:
    controller = AbortController()
    controller.abort()

    result = asyncio.run(bash(work).run({"command": "touch ran"}, ToolContext("1", signal=controller.signal)))

    assert (result.is_error, result.content[0].text) == (True, "Command aborted")
    assert not (work.root / "ran").exists()


def test_a_child_in_the_background_does_not_hold_the_call(work: Any) -> None:
    began = time.monotonic()
    text = work.text("bash", command="sleep 1000 & echo $! > a.pid; echo done")

    (pid,) = pids(work.root)
    assert text == "done\n"
    assert time.monotonic() - began < 5
    assert running(pid)
    os.kill(pid, 9)


def test_a_child_in_the_background_that_never_stops_printing_does_not_hold_the_call(work: Any) -> None:
    text = work.text("bash", command="(while :; do echo more; sleep 0.01; done) & echo $! > a.pid; sleep 0.05")

    os.kill(pids(work.root)[0], 9)
    assert text.startswith("more\n")


def test_a_child_in_the_background_can_go_on_printing(work: Any) -> None:
    command = "(trap 'exit 9' PIPE; while [ ! -e go ]; do sleep 0.02; done; echo late; echo fine > said) & echo done"

    async def run() -> None:
        await work.run("bash", {"command": command})
        (work.root / "go").touch()
        await work.run("bash", {"command": "while [ ! -e said ]; do sleep 0.01; done", "timeout": 20})

    asyncio.run(run())

    assert (work.root / "said").exists()


@pytest.mark.parametrize(
    ("command", "code"),
    [("kill -TERM $$", 143), ("kill -KILL $$", 137), ("exit 7", 7), ("no_such_program_here", 127), ("false | true", 0)],
)
def test_exit_codes(work: Any, command: str, code: int) -> None:
    outcome = work.call("bash", command=command)

    assert outcome.result.structured_content["exit_code"] == code
    assert outcome.is_error == (code != 0)
    if code:
        assert outcome.result.content[0].text.endswith(f"\n\nCommand exited with code {code}")


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_long_commands_run_whole(work: Any, size: int) -> None:
    command = "".join(f"cat > f{number} <<'X'\n{'y' * (size // 20)}\nX\n" for number in range(20)) + "echo DONE; exit 5"

    outcome = work.call("bash", command=command)

    assert outcome.result.content[0].text == "DONE\n\n\nCommand exited with code 5"
    assert all((work.root / f"f{number}").stat().st_size == size // 20 + 1 for number in range(20))


def test_commands_that_cannot_run_say_why(work: Any) -> None:
    assert "NUL" in work.error("bash", command="echo \0")
    work.configure(shell="/no/such/shell")
    assert work.error("bash", command="true") == "ENOENT: no such file or directory, run '/no/such/shell'"
    work.root = work.root / "gone"
    work.configure()
    assert work.error("bash", command="true") == f"Working directory does not exist: {work.root}"


def test_options_of_commands(work: Any) -> None:
    work.configure(env={"GREETING": "hi"}, command_prefix="name=you", shell="/bin/sh")

    assert work.text("bash", command='echo "$GREETING $name"') == "hi you\n"


def test_a_surrogate_half_in_a_command_reaches_the_shell_and_its_output_is_text(work: Any) -> None:
    text = work.text("bash", command="printf 'Hello \\355\\240\\200 World'; echo \ud99c")

    assert text.encode()
    assert text.startswith("Hello \ufffd")


def test_the_whole_output_is_in_a_private_file(work: Any) -> None:
    outcome = work.call("bash", command="seq 1 5000; printf x")

    path = Path(outcome.result.details["fullOutputPath"])
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 5001)) + "x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.parent.stat().st_uid == os.geteuid()
    assert "[Showing lines 3002-5001 of 5001. Full output: " in outcome.result.content[0].text


def test_output_within_the_limits_leaves_no_file(work: Any) -> None:
    outcome = work.call("bash", command="seq 1 2000")

    assert outcome.result.content[0].text == "".join(f"{number}\n" for number in range(1, 2001))
    assert outcome.result.details is None


def test_a_failure_after_much_output_still_shows_where_it_is(work: Any) -> None:
    outcome = work.call("bash", command="seq 1 3000; exit 4")

    text = outcome.result.content[0].text
    where = r"\[Showing lines 1001-3000 of 3000\. Full output: \S+\.log\]"
    assert re.search(where + r"\n\nCommand exited with code 4$", text)


@pytest.mark.parametrize("ending", ["timeout", "abort"])
def test_a_flood_is_bounded(work: Any, ending: str) -> None:
    work.configure(max_log_bytes=3_000_000, kill_grace_seconds=0.2)
    updates: list[ToolResult] = []

    async def run() -> tuple[ToolResult, int, float]:
        controller = AbortController()
        began = time.monotonic()
        if ending == "abort":
            asyncio.get_running_loop().call_later(2, controller.abort)
        tracemalloc.start()
        context = ToolContext("1", signal=controller.signal, on_update=updates.append)
        result = await bash(work).run({"command": "yes", **({"timeout": 2} if ending == "timeout" else {})}, context)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return result, peak, time.monotonic() - began

    result, peak, seconds = asyncio.run(run())

    path = Path(result.details["fullOutputPath"])
    assert result.details["truncation"]["totalBytes"] > 10_000_000
    # The reports alone are 50 KB each as text, kept by this test; the command itself keeps 4 MB at most.
    assert peak < 16_000_000
    assert len(updates) <= 12
    assert seconds < 10
    assert path.stat().st_size == 3_000_000
    assert "First 2.9MB of output: " in result.content[0].text
    assert len(result.structured_content["output"]) == 1024 * 1024
    assert result.structured_content["truncated"]


def test_progress_is_reported_while_it_runs(work: Any) -> None:
    seen: list[str] = []

    async def run() -> None:
        def update(result: ToolResult) -> None:
            seen.append(result.content[0].text)
            if "one" in seen[-1]:
                (work.root / "go").touch()

        command = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 0.5; echo three"
        await bash(work).run({"command": command}, ToolContext("1", on_update=update))

    asyncio.run(run())

    assert seen[:3] == ["", "one\n", "one\ntwo\n"]


def collected(pieces: list[bytes], max_lines: int, max_bytes: int) -> Output:
    output = Output(max_lines, max_bytes, 1000)

    async def run() -> None:
        for piece in pieces:
            await output.add(piece)
        await output.finish()

    asyncio.run(run())
    return output


@pytest.mark.parametrize(
    ("text", "content", "notice"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("a\nb\nc\nd\n", "b\nc\nd", "Showing lines 2-4 of 4."),
        ("a\nb\nc\nd", "b\nc\nd", "Showing lines 2-4 of 4."),
        ("1234567890\n", "1234567890\n", None),
        ("1234567890a\n", "234567890a", "Showing last 10B of line 1 (line is 11B)."),
        ("first\n1234567890abc", "4567890abc", "Showing last 10B of line 2 (line is 13B)."),
        ("123\n456\n789\n", "456\n789", "Showing lines 2-3 of 3 (10B limit)."),
        ("12\n4567890\n23\n", "4567890\n23"[-10:], "Showing lines 2-3 of 3 (10B limit)."),
        ("12345\n890123456", "890123456", "Showing lines 2-2 of 2 (10B limit)."),
        ("ééééééé", "ééééé", "Showing last 10B of line 1 (line is 14B)."),
        ("aéééééb", "éééééb"[1:], "Showing last 10B of line 1 (line is 12B)."),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_end_that_is_shown(text: str, content: str, notice: str | None, size: int) -> None:
    data = text.encode()

    output = collected([data[begin : begin + size] for begin in range(0, len(data), size)], 3, 10)

    shown = output.truncation()
    assert shown.content == content
    assert shown.output_bytes == len(content.encode()) <= max(10, len(data) if notice is None else 0)
    assert shown.total_lines == len(text.splitlines())
    if notice is None:
        assert not shown.truncated
        assert output.log_path is None
    else:
        assert output.notice(shown) == f"[{notice} Full output: {output.log_path}]"
        assert Path(output.log_path or "").read_bytes() == data


def test_output_that_cannot_be_kept_does_not_fail_the_command(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pi_plugins.tools import _output

    monkeypatch.setattr(_output, "private_directory", lambda: str(work.root / "gone"))

    outcome = work.call("bash", command="seq 1 3000")

    assert not outcome.is_error
    assert "Full output could not be kept: No such file or directory]" in outcome.result.content[0].text


def test_commands_get_the_variables_of_their_run(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_SESSION_ID", "of the session around this one")
    monkeypatch.setenv("PI_SESSION_FILE", "/around.jsonl")
    monkeypatch.setenv("KEPT", "yes")
    work.configure(env={"PI_MODEL": "of the options", "OPTION": "yes"})
    run = RunContext()
    run.stash[SHELL_ENVIRONMENT] = {"PI_SESSION_ID": "abc", "PI_MODEL": "m1"}

    async def shown(context: ToolContext) -> str:
        command = 'echo "$PI_SESSION_ID,${PI_SESSION_FILE-none},$PI_MODEL,$KEPT,$OPTION"'
        return (await bash(work).run({"command": command}, context)).content[0].text

    assert asyncio.run(shown(ToolContext("1", run=run))) == "abc,none,m1,yes,yes\n"
    assert asyncio.run(shown(ToolContext("1", run=RunContext()))) == ",none,of the options,yes,yes\n"
    assert asyncio.run(shown(ToolContext("1"))) == ",none,of the options,yes,yes\n"
