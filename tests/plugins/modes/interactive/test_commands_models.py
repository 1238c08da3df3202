"""``/model``, ``/thinking`` and ``/tools``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_core.testing import Barrier, Reply, Wait

from .at_work import at_work


async def test_a_full_name_chooses_the_model(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/model work/deep-1") == "Model: work/deep-1, thinking medium"
        assert (case.session.model.provider, case.session.model.id) == ("work", "deep-1")
        assert case.session.store.projection().model == ("work", "deep-1")


@pytest.mark.parametrize(("typed", "expected"), [("quick", "quick-1"), ("QUICK-1", "quick-1"), ("deep 2", "deep-2")])
async def test_a_part_that_one_model_has_chooses_it(tmp_path: Path, typed: str, expected: str) -> None:
    async with at_work(tmp_path) as case:
        await case.run(f"/model {typed}")
        assert case.session.model.id == expected


async def test_a_level_may_follow_the_name(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/model deep-2:high") == "Model: work/deep-2, thinking high"


async def test_a_part_that_several_have_asks_which(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep", "deep-2")
        assert case.ui.asked[0].labels == ["work/deep-1", "work/deep-2"]
        assert case.session.model.id == "deep-2"


async def test_without_a_name_all_models_with_a_key_are_offered(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model", "quick-1")
        assert case.ui.asked[0].labels == ["work/quick-1", "work/deep-1", "work/deep-2"]
        assert "100K" in case.ui.asked[0].choices[0].detail


async def test_the_present_model_is_where_the_choice_begins(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep-1")
        assert await case.run("/model", None) == ""
        asked = case.ui.asked[0]
        assert asked.labels[asked.selected] == "work/deep-1"
        assert asked.choices[asked.selected].detail.endswith("now")


async def test_a_key_of_the_choice_makes_it_the_default(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        said = await case.run("/model", ("deep-1", "c-s"))
        settings = json.loads((tmp_path / "agent" / "settings.json").read_text())
        assert settings == {"defaultProvider": "work", "defaultModel": "deep-1"}
        assert str(tmp_path / "agent" / "settings.json") in said


async def test_a_model_that_is_not_there_has_a_near_one(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        said = await case.run("/model deep-7")
        assert said == "error: /model: There is no model 'deep-7', did you mean 'work/deep-2'?"


async def test_a_model_without_a_key_leads_to_login(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        said = await case.run("/model anthropic/claude-sonnet-4-6")
        assert said == "error: /model: anthropic has no key. Store one with: /login anthropic"


async def test_a_name_says_which_provider_would_have_it(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        said = await case.run("/model claude-sonnet-4-6")
        assert "No provider with a key has a model 'claude-sonnet-4-6'; these have one: anthropic" in said


async def test_while_a_run_goes_on_the_change_is_for_the_next_request(tmp_path: Path) -> None:
    barrier = Barrier()
    async with at_work(tmp_path, Reply(Wait(barrier), "done")) as case:
        await case.session.submit("go")
        said = await case.run("/model deep-1")
        barrier.release()
        assert said == "Model: work/deep-1, thinking medium, from the next request on"


async def test_the_thinking_level_is_set_by_name(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep-1")
        assert await case.run("/thinking high") == "Thinking: high"
        assert case.session.thinking_level == "high"


async def test_a_level_that_the_model_lacks_is_clamped_and_said(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model quick-1")
        assert await case.run("/thinking high") == "Thinking: off; quick-1 has no 'high'"


async def test_the_levels_of_the_model_are_offered(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep-1")
        await case.run("/thinking", "low")
        assert case.ui.asked[0].labels == case.session.choice.levels
        assert case.session.thinking_level == "low"


async def test_a_word_that_is_no_level_is_refused(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        await case.run("/model deep-1")
        assert "There is no thinking level 'hard': off, minimal" in await case.run("/thinking hard")


async def test_tools_change_by_sign(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/tools +grep -write") == "Tools: read, bash, edit, grep"
        assert [tool.name for tool in case.session.agent.state.tools] == ["read", "bash", "edit", "grep"]


async def test_names_replace_the_tools(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/tools read, ls") == "Tools: read, ls"


async def test_a_tool_that_is_not_there_has_a_near_one(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert "there is no tool 'gerp', did you mean 'grep'?" in await case.run("/tools +gerp")


async def test_tools_are_turned_on_and_off_one_by_one(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/tools", "write", "grep", None) == "Tools: read, bash, edit, grep"
        first, second, third = case.ui.asked
        assert "[x] write" in first.labels
        assert "[ ] write" in second.labels
        assert "[x] grep" in third.labels
        assert third.labels[third.selected] == "[x] grep"


async def test_leaving_at_once_changes_no_tool(tmp_path: Path) -> None:
    async with at_work(tmp_path) as case:
        assert await case.run("/tools", None) == ""
