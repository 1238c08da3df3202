"""The pictures of the documentation; ``PI_WRITE_PICTURES=1`` writes them anew."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ..running import Pi
from .at_work import MODELS
from .picture import picture, text_of
from .terminal import PROMPT, Terminal

Play = Callable[..., Terminal]

DOCS = Path(__file__).parents[4] / "docs"
PICTURES = DOCS / "pictures"
MODEL = {"PI_STAGE_MODEL": "acme/large"}
PROGRAM = 'def greeting(name):\n    return "Hello " + name\n'


def same(terminal: Terminal, name: str, title: str) -> None:
    """Compare the text of the screen, once it has come to rest, with that of a picture."""
    path = PICTURES / f"{name}.svg"
    if os.environ.get("PI_WRITE_PICTURES"):
        for _ in range(10):
            terminal.read(0.1)
        raw = re.sub(rb"\b\d\d:\d\d\b", b"09:41", terminal.raw)
        PICTURES.mkdir(exist_ok=True)
        path.write_text(picture(raw, terminal.screen.columns, terminal.screen.lines, title), encoding="utf-8")
    wanted = comparable(text_of(path.read_text(encoding="utf-8")))
    try:
        terminal.wait(lambda shown: comparable(shown) == wanted)
    except AssertionError:
        assert comparable(terminal.text) == wanted, f"{path.name} is another screen: PI_WRITE_PICTURES=1 draws it"


def comparable(text: str) -> str:
    """The letters of a screen, without what differs from run to run."""
    return re.sub(r"\b\d\d:\d\d\b|\s", "", Terminal.comparable(text))


@pytest.fixture
def project(pi: Pi) -> Path:
    """A folder with a program."""
    (pi.folder / "hello.py").write_text(PROGRAM, encoding="utf-8")
    return pi.folder


def test_a_conversation(play: Play, project: Path) -> None:
    edit = {"oldText": '"Hello " + name', "newText": "f\"Hello, {name or 'you'}!\""}
    check = "python3 -c \"from hello import greeting; print(greeting(''))\""
    answer = 'An empty name is greeted as **you** now:\n\n```python\nprint(greeting(""))  # Hello, you!\n```\n'
    script = [
        [{"thinking": "The function is short."}, {"call": "read", "arguments": {"path": "hello.py"}}],
        [{"call": "edit", "arguments": {"path": "hello.py", "edits": [edit]}}],
        [{"call": "bash", "arguments": {"command": check}}],
        [{"text": answer}],
    ]
    with play(script, environ=MODEL, rows=36, ready="acme/large") as terminal:
        terminal.enter("Greet people without a name, too")
        terminal.wait("# Hello, you!")
        terminal.wait("↓320")
        same(terminal, "conversation", "A conversation with an edit and a command")


def test_a_permission_question(play: Play, project: Path) -> None:
    script = [[{"text": "I push it."}, {"call": "bash", "arguments": {"command": "git push origin main"}}]]
    settings = {"plugins": {"permissions": {"mode": "ask"}}}
    with play(script, environ=MODEL, settings=settings, ready="acme/large") as terminal:
        terminal.enter("Publish this")
        terminal.wait("Esc leave")
        same(terminal, "permission", "The question whether git push may run")


def test_the_choice_of_a_model(play: Play, project: Path) -> None:
    agent = project / ".pi" / "agent"
    agent.mkdir(parents=True)
    (agent / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    with play([], environ=MODEL, ready="acme/large") as terminal:
        terminal.enter("/model")
        terminal.wait("? Model")
        same(terminal, "models", "The choice of a model")


def test_the_tree(play: Play, project: Path) -> None:
    script = [[{"text": text}] for text in ("With a queue.", "It needs a lock.", "Then with two threads.")]
    with play(script, environ=MODEL, ready="acme/large") as terminal:
        for said, answer in (("How would you do it?", "With a queue."), ("Is it safe?", "It needs a lock.")):
            terminal.enter(said)
            terminal.wait(answer)
        terminal.enter("/tree")
        terminal.wait("Tree: default")
        terminal.key("up", "enter")
        terminal.wait("What is said next makes a branch here")
        terminal.wait(lambda shown: shown.split("\n")[-2] == f"{PROMPT} Is it safe?")
        terminal.key("ctrl-c")
        terminal.wait(lambda shown: shown.split("\n")[-2] == PROMPT)
        terminal.enter("And without one?")
        terminal.wait("Then with two threads.")
        terminal.enter("/tree")
        terminal.wait("Tree: default")
        assert re.search(r"\n {6,}> Is it safe\?", terminal.text), "a branch is further in"
        same(terminal, "tree", "The tree of a session with two branches")


def test_every_picture_is_shown() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    assert {path.name for path in PICTURES.iterdir()} == set(re.findall(r"\.\./pictures/([\w-]+\.svg)", pages))
