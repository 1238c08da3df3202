"""Thinking levels of models. The policy is that of the providers, which send the levels; this is its public place."""

from __future__ import annotations

from pi_plugins.providers._thinking import LEVELS, clamp_level, supported_levels

__all__ = ["LEVELS", "clamp_level", "supported_levels"]
