"""The ``edit`` tool: replaces pieces of a file and leaves every other byte as it is."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import STRICT
from ._content import to_text
from ._diff import EditDiff
from ._errors import ToolError, error_code
from ._files import open_regular, replace_file
from ._locks import change_file
from ._match import FUZZY_CHARACTERS, FuzzyText, Span, find_exact, line_ending
from ._paths import resolve_existing, shown
from ._text import FileText
from ._threads import Stop
from ._truncate import format_size

if TYPE_CHECKING:
    from . import ToolsOptions


def edit_tool(options: ToolsOptions) -> Tool:
    """Make the ``edit`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if not arguments["edits"]:
            raise ToolError("Edit tool input is invalid. edits must contain at least one replacement.")
        stop = Stop(context.signal)
        path = resolve_existing(arguments["path"], options.directory())
        return await change_file(path, lambda: _edit(arguments, path, options, stop), stop)

    return Tool(
        name="edit",
        description=(
            "Replace text in a file. Each oldText must occur exactly once in the file as it is now; "
            "edits must not overlap."
        ),
        parameters={
            "type": "object",
            "required": ["path", "edits"],
            "properties": {
                "path": {"type": "string", "description": "File to edit"},
                "edits": {
                    "type": "array",
                    "description": "Replacements",
                    "items": {
                        "type": "object",
                        "required": ["oldText", "newText"],
                        "properties": {
                            "oldText": {"type": "string", "description": "Text to replace, exactly as in the file"},
                            "newText": {"type": "string", "description": "What to put there"},
                        },
                    },
                },
            },
        },
        execute=execute,
        constrained_sampling=STRICT,
        prepare_arguments=_prepare,
        prompt_snippet="replace parts of a file",
        prompt_guidelines=("Read a file before you edit it, and copy oldText from it character by character.",),
    )


def _prepare(raw: Any) -> Any:
    """Accept what models send instead: ``edits`` as JSON text or as one object, and its fields beside ``path``."""
    if not isinstance(raw, dict):
        return raw
    edits = raw.get("edits")
    if isinstance(edits, str):
        try:
            edits = json.loads(edits)
        except ValueError:
            return raw
    if isinstance(edits, dict):
        edits = [edits]
    rest = {key: value for key, value in raw.items() if key not in ("edits", "oldText", "newText")}
    if "oldText" in raw and "newText" in raw and (edits is None or isinstance(edits, list)):
        edits = [*(edits or []), {"oldText": raw["oldText"], "newText": raw["newText"]}]
    return raw if edits is None else {**rest, "edits": edits}


def _edit(arguments: dict[str, Any], path: str, options: ToolsOptions, stop: Stop) -> ToolResult:
    name = shown(arguments["path"])
    try:
        with open_regular(path) as file:
            found = os.fstat(file.fileno())
            if found.st_size > options.max_edit_bytes:
                raise ToolError(
                    f"{name} is {format_size(found.st_size)}, over the limit of {format_size(options.max_edit_bytes)} "
                    "for edits; use bash, for example sed"
                )
            before = FileText.decode(file.readall(), name)
        replacements = _replacements(before, arguments["edits"], name)
        after = _apply(before.text, replacements)
        if after == before.text:
            raise ToolError(
                f"No changes made to {name}. The replacement produced identical content. This might indicate an "
                "issue with special characters or the text not existing as expected."
            )
        replace_file(path, before.encode(after), stop, expected=found)
    except OSError as error:
        raise ToolError(f"Could not edit file: {name}. Error code: {error_code(error)}.") from None
    diff = EditDiff(before.text, replacements)
    return ToolResult.text(
        f"Successfully replaced {len(replacements)} block(s) in {name}.",
        details={
            "diff": diff.numbered(),
            "patch": diff.unified(name),
            "firstChangedLine": diff.first_changed_line,
        },
    )


def _replacements(before: FileText, edits: list[dict[str, str]], name: str) -> list[tuple[Span, str]]:
    """Return where each edit belongs and what it puts there, in the order of the text."""
    fuzzy: FuzzyText | None = None
    placed: list[tuple[Span, int, str]] = []
    for index, edit in enumerate(edits):
        old, new = _clean(edit["oldText"]), _clean(edit["newText"])
        label = "the exact text" if len(edits) == 1 else f"edits[{index}]"
        if not old:
            field = "oldText" if len(edits) == 1 else f"edits[{index}].oldText"
            raise ToolError(f"{field} must not be empty in {name}.")
        if before.legacy and not new.isascii():
            raise ToolError(f"{name} is not in UTF-8, so newText must be ASCII; convert the file with bash first.")
        spans = find_exact(before.text, old)
        if not spans and len(before.text) <= FUZZY_CHARACTERS:
            fuzzy = fuzzy or FuzzyText(before.text)
            spans = fuzzy.find(old)
        if not spans:
            the = "old text" if len(edits) == 1 else "oldText"
            raise ToolError(
                f"Could not find {label} in {name}. The {the} must match exactly including all whitespace and newlines."
            )
        if len(spans) > 1:
            what, each = ("the text", "The text") if len(edits) == 1 else (label, "Each oldText")
            raise ToolError(
                f"Found {len(spans)} occurrences of {what} in {name}. {each} must be unique. Please provide more "
                "context to make it unique."
            )
        placed.append((spans[0], index, new.replace("\n", line_ending(before.text, spans[0]))))
    placed.sort()
    for (first, one, _), (second, other, _) in pairwise(placed):
        if second[0] < first[1]:
            low, high = sorted((one, other))
            raise ToolError(
                f"edits[{low}] and edits[{high}] overlap in {name}. Merge them into one edit or target disjoint "
                "regions."
            )
    return [(span, new) for span, _, new in placed]


def _clean(text: str) -> str:
    return to_text(text).removeprefix("\ufeff").replace("\r\n", "\n")


def _apply(text: str, replacements: list[tuple[Span, str]]) -> str:
    pieces, position = [], 0
    for (start, end), new in replacements:
        pieces += [text[position:start], new]
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
