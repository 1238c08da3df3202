from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import Timeout
from pi_local._idle import IdleWatch
from pi_local.state import ServerFiles, ServerState


class Slots(BaseHTTPRequestHandler):
    """Answers what the test wants, and counts."""

    body: str | Callable[[], str] = "[]"
    wants: list[str]
    looked: threading.Semaphore

    def do_GET(self) -> None:
        Slots.wants.append(f"{self.path} {self.headers['Authorization']}")
        self.send_response(200)
        self.end_headers()
        self.wfile.write((Slots.body if isinstance(Slots.body, str) else Slots.body()).encode())
        Slots.looked.release()

    def log_message(self, *_: object) -> None:
        return


class Watched:
    """A watch of the server above, in a thread."""

    def __init__(self, directory: Path) -> None:
        Slots.wants, Slots.looked = [], threading.Semaphore(0)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Slots)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.files = ServerFiles(directory, "m")
        self.files.make_directory()
        state = ServerState(1, self.server.server_port, "key", 0.0)
        self.files.write(state)
        self.stopped = threading.Event()
        watch = IdleWatch(self.files, state, 0.05)
        self.thread = threading.Thread(target=watch.run, args=(self.stopped,))

    def look(self, times: int = 20) -> None:
        """Wait until it has looked so many times, which is longer than the idle time."""
        for _ in range(times):
            assert Slots.looked.acquire(timeout=20)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path / "run")
    yield found
    found.stopped.set()
    found.thread.join()
    found.server.shutdown()
    found.server.server_close()


def slots(*, busy: bool = False, task: int = 0) -> str:
    return json.dumps([{"id": 0, "is_processing": busy, "id_task": task}])


def test_an_idle_server_is_withdrawn(watched: Watched) -> None:
    Slots.body = slots()
    watched.thread.start()
    watched.thread.join()
    assert watched.files.read() is None
    assert set(Slots.wants) == {"/slots Bearer key"}


@pytest.mark.parametrize("body", [slots(busy=True), "not JSON"])
def test_a_busy_server_stays_and_goes_when_it_is_done(watched: Watched, body: str) -> None:
    Slots.body = body
    watched.thread.start()
    watched.look()
    assert watched.files.read() is not None
    Slots.body = slots(task=1)
    watched.thread.join()
    assert watched.files.read() is None


def test_requests_between_two_looks_count(watched: Watched) -> None:
    Slots.body = slots()
    watched.thread.start()
    for task in range(20):
        Slots.body = slots(task=task)
        watched.look(2)
    assert watched.files.read() is not None


def test_somebody_who_takes_it_up_keeps_it(watched: Watched) -> None:
    Slots.body = slots()
    watched.thread.start()
    for _ in range(20):
        watched.files.touch()
        watched.look(2)
    assert watched.files.read() is not None


def test_nothing_is_withdrawn_under_the_start_lock(watched: Watched) -> None:
    Slots.body = slots()
    with watched.files.start_lock():
        watched.thread.start()
        watched.look()
        assert watched.files.read() is not None
    watched.thread.join()
    assert watched.files.read() is None


def test_a_request_that_comes_while_it_is_being_withdrawn_keeps_it(watched: Watched) -> None:
    task, caught = 0, threading.Semaphore(0)

    def busy_at_the_last_moment() -> str:
        nonlocal task
        lock = watched.files.start_lock()
        try:
            lock.acquire(timeout=0)
            lock.release()
        except Timeout:
            task += 1
            caught.release()
        return slots(task=task)

    Slots.body = busy_at_the_last_moment
    watched.thread.start()
    for _ in range(3):
        assert caught.acquire(timeout=20)
    assert watched.files.read() is not None


def test_it_returns_when_told_and_leaves_the_state(watched: Watched) -> None:
    Slots.body = slots(busy=True)
    watched.thread.start()
    watched.look(1)
    watched.stopped.set()
    watched.thread.join()
    assert watched.files.read() is not None
