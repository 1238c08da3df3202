"""Durable runs from outside: start them, look at them, send to them, and follow them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from dbos import DBOSClient, WorkflowHandle, WorkflowStatus
from sqlalchemy.engine import URL

from pi_core import AgentMessage, ConfigError

from ._engine import RUNS, open_client, prepare
from ._follow import STREAM, Reader
from ._locks import LockedBuild
from ._mail import FOLLOWED, GIVEN_UP, RESCUES, Kind, Mail, mail_of
from ._records import ANSWER, Json, transcript
from ._workflows import RUN

State: TypeAlias = Literal["queued", "running", "done", "failed", "aborted", "given up"]

_STATES: Final[dict[str, State]] = {"ENQUEUED": "queued", "DELAYED": "queued", "PENDING": "running"}
_OVER: Final = ("done", "failed", "aborted", "given up")
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run.

    :param error: why it failed, was aborted or was given up.
    :param worker: the name of the one that has it, or had it last.
    :param rescues: how often it was taken over from a worker that died.
    :param version: names the lock of its build.
    :param created_ms: Unix milliseconds.
    """

    id: str
    state: State
    error: str | None
    worker: str | None
    rescues: int
    version: str | None
    created_ms: int | None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in _OVER

    def to_json(self) -> Json:
        """Return the JSON form."""
        return {
            "id": self.id,
            "state": self.state,
            "error": self.error,
            "worker": self.worker,
            "rescues": self.rescues,
            "build": self.version,
            "createdMs": self.created_ms,
        }


