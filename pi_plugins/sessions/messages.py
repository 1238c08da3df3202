"""The message types of sessions: commands of the user, texts of plugins, and summaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from pi_core import CustomMessage, ImageContent, Message, OpaqueContent, TextContent, UserMessage

from ._fences import fenced, fenced_inline

UserContent: TypeAlias = TextContent | ImageContent | OpaqueContent


class BashExecutionMessage(CustomMessage):
    """A command that the user ran himself, and what it printed.

    :param exit_code: ``None`` when the command was cancelled before it ended.
    :param truncated: whether ``output`` is only the end of what was printed.
    :param full_output_path: the file with all of it, when it was truncated.
    :param exclude_from_context: whether the model is told nothing of it.
    """

    role: Literal["bashExecution"] = "bashExecution"
    command: str
    output: str = ""
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False

    def to_llm(self) -> Iterable[Message]:
        """Return the command with its output, unless it is kept from the model."""
        if self.exclude_from_context:
            return ()
        return (_user(self.to_text(), self.timestamp),)

    def to_text(self) -> str:
        """Return the command, its output and how it ended."""
        parts = [f"Ran {fenced_inline(self.command)}"]
        parts.append(fenced(self.output) if self.output.strip() else "(no output)")
        if self.cancelled:
            parts.append("(the command was cancelled)")
        elif self.exit_code:
            parts.append(f"The command exited with code {self.exit_code}.")
        if self.truncated:
            where = f" All of it: {self.full_output_path}" if self.full_output_path else ""
            parts.append(f"(The beginning of the output is left out.{where})")
        return "\n".join(parts)


class CustomEntryMessage(CustomMessage):
    """What a plugin put into the session for the model to read.

    :param custom_type: the kind, as the plugin names it.
    :param display: whether people see it.
    :param details: data of the plugin that the model does not read.
    """

    role: Literal["custom"] = "custom"
    custom_type: str
    content: str | list[UserContent]
    display: bool = True
    details: Any = None

    def to_llm(self) -> Iterable[Message]:
        """Return the content as the user's."""
        content: list[UserContent] = [TextContent(text=self.content)] if isinstance(self.content, str) else self.content
        return (UserMessage(content=content, timestamp=self.timestamp),) if content else ()

    def to_text(self) -> str:
        """Return the text of it."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.text if isinstance(block, TextContent) else f"[{block.type}]" for block in self.content)


class CompactionSummaryMessage(CustomMessage):
    """The summary that stands for the messages before it.

    :param tokens_before: estimated tokens of the context when it was compacted.
    """

    role: Literal["compactionSummary"] = "compactionSummary"
    summary: str
    tokens_before: int = 0

    def to_llm(self) -> Iterable[Message]:
        """Return the summary with a word on what it is."""
        text = f"The conversation before this point is summarised here:\n\n<summary>\n{self.summary}\n</summary>"
        return (_user(text, self.timestamp),)

    def to_text(self) -> str:
        """Return the summary."""
        return self.summary


class BranchSummaryMessage(CustomMessage):
    """The summary of a branch that was left.

    :param from_id: the entry at which that branch ended; ``root`` if there was none.
    """

    role: Literal["branchSummary"] = "branchSummary"
    summary: str
    from_id: str

    def to_llm(self) -> Iterable[Message]:
        """Return the summary with a word on what it is."""
        text = f"Another line of work was left at this point. What it came to:\n\n<summary>\n{self.summary}\n</summary>"
        return (_user(text, self.timestamp),)

    def to_text(self) -> str:
        """Return the summary."""
        return self.summary


MESSAGE_TYPES: tuple[type[CustomMessage], ...] = (
    BashExecutionMessage,
    CustomEntryMessage,
    CompactionSummaryMessage,
    BranchSummaryMessage,
)
"""What this package registers."""


def _user(text: str, timestamp: int) -> UserMessage:
    return UserMessage(content=[TextContent(text=text)], timestamp=timestamp)
