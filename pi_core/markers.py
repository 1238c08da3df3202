"""The markers of hooks, and the contract each hook carries.

The contract says how the answers of several plugins combine and what an exception does. The driver, the reference page
and the contract tests all read the object that is attached to the hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

import pluggy

PROJECT: Final = "pi"
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

hookimpl: Final = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of the hook of its name."""

_mark_spec: Final = pluggy.HookspecMarker(PROJECT)


class Kind(Enum):
    """How the answers of several implementations combine."""

    REGISTER = "register"
    NOTIFY = "notify"
    RECORD = "record"
    FIRST = "first"
    COLLECT = "collect"
    CHAIN = "chain"
    GUARD = "guard"


class OnError(Enum):
    """What an exception of an implementation does."""

    FAIL_BUILD = "fails the build, or drops the plugin and reports it"
    FAIL_RUN = "fails the run"
    ERROR_RESULT = "becomes the error result of the tool call"
    ERROR_MESSAGE = "ends the response with an error message"
    ISOLATE = "is reported through plugin_error, the others run; three in a run switch the implementation off for it"
    BLOCK = "blocks what was asked for and is reported through plugin_error"
    LOG = "is logged"


_RAISE: Final = (OnError.FAIL_RUN, OnError.FAIL_BUILD, OnError.ERROR_RESULT, OnError.ERROR_MESSAGE)
_ON_ERROR: Final[Mapping[Kind, tuple[OnError, ...]]] = {
    Kind.REGISTER: (OnError.FAIL_BUILD,),
    Kind.NOTIFY: (OnError.ISOLATE, OnError.LOG, *_RAISE),
    Kind.RECORD: _RAISE,
    Kind.FIRST: _RAISE,
    Kind.COLLECT: _RAISE,
    Kind.CHAIN: _RAISE,
    Kind.GUARD: (OnError.BLOCK,),
}
"""What an exception may do in a hook of each kind, the kind's own rule first."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What holds for one hook.

    :param kind: how answers combine.
    :param on_error: what an exception does.
    :param is_async: whether implementations may be ``async def``.
    :param wrappers: whether it may be wrapped: by a generator (``@hookimpl(wrapper=True)``) or, when async, by
        ``async def hook(..., *, proceed)``.
    :param copies: the arguments of which each implementation gets a copy of its own.
    """

    kind: Kind
    on_error: OnError
    is_async: bool
    wrappers: bool
    copies: tuple[str, ...] = ()


_ATTRIBUTE: Final = "__pi_contract__"


def hookspec(
    kind: Kind,
    *,
    on_error: OnError | None = None,
    wrappers: bool | None = None,
    copies: Sequence[str] | None = None,
    warn_on_impl: Warning | None = None,
    warn_on_impl_args: Mapping[str, Warning] | None = None,
) -> Callable[[FunctionT], FunctionT]:
    """Mark a function as a hook of a kind; ``async def`` says that implementations may be asynchronous.

    :param on_error: differs from the kind's rule.
    :param wrappers: ``False`` refuses wrappers; guards and register hooks refuse them by default.
    :param copies: arguments of which each implementation gets a copy: lists, dicts, and records that hold such. A chain
        copies its first argument by default, the others none.
    :param warn_on_impl: issued when a plugin implements the hook, because it is deprecated.
    :param warn_on_impl_args: issued when an implementation takes an argument, by its name.
    :raises TypeError: ``kind`` is none, or ``copies`` names an argument that the function does not have.
    :raises ValueError: an exception cannot do that in a hook of this kind.
    """
    if not isinstance(kind, Kind):
        raise TypeError(f"hookspec needs a kind, as in @hookspec(Kind.NOTIFY), got {kind!r}")
    if on_error is not None and on_error not in _ON_ERROR[kind]:
        known = ", ".join(found.name for found in _ON_ERROR[kind])
        raise ValueError(f"an exception in a {kind.value} hook cannot be {on_error.name}, only {known}")

    def mark(function: FunctionT) -> FunctionT:
        arguments = [name for name in inspect.signature(function).parameters if name != "self"]
        copied = tuple(copies if copies is not None else arguments[:1] if kind is Kind.CHAIN else ())
        for name in copied:
            if name not in arguments:
                raise TypeError(f"hook {function.__name__} has no argument '{name}' to copy")
        contract = Contract(
            kind=kind,
            on_error=on_error or _ON_ERROR[kind][0],
            is_async=inspect.iscoroutinefunction(function),
            wrappers=kind not in (Kind.GUARD, Kind.REGISTER) if wrappers is None else wrappers,
            copies=copied,
        )
        setattr(function, _ATTRIBUTE, contract)
        return _mark_spec(
            function,
            firstresult=kind is Kind.FIRST,
            warn_on_impl=warn_on_impl,
            warn_on_impl_args=warn_on_impl_args,
        )

    return mark


def contract_of(function: object) -> Contract | None:
    """Return the contract of a hook, ``None`` if the function is not marked as one."""
    contract = getattr(function, _ATTRIBUTE, None)
    return contract if isinstance(contract, Contract) else None
