"""The choice as the command line shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .conftest import ModelServer


def pi(folder: Path, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PI_CODING_AGENT_DIR" or (not name.startswith("PI_") and "_API_KEY" not in name)
    }
    return subprocess.run(
        [sys.executable, "-m", "pi_core", *arguments],
        cwd=folder,
        env={**kept, "HF_TOKEN": "", **environ},
        input=stdin,
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


def test_settings_that_are_no_json_count_for_nothing_and_it_is_said(
    folder: Path, tmp_path: Path, server: ModelServer
) -> None:
    folder.mkdir()
    (folder / "settings.json").write_text("{ oops")
    done = pi(tmp_path, "-p", "hi", "--no-session", "--model", "m", "--base-url", server.address)
    assert done.stderr.startswith(
        f"pi: {folder}/settings.json:1:3: expecting property name enclosed in double quotes; the user settings do not "
        "count\n"
    )


def test_a_level_makes_a_model_that_nobody_knows_think(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    entry = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"acme": entry}}))
    commands = '{"id": "1", "type": "get_state"}\n'
    states = [
        json.loads(
            pi(tmp_path, "--mode", "rpc", "--no-session", "--model", name, "--thinking", "high", stdin=commands).stdout
        )
        for name in ("acme/new", "acme/m")
    ]
    assert [state["data"]["model"]["reasoning"] for state in states] == [True, False]
    assert [state["data"]["thinkingLevel"] for state in states] == ["high", "off"]


def test_why_a_provider_is_passed_over_is_said_when_there_is_no_other(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text('{"groq": {"type": "api_key", "key": "$NOT_SET"}}')
    done = pi(tmp_path, "-p", "hi", "--no-session")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"pi: groq is passed over: {folder}/auth.json: the environment variable NOT_SET is not set, or empty\n"
        "pi: No model is configured."
    )


def test_no_model_and_no_key(tmp_path: Path) -> None:
    done = pi(tmp_path, "-p", "hi", "--no-session")
    assert (done.returncode, done.stdout) == (1, "")
    assert "No model is configured" in done.stderr
