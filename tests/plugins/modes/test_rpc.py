"""The rpc mode, driven over its pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from .running import Pi, alive, call


class Client:
    """Sends commands and reads records; a thread reads, so that neither side waits for the other."""

    def __init__(self, pi: Pi, *arguments: str, script: list[Any]) -> None:
        self.process = subprocess.Popen(
            pi.command("--mode", "rpc", *arguments, script=script),
            cwd=pi.folder,
            env=pi.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.records: list[dict[str, Any]] = []
        self._lines: Queue[bytes] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def raw(self, data: bytes) -> None:
        """Write bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, kind: str, **fields: Any) -> None:
        """Send a command."""
        self.raw(json.dumps({"type": kind, **fields}).encode() + b"\n")

    def next(self) -> dict[str, Any]:
        """The next record."""
        line = self._lines.get(timeout=30)
        assert line, f"the output has ended: {self.said()}"
        record: dict[str, Any] = json.loads(line)
        self.records.append(record)
        return record

    def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Read on to a record of a type with some fields."""
        while True:
            record = self.next()
            if record["type"] == kind and all(record.get(name) == value for name, value in fields.items()):
                return record

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        identifier = f"{kind}-{len(self.records)}"
        self.send(kind, id=identifier, **fields)
        return self.until("response", id=identifier)

    def data(self, kind: str, **fields: Any) -> Any:
        """Send a command that succeeds, and return its data."""
        answer = self.ask(kind, **fields)
        assert answer["success"] is True, answer
        return answer.get("data")

    def error(self, kind: str, **fields: Any) -> str:
        """Send a command that fails, and return why."""
        answer = self.ask(kind, **fields)
        assert answer["success"] is False
        return str(answer["error"])

    def end(self) -> int:
        """Close the input, read to the end, and return the exit code."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        while line := self._lines.get(timeout=30):
            self.records.append(json.loads(line))
        return self.process.wait(30)

    def said(self) -> str:
        """What is on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture
def client(pi: Pi) -> Iterator[Any]:
    """Starts clients and ends them."""
    started: list[Client] = []

    def start(*arguments: str, script: list[Any] | None = None) -> Client:
        started.append(Client(pi, *(arguments or ("--no-session",)), script=script or []))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_a_prompt_is_answered_when_it_is_accepted_and_its_run_is_told(client: Any) -> None:
    rpc = client(script=["hello"])
    assert rpc.data("prompt", message="hi") == {"disposition": "started"}
    rpc.until("agent_settled")
    kinds = [record["type"] for record in rpc.records]
    assert kinds.index("response") < kinds.index("agent_start")
    assert rpc.data("get_last_assistant_text") == {"text": "hello"}
    assert rpc.end() == 0


@pytest.mark.parametrize("line", [b"not json\n", b"[1]\n", b"\xff\xfe\n", b'"text"\n'])
def test_a_line_that_is_no_command_is_answered_without_an_id(client: Any, line: bytes) -> None:
    rpc = client()
    rpc.raw(line)
    answer = rpc.next()
    assert (answer["command"], answer["success"], "id" in answer) == ("parse", False, False)
    assert answer["error"].startswith("Failed to parse command: ")
    assert rpc.error("nope") == "Unknown command: nope"


def test_a_line_may_hold_what_other_readers_take_for_a_line_end(client: Any) -> None:
    rpc = client(script=["x\u2028y\u0085z"])
    rpc.raw('{"type":"prompt","id":"1","message":"a\u2028b"}\n'.encode())
    end = rpc.until("agent_end")
    assert end["messages"][0]["content"][0]["text"] == "a\u2028b"
    assert end["messages"][1]["content"][0]["text"] == "x\u2028y\u0085z"


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("prompt", {}, "'message' is to be a text"),
        ("prompt", {"message": "x", "images": [1]}, "'images'"),
        ("prompt", {"message": "x", "streamingBehavior": "now"}, "one of steer, followUp"),
        ("set_model", {"provider": "x", "modelId": "y"}, "Model not found: x/y"),
        ("set_thinking_level", {"level": "lots"}, "one of off"),
        ("set_steering_mode", {"mode": "some"}, "one of all"),
        ("set_auto_retry", {"enabled": "yes"}, "true or false"),
        ("get_entries", {"since": "zzz"}, "There is no entry 'zzz'"),
        ("fork", {"entryId": "zzz"}, "no entry"),
        ("switch_session", {"sessionPath": "/nowhere.jsonl"}, "nowhere"),
        ("compact", {}, "nothing to compact"),
        ("export_html", {}, "in memory"),
        ("clone", {}, "nothing to clone"),
        ("bash", {"command": " "}, "no command"),
    ],
)
def test_what_cannot_be_done_is_said(client: Any, kind: str, fields: dict[str, Any], said: str) -> None:
    rpc = client()
    assert said in rpc.error(kind, **fields)
    assert rpc.data("get_state")["isStreaming"] is False


def test_a_running_agent_is_steered_followed_up_and_aborted(client: Any) -> None:
    rpc = client(script=[{"blocks": [{"text": "x"}, {"wait": True}]}, "steered", "followed"])
    rpc.data("prompt", message="go")
    rpc.until("message_update")
    assert "says" not in rpc.error("prompt", message="more")
    assert rpc.data("prompt", message="more", streamingBehavior="steer") == {"disposition": "queued"}
    assert rpc.data("follow_up", message="last") == {"disposition": "queued"}
    state = rpc.data("get_state")
    assert (state["isStreaming"], state["pendingMessageCount"]) == (True, 2)
    rpc.data("abort")
    assert rpc.until("agent_settled") == {"type": "agent_settled", "aborted": False}
    texts = [message["content"] for message in rpc.data("get_messages")["messages"] if message["role"] == "assistant"]
    assert [content[-1]["text"] for content in texts] == ["x", "steered", "followed"]


def test_a_queue_is_emptied(client: Any) -> None:
    rpc = client(script=[{"blocks": [{"wait": True}]}])
    rpc.data("prompt", message="go")
    rpc.data("steer", message="a")
    assert rpc.data("clear_queue") == {"steering": ["a"], "followUp": []}


def test_state_and_statistics(client: Any) -> None:
    usage = {"input": 7, "output": 3, "totalTokens": 10}
    rpc = client(script=[{"text": "one", "usage": usage}])
    rpc.data("prompt", message="go")
    rpc.until("agent_settled")
    stats = rpc.data("get_session_stats")
    assert (stats["userMessages"], stats["assistantMessages"], stats["tokens"]["total"]) == (1, 1, 10)
    state = rpc.data("get_state")
    assert state["model"]["id"] == "scripted"
    assert (state["messageCount"], state["sessionId"]) == (2, stats["sessionId"])
    entries = rpc.data("get_entries")
    assert [entry["type"] for entry in entries["entries"]][-2:] == ["message", "message"]
    since = rpc.data("get_entries", since=entries["entries"][-2]["id"])
    assert [entry["id"] for entry in since["entries"]] == [entries["leafId"]]


def test_thinking_levels(client: Any) -> None:
    rpc = client()
    levels = rpc.data("get_available_thinking_levels")["levels"]
    rpc.send("set_thinking_level", id="1", level="high")
    assert rpc.next() == {"type": "thinking_level_changed", "level": "high"}
    assert rpc.until("response", id="1")["success"] is True
    following = levels[(levels.index("high") + 1) % len(levels)]
    assert rpc.data("cycle_thinking_level") == {"level": following}


def test_a_command_of_the_user_streams_and_can_be_aborted(client: Any) -> None:
    rpc = client()
    assert rpc.data("bash", command="echo one; exit 2")["exitCode"] == 2
    assert any(record["type"] == "bash_execution_update" and record["delta"] == "one\n" for record in rpc.records)
    rpc.send("bash", id="long", command="echo begun; sleep 60")
    rpc.until("bash_execution_update", id="long")
    rpc.data("abort_bash")
    answer = next((r for r in rpc.records if r.get("id") == "long" and r["type"] == "response"), None)
    assert (answer or rpc.until("response", id="long"))["data"]["cancelled"] is True


def test_sessions_are_made_forked_and_switched(client: Any, pi: Pi) -> None:
    rpc = client("--session-id", "first", script=["one", "two"])
    rpc.data("prompt", message="go")
    rpc.until("agent_settled")
    first = rpc.data("get_session_stats")["sessionFile"]
    (message,) = rpc.data("get_fork_messages")["messages"]
    assert rpc.data("fork", entryId=message["entryId"]) == {"text": "go", "cancelled": False}
    assert rpc.data("get_messages") == {"messages": []}
    assert rpc.data("switch_session", sessionPath=first) == {"cancelled": False}
    assert len(rpc.data("get_messages")["messages"]) == 2
    rpc.send("set_session_name", id="n", name="Mine")
    rpc.until("session_info_changed", name="Mine")
    assert rpc.data("get_state")["sessionName"] == "Mine"
    assert rpc.data("new_session") == {"cancelled": False}
    assert rpc.end() == 0
    assert rpc.said() == ""


def test_a_session_is_exported_into_its_folder_when_something_was_said(client: Any, pi: Pi) -> None:
    rpc = client("--session-id", "first", script=["one"])
    assert "nothing to export" in rpc.error("export_html")
    rpc.data("prompt", message="go")
    rpc.until("agent_settled")
    written = pi.folder / "page.html"
    assert rpc.data("export_html", outputPath="page.html") == {"path": str(written)}
    assert "go" in written.read_text(encoding="utf-8")
    by_default = Path(rpc.data("export_html")["path"])
    assert (by_default.parent, by_default.exists()) == (pi.folder, True)


def test_a_failure_before_a_run_reaches_the_client(client: Any, pi: Pi) -> None:
    (pi.folder / "broken.py").write_text(
        "from pi_core import hookimpl\n\n\n"
        "@hookimpl\nasync def before_agent_start():\n    raise RuntimeError('boom')\n",
        encoding="utf-8",
    )
    rpc = client("-e", "broken.py", script=["never"])
    assert rpc.data("prompt", message="go") == {"disposition": "started"}
    shown = rpc.until("extension_ui_request", method="notify")
    assert (shown["notifyType"], "boom" in shown["message"]) == ("error", True)
    assert rpc.until("agent_settled")["aborted"] is False
    assert rpc.end() == 0


def test_a_prompt_and_an_abort_in_one_breath_make_no_request(client: Any) -> None:
    rpc = client(script=["never"])
    rpc.raw(b'{"id": 1, "type": "prompt", "message": "go"}\n{"id": 2, "type": "abort"}\n')
    assert rpc.until("response", id=1)["data"] == {"disposition": "started"}
    assert rpc.until("agent_settled") == {"type": "agent_settled", "aborted": True}
    assert rpc.until("response", id=2)["success"] is True
    assert rpc.data("get_last_assistant_text") == {"text": ""}


LEAVES = """
from pi_core import hookimpl
from pi_plugins.coding_agent import SlashCommand


