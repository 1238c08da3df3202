"""Moving in the tree of a session, and between sessions on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_core import Block, ConfigError, hookimpl
from pi_plugins.coding_agent import AgentSession, create_session, prepare_session

from .sessions import SUMMARY, Case


def on_disk(folder: Path, *replies: Any, **options: Any) -> Case:
    return Case(folder, replies, in_memory=False, **options)


def roles(session: AgentSession) -> list[str]:
    return [message.role for message in session.agent.state.messages]


async def test_a_session_goes_on_where_it_was_left(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one").session()
    await first.prompt("go")
    await first.close()
    case = on_disk(tmp_path, "two", continue_last=True)
    second = await case.session()
    assert second.store.id == first.store.id
    await second.prompt("more")
    assert case.asked() == [["u:go", "a:one", "u:more"]]
    await second.close()
    path = second.store.path
    assert path is not None
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["type"] for line in lines] == [
        "session",
        "model_change",
        "thinking_level_change",
        "message",
        "message",
        "message",
        "message",
    ]
    ids = [line["id"] for line in lines[1:]]
    assert [line["parentId"] for line in lines[1:]] == [None, *ids[:-1]]


async def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one").session()
    await first.prompt("go")
    with pytest.raises(ConfigError, match="--fork"):
        await on_disk(tmp_path, continue_last=True).session()
    await first.close()
    second = await on_disk(tmp_path, continue_last=True).session()
    await second.close()


async def test_a_fork_leaves_the_original_as_it_was(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one").session()
    await first.prompt("go")
    before = first.store.path.read_bytes()  # type: ignore[union-attr]
    case = on_disk(tmp_path, "other", fork=first.store.id[:13])
    forked = await case.session()
    await forked.prompt("elsewhere")
    assert case.asked() == [["u:go", "a:one", "u:elsewhere"]]
    assert forked.store.id != first.store.id
    assert first.store.path.read_bytes() == before  # type: ignore[union-attr]
    await forked.close()
    await first.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fork": "x", "continue_last": True}, "--fork cannot be used with --continue"),
        ({"session_id": "x", "session": "y"}, "--session-id cannot be used with --session"),
        ({"session": "nowhere"}, "nowhere"),
        ({"session_id": "not an id"}, "id"),
    ],
)
async def test_what_cannot_be_opened_is_said(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await on_disk(tmp_path, **options).session()


async def test_a_session_id_makes_the_session_and_finds_it_again(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one", session_id="mine").session()
    await first.prompt("go")
    await first.close()
    second = await on_disk(tmp_path, session_id="mine").session()
    assert (second.store.id, roles(second)) == ("mine", ["user", "assistant"])
    await second.close()


async def test_two_sessions_of_a_folder_do_not_get_one_id(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one", session_id="mine").session()
    await first.prompt("go")
    await first.close()
    with pytest.raises(ConfigError, match=r"id 'mine' already: .*mine\.jsonl"):
        await on_disk(tmp_path, fork="mine", session_id="mine").session()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"in_memory": True, "continue_last": True}, "--no-session: no session is gone on with"),
        ({"session": "mine", "continue_last": True}, "--session: --continue has no effect"),
    ],
)
async def test_an_option_that_another_one_leaves_without_effect_is_told(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    first = await on_disk(tmp_path, "one", session_id="mine").session()
    await first.prompt("go")
    await first.close()
    case = on_disk(tmp_path)
    for name, value in options.items():
        setattr(case.options, name, value)
    prepared = await prepare_session(case.options, case.build)
    session = await create_session(prepared=prepared)
    assert said in prepared.notices
    await session.close()


async def test_a_session_that_goes_on_in_another_folder_is_told(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one", session_id="mine").session()
    await first.prompt("go")
    await first.close()
    case = on_disk(tmp_path, session="mine")
    case.options.cwd = tmp_path
    prepared = await prepare_session(case.options, case.build)
    session = await create_session(prepared=prepared)
    assert prepared.notices == [f"The session was begun in {first.store.cwd}, and goes on in {tmp_path}"]
    await session.close()


async def test_damage_of_a_session_that_is_forked_is_told(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one", session_id="mine").session()
    await first.prompt("go")
    await first.close()
    assert first.store.path is not None
    with first.store.path.open("a") as file:
        file.write("{damaged\n")
    case = on_disk(tmp_path, fork="mine")
    prepared = await prepare_session(case.options, case.build)
    session = await create_session(prepared=prepared)
    assert any(str(first.store.path) in warning for warning in prepared.warnings)
    await session.close()


async def test_going_back_before_a_message_makes_a_branch(tmp_path: Path) -> None:
    case = on_disk(tmp_path, "one", "two", "other")
    session = await case.session()
    await session.prompt("first")
    await session.prompt("second")
    (_, _), (second, text) = session.moves.fork_points()
    assert text == "second"
    assert await session.moves.navigate(second) == "second"
    await session.prompt("said otherwise")
    assert case.asked()[-1] == ["u:first", "a:one", "u:said otherwise"]
    assert len(session.store.tree()[0].to_json()) > 0
    assert session.stats().user_messages == 3
    await session.close()


async def test_a_branch_that_is_left_can_be_summarised(tmp_path: Path) -> None:
    case = on_disk(tmp_path, "one", "two", SUMMARY, "third")
    session = await case.session()
    await session.prompt("first")
    await session.prompt("second")
    second = session.moves.fork_points()[1][0]
    await session.moves.navigate(second, summarize=True, label="here")
    assert roles(session) == ["user", "assistant", "branchSummary"]
    assert session.store.label_of(second) == "here"
    await session.prompt("third")
    assert "A goal." in case.asked()[-1][2]
    await session.close()


async def test_plugins_refuse_moves(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        async def session_before_tree(self, target_id: str) -> Block:
            return Block("stay here")

        @hookimpl
        async def session_before_switch(self, reason: str) -> Block:
            return Block(f"no {reason}")

        @hookimpl
        async def session_before_fork(self, position: str) -> Block:
            return Block(f"no fork {position}")

    session = await on_disk(tmp_path, "one", plugins=[Plugin()]).session()
    await session.prompt("go")
    entry = session.moves.fork_points()[0][0]
    for move, said in (
        (session.moves.navigate(entry), "stay here"),
        (session.moves.new(), "no new"),
        (session.moves.fork(entry, "at"), "no fork at"),
    ):
        with pytest.raises(ConfigError, match=said):
            await move
    assert roles(session) == ["user", "assistant"]
    await session.close()


async def test_a_new_session_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    class Plugin:
        @hookimpl
        async def session_start(self, reason: str) -> None:
            told.append(("start", reason))

        @hookimpl
        async def session_shutdown(self, reason: str) -> None:
            told.append(("shutdown", reason))

    case = on_disk(tmp_path, "one", "two", "three", plugins=[Plugin()])
    session = await case.session()
    await session.prompt("go")
    old = session.store.path
    await session.moves.new()
    await session.prompt("fresh")
    assert case.asked()[-1] == ["u:fresh"]
    assert old is not None
    await session.moves.open(old)
    await session.prompt("back")
    assert case.asked()[-1] == ["u:go", "a:one", "u:back"]
    assert session.store.path == old
    await session.close()
    assert told == [
        ("start", "startup"),
        ("shutdown", "new"),
        ("start", "new"),
        ("shutdown", "resume"),
        ("start", "resume"),
        ("shutdown", "quit"),
    ]


async def test_a_fork_inside_a_session_gives_the_text_back(tmp_path: Path) -> None:
    case = on_disk(tmp_path, "one", "two", "other")
    session = await case.session()
    await session.prompt("first")
    await session.prompt("second")
    old = session.store.path
    assert await session.moves.fork(session.moves.fork_points()[1][0]) == "second"
    assert session.store.path != old
    await session.prompt("again")
    assert case.asked()[-1] == ["u:first", "a:one", "u:again"]
    await session.close()


async def test_nothing_is_left_of_a_session_that_was_never_used(tmp_path: Path) -> None:
    session = await on_disk(tmp_path).session()
    await session.close()
    assert session.store.path is not None
    assert not session.store.path.exists()


async def test_a_session_that_is_closed_is_free(tmp_path: Path) -> None:
    session = await on_disk(tmp_path, "one").session()
    await session.prompt("go")
    await session.close()
    await session.close()
    path = session.store.path
    assert path is not None
    path.rename(tmp_path / "moved.jsonl")
    other = await on_disk(tmp_path, session=str(tmp_path / "moved.jsonl")).session()
    assert roles(other) == ["user", "assistant"]
    await other.close()


async def test_a_model_that_only_a_plugin_knows_is_found_again(tmp_path: Path) -> None:
    first = await on_disk(tmp_path, "one").session()
    await first.prompt("go")
    await first.close()
    case = on_disk(tmp_path, "two", continue_last=True)
    case.plugin.refuse_default = True
    second = await case.session()
    assert second.model.id == "scripted"
    assert await second.find_model("scripted", "other") is None
    await second.close()
