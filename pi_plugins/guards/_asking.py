"""Asks the user about a call, and makes a rule of an answer that is to last."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_core import ConfigError, RunContext
from pi_plugins.coding_agent.questions import Answer, Question

from ._subjects import Request
from .options import Rule

ONCE: Final = "Allow once"
SESSION: Final = "Allow for this session"
ALWAYS: Final = "Always allow"
DENY: Final = "Deny"
DENY_WITH_REASON: Final = "Deny and say why"
_TITLE_LENGTH: Final = 100

Decision: TypeAlias = Literal["once", "session", "always", "deny", "nobody"]

_LASTING: Final = (SESSION, ALWAYS)
_DECISIONS: Final[dict[str, Decision]] = {ONCE: "once", SESSION: "session", ALWAYS: "always", DENY: "deny"}


@dataclass(frozen=True, slots=True)
class Said:
    """What the user said. ``nobody``: there is nobody to ask.

    :param reason: why it was denied, in the user's words.
    """

    decision: Decision
    reason: str = ""


async def ask(request: Request, why: str, lasting: Rule | None, ctx: RunContext) -> Said:
    """Ask the user about a call; one question at a time is up to the caller.

    :param why: why it is asked, in a sentence.
    :param lasting: the rule that an answer which is to last makes; without one there is no such answer.
    :raises HookError: the plugin that asks failed.
    """
    title = f"Allow {request.tool}: {' '.join(request.shown.split())}"
    question = Question(
        kind="select",
        title=title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 3]}...",
        message="\n\n".join(filter(None, (request.shown, why, _reach(lasting)))),
        options=(ONCE, *(() if lasting is None else _LASTING), DENY, DENY_WITH_REASON),
    )
    answer = await _answer(question, ctx)
    if answer is None:
        return Said("nobody")
    if answer.value == DENY_WITH_REASON:
        reason = await _answer(Question(kind="input", title="Why not? The model is told."), ctx)
        return Said("deny", ((reason and reason.value) or "").strip())
    if answer.value not in question.options:
        return Said("deny")
    return Said(_DECISIONS[answer.value])


def rule_for(request: Request) -> Rule | None:
    """Return the rule that allows just this: the command line, the files, or the tool where there is neither.

    :returns: ``None`` when no rule is about just this.
    """
    tool = _literal(request.tool)
    others = [subject for subject in request.subjects if not subject.of_line]
    if request.line is not None:
        return None if others else Rule(effect="allow", tool=tool, command=(_literal(request.line),))
    if not any(subject.is_file for subject in others):
        return Rule(effect="allow", tool=tool)
    files = [subject.file.real for subject in others if subject.file is not None]
    if len(files) < len(others):
        return None
    return Rule(effect="allow", tool=tool, path=tuple(dict.fromkeys(map(_literal_path, files))))


async def save(rule: Rule) -> None:
    """Put a rule before the others of the user's settings; that it could not be saved is logged."""
    try:
        await asyncio.to_thread(_save, rule)
    except ConfigError as error:
        logging.getLogger("pi.permissions").warning("The rule holds for this session only: %s", error)


def _save(rule: Rule) -> None:
    from pi_plugins.config.json_file import PRIVATE, LockedJson
    from pi_plugins.config.paths import agent_dir, user_settings_file

    file = LockedJson(user_settings_file(agent_dir()), mode=PRIVATE)
    data = rule.model_dump(mode="json", exclude_none=True)

    def change(settings: dict[str, object]) -> None:
        holder: object = settings
        for key in ("plugins", "permissions"):
            if isinstance(holder, dict):
                holder = holder.setdefault(key, {})
        rules = holder.setdefault("rules", []) if isinstance(holder, dict) else None
        if not isinstance(rules, list):
            raise ConfigError(f"{file.path}: plugins.permissions.rules is no list; correct it first")
        if data not in rules:
            rules.insert(0, data)

    file.update(change)


async def _answer(question: Question, ctx: RunContext) -> Answer | None:
    """The user's answer; ``None`` when there is nobody to ask. No answer any more once the run is aborted."""
    try:
        asking = asyncio.ensure_future(ctx.hooks.call("ask_user", question=question))
    except RuntimeError:
        return None
    aborted = asyncio.ensure_future(ctx.signal.wait()) if ctx.signal is not None else None
    try:
        await asyncio.wait([asking, *filter(None, [aborted])], return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            return Answer(None)
        answer = asking.result()
    except KeyError:
        return None
    finally:
        asking.cancel()
        if aborted is not None:
            aborted.cancel()
    if answer is not None and not isinstance(answer, Answer):
        raise TypeError(f"ask_user gives an Answer or None, got {type(answer).__name__}")
    return answer


def _reach(rule: Rule | None) -> str:
    if rule is None:
        return ""
    what = "this command line, letter by letter" if rule.command else "this path" if rule.path else "every call of it"
    return f"An answer that lasts is about {what}."


def _literal(text: str) -> str:
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def _literal_path(path: str) -> str:
    return re.sub(r"[*?\[{\\]", r"\\\g<0>", path)
