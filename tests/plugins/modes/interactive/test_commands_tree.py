"""``/tree``: going to an entry, with or without a summary, forking there, and labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_core.testing import Call, Reply
from pi_plugins.coding_agent.events import EntryEvent, texts

from .at_work import AtWork, at_work

SUMMARY = "## Goal\nA goal.\n\n## Progress\nDone.\n\n## Next Steps\nNone."


async def talk(case: AtWork, *prompts: str) -> None:
    for prompt in prompts:
        await case.session.prompt(prompt)


def heard(case: AtWork) -> list[str]:
    return list(texts(case.session.agent.state.messages))


async def test_going_back_before_a_message_brings_it_into_the_editor(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await talk(case, "first", "second")
        await case.run("/tree", "second")
        assert case.ui.editor_text == "second"
        assert heard(case) == ["first", "one"]


async def test_going_to_an_answer_keeps_it(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await talk(case, "first", "second")
        await case.run("/tree", "one")
        assert case.ui.editor_text == ""
        assert heard(case) == ["first", "one"]


async def test_the_present_position_is_marked_and_chosen_at_first(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await talk(case, "first", "second")
        await case.run("/tree", None)
        asked = case.ui.asked[0]
        assert asked.labels[asked.selected].startswith("● ")
        assert asked.labels[asked.selected].endswith("two")


async def test_branches_are_further_in_and_the_one_that_was_left_has_no_line(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two", "three") as case:
        await talk(case, "first", "second")
        await case.run("/tree", "second")
        await talk(case, "other")
        await case.run("/tree", None)
        labels = case.ui.asked[-1].labels
        assert "    > second" in labels
        assert "│   > other" in labels
        assert [label.strip() for label in labels][-1].endswith("three")


async def test_a_branch_that_is_left_can_be_summarised(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two", SUMMARY) as case:
        await talk(case, "first", "second")
        await case.run("/tree", ("one", "c-s"), "names")
        assert "names" in case.asked[-1]
        assert "A goal." in heard(case)[-1]
        assert case.ui.statuses == [("tree", "Summarising the branch…"), ("tree", None)]


async def test_leaving_the_question_for_the_focus_stays_where_it_was(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await talk(case, "first", "second")
        assert await case.run("/tree", ("one", "c-s"), None) == ""
        assert heard(case) == ["first", "one", "second", "two"]


async def test_the_setting_leaves_the_question_out(tmp_path: Path) -> None:
    settings = {"branchSummary": {"skipPrompt": True}}
    async with at_work(tmp_path, "one", "two", SUMMARY, settings=settings) as case:
        await talk(case, "first", "second")
        await case.run("/tree", ("one", "c-s"))
        assert "A goal." in heard(case)[-1]


async def test_a_fork_keeps_the_entry(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one", "two") as case:
        await talk(case, "first", "second")
        before = case.session.store.path
        assert (await case.run("/tree", ("one", "c-f"))).endswith(", a copy")
        assert heard(case) == ["first", "one"]
        assert case.session.store.path != before


async def test_a_label_is_set_shown_and_taken_away(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one") as case:
        await talk(case, "first")
        await case.run("/tree", ("one", "c-l"), "start", ("one", "c-l"), "", None)
        _, question, second, again, third = case.ui.asked
        assert question.prefill == ""
        assert second.labels[second.selected].startswith("│ [start] ")
        assert again.prefill == "start"
        assert not any("[start]" in label for label in third.labels)
        assert [event.entry.type for event in case.events if isinstance(event, EntryEvent)] == ["label", "label"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("default", ["first", "", "Result of ls", "done"]),
        ("no-tools", ["first", "", "done"]),
        ("user-only", ["first"]),
        ("labeled-only", ["done"]),
    ],
)
async def test_the_setting_says_what_is_shown(tmp_path: Path, shown: str, expected: list[str]) -> None:
    replies = [Reply(Call("ls", {})), "done"]
    settings = {"treeFilterMode": shown}
    async with at_work(tmp_path, *replies, settings=settings, tools=["ls"]) as case:
        await talk(case, "first")
        leaf = case.session.store.leaf_id
        assert leaf is not None
        case.session.store.append_label(leaf, "end")
        await case.run("/tree", None)
        labels = case.ui.asked[0].labels
        assert len(labels) == len(expected)
        assert all(part in label for part, label in zip(expected, labels, strict=True))


async def test_a_key_shows_other_entries(tmp_path: Path) -> None:
    async with at_work(tmp_path, "one") as case:
        await talk(case, "first")
        await case.run("/tree", ("one", "c-o"), ("one", "c-o"), ("first", "c-o"), "one")
        assert [asked.title for asked in case.ui.asked] == [
            "Tree: default",
            "Tree: no-tools",
            "Tree: user-only",
            "Tree: all",
        ]


async def test_there_is_no_tree_at_first(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/tree")
        assert case.ui.texts == ["Nothing was said in this session yet"]
