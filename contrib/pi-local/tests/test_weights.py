"""With the real weights, where ``pi local pull`` put them; the template was not made with these questions."""

from __future__ import annotations

import asyncio
import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pi_local.catalog import DEFAULT_NAME
from pi_local.plugin import LocalPlugin
from pi_local.server import ensure, running, spec_of, stop
from pi_local.state import ServerFiles, ServerState
from pi_local.store import Store, open_store

from pi_core import Agent, SelectionContext, tool
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin

_STORED = open_store().get(DEFAULT_NAME)
pytestmark = [
    pytest.mark.weights,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        _STORED is None or not _STORED.path.is_file(), reason=f"needs weights: pi local pull {DEFAULT_NAME}"
    ),
]
FILES = {
    "setup.cfg": "[metadata]\nname = kestrel\nversion = 5.1\n",
    "notes/garden.txt": "Plant the tulips in October.\nThe rake is behind the shed.\n",
    "app/server.yaml": "host: localhost\nport: 9123\nthreads: 12\n",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of its own that refers to the cached weights, so that no server of the user is touched."""
    assert _STORED is not None
    found = Store(tmp_path_factory.mktemp("cache"))
    found.add(_STORED.path, name="kept", template="chatml-fence")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PI_LOCAL_DIR", str(found.root))
        yield found
        for files in ServerFiles.of_model(found.run_dir, "kept"):
            asyncio.run(stop(files))


@pytest.fixture
def state(store: Store) -> ServerState:
    """The running server."""
    model = store.get("kept")
    assert model is not None
    return asyncio.run(ensure(spec_of(model, store)))


def test_the_key_is_asked_for(state: ServerState) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", state.port, timeout=60)
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {state.token}"}, 200)):
        connection.request("GET", "/slots", headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.close()


QUESTIONS = [
    ("Which version does setup.cfg give?", "setup.cfg", "5.1"),
    ("Where is the rake, according to notes/garden.txt?", "notes/garden.txt", "shed"),
    ("On which port does app/server.yaml let the server listen?", "app/server.yaml", "9123"),
    ("How many threads does app/server.yaml set?", "app/server.yaml", "12"),
]


def ask(directory: Path, question: str) -> tuple[list[str], str]:
    """The paths that were read, and the answer."""
    asked: list[str] = []

    @tool
    async def read(path: str) -> str:
        """Read a text file and return what is in it."""
        asked.append(path)
        return (directory / path).read_text(encoding="utf-8")

    model = asyncio.run(LocalPlugin().resolve_model("local/kept", SelectionContext()))
    assert model is not None
    agent = Agent(
        model=model,
        tools=[read],
        system_prompt="You are a coding assistant. Answer briefly.",
        plugins=[LocalPlugin(), OpenAICompletionsPlugin()],
    )
    return asked, agent.run_sync(question)[-1].text


@pytest.mark.usefixtures("store")
def test_it_reads_files_and_answers(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    right = 0
    for question, path, answer in QUESTIONS:
        asked, said = ask(tmp_path, question)
        right += asked == [path] and answer in said
    assert right >= len(QUESTIONS) - 1, "a small model may be wrong once"


def test_it_ends_cleanly(store: Store, state: ServerState) -> None:
    (files,) = ServerFiles.of_model(store.run_dir, "kept")
    assert running(files) == state
    assert asyncio.run(stop(files)) is True
    assert os.waitstatus_to_exitcode(os.waitpid(state.pid, 0)[1]) == 0
    assert running(files) is None
