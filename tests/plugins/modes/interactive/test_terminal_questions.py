from __future__ import annotations

from collections.abc import Callable

from .terminal import PROMPT, Terminal, messages, said

Play = Callable[..., Terminal]

ASKING = {"plugins": {"permissions": {"mode": "ask"}}}
LONG = "echo some words that do not all fit into one line of a small terminal, so they have to go on in the next ones"


def test_what_is_asked_about_is_wrapped_between_words_on_a_small_terminal(play: Play) -> None:
    script = [[{"call": "bash", "arguments": {"command": LONG}}]]
    with play(script, settings=ASKING, columns=40, rows=20) as terminal:
        terminal.enter("go")
        terminal.wait("Esc leave")
        terminal.expect("permission-40x20")


def test_a_long_message_is_read_page_by_page_beside_the_choices(play: Play) -> None:
    lines = "\n".join(f"echo {number}" for number in range(30))
    script = [[{"call": "bash", "arguments": {"command": lines}}]]
    with play(script, settings=ASKING, columns=40, rows=20) as terminal:
        terminal.enter("go")
        terminal.wait(lambda shown: "more lines below" in shown and "Deny and say why" in shown)
        terminal.key(*["pagedown"] * 3)
        terminal.wait("\n  echo 28\n")


def test_control_c_in_a_question_aborts_the_run_and_gives_the_queue_back(play: Play) -> None:
    calls = [{"call": "bash", "arguments": {"command": f"touch {name}"}, "id": name} for name in ("a", "b")]
    with play([[{"gate": "go"}, *calls]], settings=ASKING) as terminal:
        terminal.enter("go")
        terminal.wait("Working")
        terminal.enter("and then")
        terminal.wait("next: and then")
        terminal.open("go")
        terminal.wait("Allow bash: touch a")
        terminal.key("ctrl-c")
        terminal.wait(f"{PROMPT} and then")
        terminal.wait_gone("Allow once")
        terminal.wait_gone("Working")
        sent = [said(message) for message in messages(terminal.folder) if message["role"] == "user"]
        shown = terminal.scrolled
        assert not [name for name in ("a", "b") if (terminal.folder / name).exists()]
    assert sent == ["go"]
    assert "The script is over" not in shown, "another request was made"
