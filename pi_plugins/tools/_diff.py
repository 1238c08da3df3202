"""Shows what edits changed, from the places they changed; the rest of the text is not compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._match import Span

CONTEXT = 4
"""Unchanged lines shown around a change."""

_COMPARE_LINES = 1000
"""Largest block in which lines that stayed are looked for."""

_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(slots=True)
class _Change:
    """Lines that became other lines; indexes from 0, lines with their newline."""

    old_start: int
    new_start: int
    old: list[str]
    new: list[str]

    @property
    def old_end(self) -> int:
        return self.old_start + len(self.old)


class EditDiff:
    """The difference that replacements make.

    :param text: the text before, with any line endings.
    :param replacements: places and what is put there, in order and apart from each other.
    """

    def __init__(self, text: str, replacements: Sequence[tuple[Span, str]]) -> None:
        self._old = _lines(text)
        self._changes: list[_Change] = []
        number, counted, shift = 0, 0, 0
        for begin, end, new_block in _blocks(text, replacements):
            number += text.count("\n", counted, begin)
            counted = begin
            for change in _compare(_lines(text[begin:end]), _lines(new_block)):
                change.old_start += number
                change.new_start = change.old_start + shift
                shift += len(change.new) - len(change.old)
                self._changes.append(change)
        self._shift = shift

    @property
    def first_changed_line(self) -> int:
        """The number of the first changed line in the new text, from 1."""
        return self._changes[0].new_start + 1

    def numbered(self) -> str:
        """Return the changed lines with their numbers and some around them; removed and kept lines have old numbers."""
        width = len(str(max(len(self._old), len(self._old) + self._shift)))
        gap = f" {'':>{width}} ..."
        output: list[str] = []
        shown = 0
        for hunk in self._hunks():
            begin, end = self._range(hunk)
            if begin > shown:
                output.append(gap)
            position = begin
            for change in hunk:
                output += self._kept(position, change.old_start, width)
                for sign, start, lines in (("-", change.old_start, change.old), ("+", change.new_start, change.new)):
                    output += [f"{sign}{start + index + 1:>{width}} {_bare(line)}" for index, line in enumerate(lines)]
                position = change.old_end
            output += self._kept(position, end, width)
            shown = end
        if shown < len(self._old):
            output.append(gap)
        return "\n".join(output)

    def unified(self, name: str) -> str:
        """Return the difference as a unified patch of a file."""
        output = [f"--- {name}", f"+++ {name}"]
        for hunk in self._hunks():
            begin, end = self._range(hunk)
            new_begin = begin + hunk[0].new_start - hunk[0].old_start
            grown = sum(len(change.new) - len(change.old) for change in hunk)
            output.append(f"@@ -{_extent(begin, end - begin)} +{_extent(new_begin, end - begin + grown)} @@")
            position = begin
            for change in hunk:
                output += _signed(" ", self._old[position : change.old_start])
                output += _signed("-", change.old)
                output += _signed("+", change.new)
                position = change.old_end
            output += _signed(" ", self._old[position:end])
        return "\n".join(output) + "\n"

    def _hunks(self) -> list[list[_Change]]:
        hunks: list[list[_Change]] = []
        for change in self._changes:
            if hunks and change.old_start - hunks[-1][-1].old_end <= 2 * CONTEXT:
                hunks[-1].append(change)
            else:
                hunks.append([change])
        return hunks

    def _range(self, hunk: list[_Change]) -> tuple[int, int]:
        return max(0, hunk[0].old_start - CONTEXT), min(len(self._old), hunk[-1].old_end + CONTEXT)

    def _kept(self, begin: int, end: int, width: int) -> list[str]:
        return [f" {number + 1:>{width}} {_bare(self._old[number])}" for number in range(begin, end)]


def _blocks(text: str, replacements: Sequence[tuple[Span, str]]) -> list[tuple[int, int, str]]:
    """Return the runs of whole lines that replacements touch, each with what it becomes."""
    blocks: list[tuple[int, int, str]] = []
    for (start, end), new in replacements:
        line_start = text.rfind("\n", 0, start) + 1
        ends_line = text[end - 1 : end] == "\n" and (new.endswith("\n") or (not new and start == line_start))
        newline = end - 1 if ends_line else text.find("\n", end)
        line_end = len(text) if newline < 0 else newline + 1
        if blocks and line_start < blocks[-1][1]:
            begin, before, block = blocks.pop()
            kept = block[: len(block) - (before - start)]
            blocks.append((begin, max(before, line_end), kept + new + text[end : max(before, line_end)]))
        else:
            blocks.append((line_start, line_end, text[line_start:start] + new + text[end:line_end]))
    return blocks


def _compare(old: list[str], new: list[str]) -> list[_Change]:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > _COMPARE_LINES:
        return [_Change(head, 0, old, new)]
    from difflib import SequenceMatcher

    return [
        _Change(head + old_start, 0, old[old_start:old_end], new[new_start:new_end])
        for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, False).get_opcodes()
        if tag != "equal"
    ]


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _bare(line: str) -> str:
    return line.removesuffix("\n")


def _extent(begin: int, length: int) -> str:
    return f"{begin + 1 if length else begin},{length}"


def _signed(sign: str, lines: list[str]) -> list[str]:
    output = []
    for line in lines:
        output.append(sign + _bare(line))
        if not line.endswith("\n"):
            output.append(_NO_NEWLINE)
    return output