class Runs:
    """The runs of a database.

    :param url: the database.
    :param create: let the engine create its tables, or upgrade them.
    :raises ConfigError: the database cannot be used, or is not there.
    """

    def __init__(self, url: URL, *, create: bool = False) -> None:
        if create:
            prepare(url)
        self._client: DBOSClient = open_client(url)

    def close(self) -> None:
        """Let go of the database."""
        self._client.destroy()

    # --- starting ---

    def start(
        self,
        messages: Sequence[AgentMessage],
        build: LockedBuild,
        *,
        run_id: str | None = None,
        model: str | None = None,
        followed: bool = False,
    ) -> str:
        """Put a run into the queue and return its id; one that is there already stays what it is.

        :param run_id: names the run; a new id without one.
        :param model: in place of the build's.
        :param followed: whether somebody will follow it from the start.
        """
        given: Json = {"messages": [message.to_json() for message in messages], "lock": build.parts}
        if model is not None:
            given["model"] = model
        handle: WorkflowHandle[Json] = self._client.enqueue(
            {
                "workflow_name": RUN,
                "queue_name": RUNS,
                "workflow_id": run_id or uuid4().hex,
                "app_version": build.version,
                "attributes": {FOLLOWED: True} if followed else {},
            },
            given,
        )
        return handle.get_workflow_id()

    def resume(self, run_id: str, build: LockedBuild | None = None) -> None:
        """Put a run that has not ended, or was given up, back into the queue; nothing it has done is done again.

        :param build: lets workers of this build have it from now on.
        :raises ConfigError: there is no such run, or it has ended.
        """
        status = self._status(run_id)
        info = _info(status)
        if info.over and info.state != "given up":
            raise ConfigError(f"The run {run_id} is {info.state}. 'pi durable retry' makes its last request again")
        self._client.update_workflow_attributes(run_id, {GIVEN_UP: None, RESCUES: 0}, merge=True)
        if build is None:
            self._client.resume_workflow(run_id, queue_name=RUNS)
        else:
            self._client.cancel_workflow(run_id)
            self._rewind(run_id, None, build)

    def retry(self, run_id: str, build: LockedBuild | None = None) -> None:
        """Let a run that failed or was aborted go on from before the request that ended it.

        :param build: lets workers of this build have it from now on.
        :raises ConfigError: there is no such run, it has not ended, or it ended well.
        """
        status = self._status(run_id)
        info = _info(status)
        if info.state not in ("failed", "aborted"):
            raise ConfigError(f"The run {run_id} is {info.state}: only a run that failed or was aborted can be retried")
        handled = {mail.key: None for mail in mail_of(status.attributes) if mail.kind == "abort"}
        if handled:
            self._client.update_workflow_attributes(run_id, handled, merge=True)
        answers = [step for step in self._client.list_workflow_steps(run_id) if step["function_name"] == ANSWER]
        last = answers[-1] if answers else None
        ended_by = None if last is None or not _ended_run(last["output"]) else last["function_id"]
        self._rewind(run_id, ended_by, build)

    def _rewind(self, run_id: str, step: int | None, build: LockedBuild | None) -> None:
        """Forget what a run did from a step on, by default nothing, and put it back into the queue."""
        steps = self._client.list_workflow_steps(run_id)
        after_last = max((kept["function_id"] for kept in steps), default=0) + 1
        self._client.rewind_workflow(
            run_id,
            start_step=step or after_last,
            application_version=None if build is None else build.version,
            queue_name=RUNS,
        )

    # --- looking ---

    def find(self, *, prefix: str | None = None, limit: int | None = None) -> list[RunInfo]:
        """Return the runs, the newest first.

        :param prefix: only those whose id begins so.
        :param limit: at most so many.
        """
        found = self._client.list_workflows(
            name=RUN, workflow_id_prefix=prefix, limit=limit, sort_desc=True, load_input=False
        )
        return [_info(status) for status in found]

    def info(self, run_id: str) -> RunInfo:
        """Return what is known of a run.

        :raises ConfigError: there is no such run.
        """
        return _info(self._status(run_id))

    def transcript(self, run_id: str) -> list[AgentMessage]:
        """Return the messages of a run so far.

        :raises ConfigError: there is no such run.
        """
        output = self._status(run_id).output
        steps = {step["function_id"]: step["output"] for step in self._client.list_workflow_steps(run_id)}
        return transcript(steps, output["tail"] if isinstance(output, dict) else None)

    def undelivered(self, run_id: str) -> list[Mail]:
        """Return what was sent to a run and not taken by it.

        :raises ConfigError: there is no such run.
        """
        sent = mail_of(self._status(run_id).attributes)
        outputs = (step["output"] for step in self._client.list_workflow_steps(run_id))
        taken = {data["key"] for kept in outputs if isinstance(kept, dict) for data in kept.get("mail", ())}
        return [mail for mail in sent if mail.key not in taken]

    def follow(self, run_id: str) -> Iterator[Json]:
        """Return the events of a run as they happen, and at last what became of it.

        The messages so far come first, each as its end event.

        :raises ConfigError: there is no such run.
        """
        reader = Reader()
        if not self.info(run_id).over:
            self._client.update_workflow_attributes(run_id, {FOLLOWED: True}, merge=True)
            for entries in self._client.read_stream(run_id, STREAM, polling_interval_sec=_POLL_SECONDS):
                yield from reader.events(entries)
        yield from reader.rest([message.to_json() for message in self.transcript(run_id)])
        yield {"type": "run_end", **self.info(run_id).to_json()}

    # --- sending ---

    def send(self, run_id: str, kind: Kind, text: str) -> None:
        """Send something to a run; it gets there within about a second.

        :param text: what a message says, or the reason of an abort.
        :raises ConfigError: there is no such run, or it has ended.
        """
        info = self.info(run_id)
        if info.over:
            raise ConfigError(f"The run {run_id} is {info.state}: nothing can be sent to it any more")
        mail = Mail.new(kind, text)
        self._client.update_workflow_attributes(run_id, {mail.key: mail.to_json()}, merge=True)

    def _status(self, run_id: str) -> WorkflowStatus:
        found = self._client.list_workflows(workflow_ids=[run_id], name=RUN, load_input=False)
        if not found:
            raise ConfigError(f"There is no run '{run_id}' (pi durable list)")
        return found[0]


def _info(status: WorkflowStatus) -> RunInfo:
    attributes = status.attributes or {}
    state, error = _outcome(status)
    return RunInfo(
        id=status.workflow_id,
        state=state,
        error=error,
        worker=status.executor_id or None,
        rescues=int(attributes.get(RESCUES) or 0),
        version=status.app_version,
        created_ms=status.created_at,
    )


def _outcome(status: WorkflowStatus) -> tuple[State, str | None]:
    """Return the state of a run, and why it failed."""
    if status.status in _STATES:
        return _STATES[status.status], None
    if status.status == "SUCCESS":
        output: dict[str, Any] = status.output or {}
        if output["stopReason"] == "aborted":
            return "aborted", output.get("error")
        return ("failed", output.get("error")) if output["stopReason"] == "error" else ("done", None)
    if status.status == "ERROR":
        return "failed", str(status.error)
    return "given up", (status.attributes or {}).get(GIVEN_UP) or "it was cancelled in the engine"


def _ended_run(kept: Any) -> bool:
    """Whether a step is a request whose failure ended its run."""
    if not isinstance(kept, dict) or kept.get("answer") is None:
        return True
    return kept["answer"]["stopReason"] in ("error", "aborted")
