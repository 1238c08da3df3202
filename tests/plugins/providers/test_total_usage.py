"""The sum of what several responses used."""

from __future__ import annotations

from pi_core import Cost, Usage
from pi_plugins.providers.tokens import total_usage


def test_counts_and_costs_are_added_up() -> None:
    first = Usage(input=1, output=2, cache_read=3, total_tokens=6, cost=Cost(input=0.5, total=0.5))
    second = Usage(input=10, reasoning=4, total_tokens=14, cost=Cost(output=0.25, total=0.25))
    assert total_usage([first, second]) == Usage(
        input=11,
        output=2,
        cache_read=3,
        reasoning=4,
        total_tokens=20,
        cost=Cost(input=0.5, output=0.25, total=0.75),
    )


def test_a_count_that_nobody_has_stays_absent() -> None:
    assert total_usage([]) == Usage()
    assert total_usage([Usage(input=1)]).reasoning is None
