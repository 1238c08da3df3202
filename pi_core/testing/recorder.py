"""A plugin that takes part in nothing and remembers which hooks were called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._manager import CORE_SPECS, Spec, read_specs
from ..markers import Kind, hookimpl


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook.

    :param arguments: what the hook was called with, by name.
    """

    hook: str
    arguments: Mapping[str, Any]


class HookRecorder:
    """A plugin that implements every hook, answers none, and keeps the calls.

    It comes first, so that it is also called where the first answer counts, and sees what a chain was called with.

    :param offered: modules or classes with hooks that other plugins offer, to record these too.
    """

    name = "hook_recorder"

    def __init__(self, *offered: object) -> None:
        self.calls: list[HookCall] = []
        specs: dict[str, Spec] = {**CORE_SPECS}
        for holder in offered:
            specs.update(read_specs(holder))
        for name, spec in specs.items():
            setattr(self, name, hookimpl(tryfirst=True, optionalhook=True)(_recording(name, spec, self.calls)))

    @property
    def names(self) -> list[str]:
        """The hooks that were called, in order."""
        return [call.hook for call in self.calls]

    def of(self, hook: str) -> list[HookCall]:
        """The calls of one hook."""
        return [call for call in self.calls if call.hook == hook]

    def clear(self) -> None:
        """Forget all calls."""
        self.calls.clear()

    def assert_called(self, *hooks: str) -> None:
        """Check that hooks were called in this order; others may have been called in between.

        :raises AssertionError: one was not, or not after the one before it.
        """
        names = self.names
        position = 0
        for index, hook in enumerate(hooks):
            if hook not in names[position:]:
                after = f" after {' > '.join(hooks[:index])}" if index else ""
                raise AssertionError(f"{hook} was not called{after}. Calls: {' > '.join(names) or 'none'}")
            position = names.index(hook, position) + 1

    def assert_not_called(self, *hooks: str) -> None:
        """Check that hooks were not called.

        :raises AssertionError: one was.
        """
        called = [hook for hook in hooks if hook in self.names]
        assert not called, f"{', '.join(called)} called. Calls: {' > '.join(self.names)}"


def _recording(hook: str, spec: Spec, calls: list[HookCall]) -> Callable[..., Any]:
    def record(*given: Any) -> Any:
        calls.append(HookCall(hook, dict(zip(spec.arguments, given, strict=True))))
        return () if spec.contract.kind is Kind.REGISTER else None

    # pluggy reads the names of the arguments from the code object, so there has to be one with the hook's own.
    names = ", ".join(spec.arguments)
    recording: Callable[..., Any] = eval(f"lambda {names}: record({names})", {"record": record})
    recording.__name__ = recording.__qualname__ = hook
    return recording
