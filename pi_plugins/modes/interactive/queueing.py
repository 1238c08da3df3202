"""``/queue``: the messages that wait, to be dropped or taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pi_plugins.coding_agent.inputs import SlashCommand

from ._text import one_line
from .ui import Choice

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from .ui import Ui

_DROP: Final = "c-x"


def queue_command(ui: Ui, as_typed: Callable[[str], str]) -> SlashCommand:
    """Return the command.

    :param as_typed: returns what was typed for a text that waits.
    """

    async def run(arguments: str, session: AgentSession) -> str | None:
        queues = (("next", session.steering), ("later", session.follow_ups))
        waiting = [(when, queue, number) for when, queue in queues for number in range(len(queue))]
        if not waiting:
            return "Nothing waits"
        texts = {id(queue): queue.texts for _, queue, _ in waiting}
        choices = [Choice(entry, one_line(as_typed(texts[id(entry[1])][entry[2]])), entry[0]) for entry in waiting]
        chosen = await ui.select(
            "Messages that wait", choices, message="Enter takes one back into the editor.", keys={_DROP: "drop"}
        )
        if chosen is None:
            return None
        _, queue, number = chosen[0].value
        text = texts[id(queue)][number]
        if queue.texts[number : number + 1] != (text,):
            return "It was sent meanwhile"
        queue.take(number)
        if chosen[1] != _DROP:
            ui.set_editor_text(as_typed(text))
            return None
        return "Dropped"

    return SlashCommand("queue", "Messages that wait: take one back, or drop it", run)
