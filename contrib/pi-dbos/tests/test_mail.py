"""What reaches a run from outside, and what is told of it."""

from __future__ import annotations

import json
import subprocess
import sys

from pi_core import AssistantMessage, ToolResultMessage


def texts(messages) -> list[str]:
    return [block.text for message in messages if message.role == "user" for block in message.content][1:]


def test_a_steering_message_comes_before_the_next_request(site) -> None:
    site.hold("answer-a-0")
    site.worker()
    run = site.start("a", ["safe"], ["safe"])
    site.reached("answer-a-0")
    assert site.pi("durable", "steer", run, "and the tests").returncode == 0
    site.hold("before-a-0-0")
    site.release("answer-a-0")
    site.reached("before-a-0-0")
    # The mail was there before the answer; the worker has looked for it when it has looked for a second message.
    site.until(lambda: site.runs.undelivered(run))
    seen(site, run)
    site.release("before-a-0-0")
    messages = site.ended(run)
    assert [message.role for message in messages][:5] == ["user", "assistant", "toolResult", "user", "assistant"]
    assert texts(messages) == ["and the tests"]
    assert messages[-1].text == "done and the tests"
    assert site.runs.undelivered(run) == []


def seen(site, run) -> None:
    """Wait until the worker has brought the run everything: it feeds the followers from when it has seen the wish."""
    events = follow(site, run)
    assert events.stdout is not None
    assert json.loads(events.stdout.readline())["type"] == "message_end"
    events.kill()
    events.wait()
    events.stdout.close()


def follow(site, run) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pi_core", "durable", "follow", run]
    return subprocess.Popen(command, env=site.environment, cwd=site.folder, stdout=subprocess.PIPE, text=True)


def test_a_follow_up_message_makes_a_run_go_on_once_also_when_it_is_taken_over(site) -> None:
    site.hold("answer-a-1")
    first = site.worker()
    run = site.start("a", ["safe"])
    site.reached("answer-a-1")
    assert site.pi("durable", "follow-up", run, "one more").returncode == 0
    seen(site, run)
    site.hold("answer-a-2")
    site.release("answer-a-1")
    site.reached("answer-a-2")
    site.kill(first)
    site.release("answer-a-2")
    site.worker()
    messages = site.ended(run)
    assert texts(messages) == ["one more"]
    assert messages[-1].text == "done one more"


def test_an_abort_ends_the_request_that_is_made_and_says_why(site) -> None:
    site.hold("answer-a-0")
    site.worker()
    run = site.start("a", ["safe"])
    site.reached("answer-a-0")
    assert site.pi("durable", "abort", run, "Not today.").returncode == 0
    messages = site.ended(run)
    info = site.runs.info(run)
    assert (info.state, info.error) == ("aborted", "Not today.")
    assert isinstance(messages[-1], AssistantMessage)
    assert messages[-1].stop_reason == "aborted"
    assert "nothing can be sent to it any more" in site.pi("durable", "steer", run, "too late").stderr


def test_an_abort_ends_the_tool_that_runs(site) -> None:
    site.hold("before-a-0-0")
    site.worker()
    run = site.start("a", ["never"])
    site.reached("before-a-0-0")
    assert site.pi("durable", "abort", run).returncode == 0
    messages = site.ended(run)
    assert site.runs.info(run).state == "aborted"
    assert isinstance(messages[2], ToolResultMessage)


def test_an_abort_reaches_a_run_that_nobody_has_yet(site) -> None:
    run = site.start("a", ["safe"])
    assert site.pi("durable", "abort", run, "Never mind.").returncode == 0
    site.worker()
    site.ended(run)
    assert site.runs.info(run).error == "Never mind."
    assert site.lines("effects") == []


def test_a_follower_sees_the_events_of_both_workers_and_each_message_once(site) -> None:
    site.hold("answer-a-1")
    first = site.worker()
    run = site.start("a", ["safe"], ["safe"])
    site.reached("answer-a-1")
    events = follow(site, run)
    assert events.stdout is not None
    lines = [json.loads(events.stdout.readline()) for _ in range(3)]
    site.kill(first)
    site.release("answer-a-1")
    site.worker()
    lines += [json.loads(line) for line in events.stdout]
    assert events.wait() == 0
    events.stdout.close()
    ends = [line["message"] for line in lines if line["type"] == "message_end"]
    assert [message["role"] for message in ends] == ["user", *["assistant", "toolResult"] * 2, "assistant"]
    assert {"message_update", "tool_execution_start", "tool_execution_end", "turn_end"} <= {
        line["type"] for line in lines
    }
    assert lines[-1] | {"type": "run_end", "state": "done", "rescues": 1} == lines[-1]


def test_a_run_that_failed_goes_on_from_the_request_that_failed(site) -> None:
    site.worker()
    run = site.start("a", ["never"], ["safe"], fails=1)
    site.ended(run)
    info = site.runs.info(run)
    assert (info.state, info.error) == ("failed", "the provider is down")
    (site.folder / "repaired").touch()
    assert site.pi("durable", "retry", run).returncode == 0
    site.until(lambda: site.runs.info(run).state == "done")
    assert len(site.effects("a-0-0")) == 1
    assert [line["turn"] for line in site.lines("requests")] == [0, 1, 1, 2]


def test_a_run_that_was_aborted_goes_on_when_it_is_retried(site) -> None:
    site.hold("answer-a-0")
    run = site.start("a", ["safe"])
    site.runs.send(run, "abort", "wait")
    site.worker()
    site.ended(run)
    site.release("answer-a-0")
    site.runs.retry(run)
    site.until(lambda: site.runs.info(run).state == "done")
