"""How full a context is, and when it is too full."""

from __future__ import annotations

import pytest

from pi_core import ImageContent, UserMessage
from pi_plugins.config.settings import CompactionLimits, CompactionSettings
from pi_plugins.sessions.compaction import context_tokens, limits_for, message_tokens, should_compact
from pi_plugins.sessions.messages import BashExecutionMessage, CompactionSummaryMessage

from .compacting import assistant, model, result, user


def test_text_counts_a_token_for_four_characters_and_an_image_as_4800_of_them() -> None:
    assert message_tokens(user("x" * 401)) == 101
    assert message_tokens(UserMessage(content="x" * 8)) == 2
    assert message_tokens(UserMessage(content=[ImageContent(data="AAAA", mime_type="image/png")])) == 1200


def test_calls_and_results_count_as_the_model_reads_them() -> None:
    assert message_tokens(assistant("", ("1", "read", {"path": "abcdefg"}))) == (4 + len('{"path":"abcdefg"}') + 3) // 4
    assert message_tokens(result("1", "x" * 40)) == 10


def test_messages_that_the_model_does_not_read_count_nothing() -> None:
    assert message_tokens(BashExecutionMessage(command="ls", output="x" * 400, exclude_from_context=True)) == 0
    assert message_tokens(BashExecutionMessage(command="ls", output="x" * 400)) > 100


def test_the_last_report_is_taken_as_it_is_and_what_follows_is_estimated() -> None:
    messages = [user("x" * 4000), assistant("y" * 4000, tokens=70), user("z" * 40)]
    assert context_tokens(messages) == 80
    assert context_tokens(messages, fixed=500) == 80


def test_without_a_report_everything_is_estimated() -> None:
    assert context_tokens([user("x" * 400), assistant("y" * 40)], fixed=7) == 117


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_responses_that_failed_report_nothing(stop: str) -> None:
    messages = [assistant("a", tokens=50), assistant("b" * 40, tokens=9000, stop=stop)]
    assert context_tokens(messages) == 60


def test_responses_from_before_the_last_compaction_report_nothing() -> None:
    summary = CompactionSummaryMessage(summary="s", timestamp=100)
    old = assistant("y" * 40, tokens=90_000, timestamp=100)
    assert context_tokens([summary, old, user("z" * 40)]) == message_tokens(summary) + 20
    assert context_tokens([summary, old, assistant("n", tokens=600, timestamp=101)]) == 600


def test_a_context_is_too_full_when_it_reaches_into_the_reserve() -> None:
    settings = CompactionSettings(reserve_tokens=1000)
    assert not should_compact(9000, model(10_000), settings)
    assert should_compact(9001, model(10_000), settings)


def test_an_unknown_window_is_never_full() -> None:
    assert not should_compact(10**9, model(0), CompactionSettings())


def test_compaction_can_be_switched_off() -> None:
    assert not should_compact(10**9, model(10_000), CompactionSettings(enabled=False))


def test_a_model_has_limits_of_its_own_value_by_value() -> None:
    settings = CompactionSettings(
        reserve_tokens=1000,
        keep_recent_tokens=2000,
        model_overrides={"scripted/scripted": CompactionLimits(reserve_tokens=4000)},
    )
    limits = limits_for(settings, model(100_000))
    assert (limits.reserve_tokens, limits.keep_recent_tokens) == (4000, 2000)
    assert limits_for(settings).reserve_tokens == 1000
    assert should_compact(96_001, model(100_000), settings)


def test_limits_larger_than_the_window_shrink_with_it() -> None:
    limits = limits_for(CompactionSettings(), model(8192))
    assert (limits.reserve_tokens, limits.keep_recent_tokens) == (4096, 2048)
    assert not should_compact(4096, model(8192), CompactionSettings())
