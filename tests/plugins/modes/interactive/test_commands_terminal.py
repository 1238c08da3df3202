"""Commands, pickers, completion and the first start in a real terminal, with the keyboard alone."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ..model_server import Reply, model_server
from ..running import Pi
from .at_work import MODELS
from .terminal import STAGE, Terminal

KEY = "gsk_0123456789abcdefghij"
PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
CHOSEN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"


def on_stage(pi: Pi, *answers: str, arguments: Sequence[str] = (), columns: int = 40, **options: Any) -> Terminal:
    """Start a session whose model gives some answers."""
    stage = pi.folder / "stage.json"
    stage.write_text(json.dumps([[{"text": answer}] for answer in answers]), encoding="utf-8")
    environ = {"PI_STAGE": str(stage)}
    return Terminal(
        pi, "-e", str(STAGE), "--model", "stage/stage", *arguments, columns=columns, environ=environ, **options
    )


def ready(terminal: Terminal) -> None:
    """Wait until inputs are taken."""
    terminal.wait("commands ·")
    terminal.wait(PROMPT)


def say(terminal: Terminal, text: str, answer: str) -> None:
    terminal.enter(text)
    terminal.wait(answer)


def test_a_model_is_found_by_a_part_of_its_name(pi: Pi) -> None:
    agent = pi.folder / ".pi" / "agent"
    agent.mkdir(parents=True)
    (agent / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    with on_stage(pi) as terminal:
        ready(terminal)
        terminal.enter("/model")
        terminal.wait("? Model")
        terminal.type("dee2")
        terminal.wait(f"{CHOSEN} work/deep-2")
        terminal.key("c-s")
        terminal.wait("Model: work/deep-2")
        terminal.wait("It is the default now")
        terminal.enter("/model quick")
        terminal.wait("Model: work/quick-1")


def test_the_name_of_a_command_is_completed(pi: Pi) -> None:
    with on_stage(pi) as terminal:
        ready(terminal)
        terminal.type("/sessi")
        terminal.wait("/session")
        terminal.key("tab")
        terminal.wait(f"{PROMPT} /session")
        terminal.key("enter")
        terminal.wait("none; /name gives it one")


def test_a_file_of_the_project_is_completed(pi: Pi) -> None:
    (pi.folder / "src").mkdir()
    (pi.folder / "src" / "main_window.py").write_text("", encoding="utf-8")
    with on_stage(pi, "Fine.") as terminal:
        ready(terminal)
        terminal.type("look at @mwin")
        terminal.wait("src/main_window.py")
        terminal.key("tab")
        terminal.wait("look at @src/main_window.py")


def test_going_back_in_the_tree_brings_the_message_into_the_editor(pi: Pi) -> None:
    with on_stage(pi, "One.", "Two.", "Three.") as terminal:
        ready(terminal)
        say(terminal, "first", "One.")
        say(terminal, "second", "Two.")
        terminal.enter("/tree")
        terminal.wait(f"{CHOSEN} ● Two.")
        terminal.key("up")
        terminal.wait(f"{CHOSEN} │ > second")
        terminal.key("enter")
        terminal.wait("makes a branch here")
        terminal.wait(f"{PROMPT} second")
        terminal.type(" thoughts\r")
        terminal.wait("Three.")


def test_a_label_is_given_in_the_tree(pi: Pi) -> None:
    with on_stage(pi, "One.") as terminal:
        ready(terminal)
        say(terminal, "first", "One.")
        terminal.enter("/tree")
        terminal.wait(f"{CHOSEN} ● One.")
        terminal.key("c-l")
        terminal.wait("Label")
        terminal.type("start\r")
        terminal.wait("[start] One.")


def test_a_session_that_another_terminal_has_open_is_gone_on_with_as_a_copy(pi: Pi) -> None:
    with on_stage(pi, "One.") as first:
        ready(first)
        say(first, "the same", "One.")
        with on_stage(pi, "Two.", arguments=["--continue"], columns=80) as second:
            second.wait("The session is in use")
            second.key("enter")
            second.wait("the same")
            ready(second)
            say(second, "more", "Two.")
            second.enter("/quit")
            assert second.ends() == 0
        first.enter("/quit")
        assert first.ends() == 0
    assert len(list((pi.folder / ".pi" / "agent" / "sessions").glob("*/*.jsonl"))) == 2


def test_a_session_is_resumed_from_the_list(pi: Pi) -> None:
    with on_stage(pi, "One.") as terminal:
        ready(terminal)
        say(terminal, "about cats", "One.")
        terminal.enter("/new")
        terminal.wait("A new session")
        terminal.enter("/resume")
        terminal.wait(f"{CHOSEN} about cats")
        terminal.key("enter")
        terminal.wait(lambda shown: shown.count("about cats") >= 2)


def test_the_session_is_chosen_at_the_start(pi: Pi) -> None:
    with on_stage(pi, "One.") as terminal:
        ready(terminal)
        say(terminal, "about cats", "One.")
        terminal.enter("/quit")
        assert terminal.ends() == 0
    with on_stage(pi, arguments=["--resume"]) as terminal:
        terminal.wait(f"{CHOSEN} about cats")
        terminal.key("enter")
        ready(terminal)
        terminal.wait("One.")


def test_what_was_typed_is_there_in_the_next_session(pi: Pi) -> None:
    with on_stage(pi, "One.") as terminal:
        ready(terminal)
        say(terminal, "remember me", "One.")
        terminal.enter("/quit")
        assert terminal.ends() == 0
    with on_stage(pi) as terminal:
        ready(terminal)
        terminal.key("up")
        terminal.wait(f"{PROMPT} /quit")
        terminal.key("up")
        terminal.wait(f"{PROMPT} remember me")


def test_a_command_that_does_not_exist_stays_in_the_editor(pi: Pi) -> None:
    with on_stage(pi, columns=80) as terminal:
        ready(terminal)
        terminal.enter("/modle x")
        terminal.wait("did you mean /model?")
        terminal.wait(f"{PROMPT} /modle x")


def test_escape_ends_a_command_of_the_shell(pi: Pi) -> None:
    with on_stage(pi) as terminal:
        ready(terminal)
        terminal.enter("!echo begun; sleep 600")
        terminal.wait(lambda shown: "\n  begun" in shown)
        terminal.key("escape")
        terminal.wait("cancelled")


def mapped_address(base_url: str) -> str:
    """An address of a server on loopback that does not look like one: those need no key."""
    port = int(base_url.split(":")[2].split("/")[0])
    try:
        socket.create_connection(("::ffff:127.0.0.1", port), timeout=5).close()
    except OSError:
        pytest.skip("this machine has no IPv6 addresses for IPv4")
    return base_url.replace("127.0.0.1", "[::ffff:127.0.0.1]")


def test_the_first_start_ends_in_a_working_prompt(pi: Pi) -> None:
    refused = Reply(status=401, error={"error": {"message": "Incorrect API key"}})
    agent = pi.folder / ".pi" / "agent"
    agent.mkdir(parents=True)
    with model_server([refused, Reply("ok"), Reply("Hello from groq.")]) as server:
        groq = {"baseUrl": mapped_address(server.base_url), "api": "openai-completions"}
        (agent / "models.json").write_text(json.dumps({"providers": {"groq": groq}}), encoding="utf-8")
        with Terminal(pi, columns=40) as terminal:
            terminal.wait("How do you want to begin?")
            terminal.key("enter")
            terminal.wait("Paste an API key\n")
            terminal.type("gsk_a_wrong_one_0123456789\r")
            terminal.wait("groq does not accept the key")
            terminal.type("n")
            terminal.wait("How do you want to begin?")
            terminal.key("enter")
            terminal.wait("Paste an API key\n")
            terminal.type(f"{KEY}\r")
            terminal.wait("It works.", everywhere=True)
            ready(terminal)
            say(terminal, "hi", "Hello from groq.")
            terminal.key("c-d")
            assert terminal.ends() == 0
            assert KEY.encode() not in terminal.raw
    assert json.loads((agent / "auth.json").read_text()) == {"groq": {"type": "api_key", "key": KEY}}


def test_the_first_start_can_be_left(pi: Pi) -> None:
    with Terminal(pi, columns=40) as terminal:
        terminal.wait("How do you want to begin?")
        terminal.key("escape")
        assert terminal.ends() == 0


def test_trust_is_asked_for_before_anything_of_the_project_counts(pi: Pi, tmp_path: Path) -> None:
    home, work = pi.folder, tmp_path / "project"
    (work / ".pi").mkdir(parents=True)
    (work / ".pi" / "settings.json").write_text('{"quietStartup": true}', encoding="utf-8")
    pi.folder = work
    with on_stage(pi) as terminal:
        terminal.wait("Do you trust")
        terminal.wait(f"{CHOSEN} 4. Not this time")
        terminal.type("1")
        terminal.wait(PROMPT)
        terminal.wait_gone("Do you trust")
        assert "commands ·" not in terminal.text
    assert json.loads((home / ".pi" / "agent" / "trust.json").read_text()) == {str(work): True}
