"""The choice as the command line shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .conftest import ModelServer


def pi(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PI_CODING_AGENT_DIR" or (not name.startswith("PI_") and "_API_KEY" not in name)
    }
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


def test_what_is_wrong_in_models_json_is_said_once_in_every_mode(
    folder: Path, tmp_path: Path, server: ModelServer
) -> None:
    folder.mkdir()
    (folder / "models.json").write_text('{"providers": {"acme": {"baseUrl": 1}}}')
    problem = f"{folder}/models.json:1: providers.acme.baseUrl: expected a text, got 1"
    for mode in (["-p"], ["--mode", "json"]):
        done = pi(tmp_path, *mode, "hi", "--no-session", "--model", "m", "--base-url", server.address)
        assert done.stderr.count(problem) == 1, done.stderr


def test_no_model_and_no_key(tmp_path: Path) -> None:
    done = pi(tmp_path, "-p", "hi", "--no-session")
    assert (done.returncode, done.stdout) == (1, "")
    assert "No model is configured" in done.stderr
