"""Commands of the user: the same executor as the model's, with another result."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from pi_core import AbortController, PiError
from pi_plugins.tools import UserCommandResult, run_user_command


def run(work: Any, command: str, **more: Any) -> UserCommandResult:
    return asyncio.run(run_user_command(command, work.options, **more))


def test_output_and_exit_code(work: Any) -> None:
    assert run(work, "echo out; echo err >&2; exit 3") == UserCommandResult("out\nerr\n", 3)
    assert run(work, "pwd") == UserCommandResult(f"{os.path.realpath(work.root)}\n", 0)
    assert run(work, "true") == UserCommandResult("", 0)


def test_it_has_the_environment_of_the_process(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_SESSION_ID", "around")
    work.configure(env={"GREETING": "hi"}, command_prefix="name=you", timeout=0.001)

    assert run(work, 'echo "$PI_SESSION_ID $GREETING $name"').output == "around hi you\n"


def test_all_output_is_passed_on_and_the_end_kept(work: Any) -> None:
    pieces: list[str] = []

    result = run(work, "seq 1 5000; printf 'caf\\303'; sleep 0.1; printf '\\251'", on_update=pieces.append)

    whole = "".join(f"{number}\n" for number in range(1, 5001)) + "café"
    assert "".join(pieces) == whole
    assert result.truncated
    assert result.output == "\n".join(whole.split("\n")[-2000:])
    assert Path(result.full_output_path or "").read_text() == whole


def test_the_command_waits_for_a_slow_listener(work: Any) -> None:
    order: list[str] = []

    async def listen(text: str) -> None:
        order.append("begin")
        await asyncio.sleep(0.01)
        order.append("end")

    run(work, "head -c 1000000 /dev/zero | tr '\\0' x", on_update=listen)

    assert order == ["begin", "end"] * (len(order) // 2)
    assert len(order) > 20


def test_an_abort_keeps_what_there_was(work: Any) -> None:
    controller = AbortController()

    result = run(
        work, "echo $$; sleep 1000", signal=controller.signal, on_update=lambda text: controller.abort()
    )  # fmt: skip

    assert (result.exit_code, result.cancelled) == (None, True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.output), 0)
    assert run(work, "touch ran", signal=controller.signal) == UserCommandResult("", None, cancelled=True)
    assert not (work.root / "ran").exists()


def test_a_listener_that_fails_ends_the_command(work: Any) -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match=r"\d+") as raised:
        run(work, "echo $$; sleep 1000", on_update=fail)
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(raised.value)), 0)


def test_what_cannot_be_started_is_an_error(work: Any) -> None:
    with pytest.raises(PiError, match="NUL"):
        run(work, "echo \0")
    work.configure(shell="/no/such/shell")
    with pytest.raises(PiError, match="ENOENT"):
        run(work, "true")
