"""Commands that the user runs as ``!command``, beside the model's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BashResult:
    """What a command of the user printed.

    :param output: standard output and error as they came, cut to what a model is shown.
    :param exit_code: ``None`` when the command was cancelled.
    :param full_output_path: where all of a cut output is.
    """

    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
