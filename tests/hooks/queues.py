"""What holds for the two hooks that put messages into a run."""

from __future__ import annotations

from collections import deque
from typing import Any

from . import samples
from .kinds import CollectHook
from .making import answering, hooks_of, plugin, run
from .wrapping import WrappedRaising


class QueueHook(CollectHook, WrappedRaising):
    """Tests of a hook that collects messages."""

    wrong = (
        "text",
        3,
        ["text"],
        [samples.user(1), {"role": "user"}],
    )

    def arguments(self) -> dict[str, Any]:
        return {"ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return samples.users(number, number + 10)

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return [message for answer in answers for message in answer]

    def test_one_message_several_and_any_iterable_are_answers(self) -> None:
        answers = [samples.user(1), (samples.user(2), samples.user(3)), iter([samples.user(4)]), deque(), []]
        plugins = [plugin(self.hook, f"p{n}", answering(one)) for n, one in enumerate(answers)]
        assert run(self.call(hooks_of(*plugins))) == samples.users(1, 2, 3, 4)
