"""The logger of the framework, made when there is something to log."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


@cache
def log() -> logging.Logger:
    """Return the logger ``pi``, which is silent unless the application configures logging."""
    import logging

    logger = logging.getLogger("pi")
    logger.addHandler(logging.NullHandler())
    return logger
