"""Permission guards: which tool calls are allowed, asked about or denied."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from pydantic import ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from pi_core import Block, RunContext, ToolCall, hookimpl

from .options import PermissionOptions as PermissionOptions
from .options import Rule as Rule

if TYPE_CHECKING:
    from ._policy import Policy
    from ._subjects import Request


class GuardOptions(PermissionOptions):
    """Options of the plugin, of which a wrong one does not take the guard away: with it every call is denied."""

    _fault: str | None = PrivateAttr(None)

    @property
    def fault(self) -> str | None:
        """What is wrong with the options."""
        return self._fault

    @model_validator(mode="wrap")
    @classmethod
    def _fail_closed(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            made = cls.model_construct()
            made._fault = "; ".join(
                f"{'.'.join(('plugins.permissions', *map(str, fault['loc'])))}: {fault['msg']}"
                for fault in error.errors(include_url=False)
            )
            return made


class PermissionsPlugin:
    """Allows tool calls, asks the user about them, or denies them, by rules about tools, files and commands.

    As it is by default everything is allowed. What goes wrong on the way to a verdict denies the call.

    :param options: the options when the plugin is used without a build.
    """

    Options = GuardOptions

    def __init__(self, options: PermissionOptions | None = None) -> None:
        self._options = options or PermissionOptions()
        self._policy: Policy | None = None
        self._session_rules: list[Rule] = []
        self._asking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @hookimpl
    def configure(self, options: GuardOptions) -> None:
        """Take the options; rules of the session are forgotten."""
        self._options, self._policy = options, None
        self._session_rules.clear()
        if options.fault is not None:
            logging.getLogger("pi.permissions").warning("Every tool call is denied: %s", options.fault)

    @hookimpl
    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> Block | None:
        """Object to a call that the rules deny, or that the user does not allow."""
        options = self._options
        fault = options.fault if isinstance(options, GuardOptions) else None
        if fault is not None:
            return Block(f"Every call is denied, since the permissions cannot be read: {fault}. Tell the user.")
        if options.mode == "allow" and not options.rules and not options.roots:
            return None
        from ._subjects import request_of
        from ._wording import why_denied

        policy = self._current_policy()
        request = request_of(call.name, call.arguments, policy.cwd)
        verdict = policy.judge(request)
        if verdict.effect == "ask":
            return await self._ask(request, ctx)
        return Block(why_denied(verdict, policy.roots)) if verdict.effect == "deny" else None

    async def _ask(self, request: Request, ctx: RunContext) -> Block | None:
        """Ask about a call, after those that were asked about before: an answer to them may settle this one."""
        from ._asking import ask, rule_for, save
        from ._wording import why_asked, why_nobody_allowed, why_user_denied

        async with self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            verdict = self._current_policy().judge(request)
            if verdict.effect == "allow":
                return None
            rule = rule_for(request)
            said = await ask(request, why_asked(verdict), rule, ctx)
            if rule is not None and said.decision in ("session", "always"):
                self._session_rules.insert(0, rule)
                self._policy = None
                if said.decision == "always":
                    await save(rule)
        if said.decision == "nobody":
            denies = self._options.non_interactive == "deny"
            return Block(why_nobody_allowed(verdict, rule)) if denies else None
        return Block(why_user_denied(said.reason)) if said.decision == "deny" else None

    def _current_policy(self) -> Policy:
        """The rules, for the directory that the tools start from now."""
        from ._policy import Policy

        cwd = os.path.realpath(os.path.expanduser(self._options.cwd or os.getcwd()))
        if self._policy is None or self._policy.cwd != cwd:
            self._policy = Policy(self._options, cwd, self._session_rules)
        return self._policy
