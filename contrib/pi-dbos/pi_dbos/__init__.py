"""Durable runs on DBOS: each answer and each tool effect is a recorded step, so that another process can go on.

DBOS is imported when a command or a worker needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from pi_core import Command, hookimpl

from .replay import Replay as Replay
from .replay import idempotency_key as idempotency_key

if TYPE_CHECKING:
    import click


class ProviderLimit(BaseModel):
    """How much all workers together may ask of a provider.

    :param requests_per_minute: most requests that start within any minute.
    :param tokens_per_minute: most tokens, as estimated before each request, within any minute.
    """

    model_config = ConfigDict(extra="forbid")

    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None


class DbosOptions(BaseModel):
    """Options of the plugin.

    :param database: where runs are kept, ``sqlite:///FILE`` or ``postgresql://...``; without it that of
        ``PI_DURABLE_DATABASE``, and without that a SQLite file in the user's folder.
    :param replay: what may be done with a call whose outcome was lost, by tool name or pattern; it comes before what
        the tool itself says.
    :param limits: by name of provider.
    :param max_rescues: how often a run may be taken over from a worker that died before it is given up.
    """

    model_config = ConfigDict(extra="forbid")

    database: str | None = Field(default=None, repr=False)
    replay: dict[str, Replay] = {}
    limits: dict[str, ProviderLimit] = {}
    max_rescues: Annotated[int, Field(ge=0)] = 100


class DbosPlugin:
    """Offers ``pi worker`` and ``pi durable``; a worker adds what makes its runs durable.

    :param options: as a build file would give them.
    """

    requires = "pi-agent-framework>=0.1.0"
    Options = DbosOptions

    def __init__(self, options: DbosOptions | None = None) -> None:
        self.options = options or DbosOptions()

    @hookimpl
    def configure(self, options: DbosOptions) -> None:
        """Take the options."""
        self.options = options

    @hookimpl
    def register_commands(self) -> Iterable[Command]:
        """Offer the commands."""
        return [
            Command("worker", "Run durable runs, also those of workers that died.", self._worker),
            Command("durable", "Start, follow, steer and list durable runs.", self._durable),
        ]

    def _worker(self) -> click.Command:
        from .commands import worker_command

        return worker_command(self.options)

    def _durable(self) -> click.Command:
        from .commands import durable_commands

        return durable_commands(self.options)
