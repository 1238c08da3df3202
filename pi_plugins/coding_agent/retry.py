"""Whether a failed request is made again by the session, and after how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_core import AssistantMessage
from pi_plugins.providers.failures import is_overflow, is_retryable

if TYPE_CHECKING:
    from pi_plugins.config.settings import RetrySettings

_NEVER: Final = frozenset({400, 401, 403, 404, 413, 422})
"""Statuses that say the request itself is at fault, whatever else the server says."""


class RetryPolicy:
    """Decides over the next attempt by what the failed response says.

    What may be over soon is tried again, each time after twice the delay. A delay that the server asks for is waited
    for, unless it is longer than the longest one allowed: then the user is to decide. A request that was too long for
    the model is none of this: it fails again until the context is shorter.

    :param settings: ``retry`` of the settings.
    """

    def __init__(self, settings: RetrySettings) -> None:
        self._settings = settings

    @property
    def max_retries(self) -> int:
        """The most attempts after the first one."""
        return self._settings.max_retries

    def delay(self, message: AssistantMessage, attempt: int) -> float | None:
        """Return the seconds to wait before an attempt; ``None`` means there is to be none.

        :param message: the failed response.
        :param attempt: number of the attempt, 1 for the first one after the failure.
        """
        settings = self._settings
        if attempt > settings.max_retries or not _may_succeed(message):
            return None
        asked = _asked_ms(message)
        if asked > settings.max_agent_delay_ms:
            return None
        backoff = min(settings.base_delay_ms << (attempt - 1), settings.max_agent_delay_ms)
        return max(asked, backoff) / 1000

    def refusal(self, message: AssistantMessage) -> str | None:
        """Return why a failure that may be over later is not waited for; ``None`` when the delay is not the reason."""
        asked, longest = _asked_ms(message), self._settings.max_agent_delay_ms
        if asked <= longest or not _may_succeed(message):
            return None
        return (
            f"The server asks to wait {_seconds(asked)}, and retry.maxAgentDelayMs allows {_seconds(longest)}: "
            "try again later, or raise the setting"
        )


def _may_succeed(message: AssistantMessage) -> bool:
    status = message.error_details.status if message.error_details else None
    return status not in _NEVER and is_retryable(message) and not is_overflow(message)


def _asked_ms(message: AssistantMessage) -> int:
    """The delay the server asks for, in milliseconds; 0 when it asks for none."""
    return (message.error_details.retry_after_ms if message.error_details else None) or 0


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"


__all__ = ["RetryPolicy", "is_overflow"]
