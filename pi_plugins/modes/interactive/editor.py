"""The editor: what is typed, pasted, completed and taken out of the history."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Window
from prompt_toolkit.utils import get_cwidth

from pi_core import ConfigError

from . import marks
from ._text import count, one_line, plain
from .ui import CompletionSource

if TYPE_CHECKING:
    from prompt_toolkit.layout import Container

_PASTE_LINES: Final = 10
_PASTE_CHARACTERS: Final = 1_000
_PLACEHOLDER: Final = re.compile(r"\[paste (\d+): [^\]\n]*\]")


class _Sources(Completer):
    def __init__(self, sources: Sequence[CompletionSource]) -> None:
        self._sources = sources

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        for source in self._sources:
            yield from source.complete(document.current_line_before_cursor, document)


def prompt_mark(line: int, wrapped: int) -> StyleAndTextTuples:
    """Return what stands before a line of what is typed."""
    return [("class:accent", "  " if line or wrapped else f"{marks.PROMPT} ")]


class Editor:
    """The text that is typed.

    :param sources: what can be completed; may be filled later.
    :param columns: gives the columns of the terminal.
    :param rows: gives its rows.
    """

    def __init__(
        self, sources: Sequence[CompletionSource], columns: Callable[[], int], rows: Callable[[], int]
    ) -> None:
        self._columns = columns
        self._pastes: dict[str, str] = {}
        self.most_completions = 5
        self.buffer = Buffer(
            multiline=True,
            completer=ThreadedCompleter(_Sources(sources)),
            complete_while_typing=True,
            tempfile_suffix=".md",
        )
        self.window = Window(
            BufferControl(buffer=self.buffer),
            height=lambda: Dimension(min=1, max=max(1, min(15, rows() // 3))),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prompt_mark,
        )

    def use_history(self, history: History) -> None:
        """Take former inputs from a history, and put new ones there."""
        self.buffer.history = history
        self.buffer.load_history_if_not_yet_loaded()

    # --- the text ---

    @property
    def text(self) -> str:
        """What was typed, with what stands behind the names of pastes."""
        return _PLACEHOLDER.sub(lambda found: self._pastes.get(found[0], found[0]), self.buffer.text)

    def set(self, text: str) -> None:
        """Replace the text."""
        self.buffer.set_document(Document(text), bypass_readonly=True)

    def give_back(self, texts: Iterable[str]) -> None:
        """Put texts before what is typed, a paragraph each."""
        self.set("\n\n".join([*texts, *([self.buffer.text] if self.buffer.text.strip() else [])]))

    def take(self) -> str:
        """Return the text, remember it, and empty the editor."""
        text = self.text
        self.buffer.history.append_string(text)
        self.clear()
        return text

    def clear(self) -> None:
        """Empty the editor."""
        self.buffer.reset()
        self._pastes.clear()

    def paste(self, text: str) -> None:
        """Insert what was pasted; a name stands for it when it is long."""
        text = plain(text.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines > _PASTE_LINES or len(text) > _PASTE_CHARACTERS:
            size = count(lines, "line") if lines > 1 else count(len(text), "character")
            name = f"[paste {len(self._pastes) + 1}: {size}]"
            self._pastes[name] = text
            text = name
        self.buffer.insert_text(text)

    def complete(self) -> bool:
        """Take the completion that is selected; ``False`` when none is."""
        state = self.buffer.complete_state
        if state is None or state.current_completion is None:
            return False
        self.buffer.apply_completion(state.current_completion)
        return True

    def complete_command(self) -> None:
        """Where only the beginning of a command is typed, take the first one that is offered."""
        text, state = self.buffer.text, self.buffer.complete_state
        if state is None or not text.startswith("/") or " " in text or "\n" in text:
            return
        names = [f"/{completion.text.rstrip()}" for completion in state.completions]
        if text not in names and names[0].startswith(text):
            self.buffer.apply_completion(state.completions[0])

    async def open_external(self, command: str | None) -> None:
        """Edit the text in another program.

        :param command: the program with its arguments; as the environment says by default.
        :raises ConfigError: there is none, or it fails.
        """
        text = await edit_externally(self.text, command)
        self._pastes.clear()
        self.buffer.set_document(Document(text, len(text)))

    # --- how completions look ---

    def completions(self) -> Container:
        """Return what draws the completions."""
        lines = Window(FormattedTextControl(self._completion_lines), dont_extend_height=True)
        return ConditionalContainer(HSplit([lines]), Condition(lambda: bool(self._found())))

    def _found(self) -> list[Completion]:
        state = self.buffer.complete_state
        return [] if state is None else state.completions

    def _completion_lines(self) -> StyleAndTextTuples:
        state = self.buffer.complete_state
        found, width = self._found(), self._columns()
        if state is None or not found:
            return []
        chosen = state.complete_index if state.complete_index is not None else -1
        first = max(0, min(max(chosen, 0) - self.most_completions // 2, len(found) - self.most_completions))
        rows = found[first : first + self.most_completions]
        column = min(max(get_cwidth(row.display_text) for row in rows), width // 2)
        shown: StyleAndTextTuples = []
        for number, row in enumerate(rows, first):
            name = one_line(row.display_text)
            style = "class:chosen" if number == chosen else ""
            shown.append((style, f"  {name[: width - 3]}"))
            room = width - 5 - max(column, get_cwidth(name))
            about = one_line(row.display_meta_text)
            if about and room > 8:
                shown.append(("class:dim", " " * (2 + max(0, column - get_cwidth(name))) + about[:room]))
            shown.append(("", "\n"))
        left = len(found) - len(rows)
        if left:
            shown.append(("class:dim", f"  {left} more"))
        else:
            shown.pop()
        return shown


async def edit_externally(text: str, command: str | None) -> str:
    """Let the user edit a text in another program, and return what it is then.

    :param command: the program with its arguments; ``$VISUAL`` or ``$EDITOR`` by default.
    :raises ConfigError: there is none, or it fails.
    """
    command = command or os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise ConfigError("There is no editor: name one in $VISUAL, $EDITOR, or the setting externalEditor")
    return await run_in_terminal(lambda: _edit(text, command), in_executor=True)


def _edit(text: str, command: str) -> str:
    with tempfile.TemporaryDirectory(prefix="pi-") as folder:
        path = Path(folder, "prompt.md")
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            code = subprocess.call([*shlex.split(command), str(path)])
        except OSError as error:
            raise ConfigError(f"{command} cannot be started: {error.strerror}") from error
        if code:
            raise ConfigError(f"{command} ended with code {code}: the text stays as it was")
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
