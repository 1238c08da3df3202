"""How messages look that are no responses of the model, and how responses end."""

from __future__ import annotations

from typing import Final

from rich.console import Group
from rich.text import Text

from pi_core import AgentMessage, AssistantMessage, CustomMessage, ImageContent, TextContent, UserMessage
from pi_plugins.sessions.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomEntryMessage,
)

from . import marks
from ._markdown import Answer
from ._text import plain, tokens
from .blocks import LINE, Block, folded, lines_of
from .image_view import Picture

_USER_SHOWN: Final = 20
_OUTPUT_SHOWN: Final = 10
_ADVICE: Final = {
    401: "The key is not accepted: /login stores another one.",
    402: "The account has no credit left: add some, or choose another model with /model.",
    403: "The key may not use this model: choose another one with /model, or store another key with /login.",
    404: "The provider does not know the model: choose another one with /model.",
    413: "The request is too long: /compact makes the session shorter.",
    429: "The provider asks to slow down: wait a little, then say it again, or choose another model with /model.",
}


def message_block(message: AgentMessage) -> Block | None:
    """Return a message as it is shown; ``None`` for those that are not."""
    match message:
        case UserMessage():
            return _user(message)
        case BashExecutionMessage():
            return _command(message)
        case CustomEntryMessage():
            return (
                Block(Answer.parse(plain(message.to_text())), mark=marks.NOTE, style="accent")
                if message.display
                else None
            )
        case CompactionSummaryMessage():
            title = f"Compacted: a summary stands for {tokens(message.tokens_before)} tokens"
            return _summary(title, message.summary)
        case BranchSummaryMessage():
            return _summary("A summary of the branch that was left", message.summary)
        case CustomMessage():
            return Block(Text(plain(message.to_text())), mark=marks.NOTE, style="accent")
    return None


def user_text(message: UserMessage) -> str:
    """Return the text of a message."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextContent))


def _user(message: UserMessage) -> Block:
    text = user_text(message)
    images = [Picture(block) for block in message.content if isinstance(block, ImageContent)]
    lines = lines_of(text)
    shown, more = folded(lines, _USER_SHOWN, style="user", longest=LINE)
    return Block(
        Group(shown, *images) if images else shown,
        mark=marks.PROMPT,
        style="accent",
        whole=(lambda: Text(plain(text))) if more else None,
    )


def _command(message: BashExecutionMessage) -> Block:
    if message.cancelled:
        end = Text("cancelled", "warning")
    elif message.exit_code:
        end = Text(f"exit code {message.exit_code}", "error")
    else:
        end = None
    lines = lines_of(message.output)
    shown, more = folded(lines, _OUTPUT_SHOWN, end=True)
    head = Text(plain(message.command), "bold")
    if message.exclude_from_context:
        head.append(" · not for the model", "not bold dim")
    if message.full_output_path is not None:
        shown = Group(shown, Text(f"all of it: {message.full_output_path}", "dim"))
    return Block(
        Group(head, *([shown] if lines else []), *([end] if end is not None else [])),
        mark=marks.SHELL,
        style="accent",
        whole=(lambda: Group(head, Text(plain(message.output), "dim"))) if more else None,
    )


def _summary(title: str, summary: str) -> Block:
    shown, more = folded(lines_of(summary), 4, longest=LINE)
    return Block(
        Group(Text(title, "bold"), shown),
        mark=marks.NOTE,
        style="accent",
        whole=(lambda: Answer.parse(plain(summary))) if more else None,
    )


def ending(message: AssistantMessage) -> Block | None:
    """Return what is wrong with a response, and what to do about it; ``None`` when it ended well."""
    match message.stop_reason:
        case "aborted":
            return Block(Text("Aborted", "warning"))
        case "error":
            said = Text(plain(message.error_message or "The request failed"), "error")
            status = message.error_details.status if message.error_details else None
            advice = _ADVICE.get(status) if status is not None else None
            return Block(Group(said, Text(advice, "dim")) if advice else said, mark=marks.FAILED, style="error")
        case "length":
            text = "The answer was cut: the model reached its output limit. Ask it to go on."
            return Block(Text(text, "warning"))
    return None


def notice(text: str, level: str) -> Block:
    """Return something that the user should read."""
    style = {"warning": "warning", "error": "error"}.get(level, "none")
    mark = {"warning": marks.SHELL, "error": marks.FAILED}.get(level, "")
    return Block(Text(plain(text), style), mark=mark, style=style)
