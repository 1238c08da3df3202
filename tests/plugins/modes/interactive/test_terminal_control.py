from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from ..running import Pi
from .terminal import PROMPT, Terminal, messages, said

Play = Callable[..., Terminal]

HANGING = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done"
ASKING = {"plugins": {"permissions": {"mode": "ask"}}}


def test_enter_steers_a_run_after_its_tool(play: Play) -> None:
    script = [[{"call": "bash", "arguments": {"command": HANGING}}], [{"text": "As you wish."}]]
    with play(script) as terminal:
        terminal.enter("go")
        terminal.wait("  begun")
        terminal.enter("use the other one")
        terminal.wait("next: use the other one")
        terminal.expect("steering-80x24")
        terminal.open("go")
        terminal.wait("As you wish.")
        roles = [message["role"] for message in messages(terminal.folder)]
    assert roles == ["user", "assistant", "toolResult", "user", "assistant"]


def test_of_two_follow_ups_one_is_taken_back_and_dropped(play: Play) -> None:
    with play([[{"text": ["One.", {"gate": "go"}]}], [{"text": "Two."}]]) as terminal:
        terminal.enter("first")
        terminal.wait("One.")
        for text in ("second", "third"):
            terminal.type(text)
            terminal.wait(f"{PROMPT} {text}")
            terminal.key("alt-enter")
            terminal.wait(f"later: {text}")
        terminal.key("up")
        terminal.wait(f"{PROMPT} third")
        terminal.wait_gone("later: third")
        terminal.key("ctrl-c")
        terminal.wait_gone("third")
        terminal.open("go")
        terminal.wait("Two.")
        terminal.wait_gone("Working")
        texts = [said(message) for message in messages(terminal.folder)]
    assert texts == ["first", "One.", "second", "Two."]


def test_a_queued_message_is_dropped_by_command(play: Play) -> None:
    with play([[{"text": ["One.", {"gate": "go"}]}]]) as terminal:
        terminal.enter("first")
        terminal.wait("One.")
        terminal.enter("second")
        terminal.wait("next: second")
        terminal.enter("/queue")
        terminal.wait("Messages that wait")
        terminal.key("ctrl-x")
        terminal.wait("Dropped")
        terminal.open("go")
        terminal.wait_gone("Working")
        texts = [said(message) for message in messages(terminal.folder)]
    assert texts == ["first", "One."]


def test_escape_aborts_an_answer_and_gives_the_queue_back(play: Play) -> None:
    with play([[{"text": ["Half an ans", {"gate": "never"}]}], [{"text": "Sent."}]]) as terminal:
        terminal.enter("first")
        terminal.wait("Half an ans")
        terminal.enter("second")
        terminal.wait("next: second")
        terminal.key("escape")
        terminal.wait("Aborted")
        terminal.wait(f"{PROMPT} second")
        terminal.key("enter")
        terminal.wait("Sent.")


def test_escape_aborts_a_tool(play: Play) -> None:
    with play([[{"call": "bash", "arguments": {"command": HANGING}}]]) as terminal:
        terminal.enter("first")
        terminal.wait("  begun")
        terminal.key("escape")
        terminal.wait("Command aborted")
        terminal.wait_gone("Working")
        roles = [message["role"] for message in messages(terminal.folder)]
    assert roles[:3] == ["user", "assistant", "toolResult"]


def test_a_call_is_denied_with_a_reason_that_the_model_reads(play: Play) -> None:
    script = [[{"call": "bash", "arguments": {"command": "echo not run"}}], [{"text": "All right."}]]
    with play(script, settings=ASKING) as terminal:
        terminal.enter("go")
        terminal.wait("Deny and say why")
        terminal.expect("permission-80x24")
        terminal.type("5")
        terminal.wait("Why not?")
        terminal.enter("use make")
        terminal.wait("All right.")
        result = next(message for message in messages(terminal.folder) if message["role"] == "toolResult")
    assert result["isError"]
    assert "use make" in said(result)


