"""Notes in the transcript: people read all of them, a model those that are meant for it."""

from typing import Literal

from pi_core import CustomMessage, UserMessage, hookimpl


class Note(CustomMessage):
    """A note.

    :param author: who wrote it.
    :param for_model: whether a model reads it.
    """

    role: Literal["note"] = "note"
    author: str
    body: str
    for_model: bool = True

    def to_llm(self):
        """What a model reads in place of it."""
        return [UserMessage(content=f"Note by {self.author}: {self.body}")] if self.for_model else []

    def to_text(self):
        """What people read."""
        return f"{self.author}: {self.body}"


class NotesPlugin:
    """Registers the message type, so that a transcript with notes is read with them."""

    requires = "pi-agent-framework>=0.1.0"

    @hookimpl
    def register_message_types(self):
        """Offer the type."""
        return [Note]
