from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from local_helpers import FAKE_SERVER
from pi_local.server import StartAbortedError, ensure, running, spec_of, stop
from pi_local.state import ServerFiles, ServerSpec, ServerState
from pi_local.store import Store

from pi_core import AbortController, ConfigError

Make = Callable[..., ServerSpec]
Starts = Callable[[], int]
ENSURE = """
import asyncio, json, sys
from pi_local.server import ensure
from pi_local.state import ServerSpec
spec = ServerSpec(**json.loads(sys.argv[1]))
print(asyncio.run(ensure(spec, command=sys.argv[2:])).token)
"""


def start(spec: ServerSpec) -> ServerState:
    return asyncio.run(ensure(spec, command=FAKE_SERVER))


def ensure_elsewhere(spec: ServerSpec) -> subprocess.Popen[str]:
    """A process of its own that asks for the server and prints the token."""
    data = json.dumps({name: getattr(spec, name) for name in ServerSpec.__dataclass_fields__})
    return subprocess.Popen([sys.executable, "-c", ENSURE, data, *FAKE_SERVER], stdout=subprocess.PIPE, text=True)


def wait_until_dead(pid: int) -> None:
    """Wait for a child of this process, collected or not."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another process does to files, which sends no event."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_it_is_started_once_and_used_again(make_spec: Make, starts: Starts) -> None:
    spec = make_spec()
    first = start(spec)
    before = ServerFiles.of(spec).touched()
    second = start(spec)
    assert second == first
    assert first.port
    assert first.base_url == f"http://127.0.0.1:{first.port}/v1"
    assert ServerFiles.of(spec).touched() > before
    assert running(ServerFiles.of(spec)) == first
    assert starts() == 1


def test_only_this_user_can_read_the_key(make_spec: Make) -> None:
    spec = make_spec()
    start(spec)
    directory = Path(spec.directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_calls_of_one_process_share_it(make_spec: Make, starts: Starts) -> None:
    async def many() -> list[ServerState]:
        return await asyncio.gather(*(ensure(make_spec(), command=FAKE_SERVER) for _ in range(5)))

    assert len(set(asyncio.run(many()))) == 1
    assert starts() == 1


def test_processes_that_start_at_the_same_time_share_it(make_spec: Make, starts: Starts) -> None:
    racing = [ensure_elsewhere(make_spec()) for _ in range(4)]
    assert len({process.communicate()[0] for process in racing}) == 1
    assert [process.returncode for process in racing] == [0, 0, 0, 0]
    assert starts() == 1


def test_a_dead_server_is_replaced(make_spec: Make, starts: Starts) -> None:
    spec = make_spec()
    first = start(spec)
    os.kill(first.pid, signal.SIGKILL)
    wait_until_dead(first.pid)
    assert ServerFiles.of(spec).read() == first
    assert running(ServerFiles.of(spec)) is None
    assert start(spec).token != first.token
    assert starts() == 2


def test_a_process_that_got_the_pid_of_a_dead_server_is_left_alone(make_spec: Make) -> None:
    spec = make_spec()
    innocent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    files = ServerFiles.of(spec)
    files.make_directory()
    files.write(ServerState(innocent.pid, 1, "old", 0.0))
    assert asyncio.run(stop(files)) is False
    files.write(ServerState(innocent.pid, 1, "old", 0.0))
    assert start(spec).token != "old"
    assert innocent.poll() is None
    innocent.communicate(b"\n")
    assert innocent.returncode == 0


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pid": 1}'])
def test_a_state_that_means_nothing_is_replaced(make_spec: Make, text: str) -> None:
    spec = make_spec()
    ServerFiles.of(spec).make_directory()
    (Path(spec.directory) / f"{spec.key}.json").write_text(text, encoding="utf-8")
    assert start(spec).port


def test_another_file_or_setting_gets_another_server(make_spec: Make, starts: Starts) -> None:
    first = start(make_spec())
    second = start(make_spec(context=256))
    third = start(make_spec(context=256, other="weights"))
    assert len({first.pid, second.pid, third.pid}) == 3
    assert starts() == 3
    spec = make_spec(context=256, other="weights")
    assert running(ServerFiles.of(spec)) == third
    found = {running(files) for files in ServerFiles.of_model(Path(spec.directory).parent, "fake")}
    assert found == {first, second, third}


def test_installations_with_the_same_template_share_it(store: Store, gguf: Path, tmp_path: Path) -> None:
    def key(template: str, text: str) -> str:
        path = tmp_path / template
        path.write_text(text, encoding="utf-8")
        return ServerSpec.make(
            name="one",
            model_path=str(gguf),
            template_path=str(path),
            context=1,
            max_tokens=1,
            idle_seconds=1,
            run_dir=tmp_path,
        ).key

    assert key("here.jinja", "{{ messages }}") == key("there.jinja", "{{ messages }}")
    assert key("here.jinja", "{{ tools }}") != key("there.jinja", "{{ messages }}")


def test_a_template_that_is_gone(store: Store, gguf: Path, tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("{{ messages }}", encoding="utf-8")
    model = store.add(gguf, name="one", template=template)
    path = store.template_path(model)
    assert path is not None
    path.unlink()
    with pytest.raises(ConfigError, match=r"local/one cannot be served: .*one\.jinja"):
        spec_of(model, store)


def test_a_start_that_fails_says_why(make_spec: Make) -> None:
    spec = make_spec(die="no memory for this\nreally none")
    with pytest.raises(
        ConfigError, match=r"(?s)local/fake .* ended with code 3, after saying:.*no memory.*really none"
    ):
        start(spec)
    assert running(ServerFiles.of(spec)) is None


def test_llama_cpp_s_words_are_passed_on(store: Store, gguf: Path) -> None:
    spec = spec_of(store.add(gguf, name="broken"), store)
    with pytest.raises(
        ConfigError, match=r"(?s)local/broken .* ended with code 1, after saying:.*failed to load model"
    ):
        asyncio.run(ensure(spec))


def test_a_command_that_does_not_exist(make_spec: Make) -> None:
    with pytest.raises(ConfigError, match=r"The server of local/fake cannot be started: .*No such file"):
        asyncio.run(ensure(make_spec(), command=["/does/not/exist"]))


def test_a_server_that_dies_before_it_reads_its_spec(make_spec: Make) -> None:
    with pytest.raises(ConfigError, match="ended with code 7 without a word"):
        asyncio.run(ensure(make_spec(), command=[sys.executable, "-c", "import sys; sys.stdin.close(); sys.exit(7)"]))


def test_aborting_ends_the_server_that_is_loading(make_spec: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    spec = make_spec(gate=str(gate))

    async def abort_while_loading() -> int:
        controller = AbortController()
        task = asyncio.ensure_future(ensure(spec, signal=controller.signal, command=FAKE_SERVER))
        await until(lambda: ServerFiles.of(spec).read())
        state = ServerFiles.of(spec).read()
        assert state is not None
        assert state.port == 0
        assert running(ServerFiles.of(spec)) == state
        controller.abort()
        with pytest.raises(StartAbortedError):
            await task
        return state.pid

    wait_until_dead(asyncio.run(abort_while_loading()))
    assert running(ServerFiles.of(spec)) is None


def test_aborting_while_another_one_starts_it(make_spec: Make, tmp_path: Path, starts: Starts) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    spec = make_spec(gate=str(gate))

    async def second_gives_up() -> ServerState:
        controller = AbortController()
        first = asyncio.ensure_future(ensure(spec, command=FAKE_SERVER))
        await until(lambda: ServerFiles.of(spec).read())
        second = asyncio.ensure_future(ensure(spec, signal=controller.signal, command=FAKE_SERVER))
        controller.abort()
        with pytest.raises(StartAbortedError):
            await second
        await asyncio.to_thread(gate.write_bytes, b"")
        return await first

    assert asyncio.run(second_gives_up()).port
    assert starts() == 1


def test_a_server_whose_starter_was_killed_is_taken_over(make_spec: Make, tmp_path: Path, starts: Starts) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    spec = make_spec(gate=str(gate))
    starter = ensure_elsewhere(spec)
    asyncio.run(until(lambda: ServerFiles.of(spec).read()))
    starter.kill()
    starter.communicate()

    async def take_over() -> ServerState:
        task = asyncio.ensure_future(ensure(spec, command=FAKE_SERVER))
        await asyncio.to_thread(gate.write_bytes, b"")
        return await task

    assert asyncio.run(take_over()).port
    assert starts() == 1


def test_stopping(make_spec: Make) -> None:
    spec = make_spec()
    assert asyncio.run(stop(ServerFiles.of(spec))) is False
    state = start(spec)
    assert asyncio.run(stop(ServerFiles.of(spec))) is True
    wait_until_dead(state.pid)
    assert ServerFiles.of(spec).read() is None
    assert asyncio.run(stop(ServerFiles.of(spec))) is False


def test_stopping_one_that_loads(make_spec: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    spec = make_spec(gate=str(gate))
    starter = ensure_elsewhere(spec)
    asyncio.run(until(lambda: ServerFiles.of(spec).read()))
    starter.kill()
    starter.communicate()
    assert asyncio.run(stop(ServerFiles.of(spec))) is True
    assert running(ServerFiles.of(spec)) is None


def test_it_ends_by_itself_when_nobody_uses_it(make_spec: Make) -> None:
    spec = make_spec(idle_seconds=0.2)
    state = start(spec)
    wait_until_dead(state.pid)
    assert ServerFiles.of(spec).read() is None


@pytest.mark.parametrize(("text", "expected"), [("", 600.0), ("30", 30.0), ("0.5", 0.5)])
def test_the_idle_time(store: Store, gguf: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: float) -> None:
    monkeypatch.setenv("PI_LOCAL_IDLE_SECONDS", text)
    assert spec_of(store.add(gguf), store).idle_seconds == expected


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_an_idle_time_that_is_none(store: Store, gguf: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PI_LOCAL_IDLE_SECONDS", text)
    model = store.add(gguf)
    with pytest.raises(ConfigError, match=f"PI_LOCAL_IDLE_SECONDS is a number of seconds above 0, got '{text}'"):
        spec_of(model, store)


def test_the_child_waits_passively_unless_told_otherwise(make_spec: Make, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    code = "import os, sys; sys.exit(os.environ['OMP_WAIT_POLICY'] + os.environ['GOMP_SPINCOUNT'])"
    with pytest.raises(ConfigError, match="passive7"):
        asyncio.run(ensure(make_spec(), command=[sys.executable, "-c", code]))
