"""Commands about this session and others: what it is, names, costs, exports, other sessions, forks."""

from __future__ import annotations

from pathlib import Path

from pi_core import AssistantMessage, Cost, TextContent, Usage, user_message
from pi_core.testing import Barrier, Reply, Wait
from pi_plugins.coding_agent.events import texts as texts_of
from pi_plugins.sessions import Session

from .at_work import AtWork, at_work


def other_session(case: AtWork, text: str, *, cwd: Path | None = None, name: str | None = None) -> Path:
    """Write another session and return its file."""
    assert case.session.folder is not None
    with Session.create(cwd or case.session.cwd, directory=case.session.folder) as made:
        made.append_message(user_message(text))
        if name is not None:
            made.append_session_info(name)
        assert made.path is not None
        return made.path


def texts(case: AtWork) -> list[str]:
    return list(texts_of(case.session.agent.state.messages))


async def test_what_the_session_is(tmp_path: Path) -> None:
    async with at_work(tmp_path, Reply("fine", usage=Usage(input=1200, output=34, total_tokens=1234))) as case:
        await case.session.prompt("go")
        said = await case.run("/session")
        assert f"File      {case.session.store.path}" in said
        assert f"Id        {case.session.store.id}" in said
        assert "Messages  1 of yours, 1 answer, 0 tool results" in said
        assert "Tokens    1,200 in, 34 out, 0 from cache" in said


