"""What a hook call costs beside a hand-written loop over the same functions, with ``n`` plugins that are ``async``.

Four kinds of answers are combined, by the loops as by the framework. The case ``NAME_loop`` is the floor of ``NAME``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from pi_core import (
    AgentMessage,
    AssistantMessage,
    Block,
    Hooks,
    RunContext,
    ToolCall,
    ToolCallContent,
    ToolContext,
    TurnEndEvent,
    hookimpl,
    user_message,
)

from .ours import ECHO
from .work import Work

CALLS: Final = 20_000
"""How often a hook is called in one measurement."""

Function: TypeAlias = Callable[..., Awaitable[Any]]


class Plugin:
    """A plugin that looks at everything and changes nothing."""

    @hookimpl
    async def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> None:
        return None

    @hookimpl
    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> None:
        return None

    @hookimpl
    async def get_api_key(self, provider: str, ctx: RunContext) -> None:
        return None

    @hookimpl
    async def on_turn_end(self, event: TurnEndEvent, ctx: RunContext) -> None:
        return None


async def _each(functions: Sequence[Function], event: TurnEndEvent, ctx: RunContext) -> None:
    for function in functions:
        await function(event, ctx)


async def _fold(functions: Sequence[Function], messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage]:
    for function in functions:
        answer = await function(messages, ctx)
        if answer is not None:
            messages = answer
    return messages


async def _ask(functions: Sequence[Function], call: ToolCall, ctx: RunContext) -> ToolCall | Block:
    for function in functions:
        verdict = await function(call, ctx)
        if verdict is not None:
            return verdict  # type: ignore[no-any-return]
    return call


async def _find(functions: Sequence[Function], provider: str, ctx: RunContext) -> str | None:
    for function in functions:
        key = await function(provider, ctx)
        if key is not None:
            return key  # type: ignore[no-any-return]
    return None


def _call(message: AssistantMessage) -> ToolCall:
    content = ToolCallContent(id="call_0_0", name="echo", arguments={"x": 1})
    return ToolCall(content, {"x": 1}, ECHO, message, ToolContext(content.id))


_MESSAGE = AssistantMessage(content=[], api="scripted", provider="scripted", model="scripted")
_HOOKS: dict[str, tuple[str, Callable[..., Awaitable[Any]], Any]] = {
    "notify": ("on_turn_end", _each, TurnEndEvent(_MESSAGE, [])),
    "chain": ("transform_context", _fold, [user_message("hi")]),
    "guard": ("before_tool_call", _ask, _call(_MESSAGE)),
    "first": ("get_api_key", _find, "scripted"),
}
KINDS: Final = tuple(_HOOKS)


def _work(call: Callable[[Any, RunContext], Awaitable[Any]], value: Any) -> Work:
    ctx = RunContext()
    answers: list[Any] = []

    async def run() -> None:
        for _ in range(CALLS):
            answer = await call(value, ctx)
        answers.append(answer)

    def check() -> None:
        assert answers
        assert answers[-1] in (None, value)

    return Work(run, check, warm_ups=1)


def _through_hooks(kind: str) -> Callable[[int], Work]:
    hook, _, value = _HOOKS[kind]
    return lambda n: _work(getattr(Hooks.over(*[_named(number) for number in range(n)]), hook), value)


def _by_hand(kind: str) -> Callable[[int], Work]:
    hook, loop, value = _HOOKS[kind]
    return lambda n: _work(partial(loop, [getattr(_named(number), hook) for number in range(n)]), value)


def _named(number: int) -> Plugin:
    plugin = Plugin()
    plugin.name = f"plugin{number}"  # type: ignore[attr-defined]
    return plugin


CASES = {kind: _through_hooks(kind) for kind in KINDS} | {f"{kind}_loop": _by_hand(kind) for kind in KINDS}
