"""A response of the model while it is written: what is finished becomes blocks, the rest is drawn anew each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from rich.text import Text

from pi_core import (
    AssistantMessage,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingContent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UpdateEvent,
)

from . import marks
from ._growing import GrowingMarkdown
from ._text import count, one_line, plain, seconds
from .blocks import Block

_THINKING_LINES: Final = 4
_TAIL: Final = 2_000
"""Characters of thinking that the last lines are looked for in."""


class _TextPart:
    def __init__(self, *, hyperlinks: bool) -> None:
        self._growing = GrowingMarkdown(hyperlinks=hyperlinks)
        self._first = True
        self.ended = False

    def feed(self, text: str) -> None:
        self._growing.feed(plain(text))

    def take(self) -> list[Block]:
        blocks = [Block(piece.content, gap=piece.gap) for piece in self._growing.take(final=self.ended)]
        if blocks and self._first:
            blocks[0].gap, self._first = True, False
        return blocks

    def draft(self, lines: int) -> Block | None:
        content = self._growing.draft(lines)
        return None if content is None else Block(content, gap=self._first or self._growing.gap)


class _ThinkingPart:
    def __init__(self, *, shown: bool, hidden: bool, clock: Callable[[], float]) -> None:
        self._parts: list[str] = []
        self._tail = ""
        self._shown = shown
        self._hidden = hidden
        self._clock = clock
        self._begun = clock()
        self.ended = False

    def feed(self, text: str) -> None:
        self._parts.append(text)
        self._tail = (self._tail + text)[-_TAIL:]

    def take(self) -> list[Block]:
        text = plain("".join(self._parts)).strip() if self.ended else ""
        if not text or self._hidden:
            return []
        if self._shown:
            return [Block(Text(text, "thinking"), mark=marks.THOUGHT, style="dim")]
        return [thought(text, self._clock() - self._begun)]

    def draft(self, lines: int) -> Block | None:
        if self._hidden or not self._tail.strip():
            return None
        rows = plain(self._tail).strip().split("\n")[-min(lines, _THINKING_LINES) :]
        return Block(Text("\n".join(rows), "thinking"), mark=marks.THOUGHT, style="dim")


class _CallPart:
    def __init__(self, name: str) -> None:
        self.name = name
        self._size = 0
        self.ended = False

    def feed(self, text: str) -> None:
        self._size += len(text)

    def take(self) -> list[Block]:
        return []

    def draft(self, lines: int) -> Block | None:
        line = Text(plain(self.name) or "…", "bold")
        if self._size > 1000:
            line.append(f" {self._size / 1000:.0f}k characters", "not bold dim")
        return Block(line, mark=marks.CALL, style="dim")


class StreamedResponse:
    """Collects the updates of one response.

    :param hyperlinks: whether links can be clicked.
    :param show_thinking: print all that the model thinks; else a line about it.
    :param hide_thinking: print nothing of it.
    :param clock: seconds that only go forward.
    """

    def __init__(
        self,
        *,
        hyperlinks: bool = False,
        show_thinking: bool = False,
        hide_thinking: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hyperlinks = hyperlinks
        self._show_thinking = show_thinking
        self._hide_thinking = hide_thinking
        self._clock = clock
        self._parts: dict[int, _TextPart | _ThinkingPart | _CallPart] = {}
        self._taken: set[int] = set()

    def update(self, event: UpdateEvent) -> None:
        """Take an update; costs as much as its text is long."""
        index = event.content_index
        match event:
            case TextDeltaEvent(delta=text) | ThinkingDeltaEvent(delta=text) | ToolCallDeltaEvent(delta=text):
                part = self._parts.get(index)
                if part is not None:
                    part.feed(text)
            case TextStartEvent():
                self._text(index).feed(event.text)
            case ThinkingStartEvent():
                self._thinking(index).feed(event.thinking)
            case ToolCallStartEvent():
                self._parts[index] = _CallPart(event.name)
            case TextEndEvent() | ThinkingEndEvent() | ToolCallEndEvent():
                part = self._parts.get(index)
                if part is not None:
                    part.ended = True

    def end(self, message: AssistantMessage) -> None:
        """Take the finished message; what was not streamed of it is added."""
        for index, block in enumerate(message.content):
            if index not in self._parts:
                if isinstance(block, TextContent):
                    self._text(index).feed(block.text)
                elif isinstance(block, ThinkingContent):
                    self._thinking(index).feed(block.thinking)
        for part in self._parts.values():
            part.ended = True

    def take(self) -> list[Block]:
        """Return what has become final since the last call."""
        blocks: list[Block] = []
        for index, part in sorted(self._parts.items()):
            if index in self._taken:
                continue
            blocks += part.take()
            if not part.ended:
                break
            if not isinstance(part, _CallPart):
                self._taken.add(index)
        return blocks

    def drafts(self, lines: int) -> Iterator[Block]:
        """Return what is not final yet, as it looks now.

        :param lines: how many lines there is room for.
        """
        for index, part in sorted(self._parts.items()):
            draft = None if index in self._taken else part.draft(lines)
            if draft is not None:
                yield draft

    @property
    def thinks(self) -> bool:
        """Whether the model thinks just now."""
        last = self._parts[max(self._parts)] if self._parts else None
        return isinstance(last, _ThinkingPart) and not last.ended

    def _text(self, index: int) -> _TextPart:
        part = self._parts[index] = _TextPart(hyperlinks=self._hyperlinks)
        return part

    def _thinking(self, index: int) -> _ThinkingPart:
        part = self._parts[index] = _ThinkingPart(
            shown=self._show_thinking, hidden=self._hide_thinking, clock=self._clock
        )
        return part


def thought(text: str, took: float = 0.0) -> Block:
    """Return a line about what the model thought; all of it can be unfolded.

    :param took: seconds.
    """
    lines = text.split("\n")
    size = count(len(lines), "line")
    note = f"{seconds(took)} · {size}" if took >= 1 else size
    line = Text(f"Thought · {note} · ", "dim", no_wrap=True, overflow="ellipsis")
    line.append(one_line(lines[0]), "italic")
    return Block(line, mark=marks.THOUGHT, style="dim", whole=lambda: Text(text, "thinking"))
