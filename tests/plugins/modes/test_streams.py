"""What ``pi`` does with standard streams and a folder that are missing or useless."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .running import SECONDS, Pi

ABSENT = "pi: There is no standard output to write to\n"
FULL = "pi: The standard output cannot be written: No space left on device\n"


def in_shell(pi: Pi, redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.join(pi.command(*arguments, script=['fine', 'never']))} {redirections}"
    return subprocess.run(
        command,
        shell=True,
        cwd=pi.folder,
        env=pi.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the redirections are those of a Unix shell")
class TestStreams:
    def test_no_standard_input(self, pi: Pi) -> None:
        done = in_shell(pi, "<&-", "go")
        assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
        done = in_shell(pi, "<&-")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("pi: There is no prompt: give one")

    def test_no_standard_error(self, pi: Pi) -> None:
        done = in_shell(pi, "2>&-", "-p", "go")
        assert (done.returncode, done.stdout) == (0, "fine\n")

    @pytest.mark.parametrize("mode", ["text", "json"])
    @pytest.mark.parametrize(("redirection", "said"), [(">&-", ABSENT), (">/dev/full", FULL)])
    def test_an_output_that_takes_nothing(self, pi: Pi, mode: str, redirection: str, said: str) -> None:
        if "full" in redirection and not Path("/dev/full").exists():
            redirection = ">&-"
            said = ABSENT
        done = in_shell(pi, redirection, "-p", "--mode", mode, "go", "on")
        assert (done.returncode, done.stderr) == (1, said)

    def test_a_folder_that_is_gone(self, pi: Pi) -> None:
        (pi.folder / "gone").mkdir()
        command = shlex.join(pi.command("-p", "go", script=["never"]))
        done = subprocess.run(
            f"cd gone && rmdir ../gone && {command}",
            shell=True,
            cwd=pi.folder,
            env={**pi.environment, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("pi: The current directory cannot be used: ")


def test_a_system_prompt_that_is_no_text(pi: Pi) -> None:
    (pi.folder / "prompt.txt").write_bytes(b"ok \xff")
    done = pi.run("-p", "--system-prompt", "prompt.txt", "go", script=["never"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"pi: --system-prompt: prompt.txt is not UTF-8 text (byte 3); save it as UTF-8{os.linesep}"
