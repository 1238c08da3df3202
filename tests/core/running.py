"""Running a coroutine in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from pi_core import ToolContext


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns; it must end, and leave no task behind."""

    async def main() -> Any:
        result = await asyncio.wait_for(coroutine, 60)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left
        return result

    return asyncio.run(main())


async def quick(arguments: Any, context: ToolContext) -> str:
    """Answer at once: the body of a tool."""
    return "ok"
