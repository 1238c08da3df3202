"""Has a model write a summary: in pieces when it is too long for one request, and once more when it is not usable."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pi_core import (
    AbortSignal,
    AgentMessage,
    AssistantMessage,
    Context,
    Message,
    Model,
    StreamOptions,
    ThinkingLevel,
    Usage,
    user_message,
)
from pi_plugins.providers.failures import is_overflow
from pi_plugins.providers.tokens import cap_output, total_usage

from .checks import fault_of, required_headings
from .estimate import text_tokens
from .prompts import SYSTEM_PROMPT, SummaryKind, repair_text, request_text
from .serialise import paragraphs, shortened
from .types import CompactionError, Complete

_ANSWER_TOKENS: Final = 4096
_ANSWER_SHARE: Final = 4
_SMALLEST_PIECE: Final = 2000
_BREAK: Final = "\n\n"


class _TooLongError(Exception):
    """The request did not fit the model."""


class SummaryWriter:
    """Asks one model for summaries and adds up what they cost.

    :param complete: makes a request and returns the response.
    :param level: the thinking level of the session.
    :param signal: gives the summary up when it is aborted.
    """

    def __init__(
        self, complete: Complete, model: Model, level: ThinkingLevel = "off", signal: AbortSignal | None = None
    ) -> None:
        self._complete = complete
        self._model = model
        self._options = StreamOptions(
            reasoning=None if level == "off" else level,
            cache_retention="none",
            session_id=str(uuid.uuid4()),
            signal=signal,
        )
        self._usages: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """What all requests so far cost together."""
        return total_usage(self._usages)

    async def write(
        self,
        kind: SummaryKind,
        messages: Sequence[AgentMessage],
        *,
        previous: str | None = None,
        focus: str | None = None,
    ) -> str:
        """Return a summary of messages, carried on from a previous one if there is one.

        A conversation that is too long for one request is read in pieces, each with the summary of those before.

        :raises CompactionError: the request failed or was aborted, or no usable summary came, also when asked again.
        """
        spoken = list(paragraphs(messages))
        if not spoken:
            raise CompactionError("There is nothing to summarise: no message says anything to a model")
        headings = required_headings(messages)
        asked = len(SYSTEM_PROMPT) + len(kind.text(update=True, focus=focus)) + len(previous or "")
        size = self._piece_size(sum(map(len, spoken)) + len(_BREAK) * len(spoken), asked)
        while True:
            try:
                return await self._in_pieces(kind, list(_pieces(spoken, size)), headings, previous, focus)
            except _TooLongError as error:
                if size <= _SMALLEST_PIECE:
                    raise CompactionError(f"The conversation is too long to be summarised: {error}") from None
                size = max(size // 2, _SMALLEST_PIECE)

    async def _in_pieces(
        self,
        kind: SummaryKind,
        pieces: Sequence[str],
        headings: Sequence[str],
        previous: str | None,
        focus: str | None,
    ) -> str:
        for piece in pieces:
            instruction = kind.text(update=previous is not None, focus=focus)
            previous = await self._ask(request_text(piece, instruction, previous), headings)
        assert previous is not None
        return previous

    async def _ask(self, text: str, headings: Sequence[str]) -> str:
        messages: list[Message] = [user_message(text)]
        answer = await self._request(messages)
        fault = fault_of(answer, headings)
        if fault is not None:
            said = answer.model_copy(update={"content": [block for block in answer.content if block.type == "text"]})
            answer = await self._request([*messages, *_if_said(said), user_message(repair_text(fault))])
            fault = fault_of(answer, headings)
        if fault is not None:
            raise CompactionError(f"{self._model.provider}/{self._model.id} wrote no usable summary: {fault}")
        return answer.text.strip()

    async def _request(self, messages: list[Message]) -> AssistantMessage:
        self._check_abort()
        answer = await self._complete(Context(SYSTEM_PROMPT, messages), self._options)
        self._usages.append(answer.usage)
        self._check_abort()
        if answer.stop_reason == "aborted":
            raise CompactionError(answer.error_message or "The summary was aborted", aborted=True)
        if is_overflow(answer, self._model.context_window):
            raise _TooLongError(answer.error_message or "the request filled the context window")
        if answer.stop_reason == "error":
            raise CompactionError(f"The request for a summary failed: {answer.error_message}")
        return answer

    def _check_abort(self) -> None:
        signal = self._options.signal
        if signal is not None and signal.aborted:
            raise CompactionError(signal.reason or "The summary was aborted", aborted=True)

    def _piece_size(self, characters: int, asked: int) -> int:
        """How many characters of conversation one request may have, so that its answer has room beside them."""
        model = self._model
        wanted = min(_ANSWER_TOKENS, model.max_tokens or _ANSWER_TOKENS)
        if model.context_window > 0:
            wanted = min(wanted, model.context_window // _ANSWER_SHARE)
        size = max(characters, _SMALLEST_PIECE)
        while size > _SMALLEST_PIECE and cap_output(model, wanted, text_tokens(asked + size)) < wanted:
            size = max(size * 3 // 4, _SMALLEST_PIECE)
        return size


def _pieces(spoken: Iterable[str], size: int) -> Iterator[str]:
    """Paragraphs put together to texts of at most ``size`` characters; one that is longer is cut."""
    piece: list[str] = []
    length = 0
    for paragraph in spoken:
        if piece and length + len(paragraph) > size:
            yield _BREAK.join(piece)
            piece, length = [], 0
        piece.append(shortened(paragraph, size))
        length += len(paragraph) + len(_BREAK)
    yield _BREAK.join(piece)


def _if_said(message: AssistantMessage) -> list[Message]:
    """The answer, unless there is nothing in it that could be sent back."""
    return [message] if message.text.strip() else []
