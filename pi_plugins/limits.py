"""Limits of a run: turns, cost and wall time. What stops it is said in the transcript."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pi_core import Model, ModelCost, RunContext, SelectionContext, StashKey, Turn, hookimpl

_log = logging.getLogger("pi.limits")


@dataclass(slots=True)
class Used:
    """What was used so far of the limits.

    :param began: when it began, on the monotonic clock.
    :param cost: US dollars.
    """

    began: float = field(default_factory=time.monotonic)
    turns: int = 0
    cost: float = 0.0
    timer: asyncio.TimerHandle | None = None


USED: StashKey[Used] = StashKey("limits")
"""What a run has used. Who makes several runs of one request, such as further attempts, gives all of them the same."""


class LimitsPlugin:
    """Ends a run that goes on for too long.

    A run that has used up its turns or its money ends after the turn, before the next request. Time that is up aborts
    the request or the tools that are running.
    """

    class Options(BaseModel):
        """Options of the plugin; ``None`` is no limit.

        :param turns: most turns of one run.
        :param cost_usd: US dollars of one run; the turn that passes it is the last one.
        :param seconds: wall time of one run.
        """

        model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

        turns: Annotated[int, Field(ge=1)] | None = None
        cost_usd: Annotated[float, Field(gt=0)] | None = None
        seconds: Annotated[float, Field(gt=0)] | None = None

    def __init__(self) -> None:
        self._limits = self.Options()

    @hookimpl
    def configure(self, options: Options) -> None:
        """Take the options."""
        self._limits = options

    @hookimpl
    async def resolve_model(
        self, name: str | None, ctx: SelectionContext, *, proceed: Callable[..., Awaitable[Model | None]]
    ) -> Model | None:
        """Tell the user when the model has no prices, so that a limit of cost has no effect."""
        model = await proceed()
        limit = self._limits.cost_usd
        if limit is not None and model is not None and model.cost == ModelCost():
            ctx.notice(f"No prices are known for {model.provider}/{model.id}: the limit of ${limit:g} has no effect")
        return model

    @hookimpl
    def on_agent_start(self, ctx: RunContext) -> None:
        """Start the clock."""
        used = ctx.stash.setdefault(USED, Used)
        if self._limits.seconds is not None:
            left = used.began + self._limits.seconds - time.monotonic()
            used.timer = asyncio.get_running_loop().call_later(left, self._stop, ctx, self._late())

    @hookimpl
    def on_agent_end(self, ctx: RunContext) -> None:
        """Stop the clock."""
        timer = ctx.stash.setdefault(USED, Used).timer
        if timer is not None:
            timer.cancel()

    @hookimpl
    def should_stop_after_turn(self, turn: Turn, ctx: RunContext) -> bool | None:
        """End a run that has used up a limit: explained in the transcript when the model wants to go on."""
        used = ctx.stash.setdefault(USED, Used)
        used.turns += 1
        used.cost += turn.message.usage.cost.total
        reason = self._passed(used)
        if reason is None:
            return None
        if turn.tool_results and self._stop(ctx, reason):
            return None
        _log.info("%s", reason)
        return True

    def _passed(self, used: Used) -> str | None:
        limits, turns = self._limits, used.turns
        if limits.turns is not None and turns >= limits.turns:
            return f"Stopped after {turns} turn{'s' * (turns > 1)}: limits.turns is {limits.turns}"
        if limits.cost_usd is not None and used.cost >= limits.cost_usd:
            return f"Stopped after ${used.cost:.4g}: limits.cost_usd is {limits.cost_usd:g}"
        if limits.seconds is not None and time.monotonic() - used.began >= limits.seconds:
            return self._late()
        return None

    def _late(self) -> str:
        return f"Stopped after {self._limits.seconds:g} s: limits.seconds is {self._limits.seconds:g}"

    @staticmethod
    def _stop(ctx: RunContext, reason: str) -> bool:
        """Abort the run with a reason. A bare loop cannot be aborted from here; it ends after the turn."""
        with contextlib.suppress(RuntimeError):
            ctx.abort(reason)
            return True
        return False
