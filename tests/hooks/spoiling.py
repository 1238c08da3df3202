"""Edits whatever can be edited in place."""

from __future__ import annotations

import dataclasses
from typing import Any


def spoil(value: Any) -> None:
    """Empty lists and mappings, overwrite fields, and do the same to the data they hold; what is frozen stays."""
    if isinstance(value, list | dict):
        for item in list(value.values() if isinstance(value, dict) else value):
            if isinstance(item, list | dict):
                spoil(item)
        value.clear()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            spoil(getattr(value, field.name))
            if not isinstance(getattr(value, field.name), list | dict):
                setattr(value, field.name, None)
