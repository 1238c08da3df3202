"""The choice as the command line shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .conftest import ModelServer


def pi(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PI_") and "_API_KEY" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pi_core", *arguments],
        cwd=folder,
        env={**kept, "HF_TOKEN": "", **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_was_chosen_for_the_user_is_said_on_stderr(tmp_path: Path, server: ModelServer) -> None:
    done = pi(tmp_path, "-p", "hi", "--base-url", server.address, "--api", "no-such-api")
    assert done.returncode == 1
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first == f"pi: Using small, the first model that {server.address} names. Name another with --model"
    assert "add the plugin of a provider that speaks 'no-such-api' (providers here: " in second


def test_a_name_nobody_knows(tmp_path: Path) -> None:
    done = pi(tmp_path, "-p", "hi", "--model", "zzz/model")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pi: No plugin knows the model 'zzz/model'. Name it as provider/id, or give --base-url\n"
    done = pi(tmp_path, "-p", "hi", "--model", "opnai/gpt-5")
    assert done.stderr == "pi: There is no provider 'opnai', did you mean 'openai/gpt-5'?\n"
