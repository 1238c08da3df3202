"""What is sent to a run from outside: steering messages, follow-up messages and an abort.

They are attributes of the run's workflow, which anybody with the database can add to and which are never taken away.
What a run has taken is kept with its next answer, so that a run that is played again takes the same at the same place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast
from uuid import uuid4

from pi_core import AgentMessage, user_message

Kind: TypeAlias = Literal["steer", "followUp", "abort"]

PREFIX: Final = "pi.mail."
FOLLOWED: Final = "pi.followed"
"""The attribute of a run that somebody wants to follow."""
RESCUES: Final = "pi.rescues"
"""The attribute that counts how often a run was taken over."""
GIVEN_UP: Final = "pi.givenUp"
"""The attribute that says why a run was given up."""


@dataclass(frozen=True, slots=True)
class Mail:
    """Something sent to a run.

    :param key: unique, and in the order of sending.
    :param text: what a message says, or the reason of an abort.
    :param sent_ms: Unix milliseconds.
    """

    key: str
    kind: Kind
    text: str
    sent_ms: int

    @classmethod
    def new(cls, kind: Kind, text: str) -> Mail:
        """Make something to send."""
        now = time.time_ns()
        return cls(f"{PREFIX}{now:020d}.{uuid4().hex[:8]}", kind, text, now // 1_000_000)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Mail:
        """Make one of its JSON form with the key."""
        return cls(data["key"], cast("Kind", data["kind"]), data["text"], data["sentMs"])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form without the key."""
        return {"kind": self.kind, "text": self.text, "sentMs": self.sent_ms}

    def message(self) -> AgentMessage:
        """Return the message it is to the agent."""
        return user_message(self.text).model_copy(update={"timestamp": self.sent_ms})


def mail_of(attributes: Mapping[str, Any] | None) -> list[Mail]:
    """Return what was sent to a run, in the order of sending."""
    found = []
    for key, data in sorted((attributes or {}).items()):
        if key.startswith(PREFIX) and isinstance(data, dict):
            found.append(Mail.from_json({"key": key, **data}))
    return found
