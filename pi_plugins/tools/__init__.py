"""The built-in tools: ``read``, ``bash``, ``edit``, ``write``, ``grep``, ``find`` and ``ls``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

from pi_core import StashKey, hookimpl
from pi_plugins._lazy import names_of

if TYPE_CHECKING:
    from pi_core import Tool

    from ._images import ImageLimits as ImageLimits
    from ._images import PreparedImage as PreparedImage
    from ._images import image_type as image_type
    from ._images import prepare_image as prepare_image
    from ._lines import truncate_head as truncate_head
    from ._locks import with_file_mutation_queue as with_file_mutation_queue
    from ._truncate import Truncation as Truncation
    from ._truncate import format_size as format_size
    from ._truncate import truncate_line as truncate_line
    from ._truncate import truncate_tail as truncate_tail
    from .user_command import UserCommandResult as UserCommandResult
    from .user_command import run_user_command as run_user_command

SESSION_VARIABLES: Final = frozenset(
    {"PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"}
)
"""Variables that say in which session a command runs. What the process has of them is not passed on to the model's
commands: it would be that of another session, around this one."""

SHELL_ENVIRONMENT: Final[StashKey[Mapping[str, str]]] = StashKey("shell environment")
"""Variables that the model's commands get in one run: put them into the stash of the run, for example in
``on_agent_start``. They win over the option ``env``."""


class ToolsOptions(BaseModel):
    """Options of the ``tools`` plugin.

    :param cwd: directory that relative paths start from and commands run in; by default the process's own, looked up
        at each call.
    :param max_lines: most lines of a file or of a command's output that the model is shown.
    :param max_bytes: most bytes of it, as UTF-8.
    :param max_image_bytes: largest image that is sent to a model, in bytes of its base64 form.
    :param resize_images: larger images are made smaller with Pillow (the extra ``images``), to at most 2000x2000 pixels
        unless the model says what it takes; without it, or without Pillow, they are refused.
    :param max_edit_bytes: largest file that ``edit`` takes, in bytes.
    :param max_log_bytes: most bytes of a command's output that are kept in a file.
    :param shell: the program that runs commands with ``-c``; by default ``bash``, or ``sh`` where there is none.
    :param command_prefix: put before every command, on a line of its own.
    :param env: variables that commands get besides the process's own.
    :param timeout: seconds after which a command is ended when the model names no time; none by default.
    :param search_timeout: seconds after which ``grep`` and ``find`` give up.
    :param kill_grace_seconds: how long ended processes have between SIGTERM and SIGKILL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    cwd: str | None = None
    max_lines: PositiveInt = 2000
    max_bytes: PositiveInt = 50 * 1024
    max_image_bytes: PositiveInt = 4_718_592
    resize_images: bool = True
    max_edit_bytes: PositiveInt = 64 * 1024 * 1024
    max_log_bytes: PositiveInt = 256 * 1024 * 1024
    shell: str | None = None
    command_prefix: str | None = None
    env: dict[str, str] = {}
    timeout: PositiveFloat | None = None
    search_timeout: PositiveFloat = 120
    kill_grace_seconds: NonNegativeFloat = 2

    def directory(self) -> str:
        """Return the absolute path that relative ones start from."""
        return os.path.abspath(os.path.expanduser(self.cwd)) if self.cwd else os.getcwd()


class ToolsPlugin:
    """Contributes the built-in tools.

    :param options: what the tools share; the defaults when the plugin is used without a build.
    """

    Options = ToolsOptions

    def __init__(self, options: ToolsOptions | None = None) -> None:
        self.options = options or ToolsOptions()

    @hookimpl
    def configure(self, options: ToolsOptions) -> None:
        """Take the options of the build."""
        self.options = options

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Contribute the seven tools."""
        from .bash import bash_tool
        from .edit import edit_tool
        from .find import find_tool
        from .grep import grep_tool
        from .ls import ls_tool
        from .read import read_tool
        from .write import write_tool

        makers = (read_tool, bash_tool, edit_tool, write_tool, grep_tool, find_tool, ls_tool)
        return [make(self.options) for make in makers]


__getattr__, __dir__ = names_of(
    __name__,
    _images=("ImageLimits", "PreparedImage", "image_type", "prepare_image"),
    _lines=("truncate_head",),
    _locks=("with_file_mutation_queue",),
    _truncate=("Truncation", "format_size", "truncate_line", "truncate_tail"),
    user_command=("UserCommandResult", "run_user_command"),
)
