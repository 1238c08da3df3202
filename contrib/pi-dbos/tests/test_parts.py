"""The parts, each by itself."""

from __future__ import annotations

import pytest
from pi_dbos import DbosPlugin, idempotency_key
from pi_dbos._engine import database_url, open_client, shown
from pi_dbos._locks import differences
from pi_dbos._mail import Mail, mail_of
from pi_dbos._records import result_from_json, result_to_json, transcript
from pi_dbos.batches import read_tasks
from pi_dbos.replay import replay_of, with_key

from pi_core import Build, ConfigError, ImageContent, TextContent, ToolResult, Usage, tool
from pi_core.testing import assert_plugin_contract, heavy_imports


async def example(text: str) -> str:
    """An example."""
    return text


def test_the_plugin_keeps_its_contract() -> None:
    assert_plugin_contract(DbosPlugin())
    assert heavy_imports("pi_dbos") == []


@pytest.mark.parametrize(
    ("own", "rules", "kind"),
    [
        (None, {}, "never"),
        ("safe", {}, "safe"),
        ("safe", {"example": "never"}, "never"),
        (None, {"ex*": "keyed"}, "keyed"),
        (None, {"ex*": "keyed", "example": "safe"}, "safe"),
        ("safe", {"other": "never"}, "safe"),
    ],
)
def test_what_may_be_done_with_a_lost_call(own, rules, kind) -> None:
    assert replay_of(tool(replay=own)(example), rules) == kind


def test_the_tools_that_ship_are_what_they_should_be() -> None:
    kinds = {found.name: replay_of(found, {}) for found in Build(only=["tools"]).tools()}
    assert {name for name, kind in kinds.items() if kind == "safe"} == {"read", "grep", "find", "ls"}
    assert kinds["write"] == kinds["edit"] == kinds["bash"] == "never"


def test_a_key_is_the_same_within_a_call_and_new_outside_of_one() -> None:
    with with_key("run:3:call"):
        assert idempotency_key() == idempotency_key() == "run:3:call"
    assert idempotency_key() != idempotency_key()


@pytest.mark.parametrize(
    "result",
    [
        ToolResult.text("done", details={"path": "a"}, terminate=True),
        ToolResult(content=[TextContent(text="a"), ImageContent(data="aGk=", mime_type="image/png")], is_error=True),
        ToolResult(content=[], structured_content=None, usage=Usage(input=3)),
        ToolResult(),
    ],
)
def test_a_result_is_the_same_when_it_comes_back(result: ToolResult) -> None:
    assert result_from_json(result_to_json(result)) == result


def test_a_transcript_is_the_messages_in_their_order() -> None:
    def user(text: str) -> dict:
        return {"message": {"role": "user", "content": text, "timestamp": 1}}

    def answer(text: str) -> dict:
        content = [{"type": "text", "text": text}]
        return {"role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "timestamp": 2}

    steps = {
        1: {"before": [user("one")], "mail": [], "answer": answer("first")},
        2: {"by": "me"},
        4: {"before": [{"answer": 1}, user("two")], "mail": [], "answer": answer("second")},
    }
    going_on = [message.to_json()["content"] for message in transcript(steps)]
    assert going_on == ["one", [{"type": "text", "text": "first"}], "two", [{"type": "text", "text": "second"}]]
    assert [message.to_json()["content"] for message in transcript(steps, [{"answer": 4}])] == going_on


def test_mail_is_in_the_order_of_sending() -> None:
    sent = [Mail.new("steer", "one"), Mail.new("followUp", "two"), Mail.new("abort", "")]
    attributes = {mail.key: mail.to_json() for mail in reversed(sent)}
    assert mail_of({**attributes, "pi.rescues": 2, f"{sent[0].key}x": None}) == sent


def test_locks_differ_in_what_is_named() -> None:
    assert differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == [
        "b: 2 in the run, 3 here",
        "c: nothing in the run, 4 here",
    ]


def test_a_password_is_never_shown() -> None:
    url = database_url("postgresql://pi:secret@127.0.0.1:9/runs")
    assert "secret" not in shown(url)
    with pytest.raises(ConfigError) as failure:
        open_client(url)
    assert "127.0.0.1" in str(failure.value)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize("address", ["runs.sqlite", "mysql://host/runs", "postgresql://host", "://"])
def test_an_address_that_is_none_is_refused_with_how_to_write_it(address: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:////absolute/path"):
        database_url(address)


def test_the_database_is_the_named_one_then_the_variable_then_the_users_file(tmp_path) -> None:
    environ = {"PI_DURABLE_DATABASE": "sqlite:////b.sqlite", "PI_CODING_AGENT_DIR": str(tmp_path)}
    assert database_url("sqlite:////a.sqlite", environ).database == "/a.sqlite"
    assert database_url(None, environ).database == "/b.sqlite"
    del environ["PI_DURABLE_DATABASE"]
    assert database_url(None, environ).database == str(tmp_path / "durable.sqlite")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "line 2 is not JSON"),
        ("3", "line 2: expected a text or an object, got int"),
        ('{"prompt": "a", "messages": []}', "line 2: give either prompt or messages"),
        ('{"messages": []}', "line 2, messages: expected a list with a message"),
        ('{"messages": [{"role": "user"}]}', r"line 2, messages\[0\] is no message"),
        ('{"prompt": 3}', "line 2, prompt: expected a text"),
        ('{"prompt": "a", "id": "1"}', "the id '1' is there 2 times"),
    ],
)
def test_a_wrong_line_of_a_batch_is_named(tmp_path, line: str, fault: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(f'"fine"\n{line}\n')
    with pytest.raises(ConfigError, match=fault):
        read_tasks(path)
