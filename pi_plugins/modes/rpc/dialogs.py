"""Questions to the user over the wire: a request with an id, and the answer of the client, or none in time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pi_plugins.coding_agent import Answer, Question

REQUEST = "extension_ui_request"
RESPONSE = "extension_ui_response"


class Dialogs:
    """Asks the client and waits for its answers.

    :param send: writes a record.
    """

    def __init__(self, send: Callable[[Mapping[str, Any]], object]) -> None:
        self._send = send
        self._open: dict[str, asyncio.Future[Mapping[str, Any]]] = {}

    async def ask(self, question: Question) -> Answer:
        """Ask, and return the answer; an empty one when none comes in time."""
        identifier = str(uuid.uuid4())
        record: dict[str, Any] = {"type": REQUEST, "id": identifier, "method": question.kind, "title": question.title}
        match question.kind:
            case "select":
                record["options"] = list(question.options)
                if question.message:
                    record["message"] = question.message
            case "confirm":
                record["message"] = question.message
            case "input":
                record["placeholder"] = question.prefill or question.message
            case "editor":
                record["prefill"] = question.prefill
        if question.timeout is not None:
            record["timeout"] = round(question.timeout * 1000)
        future = self._open[identifier] = asyncio.get_running_loop().create_future()
        try:
            self._send(record)
            answer = await asyncio.wait_for(future, question.timeout)
        except TimeoutError:
            return Answer(None)
        finally:
            del self._open[identifier]
        if answer.get("cancelled") is True:
            return Answer(None)
        if question.kind == "confirm":
            return Answer("yes" if answer.get("confirmed") is True else "no")
        value = answer.get("value")
        return Answer(value if isinstance(value, str) else None)

    def answer(self, record: Mapping[str, Any]) -> bool:
        """Take the client's answer; ``False`` when no question of its id is open."""
        future = self._open.get(str(record.get("id")))
        if future is None or future.done():
            return False
        future.set_result(record)
        return True

    def notify(self, text: str, level: str) -> None:
        """Show the user a text."""
        self._send({"type": REQUEST, "id": str(uuid.uuid4()), "method": "notify", "message": text, "notifyType": level})

    def cancel(self) -> None:
        """Answer every open question with none: nobody is there any more."""
        for future in self._open.values():
            if not future.done():
                future.set_result({"cancelled": True})
