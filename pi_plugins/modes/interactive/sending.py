"""What becomes of what the user typed: a command of the shell, a slash command, or a message for the model."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from pi_core import ImageContent, PiError
from pi_plugins.sessions.messages import BashExecutionMessage

from ._images import named_images
from ._text import plain
from .typed import ShellLine, shell_line, unknown_command

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession
    from pi_plugins.coding_agent.inputs import Delivery

    from .conversation import Conversation

_OUTPUT_KEPT = 4_000


class Draft(Protocol):
    """What holds the text that is not sent yet."""

    def give_back(self, texts: Iterable[str]) -> None:
        """Put texts before what is typed."""


class Sender:
    """Takes inputs of the user for a session.

    :param editor: gets back what could not be sent.
    """

    def __init__(self, session: AgentSession, conversation: Conversation, editor: Draft) -> None:
        self._session = session
        self._conversation = conversation
        self._editor = editor
        self._typed: dict[str, str] = {}
        self.command = ""
        """The command of the user that runs; empty when none does."""
        self.output = ""
        """The end of what it has printed."""

    async def send(self, text: str, delivery: Delivery = "steer", images: Sequence[ImageContent] = ()) -> None:
        """Send an input; what fails is shown, and the text is given back.

        :param delivery: how it reaches a run that goes on.
        """
        if not text.strip():
            return
        line = shell_line(text)
        try:
            if line is not None:
                await self._run(line)
                return
            unknown = unknown_command(text, self._session)
            if unknown is not None:
                self._conversation.say(unknown, "warning")
                self._editor.give_back([text])
                return
            pictures = [*images, *await asyncio.to_thread(named_images, text, self._session.cwd)]
            if not text.startswith("/"):
                await self._session.compactor.wait()
            await self._submit(text, pictures, delivery)
        except PiError as error:
            self._conversation.say(str(error), "error")
            self._editor.give_back([text])

    async def _submit(self, text: str, images: Sequence[ImageContent], delivery: Delivery) -> None:
        """Submit a text, and remember what was typed when it waits as something else: a template, a skill."""
        if await self._session.submit(text, images, delivery=delivery) != "queued":
            return
        steering, later = self._session.steering.texts, self._session.follow_ups.texts
        waits_as = (steering if delivery == "steer" else later)[-1]
        waiting = {*steering, *later}
        self._typed = {long: typed for long, typed in self._typed.items() if long in waiting} | {waits_as: text}

    def as_typed(self, text: str) -> str:
        """Return what was typed for a text that waits."""
        return self._typed.get(text, text)

    async def _run(self, line: ShellLine) -> None:
        bash = self._session.bash
        if bash.active or not line.command:
            # The session says why not.
            await bash.run(line.command)
            return
        self.command, self.output = line.command, ""
        try:
            result = await bash.run(line.command, exclude_from_context=line.hidden, on_update=self._printed)
        finally:
            self.command, self.output = "", ""
        message = BashExecutionMessage(
            command=line.command, exclude_from_context=line.hidden, **dataclasses.asdict(result)
        )
        pending = self._conversation.show_message(message)
        if pending is not None:
            await pending

    def _printed(self, text: str) -> None:
        self.output = (self.output + plain(text))[-_OUTPUT_KEPT:]

    def give_back_queue(self) -> None:
        """Take what waits in the queues back into the editor."""
        steering, later = self._session.clear_queue()
        if steering or later:
            self._editor.give_back(map(self.as_typed, [*steering, *later]))

    def take_back_last(self) -> bool:
        """Take the message that was queued last back into the editor; ``False`` when none waits."""
        for queue in (self._session.follow_ups, self._session.steering):
            if len(queue):
                last = len(queue) - 1
                text = queue.texts[last]
                queue.take(last)
                self._editor.give_back([self.as_typed(text)])
                return True
        return False
