"""Token counts, for packages that decide how much of a history a model is given and what it cost."""

from __future__ import annotations

from ._tokens import cap_output, count_characters
from ._usage import total_usage

__all__ = ["cap_output", "count_characters", "total_usage"]
