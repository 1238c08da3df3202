from __future__ import annotations

import subprocess
from typing import Any

import pytest

from .running import Pi, call


def test_the_answer_is_printed_and_nothing_else(pi: Pi) -> None:
    done = pi.run("-p", "hello", script=["Grüße, 你好"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "Grüße, 你好\n", "")


def test_only_the_last_answer_is_printed_block_by_block(pi: Pi) -> None:
    last = {"blocks": [{"thinking": "hm"}, {"text": "one"}, {"text": "two"}]}
    done = pi.run("-p", "go", script=[call("ls"), last])
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n")


def test_a_word_without_an_option_prints_too(pi: Pi) -> None:
    assert pi.run("hello", script=["hi"]).stdout == "hi\n"


def test_each_further_word_is_a_prompt_of_its_own(pi: Pi) -> None:
    done = pi.run("-p", "one", "two", script=["first", "second"])
    assert (done.returncode, done.stdout) == (0, "second\n")


def test_a_failed_prompt_ends_the_rest(pi: Pi) -> None:
    done = pi.run("-p", "one", "two", script=[{"blocks": [], "error": "overloaded"}, "never"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "pi: overloaded\n")


@pytest.mark.parametrize(
    ("reply", "out", "said"),
    [
        ({"blocks": [{"text": "so far"}], "error": "connection lost"}, "so far\n", "connection lost"),
        ({"text": "half an ans", "stopReason": "length"}, "half an ans\n", "reached its output token limit"),
        ({"text": ""}, "", "The model gave no answer."),
        ({"blocks": [{"thinking": "hm"}]}, "", "The model gave no answer."),
    ],
)
def test_an_answer_that_is_none_exits_1_and_says_why(pi: Pi, reply: Any, out: str, said: str) -> None:
    done = pi.run("-p", "go", script=[reply])
    assert (done.returncode, done.stdout) == (1, out)
    assert done.stderr.startswith("pi: ")
    assert said in done.stderr


def test_tools_work_on_the_folder_it_runs_in(pi: Pi) -> None:
    script = [call("write", path="note.txt", content="hi"), call("bash", command="cat note.txt"), "done"]
    done = pi.run("-p", "go", script=script)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert (pi.folder / "note.txt").read_text() == "hi"


def test_a_script_that_ends_too_early(pi: Pi) -> None:
    done = pi.run("-p", "go", script=[call("ls")])
    assert (done.returncode, done.stderr) == (1, "pi: script exhausted\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no script: name a JSON file in PI_SCRIPT"),
        ("{", "cannot be played"),
        ('{"text": "x"}', "expected a list of replies"),
        ('[{"txt": "x"}]', "unknown key 'txt'"),
    ],
)
def test_a_script_that_cannot_be_played(pi: Pi, content: str | None, said: str) -> None:
    command = pi.command("-p", "go", script=[])
    environment = dict(pi.environment)
    if content is None:
        del environment["PI_SCRIPT"]
    else:
        (pi.folder / "script.json").write_text(content, encoding="utf-8")
    done = subprocess.run(
        command, cwd=pi.folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_options_exit_1(pi: Pi) -> None:
    for arguments in (["--mode", "xml"], ["--nope"], ["--max-tokens", "0"], ["--thinking", "lots"]):
        done = pi.run(*arguments, "go", script=["never"])
        assert done.returncode == 1
        assert "Error: " in done.stderr


def test_a_tool_that_is_not_there(pi: Pi) -> None:
    done = pi.run("-p", "--tools", "read,fly", "go", script=["never"])
    assert done.returncode == 1
    assert "pi: --tools: there is no tool 'fly'. Tools here: read, bash" in done.stderr


def test_problems_of_plugins_go_to_stderr_and_the_answer_still_comes(pi: Pi) -> None:
    done = pi.run("-p", "go", script=["fine"], environ={"PI_BLOCK": "zzz"})
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr == "pi: 'zzz' is to be blocked, but no plugin and no distribution of one is called that\n"


def test_a_reader_that_goes_away_ends_it_quietly(pi: Pi) -> None:
    process = pi.start("-p", "go", script=[{"blocks": [{"text": "x" * 200_000}]}])
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert said == b""


def test_a_plugin_that_asks_for_the_end_keeps_further_prompts_from_being_sent(pi: Pi) -> None:
    (pi.folder / "leaves.py").write_text(
        "from pi_core import hookimpl\n\n\n@hookimpl\nasync def agent_settled(session):\n    session.shutdown()\n",
        encoding="utf-8",
    )
    done = pi.run("-p", "-e", "leaves.py", "one", "two", script=["first", "never"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "first\n", "")


@pytest.mark.parametrize(("name", "code", "said"), [("works", 0, ""), ("fails", 1, "/fails: not today\n")])
def test_a_command_of_a_plugin_that_fails_exits_with_1(pi: Pi, name: str, code: int, said: str) -> None:
    (pi.folder / "commands.py").write_text(
        "from pi_core import hookimpl\n"
        "from pi_plugins.coding_agent import SlashCommand\n\n\n"
        "def fail(arguments, session):\n    raise RuntimeError('not today')\n\n\n"
        "@hookimpl\ndef register_slash_commands():\n"
        "    return [SlashCommand('works', 'Work.', lambda *_: None), SlashCommand('fails', 'Fail.', fail)]\n",
        encoding="utf-8",
    )
    done = pi.run("-p", "-e", "commands.py", f"/{name}", script=[])
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
