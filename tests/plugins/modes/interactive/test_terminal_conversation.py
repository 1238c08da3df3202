from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ..running import Pi
from .terminal import PROMPT, Terminal, messages

Play = Callable[..., Terminal]

ANSWER = """# What is here

Three files, of which `main.py` is the **largest**. It was changed last and is the one that everything else imports.

1. `main.py`
2. `util.py`

```python
def main() -> None:
    print("hello")
```

| file | lines |
|---|--:|
| main.py | 120 |
| util.py | 30 |

See [the docs](https://example.org/docs).
"""


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 20), (200, 60)])
def test_an_answer_is_laid_out_for_the_terminal(play: Play, columns: int, rows: int) -> None:
    with play([[{"text": ANSWER}]], columns=columns, rows=rows) as terminal:
        terminal.enter("What is here?")
        terminal.wait("example.org")
        terminal.wait_gone("Working")
        terminal.expect(f"answer-{columns}x{rows}")


def test_tools_show_what_they_are_about_and_a_part_of_what_they_gave(play: Play) -> None:
    script = [
        [
            {"thinking": "First I look.\nThen I write."},
            {"text": "I look first."},
            {"call": "bash", "arguments": {"command": "seq 1 20"}, "id": "a"},
            {"call": "read", "arguments": {"path": "notes.txt"}, "id": "b"},
            {"call": "write", "arguments": {"path": "new.py", "content": "x = 1\n"}, "id": "d"},
        ],
        [{"call": "edit", "arguments": {"path": "new.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]}}],
        [{"text": "Done."}],
    ]
    with play(script, rows=40) as terminal:
        (terminal.folder / "notes.txt").write_text("a\nb\n")
        terminal.enter("go")
        terminal.wait("Done.")
        terminal.wait_gone("Working")
        terminal.expect("tools-80x40")


def test_what_is_finished_stays_and_is_printed_once(play: Play) -> None:
    paragraphs = [f"Paragraph {number} of the answer.\n\n" for number in range(60)]
    with play([[{"text": [*paragraphs[:40], {"gate": "go"}, *paragraphs[40:]]}]]) as terminal:
        terminal.enter("tell")
        terminal.wait("Paragraph 39")
        assert "Working" in terminal.text
        terminal.open("go")
        terminal.wait("Paragraph 59")
        terminal.wait_gone("Working")
        found = re.findall(r"Paragraph (\d+) of", terminal.scrolled)
    assert found == [str(number) for number in range(60)]


@pytest.mark.parametrize(("columns", "rows"), [(40, 20), (200, 60), (60, 24)])
def test_after_a_resize_in_the_middle_of_an_answer_the_screen_is_whole(play: Play, columns: int, rows: int) -> None:
    sentence = "The quick brown fox jumps over the lazy dog, and does so once more. "
    with play([[{"text": ["Begun.\n\n", sentence, {"gate": "go"}, sentence, "Over."]}]]) as terminal:
        terminal.enter("tell")
        terminal.wait("once more.")
        terminal.resize(columns, rows)
        terminal.open("go")
        terminal.wait("Over.")
        terminal.wait_gone("Working")
        terminal.expect(f"resized-{columns}x{rows}")


def test_5000_lines_of_output_are_folded_and_can_be_unfolded(play: Play) -> None:
    script = [[{"call": "bash", "arguments": {"command": "seq -f 'line %g' 1 5000"}}], [{"text": "Yes."}]]
    with play(script) as terminal:
        terminal.enter("search")
        terminal.wait("Yes.")
        terminal.wait("more lines · ctrl-o")
        before = len(terminal.scrolled.split("\n"))
        assert before < 30
        terminal.key("ctrl-o")
        terminal.wait("line 3500\n", everywhere=True)
        assert len(terminal.scrolled.split("\n")) > before + 1000


def test_wide_and_combining_characters_keep_the_columns(play: Play) -> None:
    text = "日本語のテキストはここで折り返されるので、二行になります。한국어도 같습니다."
    table = "| a | b |\n|---|---|\n| 日本 | cafe\u0301 |\n| x | y |\n"
    with play([[{"text": f"{text}\n\n{table}"}]], columns=40, rows=20) as terminal:
        terminal.enter("widths")
        terminal.wait_gone("Working")
        terminal.wait("x     y")
        terminal.expect("wide-40x20")


def test_no_color_leaves_colors_out(play: Play) -> None:
    with play([[{"text": ANSWER}]], environ={"NO_COLOR": "1"}) as terminal:
        terminal.enter("What is here?")
        terminal.wait("example.org")
    styles = re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw)
    codes = {int(code or 0) for style in styles for code in style.split(b";")}
    assert codes <= set(range(30)), "a color"


def test_escape_sequences_of_a_model_do_not_reach_the_terminal(play: Play) -> None:
    with play([[{"text": "before \x1b]0;owned\x07\x1b[31mred\x1b[0m after"}]]) as terminal:
        terminal.enter("go")
        terminal.wait("before red after")
    assert b"owned" not in terminal.raw


def test_a_failing_renderer_is_named_once_and_done_without(play: Play, pi: Pi) -> None:
    plugin = pi.folder / "drawing.py"
    plugin.write_text(
        "from pi_core import hookimpl\n"
        "class DrawingPlugin:\n"
        "    @hookimpl\n"
        "    async def render_tool_call(self, call, result):\n"
        "        if result is not None:\n"
        "            raise ValueError('no ink')\n",
        encoding="utf-8",
    )
    calls = [
        {"call": "bash", "arguments": {"command": f"echo number {number}"}, "id": str(number)} for number in (1, 2)
    ]
    with play([calls, [{"text": "Done."}]], "-e", str(plugin)) as terminal:
        terminal.enter("go")
        terminal.wait("Done.")
        shown = terminal.wait("number 2\n")
    assert shown.count("no ink") == 1
    assert "Plugin 'drawing', hook render_tool_call: ValueError: no ink" in shown
    assert "  number 1\n" in shown


def test_a_renderer_whose_content_cannot_be_drawn_is_done_without(play: Play, pi: Pi) -> None:
    plugin = pi.folder / "drawing.py"
    plugin.write_text(
        "from pi_core import hookimpl\n"
        "class Broken:\n"
        "    def __rich_console__(self, console, options):\n"
        "        raise RuntimeError('torn paper')\n"
        "class DrawingPlugin:\n"
        "    @hookimpl\n"
        "    async def render_message(self, message):\n"
        "        return Broken()\n",
        encoding="utf-8",
    )
    with play([[{"text": "Done."}]], "-e", str(plugin)) as terminal:
        terminal.enter("say this")
        shown = terminal.wait("torn paper")
        terminal.wait("Done.")
    assert f"{PROMPT} say this" in shown


def test_a_plugin_draws_a_call_and_adds_to_the_status_line(play: Play, pi: Pi) -> None:
    plugin = pi.folder / "drawing.py"
    plugin.write_text(
        "from pi_core import hookimpl\n"
        "class DrawingPlugin:\n"
        "    @hookimpl\n"
        "    async def render_tool_call(self, call, result, width):\n"
        "        return None if result is None else f'drawn {call.name} for {width}'\n"
        "    @hookimpl\n"
        "    async def status_line(self, session):\n"
        "        return ['branch main']\n",
        encoding="utf-8",
    )
    script = [[{"call": "bash", "arguments": {"command": "echo hidden"}}], [{"text": "Done."}]]
    with play(script, "-e", str(plugin)) as terminal:
        terminal.enter("go")
        terminal.wait("drawn bash for 78")
        terminal.wait("Done.")
        terminal.wait("branch main")
        terminal.key("ctrl-o")
        terminal.wait("hidden")


def test_an_error_says_what_to_do(play: Play) -> None:
    with play([[{"error": "no such key", "status": 401}]]) as terminal:
        terminal.enter("go")
        shown = terminal.wait("/login")
    assert "✗ no such key" in shown


def test_the_session_keeps_what_was_said(play: Play) -> None:
    with play([[{"text": "An answer."}]]) as terminal:
        terminal.enter("A question")
        terminal.wait("An answer.")
        terminal.wait_gone("Working")
        terminal.key("ctrl-d")
        assert terminal.ends() == 0
        assert "pi --session" in terminal.text
        assert [message["role"] for message in messages(terminal.folder)] == ["user", "assistant"]


def test_a_request_that_is_tried_again_is_one_line_and_can_be_given_up(play: Play) -> None:
    with play([[{"error": "Overloaded", "status": 429}]], environ={"PI_RETRY_ENABLED": "true"}) as terminal:
        terminal.enter("go")
        terminal.wait("Overloaded. Attempt 1 of 3 follows")
        terminal.key("escape")
        shown = terminal.wait("Aborted")
    assert shown.count("Overloaded") == 1
    assert "wait a little" not in shown


def test_a_status_line_that_fails_is_named_once(play: Play, pi: Pi) -> None:
    plugin = pi.folder / "drawing.py"
    plugin.write_text(
        "from pi_core import hookimpl\n@hookimpl\nasync def status_line(session):\n    raise ValueError('no ink')\n",
        encoding="utf-8",
    )
    with play([[{"text": "One."}], [{"text": "Two."}]], "-e", str(plugin)) as terminal:
        terminal.enter("first")
        terminal.wait("One.")
        terminal.enter("second")
        terminal.wait("Two.")
        terminal.wait("2.4k")
        shown = terminal.scrolled
    assert shown.count("no ink") == 1
    assert "Plugin 'drawing', hook status_line" in shown


def test_a_very_long_line_of_output_is_folded(play: Play) -> None:
    command = "printf 'x%.0s' $(seq 1500); printf '|end'"
    with play([[{"call": "bash", "arguments": {"command": command}}], [{"text": "Done."}]]) as terminal:
        terminal.enter("go")
        shown = terminal.wait("Done.")
        assert "longer lines · ctrl-o" in shown
        assert shown.count("x" * 78) == 3
        terminal.key("ctrl-o")
        terminal.wait("x|end")


def test_a_very_long_line_of_an_edit_is_folded(play: Play, pi: Pi) -> None:
    (pi.folder / "minified.js").write_text("a" * 1000, encoding="utf-8")
    edits = [{"oldText": "a" * 1000, "newText": "b" * 1000}]
    call = {"call": "edit", "arguments": {"path": "minified.js", "edits": edits}}
    with play([[call], [{"text": "Done."}]], rows=40) as terminal:
        terminal.enter("go")
        shown = terminal.wait("Done.")
    assert 200 < shown.count("b") < 400
    assert "longer lines · ctrl-o" in shown
