"""Configuration: the agent's folder, settings files, trust in a project, and where each value came from.

The names are imported when they are first used, so that looking for a folder costs no more than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_core import Command, hookimpl
from pi_plugins._lazy import names_of

from . import hookspecs

if TYPE_CHECKING:
    import click

    from .json_file import LockedJson as LockedJson
    from .json_file import read_document as read_document
    from .json_file import read_json as read_json
    from .json_file import replace_file as replace_file
    from .json_text import JsonDocument as JsonDocument
    from .loading import LoadedSettings as LoadedSettings
    from .loading import load_settings as load_settings
    from .paths import agent_dir as agent_dir
    from .paths import current_dir as current_dir
    from .paths import home_dir as home_dir
    from .paths import project_dir as project_dir
    from .plugin_folders import plugin_files as plugin_files
    from .saving import remove_setting as remove_setting
    from .saving import save_setting as save_setting
    from .settings import BranchSummarySettings as BranchSummarySettings
    from .settings import CompactionSettings as CompactionSettings
    from .settings import RetrySettings as RetrySettings
    from .settings import Settings as Settings
    from .state import state_file as state_file
    from .trust import Trust as Trust
    from .trust import decide_trust as decide_trust
    from .trust import needs_trust as needs_trust
    from .trust import save_trust as save_trust

__getattr__, __dir__ = names_of(
    __name__,
    json_file=("LockedJson", "read_document", "read_json", "replace_file"),
    json_text=("JsonDocument",),
    loading=("LoadedSettings", "load_settings"),
    paths=("agent_dir", "current_dir", "home_dir", "project_dir"),
    plugin_folders=("plugin_files",),
    saving=("remove_setting", "save_setting"),
    settings=("BranchSummarySettings", "CompactionSettings", "RetrySettings", "Settings"),
    state=("state_file",),
    trust=("Trust", "decide_trust", "needs_trust", "save_trust"),
)


class ConfigPlugin:
    """Offers the hook ``project_trust`` and the command ``pi config``."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer ``pi config``."""
        return [Command(name="config", help="Settings, where each comes from, and trusted projects.", load=_command)]


def _command() -> click.Command:
    from .commands import config

    return config