@hookimpl
def register_slash_commands():
    return [SlashCommand("leave", "End it.", lambda arguments, session: session.shutdown())]


@hookimpl
async def agent_settled(session):
    session.shutdown()
"""


@pytest.mark.parametrize("message", ["/leave", "go"])
def test_a_plugin_ends_it_when_nothing_goes_on_any_more(client: Any, pi: Pi, message: str) -> None:
    (pi.folder / "leaves.py").write_text(LEAVES, encoding="utf-8")
    rpc = client("-e", "leaves.py", script=["done"])
    rpc.send("prompt", id="1", message=message)
    assert rpc.until("response", id="1")["success"] is True
    assert rpc.process.wait(30) == 0


def test_only_records_are_on_standard_output(client: Any, pi: Pi) -> None:
    (pi.folder / "noisy.py").write_text(
        "import os\nfrom pi_core import hookimpl\n\n\n"
        "@hookimpl\ndef on_turn_start():\n    print('printed')\n    os.system('echo from a child')\n",
        encoding="utf-8",
    )
    rpc = client("--no-session", "-e", "noisy.py", script=["hello"])
    rpc.data("prompt", message="hi")
    rpc.until("agent_settled")
    assert rpc.end() == 0
    said = rpc.said()
    assert "printed" in said
    assert "from a child" in said


QUESTIONS = """
from pi_core import Block, hookimpl
from pi_plugins.coding_agent import Question

