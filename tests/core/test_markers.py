from __future__ import annotations

import pytest

from pi_core import Contract, Kind, OnError, contract_of, hookspec


async def change(values: list[int], other: str) -> list[int] | None:
    """Change."""


def test_the_kind_says_what_the_contract_does_not() -> None:
    contract = contract_of(hookspec(Kind.NOTIFY)(change))
    assert contract == Contract(Kind.NOTIFY, OnError.ISOLATE, is_async=True, wrappers=True, copies=())


@pytest.mark.parametrize(
    ("kind", "on_error", "wrappers"),
    [
        (Kind.REGISTER, OnError.FAIL_BUILD, False),
        (Kind.NOTIFY, OnError.ISOLATE, True),
        (Kind.RECORD, OnError.FAIL_RUN, True),
        (Kind.FIRST, OnError.FAIL_RUN, True),
        (Kind.COLLECT, OnError.FAIL_RUN, True),
        (Kind.CHAIN, OnError.FAIL_RUN, True),
        (Kind.GUARD, OnError.BLOCK, False),
    ],
)
def test_the_rule_of_each_kind(kind: Kind, on_error: OnError, wrappers: bool) -> None:
    def sync() -> None:
        """Do nothing."""

    contract = contract_of(hookspec(kind, copies=())(sync))
    assert contract == Contract(kind, on_error, is_async=False, wrappers=wrappers)


def test_a_chain_copies_what_it_folds() -> None:
    contract = contract_of(hookspec(Kind.CHAIN)(change))
    assert contract is not None
    assert contract.copies == ("values",)
    contract = contract_of(hookspec(Kind.CHAIN, copies=["other"])(change))
    assert contract is not None
    assert contract.copies == ("other",)


def test_what_is_no_mark_is_refused() -> None:
    with pytest.raises(TypeError, match=r"hookspec needs a kind, as in @hookspec\(Kind.NOTIFY\), got <function"):
        hookspec(change)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hook change has no argument 'valuez' to copy"):
        hookspec(Kind.CHAIN, copies=["valuez"])(change)


def test_what_is_no_hook_has_no_contract() -> None:
    assert contract_of(len) is None
    assert contract_of(None) is None
