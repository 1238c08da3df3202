"""Keeps in order what takes a detour of its own length, such as one by way of the database."""

from __future__ import annotations

import asyncio


class Order:
    """Lets those who come leave in the order they came."""

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None

    def take(self) -> Place:
        """Return the next place; it must be left, or nobody behind it goes on."""
        place = Place(self._last)
        self._last = place.left
        return place


class Place:
    """A place in an :class:`Order`."""

    def __init__(self, before: asyncio.Event | None) -> None:
        self._before = before
        self.left = asyncio.Event()

    async def turn(self) -> None:
        """Wait until the place before this one is left."""
        if self._before is not None:
            await self._before.wait()

    def leave(self) -> None:
        """Let the next one go on."""
        self.left.set()