class Plugin:
    @hookimpl
    async def before_tool_call(self, call, ctx):
        answer = await ctx.hooks.call("ask_user", question=Question("confirm", "Sure?", call.name, timeout=TIMEOUT))
        return None if answer.confirmed else Block(f"said {answer.value}")
"""


@pytest.mark.parametrize(
    ("reply", "timeout", "result"),
    [
        ({"confirmed": True}, "60", "hi\n"),
        ({"confirmed": False}, "60", "said no"),
        ({"cancelled": True}, "60", "said None"),
        (None, "0.01", "said None"),
    ],
)
def test_a_question_goes_to_the_client(
    client: Any, pi: Pi, reply: dict[str, Any] | None, timeout: str, result: str
) -> None:
    (pi.folder / "asks.py").write_text(QUESTIONS.replace("TIMEOUT", timeout), encoding="utf-8")
    rpc = client("--no-session", "-e", "asks.py", script=[call("bash", command="echo hi"), "done"])
    rpc.data("prompt", message="go")
    asked = rpc.until("extension_ui_request")
    assert (asked["method"], asked["title"], asked["message"]) == ("confirm", "Sure?", "bash")
    if reply is not None:
        rpc.send("extension_ui_response", id=asked["id"], **reply)
    end = rpc.until("tool_execution_end")
    assert end["result"]["content"][0]["text"] == result
    rpc.until("agent_settled")


def test_the_end_of_the_input_ends_the_run_in_order(client: Any, pi: Pi) -> None:
    rpc = client("--no-session", script=[call("bash", command="echo $$ > pid; sleep 60"), "never"])
    rpc.data("prompt", message="go")
    rpc.until("tool_execution_update")
    pid = wait_for_pid(pi)
    assert rpc.end() == 0
    kinds = [record["type"] for record in rpc.records]
    assert kinds[-1] == "agent_settled"
    assert kinds.count("tool_execution_end") == 1
    assert not alive(pid)


def wait_for_pid(pi: Pi) -> int:
    path = pi.folder / "pid"
    while not path.exists() or not path.read_text().strip():
        pass
    return int(path.read_text())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_in_order(client: Any, number: signal.Signals, code: int) -> None:
    rpc = client(script=[{"blocks": [{"text": "x"}, {"wait": True}]}])
    rpc.data("prompt", message="go")
    rpc.until("message_update")
    rpc.process.send_signal(number)
    rpc.until("agent_settled")
    while rpc._lines.get(timeout=30):
        pass
    assert rpc.process.wait(30) == code


def test_a_prompt_on_the_command_line_is_refused(pi: Pi) -> None:
    done = pi.run("--mode", "rpc", "hello", script=[])
    assert done.returncode == 1
    assert "takes no prompt" in done.stderr


COMMANDS = int(os.environ.get("PI_TEST_RPC_COMMANDS", "10000"))


def test_every_command_of_many_gets_one_answer(client: Any) -> None:
    rpc = client(script=["hello"] * 20)
    kinds = ["get_state", "get_last_assistant_text", "get_available_thinking_levels", "nope", "get_tree"]

    def write() -> None:
        for number in range(COMMANDS):
            if number % (COMMANDS // 10) == 0:
                rpc.send("prompt", id=f"p{number}", message="hi", streamingBehavior="followUp")
            rpc.send(kinds[number % len(kinds)], id=number)

    writer = threading.Thread(target=write)
    writer.start()
    wanted = COMMANDS + 10
    answers: list[Any] = []
    while len(answers) < wanted:
        record = rpc.next()
        if record["type"] == "response":
            answers.append(record["id"])
    writer.join()
    assert rpc.end() == 0
    late = [record for record in rpc.records if record["type"] == "response"]
    assert len(late) == len(answers) == len(set(map(str, answers))) == wanted


def test_a_client_that_reads_nothing_for_long_loses_nothing(pi: Pi) -> None:
    script = [{"blocks": [{"text": "x" * 3000, "chunks": ["x"] * 3000}]}]
    process = subprocess.Popen(
        pi.command("--mode", "rpc", "--no-session", script=script),
        cwd=pi.folder,
        env=pi.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"type":"prompt","id":"1","message":"go"}\n')
    for number in range(3000):
        process.stdin.write(b'{"type":"get_state","id":%d}\n' % number)
    process.stdin.flush()
    settled, answers = False, 0
    for line in process.stdout:
        record = json.loads(line)
        answers += record["type"] == "response"
        settled = settled or record["type"] == "agent_settled"
        if settled and answers == 3001:
            break
    process.stdin.close()
    process.stdout.read()
    process.stdout.close()
    assert process.wait(30) == 0
