"""Older versions of the session format, brought up to the present one in memory."""

from __future__ import annotations

from ._lines import Found


def migrate(records: list[Found], version: int) -> None:
    """Change records to those of version 3.

    Version 1 had no ids: each entry followed the one before it, and a compaction named by its number the entry with
    which the kept part begins, the header being number 0. The ids made here are the same each time.

    :param records: the lines after the header.
    :param version: what the header declares.
    """
    entries = [record for _, record, _ in records if record is not None]
    if version < 2:
        previous = None
        for number, entry in enumerate(entries, 1):
            entry["id"], entry["parentId"] = f"{number:08x}", previous
            previous = entry["id"]
        for entry in entries:
            index = entry.pop("firstKeptEntryIndex", None)
            if isinstance(index, int) and 0 < index <= len(entries):
                entry["firstKeptEntryId"] = entries[index - 1]["id"]
    for entry in entries:
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "hookMessage":
            message["role"] = "custom"