def test_waiting_calls_are_asked_about_one_by_one(play: Play) -> None:
    calls = [{"call": "bash", "arguments": {"command": f"echo ran {name}"}, "id": name} for name in ("a", "b")]
    with play([calls, [{"text": "Over."}]], settings=ASKING) as terminal:
        terminal.enter("go")
        terminal.wait("? Allow bash: echo ran a")
        terminal.type("1")
        terminal.wait("? Allow bash: echo ran b")
        terminal.key("down", "down", "down", "enter")
        terminal.wait("Over.")
        results = [said(message) for message in messages(terminal.folder) if message["role"] == "toolResult"]
    assert results[0] == "ran a\n"
    assert "denied" in results[1]


def test_leaving_a_question_denies_the_call(play: Play) -> None:
    with play([[{"call": "bash", "arguments": {"command": "echo x"}}]], settings=ASKING) as terminal:
        terminal.enter("go")
        terminal.wait("Allow once")
        terminal.key("escape")
        terminal.wait_gone("Allow once")
        terminal.wait("script is over")
        result = next(message for message in messages(terminal.folder) if message["role"] == "toolResult")
    assert "denied" in said(result)


def test_control_c_clears_and_leaves_when_pressed_twice(play: Play) -> None:
    with play([]) as terminal:
        terminal.type("some text")
        terminal.wait(f"{PROMPT} some text")
        terminal.key("ctrl-c")
        terminal.wait_gone("some text")
        terminal.key("ctrl-c")
        terminal.wait("Ctrl-C again leaves")
        terminal.key("ctrl-c")
        assert terminal.ends() == 0


@pytest.mark.parametrize("end", ["ctrl-d", "SIGTERM", "SIGTERM twice"])
def test_the_terminal_is_as_it_was_at_the_end(play: Play, end: str) -> None:
    with play([[{"text": ["Half", {"gate": "never"}]}]]) as terminal:
        before = terminal.modes_at_start
        assert terminal.modes() != before
        terminal.enter("go")
        terminal.wait("Half")
        if end == "ctrl-d":
            terminal.key("ctrl-d")
        else:
            terminal.kill(signal.SIGTERM)
            if end.endswith("twice"):
                terminal.kill(signal.SIGTERM)
        code = terminal.ends()
        assert terminal.modes() == before
    assert code == (0 if end == "ctrl-d" else 143)
    assert terminal.raw.rfind(b"\x1b[?25h") > terminal.raw.rfind(b"\x1b[?25l"), "the cursor is hidden"
    assert terminal.raw.rfind(b"\x1b[?2004l") > terminal.raw.rfind(b"\x1b[?2004h"), "pastes are still marked"


def test_a_killed_session_is_gone_on_with_where_it_was(play: Play) -> None:
    script = [[{"text": "First answer."}], [{"text": ["Second ans", {"gate": "never"}]}]]
    with play(script) as terminal:
        terminal.enter("one")
        terminal.wait("First answer.")
        terminal.wait_gone("Working")
        terminal.enter("two")
        terminal.wait("Second ans")
        terminal.kill(signal.SIGKILL)
        assert terminal.ends() == -signal.SIGKILL
    with play([[{"text": "Here I am."}]], "-c") as terminal:
        terminal.wait(f"{PROMPT} two")
        terminal.expect("resumed-80x24")
        terminal.enter("go on")
        terminal.wait("Here I am.")


def test_a_long_paste_has_a_name_and_is_sent_whole(play: Play) -> None:
    with play([[{"text": "Got it."}]]) as terminal:
        terminal.paste("".join(f"pasted line {number}\n" for number in range(200)))
        terminal.wait("[paste 1: 201 lines]")
        terminal.enter(" is what I mean")
        terminal.wait("Got it.")
        text = said(messages(terminal.folder)[0])
    assert text.startswith("pasted line 0\n")
    assert text.endswith("pasted line 199\n is what I mean")


def test_several_lines_are_typed_and_sent(play: Play) -> None:
    with play([[{"text": "Got it."}]]) as terminal:
        terminal.type("one\ntwo\\\rthree")
        terminal.wait("three")
        terminal.key("enter")
        terminal.wait("Got it.")
        assert said(messages(terminal.folder)[0]) == "one\ntwo\nthree"


