"""Commands that the user runs as ``!command``, beside the model's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pi_core import AbortController, ConfigError
from pi_plugins.sessions.messages import BashExecutionMessage
from pi_plugins.tools import ToolsOptions, UserCommandResult, run_user_command

if TYPE_CHECKING:
    from .session import AgentSession


class UserBash:
    """Runs commands of the user, one at a time, and keeps what they print in the session."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._controller: AbortController | None = None
        self._done = asyncio.Event()
        self._pending: list[BashExecutionMessage] = []

    @property
    def active(self) -> bool:
        """Whether a command runs."""
        return self._controller is not None

    def abort(self) -> None:
        """End the command."""
        if self._controller is not None:
            self._controller.abort()

    async def close(self) -> None:
        """End the command and wait for its end."""
        if self._controller is not None:
            self._controller.abort()
            await self._done.wait()

    async def run(
        self,
        command: str,
        *,
        exclude_from_context: bool = False,
        on_update: Callable[[str], Awaitable[None] | None] | None = None,
    ) -> UserCommandResult:
        """Run a command and keep what it printed; the model reads it with the next prompt.

        :param exclude_from_context: keep it from the model.
        :param on_update: gets what is printed, as it comes; the command waits for what it returns.
        :raises ConfigError: another command runs, or there is nothing to run.
        :raises HookError: a plugin failed on it, so it was not run.
        """
        session = self._session
        await session.wait_until_free()
        if self._controller is not None:
            raise ConfigError("A command runs already: wait for its end, or abort it")
        if not command.strip():
            raise ConfigError("There is no command to run")
        self._controller = controller = AbortController()
        self._done.clear()
        try:
            result: UserCommandResult | None = await session.call_hook(
                "user_bash", session=session, command=command, exclude_from_context=exclude_from_context
            )
            if result is None:
                result = await self._execute(command, controller, on_update)
        finally:
            self._controller = None
            self._done.set()
        message = BashExecutionMessage(
            command=command,
            output=result.output,
            exit_code=result.exit_code,
            cancelled=result.cancelled,
            truncated=result.truncated,
            full_output_path=result.full_output_path,
            exclude_from_context=exclude_from_context,
        )
        if session.runs.active:
            self._pending.append(message)
        else:
            self._keep(message)
        return result

    def flush(self) -> None:
        """Put what was printed during a run into the transcript; called when the run is over."""
        pending, self._pending = self._pending, []
        for message in pending:
            self._keep(message)

    def _keep(self, message: BashExecutionMessage) -> None:
        session = self._session
        session.store.append_message(message)
        session.agent.state.messages = [*session.agent.state.messages, message]

    async def _execute(
        self, command: str, controller: AbortController, on_update: Callable[[str], Awaitable[None] | None] | None
    ) -> UserCommandResult:
        settings = self._session.settings
        options = ToolsOptions(
            cwd=str(self._session.cwd), shell=settings.shell_path, command_prefix=settings.shell_command_prefix
        )
        return await run_user_command(command, options, on_update=on_update, signal=controller.signal)
