"""The workflows that the engine knows: a run, and a ticket for a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from dbos import DBOS

from pi_core import PiError

from ._records import Json

RUN: Final = "pi.run"
TICKET: Final = "pi.ticket"

Play: TypeAlias = Callable[[str, Json], Awaitable[Json]]

_plays: list[Play] = []


def serve(play: Play) -> None:
    """Let this process play runs.

    :param play: gets the id of a run and what it was started with, and returns its outcome.
    """
    _plays[:] = [play]


@DBOS.workflow(name=RUN, max_recovery_attempts=None)
async def run(given: Json) -> Json:
    """Play one run."""
    run_id = DBOS.workflow_id
    if not _plays or run_id is None:
        raise PiError("this process plays no runs: start it with 'pi worker'")
    return await _plays[0](run_id, given)


@DBOS.workflow(name=TICKET)
async def ticket() -> None:
    """Do nothing: that the engine's limited queue lets it start is what it is for."""
