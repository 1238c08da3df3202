"""Stored credentials, and the command that stores, removes, lists and checks them."""

from __future__ import annotations

import io
import json
import os
import pty
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from pi_core import ConfigError
from pi_core.cli import run
from pi_plugins.config import save_trust
from pi_plugins.models import CredentialStore
from pi_plugins.models.credentials import ApiKeyCredential, literal

SECRET = "sk-planted-0123456789"


@dataclass
class Done:
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


class Pi(Protocol):
    """Runs ``pi auth`` in this process."""

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> Done: ...


@pytest.fixture
def pi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Pi:
    def call(*arguments: str, stdin: str = "", **environ: str) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            for name, value in environ.items():
                patch.setenv(name, value)
            code = run(["auth", *arguments])
        shown = capsys.readouterr()
        assert SECRET not in shown.out + shown.err
        return Done(code, shown.out, shown.err)

    return call


def stored(folder: Path) -> Any:
    return json.loads((folder / "auth.json").read_text())


# --- the file ---


def test_the_file_is_for_its_owner_only(folder: Path) -> None:
    CredentialStore(folder / "auth.json").set_key("groq", "k")
    assert stat.S_IMODE(os.stat(folder / "auth.json").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_what_others_wrote_stays(folder: Path) -> None:
    folder.mkdir()
    other = {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "extra": {"x": 1}}
    (folder / "auth.json").write_text(json.dumps({"anthropic": other}))
    store = CredentialStore(folder / "auth.json")
    store.set_key("groq", "k", env={"A": "b"})
    assert stored(folder) == {"anthropic": other, "groq": {"type": "api_key", "key": "k", "env": {"A": "b"}}}
    assert store.list() == [("anthropic", "oauth"), ("groq", "api_key")]
    assert store.remove("groq") == "api_key"
    assert store.remove("groq") is None
    assert stored(folder) == {"anthropic": other}


def test_a_file_that_is_no_json_is_never_written_over(folder: Path) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text('{"groq": {"type": "api_key", "key": ')
    store = CredentialStore(folder / "auth.json")
    for change in (lambda: store.set_key("xai", "k"), lambda: store.remove("groq")):
        with pytest.raises(ConfigError, match=r"auth\.json:1:"):
            change()
    assert (folder / "auth.json").read_text() == '{"groq": {"type": "api_key", "key": '


@pytest.mark.parametrize("text", ["plain", "a$b", "!echo", "$$x", "$!y", "${A}", "!$"])
def test_a_key_that_looks_like_a_template_is_kept_as_it_is(folder: Path, text: str) -> None:
    store = CredentialStore(folder / "auth.json")
    store.set_key("groq", literal(text))
    found = store.get("groq")
    assert isinstance(found, ApiKeyCredential)
    assert found.key.expand({}) == text


WORKER = """
import sys
from pathlib import Path
from pi_plugins.models import CredentialStore

path, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store, reader = CredentialStore(path), CredentialStore(path)
for number in range(rounds):
    store.set_key(name, f"{name}-{number}")
    assert (name, "api_key") in reader.list(), reader.problem
    assert reader.get("kept") is not None, reader.problem
    if number % 3 == 0 and number < rounds - 1:
        assert store.remove(name) == "api_key"
    assert reader.problem is None, reader.problem
"""


def test_processes_that_log_in_and_out_at_once_lose_nothing(folder: Path) -> None:
    path = folder / "auth.json"
    CredentialStore(path).set_key("kept", "kept")
    rounds = 60
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), name, str(rounds)], stderr=subprocess.PIPE, text=True
        )
        for name in ("one", "two", "three")
    ]
    watched = CredentialStore(path)
    torn: list[str | None] = []
    while any(worker.poll() is None for worker in workers):
        watched.list()
        torn.append(watched.problem)
    assert [worker.communicate()[1] for worker in workers] == ["", "", ""]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert set(torn) <= {None}
    expected = {name: {"type": "api_key", "key": f"{name}-{rounds - 1}"} for name in ("one", "two", "three")}
    assert stored(folder) == {"kept": {"type": "api_key", "key": "kept"}, **expected}


# --- login ---


def test_a_key_from_the_standard_input(pi: Pi, folder: Path) -> None:
    done = pi("login", "groq", stdin=f"{SECRET}\n")
    assert done.returncode == 0
    assert done.stdout == (
        f"The key of groq is stored in {folder}/auth.json. To try it: pi auth check --provider groq\n"
    )
    assert stored(folder) == {"groq": {"type": "api_key", "key": SECRET}}


