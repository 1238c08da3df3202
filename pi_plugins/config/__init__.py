"""Configuration: the agent's folder, settings files, trust in a project, and where each value came from."""

from __future__ import annotations

from pi_core import hookimpl

from . import hookspecs


class ConfigPlugin:
    """Offers the hook ``project_trust`` and the command ``pi config``."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]
