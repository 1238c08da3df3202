"""What becomes of a run whose worker is killed."""

from __future__ import annotations

import signal

import pytest

from pi_core import AssistantMessage, ToolResultMessage


def test_a_run_whose_worker_died_during_a_request_makes_that_request_again_and_no_other(site) -> None:
    site.hold("answer-a-1")
    first = site.worker()
    run = site.start("a", ["safe"], ["safe"])
    site.reached("answer-a-1")
    site.kill(first)
    site.release("answer-a-1")
    site.worker()
    messages = site.ended(run)
    assert [message.role for message in messages] == ["user", *["assistant", "toolResult"] * 2, "assistant"]
    assert [line["turn"] for line in site.lines("requests")] == [0, 1, 1, 2]
    assert len(site.effects("a-0-0")) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", ["safe", "keyed"])
def test_a_call_that_may_be_made_again_is_made_again_with_its_key(site, kind: str, moment: str) -> None:
    site.hold(f"{moment}-a-0-0")
    first = site.worker()
    run = site.start("a", [kind])
    site.reached(f"{moment}-a-0-0")
    site.kill(first)
    site.release(f"{moment}-a-0-0")
    site.worker()
    result = site.ended(run)[2]
    assert isinstance(result, ToolResultMessage)
    assert (result.content[0].text, result.is_error) == ("noted a-0-0", False)
    effects = site.effects("a-0-0")
    assert len(effects) == (1 if moment == "before" else 2)
    assert len({effect["key"] for effect in effects}) == 1
    assert effects[0]["key"].startswith("a:")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_call_that_must_not_be_made_again_ends_with_an_honest_error(site, moment: str) -> None:
    site.hold(f"{moment}-a-0-0")
    first = site.worker()
    run = site.start("a", ["never"])
    site.reached(f"{moment}-a-0-0")
    site.kill(first)
    site.release(f"{moment}-a-0-0")
    site.worker()
    messages = site.ended(run)
    result = messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.is_error
    assert "unknown" in result.content[0].text
    assert "was not executed again" in result.content[0].text
    assert isinstance(messages[3], AssistantMessage)
    assert len(site.effects("a-0-0")) == (0 if moment == "before" else 1)


def test_the_other_calls_of_a_batch_keep_their_results(site) -> None:
    site.hold("after-a-0-1")
    first = site.worker()
    run = site.start("a", ["never", "never", "keyed"])
    site.reached("after-a-0-1")
    site.until(lambda: len(site.lines("effects")) == 3)
    site.kill(first)
    site.release("after-a-0-1")
    site.worker()
    results = [message for message in site.ended(run) if isinstance(message, ToolResultMessage)]
    # The effects of the first and the third may have been kept, or not; what was not kept is not told as if it was.
    assert results[1].is_error
    for position in (0, 1):
        assert len(site.effects(f"a-0-{position}")) == 1
    assert results[2].content[0].text == "noted a-0-2"


def test_a_worker_that_lives_takes_over_while_it_runs(site) -> None:
    site.hold("answer-a-0")
    first = site.worker()
    run = site.start("a", ["safe"])
    site.reached("answer-a-0")
    site.worker()
    site.kill(first)
    site.release("answer-a-0")
    assert site.ended(run)[-1].text == "done"
    assert site.runs.info(run).rescues == 1


def test_a_run_that_keeps_killing_its_workers_is_given_up_and_can_be_resumed(site) -> None:
    text = (site.folder / "pi-build.toml").read_text()
    options = text.replace("[plugins.options.replay]", "[plugins.options]\nmax_rescues = 1\n\n[plugins.options.replay]")
    (site.folder / "pi-build.toml").write_text(options)
    assert site.pi("build", "lock", ".").returncode == 0
    site.hold("answer-a-0")
    run = site.start("a", ["safe"])
    for _ in range(2):
        before = len(site.lines("stages"))
        worker = site.worker()
        site.until(lambda before=before: len(site.lines("stages")) > before)
        site.kill(worker)
    site.worker()
    site.ended(run)
    info = site.runs.info(run)
    assert (info.state, info.error) == ("given up", "2 workers died with it")
    site.release("answer-a-0")
    assert site.pi("durable", "resume", run).returncode == 0
    assert site.ended(run)[-1].text == "done"


def test_a_worker_that_is_asked_to_end_lets_its_runs_end(site) -> None:
    site.hold("answer-a-0")
    worker = site.worker()
    run = site.start("a", ["safe"])
    site.reached("answer-a-0")
    worker.send_signal(signal.SIGTERM)
    site.release("answer-a-0")
    assert worker.wait(timeout=30) == 0
    assert site.runs.info(run).state == "done"
    assert not list(site.folder.glob("runs.sqlite.workers/*"))


def test_a_worker_that_has_no_more_patience_leaves_its_runs_to_the_next(site) -> None:
    site.hold("answer-a-0")
    worker = site.worker("--patience", "0")
    run = site.start("a", ["safe"])
    site.reached("answer-a-0")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=30) == 0
    assert site.runs.info(run).state == "running"
    site.release("answer-a-0")
    site.worker()
    assert site.ended(run)[-1].text == "done"
