"""The abort signal, views of lists, and what hooks are given about a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_core import (
    AbortController,
    AgentContext,
    AgentMessage,
    MessageAssembler,
    RunContext,
    SelectionContext,
    Stash,
    StashKey,
    TextContent,
    Turn,
    user_message,
)
from pi_core.context import ListView, as_messages

ANSWER = MessageAssembler("a", "p", "m").message("stop")


# --- the abort signal ---------------------------------------------------------------------------------------------


def test_an_abort_is_once_and_for_all() -> None:
    controller, called = AbortController(), []
    controller.signal.on_abort(lambda: called.append("first"))
    forget = controller.signal.on_abort(lambda: called.append("forgotten"))
    forget()
    forget()
    controller.abort("enough")
    controller.abort("again")
    controller.signal.on_abort(lambda: called.append("late"))()
    assert called == ["first", "late"]
    assert (controller.signal.aborted, controller.signal.reason) == (True, "enough")


def test_a_callback_that_fails_does_not_keep_the_others_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    controller, called = AbortController(), []

    def broken() -> None:
        raise OSError("already closed")

    controller.signal.on_abort(broken)
    controller.signal.on_abort(lambda: called.append(True))
    controller.abort()
    assert called == [True]
    assert "already closed" in caplog.text


def test_waiting_for_an_abort() -> None:
    async def main() -> None:
        controller = AbortController()
        patient, impatient = (asyncio.create_task(controller.signal.wait()) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait([impatient])
        controller.abort()
        await patient
        await controller.signal.wait()

    asyncio.run(main())


# --- lists --------------------------------------------------------------------------------------------------------


def test_a_view_of_a_list_stays_as_it_was() -> None:
    items = [1, 2, 3]
    view = ListView(items)
    items.append(4)
    assert (len(view), list(view), view == [1, 2, 3], view != (1, 2)) == (3, [1, 2, 3], True, True)
    assert (view[0], view[-1], view[1:], view[::-1], view[:10]) == (1, 3, [2, 3], [3, 2, 1], [1, 2, 3])
    assert (repr(view), view == "123") == ("[1, 2, 3]", False)
    for index in (3, -4):
        with pytest.raises(IndexError):
            _ = view[index]


def test_what_a_hook_may_answer_for_messages() -> None:
    one, two = user_message("1"), user_message("2")
    answers: list[Any] = [None, [], one, [one, two], (one,), iter([one, two]), ListView([one])]
    assert [as_messages(answer) for answer in answers] == [[], [], [one], [one, two], [one], [one, two], [one]]
    wrong: list[Any] = ["text", b"text", 5, [one, "text"], [[one]], {"role": "user"}, TextContent(text="x")]
    for answer in wrong:
        with pytest.raises(TypeError, match="expected a message, got"):
            as_messages(answer)


# --- the run ------------------------------------------------------------------------------------------------------


def test_a_copy_of_a_turn_shares_no_list() -> None:
    messages: list[AgentMessage] = [user_message("go"), ANSWER]
    turn = Turn(ANSWER, [], AgentContext("prompt", messages), messages)
    copied = turn.copy()
    copied.context.messages.clear()
    copied.new_messages.clear()
    copied.context.tools.append(None)  # type: ignore[arg-type]
    assert (len(turn.context.messages), len(turn.new_messages), turn.context.tools) == (2, 2, [])
    assert turn.copy(context=AgentContext("other")).context.system_prompt == "other"


def test_the_run_context_shows_the_context_of_the_moment() -> None:
    context = AgentContext("prompt", [user_message("go")])
    ctx = RunContext(context=context)
    view = ctx.messages
    context.messages.append(ANSWER)
    assert (len(view), len(ctx.messages), ctx.system_prompt, ctx.tools) == (1, 2, "prompt", ())
    ctx.context.messages.clear()
    assert len(ctx.messages) == 2
    ctx.enter(AgentContext("other"))
    assert (ctx.system_prompt, list(ctx.messages)) == ("other", [])


@pytest.mark.parametrize("action", ["steer", "follow_up", "abort"])
def test_a_bare_loop_has_no_queues_to_act_on(action: str) -> None:
    arguments = () if action == "abort" else (user_message("x"),)
    with pytest.raises(RuntimeError, match=f"{action}: this run has no agent"):
        getattr(RunContext(), action)(*arguments)


def test_the_stash_is_typed_by_its_keys() -> None:
    stash, count, other = Stash(), StashKey[int]("count"), StashKey[int]("count")
    assert (stash.get(count, 7), count in stash) == (7, False)
    assert stash.setdefault(count, lambda: 1) == 1
    assert stash.setdefault(count, lambda: 2) == 1
    stash[count] += 1
    assert (stash[count], count in stash, other in stash) == (2, True, False)
    assert repr(count) == "StashKey('count')"


def test_notices_of_a_selection() -> None:
    selection = SelectionContext()
    selection.notice("using the key of the environment")
    assert selection.notices == ["using the key of the environment"]
