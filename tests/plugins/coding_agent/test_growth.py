"""What a turn of a session costs does not grow with the session: operations are counted at two lengths."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pi_core.testing import Call, Reply
from pi_plugins.sessions import Session
from pi_plugins.sessions.compaction import estimate
from pi_plugins.sessions.projection import ProjectionBuilder

from .sessions import Case


async def operations(folder: Path, turns: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Make a run of some turns with a tool call each, and count what was done."""
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            counted[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, wrapped)

    count(estimate, "message_tokens")
    count(Session, "projection")
    count(ProjectionBuilder, "add")
    count(Session, "_append")
    replies: list[Reply | str] = [Reply("x", Call("ls", {"path": "."})) for _ in range(turns)]
    case = Case(folder, [*replies, "done"], in_memory=False, model={"context_window": 10_000_000}, tools=["ls"])
    session = await case.session()
    await session.prompt("go")
    await session.close()
    monkeypatch.undo()
    assert session.stats().assistant_messages == turns + 1
    return counted


async def test_the_work_of_a_turn_is_the_same_in_a_long_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = await operations(tmp_path / "short", 20, monkeypatch)
    long = await operations(tmp_path / "long", 200, monkeypatch)
    more = {name: long[name] - short[name] for name in long}
    assert more == {"message_tokens": 360, "projection": 0, "add": 360, "_append": 360}
