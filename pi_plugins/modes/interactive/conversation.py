"""The conversation: turns the events of a session into blocks that are printed once, and into what is drawn live."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from pi_core import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    StartEvent,
    ToolCallContent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from pi_plugins.coding_agent.events import (
    CompactionEndEvent,
    CompactionStartEvent,
    NoticeEvent,
    PluginErrorEvent,
    RetryEndEvent,
    RetryStartEvent,
    SessionEvent,
    SettledEvent,
)

from . import marks
from ._text import seconds, tokens
from .abilities import links
from .blocks import Block, Folds
from .message_view import ending, message_block, notice, user_text
from .plugin_view import PluginRenderers
from .response import StreamedResponse
from .tool_view import finished, running

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

_TOOL_LINES = 5
_CALL, _MESSAGE = "render_tool_call", "render_message"


@dataclass(slots=True)
class _Call:
    """A call of a tool that was taken up.

    :param custom: what a plugin draws for it while it runs.
    :param block: what is printed once the calls before it are done.
    """

    call: ToolCallContent
    begun: float
    progress: ToolResult | None = None
    custom: RenderableType | None = None
    block: Block | None = None


class Conversation:
    """What is shown of a session.

    Events only collect: what they come to is rendered when a frame is made, so that many events cost no more than few.

    :param width: gives the columns of the terminal.
    :param clock: seconds that only go forward.
    """

    def __init__(
        self,
        width: Callable[[], int],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._width = width
        self._hyperlinks = False
        self._clock = clock
        self._cwd = Path()
        self._hide_thinking = False
        self._plugins: PluginRenderers | None = None
        self._blocks: list[Block] = []
        self._response: StreamedResponse | None = None
        self._calls: dict[str, _Call] = {}
        self._asked: dict[str, ToolCallContent] = {}
        self._activity = ""
        self._begun: float | None = None
        self._failure: Block | None = None
        """How the last response failed, until it is clear whether it is tried again."""
        self.show_thinking = False
        self.seen = ""
        """A text that the user sees already as he has typed it: the next message is not shown when it is this one."""
        self.folds = Folds()

    def attach(self, session: AgentSession) -> None:
        """Show a session from now on."""
        self._cwd = session.cwd
        self._hyperlinks = links(session.settings.terminal, session.models.environ)
        self._hide_thinking = session.settings.hide_thinking_block
        self._plugins = PluginRenderers(session, lambda text: self.say(text, "warning"))
        session.subscribe(self.on_event)

    # --- what is shown ---

    def add(self, block: Block) -> None:
        """Print a block with the next frame."""
        self._blocks.append(block)

    def say(self, text: str, level: str = "info") -> None:
        """Print a text with the next frame."""
        self._blocks.append(notice(text, level))

    def take(self) -> list[Block]:
        """Return the blocks that have become final since the last call."""
        if self._response is not None:
            self._blocks += self._response.take()
        taken, self._blocks = self._blocks, []
        for block in taken:
            if block.whole is not None:
                self.folds.add(block.whole)
        return taken

    def drafts(self, lines: int) -> list[Block]:
        """Return what is not final, as it looks now.

        :param lines: how many lines there is room for.
        """
        if self._response is not None:
            return list(self._response.drafts(lines))
        each = max(0, min(_TOOL_LINES, lines // max(1, len(self._calls)) - 1))
        return [self._draft(call, each) for call in self._calls.values()]

    def _draft(self, call: _Call, lines: int) -> Block:
        if call.block is not None:
            return call.block
        took = self._clock() - call.begun
        note = seconds(took) if took >= 1 else ""
        plain_one = running(call.call, call.progress, self._cwd, note, lines)
        if call.custom is None:
            return Block(plain_one, mark=marks.CALL, style="dim", terse=call.progress is None)
        owners = self._plugins.owners(_CALL) if self._plugins is not None else ""
        return Block(call.custom, mark=marks.CALL, style="dim", fallback=plain_one, renderer=owners)

    @property
    def activity(self) -> str:
        """What goes on, in a few words; empty when nothing does."""
        if self._begun is None and not self._activity:
            return ""
        if self._activity:
            return self._activity
        if self._response is not None and self._response.thinks:
            return "Thinking"
        return "Working"

    @property
    def took(self) -> float:
        """Seconds since the run began."""
        return 0.0 if self._begun is None else self._clock() - self._begun

    def could_not_draw(self, block: Block, error: Exception) -> None:
        """Tell the user whose block could not be rendered."""
        hook = _MESSAGE if block.mark == marks.PROMPT else _CALL
        if self._plugins is not None:
            self._plugins.failed(hook, block.renderer or "modes", error)

    # --- what happens ---

    def on_event(self, event: SessionEvent) -> Awaitable[None] | None:
        """Take an event of the session; what is returned is awaited, which is only where plugins draw."""
        match event:
            case MessageUpdateEvent():
                if self._response is not None:
                    self._response.update(event.assistant_message_event)
            case MessageStartEvent(given=StartEvent() | AssistantMessage()):
                self._response = self._new_response()
            case MessageStartEvent(given=UserMessage() | CustomMessage() as message):
                return self.show_message(message)
            case MessageEndEvent(message=AssistantMessage() as message):
                self._responded(message)
            case ToolExecutionStartEvent():
                return self._tool_started(event)
            case ToolExecutionUpdateEvent():
                if (call := self._calls.get(event.tool_call_id)) is not None:
                    call.progress = event.partial_result
            case ToolExecutionEndEvent():
                return self._tool_result(event.tool_call_id, event.result, event.is_error, event.duration_ms)
            case SettledEvent():
                self._settled()
            case _:
                self._around(event)
        return None

    def _around(self, event: SessionEvent) -> None:
        """Take an event from around the runs."""
        match event:
            case RetryStartEvent():
                self._failure = None
                after = seconds(event.delay_ms / 1000)
                attempt = f"Attempt {event.attempt} of {event.max_attempts} follows in {after}"
                self.say(f"{event.error.rstrip('.')}. {attempt}", "warning")
                self._activity = f"Waiting {after} for attempt {event.attempt}"
            case RetryEndEvent():
                if not event.success and self._activity:
                    self.add(Block(Text("Aborted", "warning")))
                self._activity = ""
            case CompactionStartEvent():
                self._tell_failure()
                self._activity = "Compacting"
            case CompactionEndEvent():
                self._compacted(event)
            case PluginErrorEvent():
                self.say(f"Plugin '{event.plugin}', hook {event.hook}: {event.error}", "warning")
            case NoticeEvent():
                self._tell_failure()
                self.say(event.text, event.level)
            case _ if event.type == "agent_start":
                self._begun, self._activity = self._begun or self._clock(), ""

    def _compacted(self, event: CompactionEndEvent) -> None:
        self._activity = ""
        if event.result is not None:
            after = event.result.estimated_tokens_after
            text = f"Compacted: {tokens(event.result.tokens_before)} tokens before, about {tokens(after or 0)} now"
            summary = event.result.summary
            self.add(Block(Text(text), mark=marks.NOTE, style="accent", whole=lambda: Text(summary)))
        elif event.aborted:
            self.say("The compaction was given up", "warning")
        else:
            self.say(f"The session could not be compacted: {event.error}", "error")

    def _tell_failure(self) -> None:
        if self._failure is not None:
            self.add(self._failure)
            self._failure = None

    def _settled(self) -> None:
        self._tell_failure()
        self._begun, self._activity, self._response = None, "", None
        for call in self._calls.values():
            self._blocks.append(call.block or Block(Text(call.call.name), mark=marks.FAILED, style="error"))
        self._calls.clear()
        self._asked.clear()

    # --- responses and messages ---

    def _new_response(self) -> StreamedResponse:
        return StreamedResponse(
            hyperlinks=self._hyperlinks,
            show_thinking=self.show_thinking,
            hide_thinking=self._hide_thinking and not self.show_thinking,
            clock=self._clock,
        )

    def _responded(self, message: AssistantMessage) -> None:
        response = self._response or self._new_response()
        response.end(message)
        self._blocks += response.take()
        self._response = None
        self._asked.update((call.id, call) for call in message.tool_calls)
        self._tell_failure()
        end = ending(message)
        if end is None:
            return
        if message.stop_reason == "error" and self._begun is not None:
            self._failure = end
        else:
            self.add(end)

    def show_message(self, message: AgentMessage) -> Awaitable[None] | None:
        """Print a message that is no response and no result."""
        block = message_block(message)
        seen, self.seen = self.seen, ""
        if block is None or (seen and isinstance(message, UserMessage) and user_text(message) == seen):
            return None
        if self._plugins is None or not self._plugins.wanted(_MESSAGE):
            self._blocks.append(block)
            return None
        return self._drawn_message(self._plugins, message, block)

    async def _drawn_message(self, plugins: PluginRenderers, message: AgentMessage, block: Block) -> None:
        content = await plugins.ask(_MESSAGE, message=message, width=self._room)
        self._blocks.append(_replaced(block, content, plugins.owners(_MESSAGE)))

    @property
    def _room(self) -> int:
        return max(8, self._width() - 2)

    # --- tools ---

    def _tool_started(self, event: ToolExecutionStartEvent) -> Awaitable[None] | None:
        call = self._asked.get(event.tool_call_id) or ToolCallContent(
            id=event.tool_call_id, name=event.tool_name, arguments=event.args
        )
        taken_up = self._calls[event.tool_call_id] = _Call(call, self._clock())
        if self._plugins is None or not self._plugins.wanted(_CALL):
            return None
        return self._drawn_start(self._plugins, taken_up)

    async def _drawn_start(self, plugins: PluginRenderers, call: _Call) -> None:
        call.custom = await plugins.ask(_CALL, call=call.call, result=None, width=self._room)

    def _tool_result(
        self, call_id: str, result: ToolResult, is_error: bool, duration_ms: int | None
    ) -> Awaitable[None] | None:
        taken_up = self._calls.get(call_id)
        if taken_up is None:
            return None
        block = finished(taken_up.call, result, self._cwd, is_error=is_error, duration_ms=duration_ms)
        if self._plugins is None or not self._plugins.wanted(_CALL):
            self._tool_done(taken_up, block)
            return None
        return self._drawn_end(self._plugins, taken_up, result, block)

    async def _drawn_end(self, plugins: PluginRenderers, call: _Call, result: ToolResult, block: Block) -> None:
        content = await plugins.ask(_CALL, call=call.call, result=result, width=self._room)
        self._tool_done(call, _replaced(block, content, plugins.owners(_CALL)))

    def _tool_done(self, call: _Call, block: Block) -> None:
        """Print a finished call, once those before it are."""
        call.block = block
        for name, first in list(self._calls.items()):
            if first.block is None:
                break
            self._blocks.append(first.block)
            del self._calls[name]

    # --- what was said before ---

    async def replay(self, messages: Iterable[AgentMessage]) -> None:
        """Print messages of a session that is gone on with."""
        calls: dict[str, ToolCallContent] = {}
        for message in messages:
            pending: Awaitable[None] | None = None
            match message:
                case AssistantMessage():
                    self._responded(message)
                    calls.update((call.id, call) for call in message.tool_calls)
                case ToolResultMessage():
                    name = message.tool_name
                    call = calls.get(message.tool_call_id) or ToolCallContent(id=message.tool_call_id, name=name)
                    self._calls[call.id] = _Call(call, self._clock())
                    result = ToolResult(content=message.content, details=message.details)
                    pending = self._tool_result(call.id, result, message.is_error, message.duration_ms)
                case _:
                    pending = self.show_message(message)
            if pending is not None:
                await pending
        self._asked.clear()


def _replaced(block: Block, content: RenderableType | None, owners: str) -> Block:
    """Return a block with the content of a plugin; it can always be unfolded to the usual one."""
    if content is None:
        return block
    usual = block.content
    return Block(
        content,
        mark=block.mark,
        style=block.style,
        fallback=usual,
        renderer=owners,
        whole=block.whole or (lambda: usual),
    )


__all__ = ["Conversation"]
