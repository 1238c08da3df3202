"""Permission guards: which tool calls are allowed, asked about or denied."""

from __future__ import annotations

from pi_core import ToolCall, hookimpl


class PermissionsPlugin:
    """Refuses tool calls that its rules deny."""

    @hookimpl
    def before_tool_call(self, call: ToolCall) -> None:
        """Object to a call that a rule denies."""