def test_a_key_typed_at_a_terminal_is_not_shown(folder: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pi_core", "auth", "login", "groq"],
        env={**os.environ, "PI_CODING_AGENT_DIR": str(folder)},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                chunk = os.read(master, 1024)
            except OSError:
                return
            shown.extend(chunk)
            if b"Key of groq: " in shown and not typed.is_set():
                typed.set()
                os.write(master, f"{SECRET}\n".encode())

    typed = threading.Event()
    reader = threading.Thread(target=read)
    reader.start()
    assert process.wait(timeout=60) == 0
    reader.join(timeout=60)
    os.close(master)
    assert SECRET not in shown.decode()
    assert stored(folder)["groq"]["key"] == SECRET


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["--key", "a$b"], "a$$b"),
        (["--env", "WORK_KEY"], "$WORK_KEY"),
        (["--command", "pass show groq"], "!pass show groq"),
    ],
)
def test_where_a_key_can_come_from(pi: Pi, folder: Path, options: list[str], key: str) -> None:
    assert pi("login", "groq", *options).returncode == 0
    assert stored(folder) == {"groq": {"type": "api_key", "key": key}}


@pytest.mark.parametrize(
    ("options", "stdin", "said"),
    [
        ([], "", "there is no key: type it at a terminal, or give it on the standard input"),
        ([], "  \n", "there is no key"),
        (["--key", " "], "", "the key is empty"),
        (["--key", f"key {SECRET}"], "", "the key has a space or a character that no key has"),
        (["--env", "not a name"], "", "--env takes the name of an environment variable"),
        (["--command", " "], "", "--command is empty"),
        (["--env", "A", "--command", "b"], "", "--env and --command exclude each other"),
        (["--env", "A", "--keyring"], "", "--env and --keyring exclude each other"),
    ],
)
def test_what_is_no_key_is_not_stored(pi: Pi, folder: Path, options: list[str], stdin: str, said: str) -> None:
    done = pi("login", "groq", *options, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (folder / "auth.json").exists()


def test_a_provider_nobody_knows_is_stored_with_a_word_about_it(pi: Pi, folder: Path) -> None:
    done = pi("login", "gorq", "--key", "k")
    assert done.returncode == 0
    assert done.stderr == "pi: no provider is called 'gorq' here, did you mean 'groq'?\n"


def test_a_new_key_leaves_the_variables_of_its_provider(pi: Pi, folder: Path) -> None:
    store = CredentialStore(folder / "auth.json")
    store.set_key("groq", "old", env={"REGION": "eu"})
    pi("login", "groq", "--key", "new")
    assert stored(folder) == {"groq": {"type": "api_key", "key": "new", "env": {"REGION": "eu"}}}
    store.set_key("groq", "new", env={})
    assert stored(folder) == {"groq": {"type": "api_key", "key": "new"}}


def test_a_key_that_takes_the_place_of_another_programs_login_says_so(pi: Pi, folder: Path) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text('{"groq": {"type": "oauth", "access": "a", "refresh": "r"}}')
    done = pi("login", "groq", "--key", "new")
    assert done.stderr == "pi: this takes the place of the OAuth login that was stored for groq\n"
    assert stored(folder) == {"groq": {"type": "api_key", "key": "new"}}


def test_a_broken_file_is_said_and_stays(pi: Pi, folder: Path) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text("{")
    done = pi("login", "groq", "--key", SECRET)
    assert done.returncode == 1
    assert done.stderr.startswith(f"pi: {folder}/auth.json:1:")
    assert (folder / "auth.json").read_text() == "{"


@pytest.mark.parametrize("command", ["list", "check"])
def test_a_broken_file_is_a_failure_of_what_reads_it(pi: Pi, folder: Path, command: str) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text(f'{{"groq": {{"key": "{SECRET}"')
    done = pi(command, OPENAI_API_KEY="k")
    assert done.returncode == {"list": 1, "check": 2}[command]
    assert done.stderr.startswith(f"pi: {folder}/auth.json:1:")
    assert "openai" in done.stdout


# --- logout ---


def test_logout(pi: Pi, folder: Path) -> None:
    pi("login", "groq", "--key", "k")
    done = pi("logout", "groq", GROQ_API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "What was stored for groq is removed.\nIt still has a key: GROQ_API_KEY\n"
    assert stored(folder) == {}


def test_logout_of_what_is_not_stored_is_no_failure(pi: Pi, folder: Path) -> None:
    done = pi("logout", "groq")
    assert (done.returncode, done.stdout) == (0, "Nothing is stored for groq.\n")
    assert not folder.exists()


# --- list ---


def test_list(pi: Pi, folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    pi("login", "groq", "--command", f"echo run > {log}; echo {SECRET}")
    pi("login", "xai", "--env", "NOT_SET")
    (folder / "models.json").write_text(json.dumps({"providers": {"acme": {"apiKey": SECRET}}}))
    done = pi("list", OPENAI_API_KEY=SECRET)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"acme    {folder}/models.json:1",
        f"groq    {folder}/auth.json, api key",
        "openai  OPENAI_API_KEY",
        f"xai     {folder}/auth.json, api key: the environment variable NOT_SET is not set, or empty",
    ]
    assert not log.exists()
    rows = json.loads(pi("list", "--json").stdout)
    assert rows[1] == {"provider": "groq", "source": "stored", "label": f"{folder}/auth.json", "type": "api_key"}


def test_list_of_nothing(pi: Pi, folder: Path) -> None:
    assert pi("list").stdout == "No provider has a key. Store one with: pi auth login PROVIDER\n"


# --- check ---


def test_a_key_that_can_be_had_is_ready(pi: Pi, folder: Path) -> None:
    pi("login", "groq", "--command", f"echo {SECRET}")
    done = pi("check", "--provider", "groq")
    assert (done.returncode, done.stdout) == (0, f"groq: ready ({folder}/auth.json)\n")
    data = json.loads(pi("check", "--provider", "groq", "--json").stdout)
    assert data == {
        "status": "ready",
        "provider": "groq",
        "source": {"kind": "stored", "label": f"{folder}/auth.json"},
    }


def test_a_command_that_fails_is_not_ready_and_says_why(pi: Pi, folder: Path) -> None:
    pi("login", "groq", "--command", f"echo locked {SECRET} >&2; exit 4")
    done = pi("check", "--provider", "groq")
    assert done.returncode == 1
    assert done.stdout == (
        f"groq: not ready: No API key for provider: groq. {folder}/auth.json: "
        "the command 'echo …' ended with exit code 4: locked ***\n"
    )


def test_no_key_is_not_ready(pi: Pi, folder: Path) -> None:
    done = pi("check", "--provider", "groq", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "status": "not_ready",
        "provider": "groq",
        "reason": "nothing gives a key. Store one with: pi auth login groq",
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--provider", "gorq"], "there is no provider 'gorq', did you mean 'groq'?"),
        (["--model", "zzz/qqq"], "There is no model 'zzz/qqq'. pi models list shows those there are"),
    ],
)
def test_what_is_not_known_is_invalid(pi: Pi, folder: Path, arguments: list[str], reason: str) -> None:
    done = pi("check", *arguments, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["reason"] == reason
    assert json.loads(done.stdout)["status"] == "invalid"


def test_an_entry_that_cannot_be_used_is_invalid(pi: Pi, folder: Path) -> None:
    folder.mkdir()
    (folder / "auth.json").write_text(json.dumps({"groq": {"type": "magic", "key": SECRET}}))
    done = pi("check", "--provider", "groq")
    assert done.returncode == 2
    assert done.stdout == (f'groq: invalid: {folder}/auth.json: "type" has to be "api_key", "oauth" or "keyring"\n')


def test_the_headers_of_a_model_are_checked_too(pi: Pi, folder: Path) -> None:
    folder.mkdir()
    entry = {
        "baseUrl": "https://a.example",
        "api": "openai-completions",
        "apiKey": SECRET,
        "headers": {"x": "$HV"},
        "models": [{"id": "m"}],
    }
    (folder / "models.json").write_text(json.dumps({"providers": {"acme": entry}}))
    done = pi("check", "--model", "acme/m")
    assert done.returncode == 1
    assert done.stdout.startswith("acme/m: not ready: The header 'x' of provider 'acme'")
    assert pi("check", "--model", "acme/m", HV="v").stdout == f"acme/m: ready ({folder}/models.json:1)\n"


def test_a_provider_that_needs_no_key_is_checked_too(pi: Pi, folder: Path) -> None:
    folder.mkdir()
    acme = {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "models": [{"id": "m"}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"acme": acme}}))
    done = pi("check")
    assert (done.returncode, done.stdout) == (0, "acme: ready\n")


