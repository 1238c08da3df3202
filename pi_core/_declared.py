"""Commands that distributions declare in their metadata, so that they run before any plugin is imported.

The entry-point group is ``pi.commands``: the name is that of the command, the object a click command that needs no
build. A plugin of the same distribution registers the command too, for builds and for the list of commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "pi.commands"


def declared(name: str) -> list[EntryPoint]:
    """Return what the installed distributions declare under a name."""
    from importlib import metadata

    return list(metadata.entry_points(group=GROUP, name=name))


def origin(entry: EntryPoint) -> str:
    """Return distribution and version of a declaration, as they are written everywhere."""
    return "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