async def test_a_session_in_which_nothing_was_said_has_no_file_yet(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert ".jsonl, once something was said" in await case.run("/session")


async def test_a_name_is_set_asked_for_and_taken_away(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/name the big one") == "The session is called 'the big one'"
        await case.run("/name", "another")
        assert case.ui.asked[0].prefill == "the big one"
        assert case.session.store.name == "another"
        assert await case.run("/name", "") == "The session has no name"
        assert await case.run("/name", None) == ""


async def test_a_new_session_is_empty_and_the_old_one_stays(tmp_path: Path) -> None:
    async with at_work(tmp_path, "fine") as case:
        await case.session.prompt("go")
        before = case.session.store.path
        assert before is not None
        await case.run("/new a name")
        assert case.session.agent.state.messages == []
        assert case.session.store.name == "a name"
        assert before.exists()
        assert case.session.store.path != before


async def test_another_session_of_the_folder_is_gone_on_with(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        other_session(case, "about cats")
        path = other_session(case, "about dogs", name="dogs")
        other_session(case, "elsewhere", cwd=tmp_path)
        await case.run("/resume", "dogs")
        assert case.ui.asked[0].title == "Sessions of this folder"
        assert sorted(case.ui.asked[0].labels) == ["about cats", "dogs"]
        assert "1 message" in case.ui.asked[0].choices[0].detail
        assert case.session.store.path == path
        assert texts(case) == ["about dogs"]


async def test_a_session_is_named_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        path = other_session(case, "about cats")
        await case.run(f"/resume {path}")
        assert texts(case) == ["about cats"]


async def test_sessions_of_all_folders_come_with_a_key_and_are_copied(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        other_session(case, "here")
        path = other_session(case, "elsewhere", cwd=tmp_path)
        said = await case.run("/resume", ("here", "c-a"), "elsewhere", True)
        assert [asked.title for asked in case.ui.asked[:2]] == ["Sessions of this folder", "Sessions of all folders"]
        assert said.endswith(", a copy")
        assert case.session.store.header.parent_session == str(path)
        assert case.session.store.cwd == str(case.session.cwd)
        assert texts(case) == ["elsewhere"]


async def test_without_a_session_here_those_of_all_folders_are_shown(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        other_session(case, "elsewhere", cwd=tmp_path)
        await case.run("/resume", None)
        assert [asked.title for asked in case.ui.asked] == ["Sessions of all folders"]


async def test_without_any_other_session_it_says_so(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/resume")
        assert case.ui.texts == [f"There is no other session in {case.session.folder}"]


async def test_a_session_that_is_in_use_can_be_copied(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        path = other_session(case, "about cats")
        with Session.open(path):
            said = await case.run("/resume", "cats", True)
            question = case.ui.asked[-1]
            assert question.title == "The session is in use"
            assert f"writes {path}" in question.message
            assert said.endswith(", a copy")
            assert texts(case) == ["about cats"]


async def test_a_session_that_is_in_use_need_not_be_copied(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        path = other_session(case, "about cats")
        with Session.open(path):
            before = case.session.store.path
            assert await case.run("/resume", "cats", False) == ""
            assert case.session.store.path == before


async def test_sessions_are_not_left_while_the_agent_works(tmp_path: Path) -> None:
    barrier = Barrier()
    async with at_work(tmp_path, Reply(Wait(barrier), "done")) as case:
        await case.session.submit("go")
        for command in ("/resume", "/fork", "/tree", "/new"):
            assert "The agent works" in await case.run(command)
        barrier.release()


async def test_a_session_in_memory_has_no_others(tmp_path: Path) -> None:
    async with at_work(tmp_path, in_memory=True) as case:
        assert "is kept in memory" in await case.run("/resume")


async def test_a_fork_ends_before_a_message_that_comes_into_the_editor(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await case.session.prompt("first")
        await case.session.prompt("second")
        before = case.session.store.path
        await case.run("/fork", "second")
        assert case.ui.asked[0].labels == ["first", "second"]
        assert case.ui.asked[0].selected == 1
        assert case.ui.editor_text == "second"
        assert texts(case) == ["first", "one"]
        assert case.session.store.path != before


async def test_there_is_nothing_to_fork_at_first(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/fork")
        assert case.ui.texts == ["Nothing was said in this session yet"]


async def test_the_cost_is_told_by_model_the_dearest_first(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        for model, dollars in (("cheap", 0.01), ("dear", 0.5), ("cheap", 0.01)):
            usage = Usage(input=100, cache_read=900, output=10, total_tokens=1010, cost=Cost(total=dollars))
            content = [TextContent(text="x")]
            message = AssistantMessage(content=content, api="a", provider="p", model=model, usage=usage)
            case.session.store.append_message(message)
        lines = (await case.run("/cost")).splitlines()
        assert lines[:2] == ["$0.5000  p/dear: 1,000 in, 10 out", "$0.0200  p/cheap: 2,000 in, 20 out"]
        assert lines[2] == "$0.5200  together"
        assert lines[3].startswith("Context  about ")


async def test_the_session_is_exported_by_the_ending_of_the_name(tmp_path: Path) -> None:
    async with at_work(tmp_path, "fine") as case:
        await case.session.prompt("go")
        target = case.session.cwd / "talk.md"
        assert await case.run("/export talk.md") == f"Written to {target}"
        assert "fine" in target.read_text()
        said = await case.run("/export")
        assert said.endswith(".html")
        assert Path(said.removeprefix("Written to ")).parent == case.session.cwd


async def test_there_is_nothing_to_export_at_first(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "There is no session file to export" in await case.run("/export")


async def test_compaction_tells_what_it_saved_and_takes_a_focus(tmp_path: Path) -> None:
    summary = "## Goal\nA goal.\n\n## Progress\nDone.\n\n## Next Steps\nNone."
    settings = {"compaction": {"keepRecentTokens": 10, "reserveTokens": 1000}}
    async with at_work(tmp_path, "long " * 200, "two", summary, settings=settings) as case:
        await case.session.prompt("go")
        await case.session.prompt("on")
        assert (await case.run("/compact the names")).startswith("Compacted: ")
        assert "the names" in case.asked[-1]


async def test_compaction_without_anything_to_compact_says_so(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "nothing to compact" in await case.run("/compact")


async def test_without_an_answer_there_is_nothing_to_copy(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "There is no answer to copy yet" in await case.run("/copy")