@pytest.mark.parametrize("trusted", [True, False])
def test_the_models_of_a_project_count_when_it_is_trusted(
    pi: Pi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    (tmp_path / ".pi").mkdir()
    acme = {"baseUrl": "http://127.0.0.1:1/v1", "apiKey": "k", "models": [{"id": "m", "api": "openai-completions"}]}
    (tmp_path / ".pi" / "models.json").write_text(json.dumps({"providers": {"acme": acme}}))
    monkeypatch.chdir(tmp_path)
    save_trust(tmp_path, trusted, agent_dir=folder)
    done = pi("check", "--model", "acme/m")
    assert done.returncode == (0 if trusted else 2)
    assert pi("list").stdout.startswith("acme " if trusted else "No provider")


def test_the_models_of_a_project_that_nobody_decided_about_are_left_out_and_it_is_said(
    pi: Pi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pi").mkdir()
    (tmp_path / ".pi" / "models.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert "Left out" in pi("list").stderr
    folder.mkdir()
    (folder / "settings.json").write_text('{"defaultProjectTrust": "always"}')
    assert "Left out" not in pi("list").stderr


def test_everything_is_checked_by_default_and_the_worst_counts(pi: Pi, folder: Path) -> None:
    pi("login", "groq", "--key", "k")
    pi("login", "xai", "--env", "NOT_SET")
    done = pi("check", OPENAI_API_KEY="k")
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["groq", "openai", "xai"]
    assert pi("check", "--provider", "a", "--model", "b").returncode == 2


# --- the keyring ---

KEYRING = """
import json, os, pathlib
from . import errors
PATH = pathlib.Path(os.environ["FAKE_KEYRING"])

def _load():
    return json.loads(PATH.read_text()) if PATH.exists() else {}

def _save(data):
    PATH.write_text(json.dumps(data))

def set_password(service, user, password):
    if os.environ.get("KEYRING_LOCKED"):
        raise errors.KeyringLocked("no unlocked collection")
    _save({**_load(), f"{service}/{user}": password})

def get_password(service, user):
    if os.environ.get("KEYRING_LOCKED"):
        raise errors.KeyringLocked("no unlocked collection")
    return _load().get(f"{service}/{user}")

def delete_password(service, user):
    data = _load()
    del data[f"{service}/{user}"]
    _save(data)
"""
ERRORS = "class KeyringError(Exception): ...\nclass KeyringLocked(KeyringError): ...\n"


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a keyring that takes the place of the installed one."""
    keys = tmp_path / "keys.json"
    monkeypatch.setenv("FAKE_KEYRING", str(keys))
    install(tmp_path, monkeypatch, KEYRING)
    return keys


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    package = tmp_path / "path" / "keyring"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    (package / "errors.py").write_text(ERRORS)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in sys.modules if name.split(".")[0] == "keyring"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture(autouse=True)
def forget_keyring() -> Iterator[None]:
    """The next test imports its own."""
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "keyring"]:
        del sys.modules[name]


def test_a_key_in_the_keyring(pi: Pi, folder: Path, keyring: Path) -> None:
    done = pi("login", "groq", "--keyring", stdin=SECRET)
    assert (done.returncode, done.stderr) == (0, "")
    assert stored(folder) == {"groq": {"type": "keyring"}}
    assert json.loads(keyring.read_text()) == {"pi-agent-framework/groq": SECRET}
    assert pi("check", "--provider", "groq").stdout == f"groq: ready ({folder}/auth.json)\n"
    locked = pi("check", "--provider", "groq", KEYRING_LOCKED="1")
    assert locked.returncode == 1
    assert "the keyring of the system cannot be used: KeyringLocked: no unlocked collection" in locked.stdout
    assert pi("logout", "groq").returncode == 0
    assert json.loads(keyring.read_text()) == {}


def test_a_key_stays_known_while_its_keyring_is_locked(pi: Pi, folder: Path, keyring: Path) -> None:
    pi("login", "groq", "--keyring", stdin=SECRET)
    done = pi("logout", "groq", KEYRING_LOCKED="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert stored(folder) == {"groq": {"type": "keyring"}}
    assert pi("logout", "groq").returncode == 0
    assert (stored(folder), json.loads(keyring.read_text())) == ({}, {})


@pytest.mark.parametrize("when", ["import", "use"])
def test_any_failure_of_a_keyring_is_told_without_the_key(
    pi: Pi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    failing = "import no_such_backend" if when == "import" else ""
    source = f"{failing}\ndef set_password(service, user, key):\n    raise RuntimeError(f'no bus for {{key}}')\n"
    install(tmp_path, monkeypatch, source)
    done = pi("login", "groq", "--keyring", stdin=SECRET)
    assert done.returncode == 1
    reason = (
        "ModuleNotFoundError: No module named 'no_such_backend'" if when == "import" else "RuntimeError: no bus for ***"
    )
    assert done.stderr == f"pi: the keyring of the system cannot be used: {reason}\n"
    assert not (folder / "auth.json").exists()


def test_a_keyring_that_is_locked_stores_nothing(pi: Pi, folder: Path, keyring: Path) -> None:
    done = pi("login", "groq", "--keyring", stdin=SECRET, KEYRING_LOCKED="1")
    assert done.returncode == 1
    assert not (folder / "auth.json").exists()


def test_a_keyring_that_is_not_installed_says_how(
    pi: Pi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "raise ModuleNotFoundError(name='keyring')")
    done = pi("login", "groq", "--keyring", stdin=SECRET)
    assert done.returncode == 1
    assert done.stderr == "pi: the package keyring is not installed: pip install 'pi-agent-framework[keyring]'\n"
    assert not (folder / "auth.json").exists()
