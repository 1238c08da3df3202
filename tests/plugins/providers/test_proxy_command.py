"""``pi proxy serve`` as a process, and ``pi -p`` as its client."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pi_core import Build, ConfigError
from pi_plugins.providers._proxy_command import proxy

from .proxying import Backend

TOKEN = "the-token"


class Process:
    """A proxy in a process of its own.

    :ivar url: its address.
    """

    def __init__(self, folder: Path, script: list[Any], *arguments: str, **environ: str) -> None:
        self.folder = folder
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        environ = {"PI_SCRIPT": str(folder / "script.json"), "PI_PROXY_TOKEN": TOKEN, **environ}
        self.running = subprocess.Popen(
            [sys.executable, "-m", "pi_core", "proxy", "serve", "--port", "0", *arguments],
            cwd=folder,
            env=environment() | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.running.stderr is not None
        self.said = self.running.stderr.readline()
        found = re.search(r"http://\S+", self.said)
        self.url = found[0] if found else ""

    def ask(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Run ``pi -p`` with a model behind the proxy."""
        known = environment() | {"PI_PROXY_URL": self.url, "PI_PROXY_TOKEN": TOKEN, **environ}
        return subprocess.Popen(
            [sys.executable, "-m", "pi_core", "--model", "proxy/scripted/scripted", "-nt", *arguments],
            cwd=self.folder,
            env=known,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PI_", "PYTEST_"))}


@contextmanager
def serving(folder: Path, *script: Any, arguments: tuple[str, ...] = (), **environ: str) -> Iterator[Process]:
    process = Process(folder, list(script), *arguments, **environ)
    try:
        yield process
    finally:
        process.running.kill()
        process.running.communicate()


def test_a_prompt_is_answered_through_the_proxy(tmp_path: Path) -> None:
    with serving(tmp_path, "Hello", "Again", arguments=("--model", "scripted/scripted")) as server:
        assert server.said == f"pi: proxy at {server.url} (/api/stream); models: scripted/scripted; token: wanted\n"
        out, err = server.ask("-p", "hi", PI_SCRIPT="").communicate(timeout=60)
        assert (out, err) == ("Hello\n", "")
        asking = server.ask("-p", "hi", "--api-key", TOKEN, PI_PROXY_TOKEN="wrong")
        assert asking.communicate(timeout=60) == ("Again\n", "")
        asking = server.ask("-p", "hi", PI_PROXY_TOKEN="wrong-token")
        assert asking.communicate(timeout=60) == ("", "pi: Proxy error: The token is missing or wrong\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with serving(tmp_path) as server:
        server.running.send_signal(number)
        out, err = server.running.communicate(timeout=60)
        assert (server.running.returncode, out, err) == (code, "", "")


STUCK = {"blocks": [{"text": "so far"}, {"wait": True}]}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGTERM, "The proxy was stopped"),
        (signal.SIGKILL, "Connection closed by proxy server before the response completed"),
    ],
)
def test_a_proxy_that_goes_away_leaves_what_was_said(tmp_path: Path, number: signal.Signals, words: str) -> None:
    with serving(tmp_path, STUCK, arguments=("--grace", "0")) as server:
        asking = server.ask("--mode", "json", "hi")
        assert asking.stdout is not None
        for line in asking.stdout:
            if '"text_end"' in line:
                server.running.send_signal(number)
                break
        out, _ = asking.communicate(timeout=60)
        ends = [json.loads(line) for line in out.splitlines()]
        message = next(end["message"] for end in ends if end["type"] == "message_end")
        assert (message["errorMessage"], message["content"]) == (words, [{"type": "text", "text": "so far"}])
        if number == signal.SIGTERM:
            _, err = server.running.communicate(timeout=60)
            assert (server.running.returncode, err) == (143, "")


# --- what cannot be started ---


def start(*arguments: str, token: str | None = None) -> Any:
    """Run the command here; it has to fail before it listens."""
    environ = {"PI_PROXY_TOKEN": token}
    build = Build([Backend()], only=[])
    return CliRunner().invoke(proxy, ["serve", *arguments], obj=build, env=environ, catch_exceptions=True)


@pytest.mark.parametrize(
    ("arguments", "token", "words"),
    [
        (["--host", "0.0.0.0"], None, "--host 0.0.0.0 can be reached from other machines, so the proxy needs a token"),
        (["--host", "some.example"], " ", "needs a token"),
        (["--host", "::"], None, "needs a token"),
        (["--cors", "*"], None, "--cors '*' lets every web page ask, so the proxy needs a token"),
        (["--token", "two words"], None, "only visible ASCII"),
        (["--token", "\u00e9"], None, "only visible ASCII"),
        (["--model", "no/such"], None, "No plugin knows the model 'no/such'"),
        (["--host", "no-such-host.invalid"], "t", "The proxy cannot listen on no-such-host.invalid"),
    ],
)
def test_what_cannot_be_served_is_said_before_it_listens(arguments: list[str], token: str | None, words: str) -> None:
    done = start(*arguments, token=token)
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = start("--port", str(port))
    assert isinstance(done.exception, ConfigError)
    assert f"The proxy cannot listen on 127.0.0.1, port {port}" in str(done.exception)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = start()
    assert isinstance(done.exception, ConfigError)
    assert "pip install 'pi-agent-framework[proxy]'" in str(done.exception)


def test_the_token_is_in_no_help_text() -> None:
    done = CliRunner().invoke(proxy, ["serve", "--help"], env={"PI_PROXY_TOKEN": "very-secret"})
    assert done.exit_code == 0
    assert "very-secret" not in done.output
