"""What a response that failed or was cut means, for packages that decide what comes next."""

from __future__ import annotations

from ._errors import is_overflow, is_recoverable_length, is_retryable

__all__ = ["is_overflow", "is_recoverable_length", "is_retryable"]
