"""A worker: plays runs of one build, brings them what was sent to them, and takes over those of workers that died."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dbos import DBOS, DBOSClient, WorkflowStatus
from sqlalchemy.engine import URL

from pi_core import Agent, AssistantMessage, Build, CustomMessage, parse_message

from . import DbosOptions, DbosPlugin
from ._engine import RUNS, launch, open_client, prepare
from ._limits import Limits
from ._liveness import Liveness, liveness
from ._locks import LockedBuild, differences, locked_build
from ._mail import FOLLOWED, GIVEN_UP, RESCUES, mail_of
from ._records import Json
from ._run import DurableRun
from ._workflows import RUN, TICKET, serve

_QUEUE_SECONDS: Final = 0.2
_REFUSED_EVERY: Final = 5
"""Runs of other builds are looked for at every fifth scan."""
_REFUSED_MOST: Final = 100
_UNSTARTED_MOST: Final = 10
"""A run that was given to this worker and that it has not begun after so many scans is put back."""

_FOR_EVER: Final = 10**9


@dataclass(slots=True)
class _Active:
    run: DurableRun
    loop: asyncio.AbstractEventLoop


class Worker:
    """Plays runs until it is stopped.

    :param build: the build file; its lock must be what is installed.
    :param url: the database.
    :param options: of the plugin, unless the build has the plugin, with its own.
    :param concurrency: most runs at a time. The engine keeps it, so the worker that was started last sets it for all.
    :param scan_seconds: how often it looks for mail and for dead workers.
    :param say: tells people, a line at a time.
    :param on_agent: called with the agent of each run before it begins, to subscribe to its events.
    :raises ConfigError: what is installed is not what is locked, or the database cannot be used.
    """

    def __init__(
        self,
        build: Path,
        url: URL,
        options: DbosOptions,
        *,
        concurrency: int = 4,
        scan_seconds: float = 1.0,
        say: Callable[[str], None] = print,
        on_agent: Callable[[Agent], object] | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.locked: LockedBuild = locked_build(build)
        self._build = Build.load(build)
        self._types: dict[str, type[CustomMessage]] = dict(self._build.registry.message_types.items())
        self._url = url
        self._options = _options_of(self._build) or options
        self._concurrency = concurrency
        self._scan_seconds = scan_seconds
        self._say = say
        self._on_agent = on_agent
        self._active: dict[str, _Active] = {}
        self._unstarted: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._client: DBOSClient | None = None
        self._limits: Limits | None = None

    def work(self, stop: threading.Event, *, patience_seconds: float = 30.0) -> None:
        """Play runs until ``stop`` is set, then let those that are running end.

        :param patience_seconds: how long to wait for them; those that are left are for other workers to take over.
        :raises ConfigError: the database cannot be used.
        """
        prepare(self._url)
        client = self._client = open_client(self._url)
        alive = liveness(self._url, self.name)
        limits = self._limits = Limits(self._options.limits, client, self.locked.version)
        serve(self._play)
        launch(self._url, version=self.locked.version, executor=self.name)
        limits.register()
        DBOS.register_queue(
            RUNS,
            worker_concurrency=self._concurrency,
            polling_interval_sec=_QUEUE_SECONDS,
            on_conflict="always_update",
        )
        self._say(f"worker {self.name} is ready: build {self.locked.version}, {self._concurrency} runs at a time")
        scans = 0
        while not stop.wait(self._scan_seconds):
            self._trying(partial(self._scan, client, alive, refused=scans % _REFUSED_EVERY == 0))
            scans += 1
        # The engine stops taking runs at once, and waits. It is not given an end to its wait, at which it would cancel
        # the tools that run: an end of the process leaves their outcome open, and the next worker says so.
        leaving = threading.Thread(target=lambda: DBOS.destroy(workflow_completion_timeout_sec=_FOR_EVER), daemon=True)
        leaving.start()
        deadline = time.monotonic() + patience_seconds
        while leaving.is_alive() and (left := deadline - time.monotonic()) > 0:
            leaving.join(min(left, self._scan_seconds))
            self._trying(partial(self._bring_mail, client))
        if leaving.is_alive():
            self._say(f"left to other workers: {', '.join(self._active)}")
        else:
            alive.close()

    def _trying(self, look: Callable[[], None]) -> None:
        """Look after the runs; what fails is said, and tried again the next time."""
        try:
            look()
        except Exception as error:
            self._say(f"looking after the runs failed, and is tried again: {error}")

    # --- playing ---

    async def _play(self, run_id: str, given: Json) -> Json:
        """Play a run from the start or from where its last worker left it, and return its outcome."""
        client, limits = self._client, self._limits
        assert client is not None
        assert limits is not None
        status, recorded = await asyncio.to_thread(_kept, client, run_id)
        agent = await self._build.create_agent(model=given.get("model"))
        run = DurableRun(
            run_id,
            agent,
            recorded=recorded,
            owner=uuid4().hex,
            rules=self._options.replay,
            admit=limits.admit,
        )
        if self._on_agent is not None:
            self._on_agent(agent)
        _bring(run, status)
        self._active[run_id] = _Active(run, asyncio.get_running_loop())
        try:
            messages = await agent.prompt([parse_message(data, self._types) for data in given["messages"]])
        finally:
            del self._active[run_id]
        if run.lost is not None:
            raise run.lost
        last = messages[-1] if messages else None
        outcome: Json = {"tail": run.tail(), "messages": len(messages), "stopReason": "stop"}
        if isinstance(last, AssistantMessage):
            outcome["stopReason"] = last.stop_reason
            if last.error_message:
                outcome["error"] = last.error_message
        return outcome

    # --- looking after runs ---

    def _scan(self, client: DBOSClient, alive: Liveness, *, refused: bool) -> None:
        alive.keep()
        self._bring_mail(client)
        self._rescue(client, alive)
        if refused:
            self._name_refused(client)

    def _bring_mail(self, client: DBOSClient) -> None:
        active = dict(self._active)
        if active:
            for status in client.list_workflows(workflow_ids=list(active), load_input=False, load_output=False):
                found = active[status.workflow_id]
                found.loop.call_soon_threadsafe(_bring, found.run, status)

    def _rescue(self, client: DBOSClient, alive: Liveness) -> None:
        """Take over what workers had that are dead, and what this one was given and never began."""
        pending = _pending(client)
        given = [run for run in pending if run.executor_id == self.name and run.name == RUN]
        unstarted = [run for run in given if run.workflow_id not in self._active]
        self._unstarted = Counter({run.workflow_id: self._unstarted[run.workflow_id] + 1 for run in unstarted})
        for run in unstarted:
            if self._unstarted[run.workflow_id] > _UNSTARTED_MOST:
                self._take_over(client, run)
        workers = {run.executor_id for run in pending if run.executor_id}
        for worker in workers - {self.name}:
            with alive.dead(worker) as dead:
                if dead:
                    # Read again: until now somebody else may have taken them over.
                    for run in _pending(client, worker):
                        self._take_over(client, run)

    def _take_over(self, client: DBOSClient, run: WorkflowStatus) -> None:
        """Put a run or a ticket back into its queue."""
        rescues = int((run.attributes or {}).get(RESCUES, 0)) + 1
        if run.name == RUN and rescues > self._options.max_rescues:
            why = f"{rescues} workers died with it"
            client.update_workflow_attributes(run.workflow_id, {GIVEN_UP: why}, merge=True)
            client.cancel_workflow(run.workflow_id)
            self._say(f"run {run.workflow_id} is given up: {why}")
            return
        if run.name == RUN:
            client.update_workflow_attributes(run.workflow_id, {RESCUES: rescues}, merge=True)
        client.resume_workflow(run.workflow_id, queue_name=run.queue_name or RUNS)
        self._say(f"run {run.workflow_id} is taken over from {run.executor_id}")

    def _name_refused(self, client: DBOSClient) -> None:
        """Say once of each run that waits for another build what differs."""
        waiting = client.list_workflows(
            name=RUN, status="ENQUEUED", limit=_REFUSED_MOST, load_input=False, load_output=False
        )
        others = [run.workflow_id for run in waiting if run.app_version != self.locked.version]
        new = [run_id for run_id in others if run_id not in self._refused]
        self._refused.update(new)
        for run in client.list_workflows(workflow_ids=new, load_output=False) if new else ():
            wanted = run.input["args"][0]["lock"] if run.input else {}
            lines = differences(wanted, self.locked.parts)
            self._say(f"run {run.workflow_id} is refused, its build is another one: {'; '.join(lines)}")


def _options_of(build: Build) -> DbosOptions | None:
    """Return the plugin's options in a build."""
    return next((record.plugin.options for record in build.plugins if isinstance(record.plugin, DbosPlugin)), None)


def _kept(client: DBOSClient, run_id: str) -> tuple[WorkflowStatus, dict[int, Any]]:
    """Return what the engine keeps of a run: its row, and the outputs of its steps."""
    [status] = client.list_workflows(workflow_ids=[run_id], load_input=False, load_output=False)
    steps = client.list_workflow_steps(run_id)
    return status, {step["function_id"]: step["output"] for step in steps if step["output"] is not None}


def _pending(client: DBOSClient, worker: str | None = None) -> list[WorkflowStatus]:
    """Return the runs and tickets that a worker has, or all that any has."""
    return client.list_workflows(
        name=[RUN, TICKET], status="PENDING", executor_id=worker, load_input=False, load_output=False
    )


def _bring(run: DurableRun, status: WorkflowStatus) -> None:
    """Bring a run what was sent to it."""
    attributes = status.attributes or {}
    if attributes.get(FOLLOWED):
        run.follow()
    run.deliver(mail_of(attributes))
