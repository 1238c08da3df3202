"""Which files a conversation was about, kept beside its summary across any number of compactions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pi_core import AgentMessage, AssistantMessage, ToolCallContent, ToolResultMessage

_READING: Final = frozenset({"read"})
_WRITING: Final = frozenset({"write", "edit"})
_LISTS: Final = re.compile(r"\n*(?:<(read|modified)-files>\n(?:[^<\n][^\n]*\n)*</\1-files>\s*)+\Z")


@dataclass(frozen=True, slots=True)
class FileLists:
    """Files by what was done to them, each sorted; a file that was changed is not among those that were read."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def to_details(self) -> dict[str, list[str]]:
        """Return the lists as they stand in a session entry."""
        return {"readFiles": list(self.read), "modifiedFiles": list(self.modified)}

    def to_text(self) -> str:
        """Return the lists as they stand below a summary; empty lists are left out."""
        named = (("read-files", self.read), ("modified-files", self.modified))
        return "\n\n".join("\n".join((f"<{name}>", *paths, f"</{name}>")) for name, paths in named if paths)


def file_lists(messages: Sequence[AgentMessage], earlier: Iterable[Mapping[str, Any] | None] = ()) -> FileLists:
    """Return the files that tool calls read and changed; calls that failed do not count.

    :param earlier: details of summaries before, whose files are taken over.
    """
    read: set[str] = set()
    modified: set[str] = set()
    for details in earlier:
        read.update(_paths(details, "readFiles"))
        modified.update(_paths(details, "modifiedFiles"))
    for call in _calls_done(messages):
        path = call.arguments.get("path")
        if isinstance(path, str) and path:
            if call.name in _READING:
                read.add(path)
            elif call.name in _WRITING:
                modified.add(path)
    return FileLists(tuple(sorted(read - modified)), tuple(sorted(modified)))


def _calls_done(messages: Sequence[AgentMessage]) -> Iterable[ToolCallContent]:
    """The calls whose result is there and no failure."""
    waiting: dict[str, ToolCallContent] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting = {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage):
            call = waiting.pop(message.tool_call_id, None)
            if call is not None and not message.is_error:
                yield call


def _paths(details: Mapping[str, Any] | None, key: str) -> list[str]:
    paths = details.get(key) if isinstance(details, Mapping) else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def with_lists(summary: str, files: FileLists) -> str:
    """Return a summary with the lists of files below it."""
    return "\n\n".join(filter(None, (summary, files.to_text())))


def without_lists(summary: str) -> str:
    """Return a summary without the lists of files below it."""
    return _LISTS.sub("", summary).rstrip()