def test_former_inputs_are_there_in_the_next_session(play: Play) -> None:
    with play([[{"text": "Got it."}]]) as terminal:
        terminal.enter("remember me")
        terminal.wait("Got it.")
        terminal.key("ctrl-d")
        terminal.ends()
    with play([]) as terminal:
        terminal.key("up")
        terminal.wait(f"{PROMPT} remember me")


def test_commands_are_completed(play: Play) -> None:
    with play([]) as terminal:
        terminal.type("/thi")
        terminal.wait("How much the model thinks")
        terminal.key("tab")
        terminal.wait(f"{PROMPT} /thinking")
        terminal.key("enter")
        terminal.wait("Thinking")
        terminal.key("escape")


def test_a_command_of_the_shell_is_run_and_kept(play: Play) -> None:
    with play([[{"text": "I see."}]]) as terminal:
        terminal.enter("!echo from the shell")
        terminal.wait("\n  from the shell")
        terminal.enter("what was that?")
        terminal.wait("I see.")
        first = messages(terminal.folder)[0]
    assert (first["role"], first["output"]) == ("bashExecution", "from the shell\n")


def test_the_text_is_edited_in_another_program(play: Play, pi: Pi) -> None:
    editor = pi.folder / "editor"
    editor.write_text('#!/bin/sh\nprintf "written elsewhere" > "$1"\n')
    editor.chmod(0o755)
    with play([[{"text": "Got it."}]], environ={"EDITOR": str(editor), "VISUAL": ""}) as terminal:
        terminal.key("ctrl-g")
        terminal.wait(f"{PROMPT} written elsewhere")


def test_an_unknown_command_is_not_sent(play: Play) -> None:
    with play([]) as terminal:
        terminal.enter("/modle")
        terminal.wait("did you mean /model?")
        terminal.wait(f"{PROMPT} /modle")


def test_prompts_of_the_command_line_are_sent_first(play: Play) -> None:
    with play([[{"text": "One."}], [{"text": "Two."}]], "first", "second") as terminal:
        terminal.wait("Two.")
        texts = [said(message) for message in messages(terminal.folder)]
    assert texts == ["first", "One.", "second", "Two."]


def test_a_second_terminal_on_a_session_is_offered_a_copy(play: Play) -> None:
    with play([[{"text": "One."}]], "--session-id", "shared") as first:
        first.enter("hello")
        first.wait("One.")
        first.wait_gone("Working")
        with play([], "--session-id", "shared", ready="The session is in use") as second:
            second.type("y")
            second.wait(f"{PROMPT} hello")


def test_enter_takes_the_command_whose_beginning_is_typed(play: Play) -> None:
    with play([]) as terminal:
        terminal.type("/hel")
        terminal.wait("  /help")
        terminal.key("enter")
        terminal.wait("  /trust ")


def test_a_queued_template_is_taken_back_as_it_was_typed(play: Play, pi: Pi) -> None:
    folder = pi.folder / ".pi" / "agent" / "prompts"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello to $1, and be kind", encoding="utf-8")
    with play([[{"text": ["One.", {"gate": "go"}]}]]) as terminal:
        terminal.enter("first")
        terminal.wait("One.")
        terminal.enter("/greet Ada")
        terminal.wait("next: /greet Ada")
        terminal.key("escape")
        terminal.wait("Aborted")
        shown = terminal.wait(f"{PROMPT} /greet Ada")
    assert "be kind" not in shown


def test_a_hangup_in_the_middle_of_an_answer_keeps_what_had_arrived(play: Play) -> None:
    with play([[{"text": ["Half an answer", {"gate": "never"}]}]]) as terminal:
        terminal.enter("go")
        terminal.wait("Half an answer")
        terminal.kill(signal.SIGHUP)
        assert terminal.ends() == 128 + signal.SIGHUP
        kept = messages(terminal.folder)
    assert [(said(message), message.get("stopReason")) for message in kept] == [
        ("go", None),
        ("Half an answer", "aborted"),
    ]
