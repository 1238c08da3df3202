"""Many runs, and workers that are killed while they have them."""

from __future__ import annotations

import os
import random
from collections import defaultdict

import pytest

from pi_core import AssistantMessage, ToolResultMessage

RUNS = int(os.environ.get("PI_DURABLE_TEST_RUNS", "8"))
KILLS = int(os.environ.get("PI_DURABLE_TEST_KILLS", "5"))
SLOW_SECONDS = float(os.environ.get("PI_DURABLE_TEST_SLOW", "0.05"))
"""How long an answer takes, and a tool before and after its effect: long enough to be killed on the way."""

AT_A_TIME = 9
"""Runs at a time, of all workers together."""

SEED = int(os.environ.get("PI_DURABLE_TEST_SEED", "1"))
TURNS = [["safe"], ["keyed"], ["never"], ["safe", "keyed", "never"], ["never", "never"]]


def progress(site) -> int:
    """How much was asked and done so far."""
    return len(site.lines("requests")) + len(site.lines("effects"))


@pytest.mark.timeout(1800)
def test_every_run_ends_whole_and_no_effect_is_doubled(site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_DURABLE_SITE_SLOW", str(SLOW_SECONDS))
    chance = random.Random(SEED)
    count = 1 if site.url.startswith("sqlite") else 3
    concurrency = str(AT_A_TIME // count)
    runs = [site.start(f"r{n}", *TURNS, delay=SLOW_SECONDS) for n in range(RUNS)]
    workers = [site.worker("--concurrency", concurrency) for _ in range(count)]
    whole = RUNS * (len(TURNS) + 1 + sum(map(len, TURNS)))
    for killed in range(KILLS):
        # The next one dies somewhere on the way to its share of the work.
        mark = min(progress(site) + chance.randrange(whole // KILLS + 1), whole * (killed + 1) // KILLS)
        site.until(lambda mark=mark: progress(site) >= mark)
        position = chance.randrange(count)
        site.kill(workers[position])
        workers[position] = site.worker("--concurrency", concurrency)
    transcripts = {run: site.ended(run) for run in runs}

    unknown = 0
    for run, messages in transcripts.items():
        assert site.runs.info(run).state == "done"
        roles = [message.role for message in messages]
        assert roles == [
            "user",
            *(role for calls in TURNS for role in ["assistant", *["toolResult"] * len(calls)]),
            "assistant",
        ]
        asked = [call.id for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
        results = [message for message in messages if isinstance(message, ToolResultMessage)]
        assert [result.tool_call_id for result in results] == asked
        texts = [f"{run}-{turn}-{n}" for turn, calls in enumerate(TURNS) for n in range(len(calls))]
        for text, result in zip(texts, results, strict=True):
            done = site.effects(text)
            if result.tool_name == "note_never":
                assert len(done) <= 1, text
                unknown += result.is_error
                assert result.is_error or len(done) == 1, text
            else:
                assert result.content[0].text == f"noted {text}"
                assert done
                assert len({effect["key"] for effect in done}) == 1
    pids = defaultdict(list)
    for request in site.lines("requests"):
        pids[request["name"], request["turn"]].append(request["pid"])
    assert len(pids) == RUNS * (len(TURNS) + 1)
    # Who asks again is another process: an answer that was kept is not asked for again by the one that has it.
    assert all(len(set(asked)) == len(asked) for asked in pids.values())
    again = sum(len(asked) - 1 for asked in pids.values())
    print(f"{RUNS} runs, {KILLS} kills: {again} requests made again, {unknown} outcomes unknown")
