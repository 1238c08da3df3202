"""The settings of compaction as they hold for one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_core import Model

if TYPE_CHECKING:
    from pi_plugins.config.settings import CompactionSettings

_LARGEST_SHARE: Final = 2
"""The room kept free and the part kept are each at most the window divided by this, so that something fits."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """When and how far a model's context is compacted.

    :param enabled: whether it is compacted without being asked.
    :param reserve_tokens: tokens of the window that are kept free.
    :param keep_recent_tokens: tokens of the newest messages that are kept as they are.
    """

    enabled: bool
    reserve_tokens: int
    keep_recent_tokens: int


def limits_for(settings: CompactionSettings, model: Model | None = None) -> ModelLimits:
    """Return the limits for a model: each of its own settings stands in for the general one.

    A window smaller than the limits would be compacted at every turn, to no effect; they shrink with it.

    :param model: ``None`` gives the general limits.
    """
    enabled, reserve, keep = settings.enabled, settings.reserve_tokens, settings.keep_recent_tokens
    if model is None:
        return ModelLimits(enabled, reserve, keep)
    own = settings.model_overrides.get(f"{model.provider}/{model.id}")
    if own is not None:
        reserve = reserve if own.reserve_tokens is None else own.reserve_tokens
        keep = keep if own.keep_recent_tokens is None else own.keep_recent_tokens
    window = model.context_window
    if window > 0:
        reserve = reserve_within(model, reserve)
        keep = min(keep, (window - reserve) // _LARGEST_SHARE)
    return ModelLimits(enabled, reserve, keep)


def reserve_within(model: Model, reserve_tokens: int) -> int:
    """Return how many tokens are kept free of a model's window, which is known: at most half of it."""
    return min(reserve_tokens, model.context_window // _LARGEST_SHARE)
