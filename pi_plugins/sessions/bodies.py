"""What the entries of a session hold, one class for each type of entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pi_core import ThinkingLevel, Usage, WireModel


class ModelChange(WireModel):
    """Another model was chosen."""

    provider: str
    model_id: str


class ThinkingLevelChange(WireModel):
    """Another thinking level was chosen."""

    thinking_level: ThinkingLevel


class ExtraUsage(WireModel):
    """Tokens that were spent beside the messages.

    :param kind: what for.
    """

    kind: str
    provider: str
    model: str
    usage: Usage


class Compaction(WireModel):
    """A summary takes the place of what was before the kept part.

    :param first_kept_entry_id: where the kept part begins; the entry's own id keeps nothing.
    :param tokens_before: estimated tokens of the context that was compacted.
    :param system_message: the original's system prompt at that point; kept, not used.
    :param details: data about it; ``readFiles`` and ``modifiedFiles`` among it.
    :param from_hook: whether a plugin made the summary.
    """

    summary: str
    first_kept_entry_id: str
    tokens_before: int = 0
    system_message: Any = None
    usage: Usage | None = None
    details: Any = None
    from_hook: bool | None = None


class Replacement(WireModel):
    """What a model reads in place of the content of a message: a text, or blocks."""

    content: str | list[Any]


class ContextEdit(WireModel):
    """The model no longer reads an entry as it was.

    :param replacement: ``None`` leaves the entry out.
    """

    target_id: str
    replacement: Replacement | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in which a replacement of ``null`` has a meaning."""
        return {"replacement": None, **super().to_json()}


class BranchSummary(WireModel):
    """A summary of the branch that was left.

    :param from_id: the entry at which that branch ended; ``root`` if there was none.
    """

    from_id: str
    summary: str
    usage: Usage | None = None
    details: Any = None
    from_hook: bool | None = None


class CustomData(WireModel):
    """Data of a plugin that the model does not read."""

    custom_type: str
    data: Any = None


class CustomText(WireModel):
    """A text of a plugin that the model reads.

    :param display: whether people see it.
    """

    custom_type: str
    content: str | list[Any]
    display: bool = True
    details: Any = None


class Label(WireModel):
    """A mark on an entry; without a text the mark is taken off."""

    target_id: str
    label: str | None = None


class SessionName(WireModel):
    """The display name of the session."""

    name: str | None = None


class OpaqueBody(WireModel):
    """What an entry holds whose type this version does not know, or that is malformed."""


BODIES: Final[Mapping[str, type[WireModel]]] = {
    "model_change": ModelChange,
    "thinking_level_change": ThinkingLevelChange,
    "usage": ExtraUsage,
    "compaction": Compaction,
    "context_edit": ContextEdit,
    "branch_summary": BranchSummary,
    "custom": CustomData,
    "custom_message": CustomText,
    "label": Label,
    "session_info": SessionName,
}
"""The types of entries but ``message``."""
