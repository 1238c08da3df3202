from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ..running import Pi
from .terminal import Terminal, messages, said

Play = Callable[..., Terminal]

ASKING = {"plugins": {"permissions": {"mode": "ask"}}}


@pytest.fixture
def talk(play: Play) -> Play:
    """Starts ``pi`` in a terminal that can only print lines."""
    return partial(play, environ={"TERM": "dumb"})


def test_a_dumb_terminal_gets_lines_and_nothing_else(talk: Play) -> None:
    with talk([[{"text": "# Title\n\n- one\n- two\n"}]]) as terminal:
        terminal.type("go\n")
        terminal.wait("two")
        terminal.type("\x04")
        assert terminal.ends() == 0
    assert b"\x1b" not in terminal.raw


def test_a_line_that_is_typed_while_a_tool_runs_steers(talk: Play) -> None:
    command = "while [ ! -e go ]; do sleep 0.02; done"
    with talk([[{"call": "bash", "arguments": {"command": command}}], [{"text": "As you wish."}]]) as terminal:
        terminal.type("first\n")
        terminal.wait("• bash")
        terminal.type("second\n")
        terminal.wait("second")
        terminal.open("go")
        terminal.wait("As you wish.")
        roles = [message["role"] for message in messages(terminal.folder)]
    assert roles == ["user", "assistant", "toolResult", "user", "assistant"]


def test_permissions_are_asked_for_by_number(talk: Play) -> None:
    script = [[{"call": "bash", "arguments": {"command": "echo no"}}], [{"text": "All right."}]]
    with talk(script, settings=ASKING) as terminal:
        terminal.type("go\n")
        terminal.wait("Number")
        terminal.type("5\n")
        terminal.wait("Why not?")
        terminal.type("not now\n")
        terminal.wait("All right.")
        result = next(message for message in messages(terminal.folder) if message["role"] == "toolResult")
    assert "not now" in said(result)


def test_control_c_aborts_and_then_leaves(talk: Play) -> None:
    with talk([[{"text": ["Begun.\n\nAnd more\n", {"gate": "never"}]}]]) as terminal:
        terminal.type("go\n")
        terminal.wait("Begun.")
        terminal.key("ctrl-c")
        terminal.wait("Aborted")
        terminal.wait("\n>")
        terminal.key("ctrl-c")
        assert terminal.ends() == 0


def test_a_plugin_can_end_it_when_nothing_goes_on_any_more(pi: Pi, talk: Play) -> None:
    plugin = pi.folder / "leaves.py"
    plugin.write_text(
        "from pi_core import hookimpl\n\n\n@hookimpl\nasync def agent_settled(session):\n    session.shutdown()\n",
        encoding="utf-8",
    )
    with talk([[{"text": "Done."}]], "-e", str(plugin)) as terminal:
        terminal.type("go\n")
        assert terminal.ends() == 0
    assert [message["role"] for message in messages(pi.folder)] == ["user", "assistant"]


def test_what_was_typed_is_on_the_screen_once(talk: Play) -> None:
    with talk([[{"text": "An answer."}]]) as terminal:
        terminal.type("a question\n")
        terminal.wait("An answer.")
        shown = terminal.wait("\n>")
    assert shown.count("a question") == 1


def test_lines_are_as_wide_as_the_terminal(talk: Play) -> None:
    with talk([[{"text": "word " * 30}]], columns=40) as terminal:
        terminal.type("go\n")
        shown = terminal.wait("word word")
        terminal.wait(lambda shown: shown.count("word") == 30)
    assert "\n  word word word word word word word\n" in shown + "\n"
