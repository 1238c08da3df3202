"""What keys do in the editor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

    from pi_plugins.coding_agent.inputs import Delivery

    from .editor import Editor


class Actions(Protocol):
    """What keys can do."""

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""

    def submit(self, delivery: Delivery) -> None:
        """Send what is typed."""

    def escape(self) -> None:
        """Abort what goes on."""

    def interrupt(self) -> None:
        """Clear the editor, or leave when it was empty twice."""

    def leave(self) -> None:
        """Leave."""

    def unfold(self) -> None:
        """Print the next folded thing."""

    def toggle_thinking(self) -> None:
        """Show what the model thinks from now on, or fold it."""

    def take_back(self) -> bool:
        """Take the last queued message back into the editor."""

    def clear(self) -> None:
        """Clear the screen."""

    def external_editor(self) -> Awaitable[None]:
        """Edit the text in another program."""

    def cycle_level(self) -> Awaitable[None]:
        """Let the model think more, or least again."""

    def cycle_model(self) -> Awaitable[None]:
        """Ask the next model."""


def editor_bindings(editor: Editor, actions: Actions, when: Condition) -> KeyBindings:
    """Return the keys of the editor.

    :param when: whether the editor has the keys.
    """
    keys = KeyBindings()

    def on(*names: str) -> Callable[[Callable[[KeyPressEvent], None]], None]:
        def register(handler: Callable[[KeyPressEvent], None]) -> None:
            for name in names:
                keys.add(*name.split(" "), filter=when)(handler)

        return register

    @on("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = editor.buffer
        if editor.complete():
            return
        if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            editor.complete_command()
            actions.submit("steer")

    @on("escape enter")
    def _later(event: KeyPressEvent) -> None:
        if actions.busy:
            actions.submit("followUp")
        else:
            editor.buffer.newline(copy_margin=False)

    @on("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        editor.buffer.newline(copy_margin=False)

    @on("escape")
    def _escape(event: KeyPressEvent) -> None:
        if editor.buffer.complete_state is not None:
            editor.buffer.cancel_completion()
        else:
            actions.escape()

    @on("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        actions.interrupt()

    @on("c-d")
    def _delete_or_leave(event: KeyPressEvent) -> None:
        if editor.buffer.text:
            editor.buffer.delete()
        else:
            actions.leave()

    @on("tab")
    def _complete(event: KeyPressEvent) -> None:
        buffer = editor.buffer
        state = buffer.complete_state
        if state is None:
            buffer.start_completion(insert_common_part=True)
        elif len(state.completions) == 1:
            buffer.apply_completion(state.completions[0])
        else:
            buffer.complete_next()

    @on("escape up", "escape [ 1 ; 3 A")
    def _take_back(event: KeyPressEvent) -> None:
        actions.take_back()

    @on("up")
    def _up(event: KeyPressEvent) -> None:
        if editor.buffer.text or not actions.take_back():
            editor.buffer.auto_up(count=event.arg)

    @on(Keys.BracketedPaste.value)
    def _paste(event: KeyPressEvent) -> None:
        editor.paste(event.data)

    @on("c-o")
    def _unfold(event: KeyPressEvent) -> None:
        actions.unfold()

    @on("c-t")
    def _thinking(event: KeyPressEvent) -> None:
        actions.toggle_thinking()

    @on("c-l")
    def _clear(event: KeyPressEvent) -> None:
        actions.clear()

    @on("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    def run(name: str, action: Callable[[], Awaitable[None]]) -> None:
        @keys.add(name, filter=when)
        async def _action(event: KeyPressEvent) -> None:
            await action()

    run("c-g", actions.external_editor)
    run("s-tab", actions.cycle_level)
    run("c-p", actions.cycle_model)
    return keys
