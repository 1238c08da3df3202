"""What the model and the user are told about a verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ._policy import Verdict
from .options import Rule

_INSTEAD = "Do not try to reach the same in another way: go on without it, or tell the user what you need it for."


def why_asked(verdict: Verdict) -> str:
    """Return why the user is asked, for the user."""
    subject, rule = verdict.subject, verdict.rule
    if subject.unclear is not None:
        begins = f"It is not certain what this is about: {subject.unclear}."
    elif verdict.outside:
        begins = f"{subject.shown} is outside of the folders that tools may work in."
    elif rule is None:
        begins = "No rule is about this."
    elif rule.effect == "deny":
        begins = f"A rule that denies may be about a part of this: {as_json(rule)}."
    else:
        begins = f"A rule asks about this: {as_json(rule)}."
    return f"{begins} {rule.reason}" if rule is not None and rule.reason else begins


def why_denied(verdict: Verdict, roots: Sequence[str]) -> str:
    """Return why a call is denied and what to do instead, for the model."""
    subject, rule = verdict.subject, verdict.rule
    if rule is not None:
        return f"{rule.reason or f'A permission rule denies this: {subject.shown}.'}\n{_INSTEAD}"
    if verdict.outside:
        return f"{subject.shown} is outside of the folders that tools may work in: {', '.join(roots)}. {_INSTEAD}"
    return f"No permission rule allows this: {subject.shown}. {_INSTEAD}"


def why_nobody_allowed(verdict: Verdict, allowing: Rule | None) -> str:
    """Return why a call is denied that nobody could be asked about, for the model.

    :param allowing: the rule that would allow it, if there is one.
    """
    needs = f"This needs the user's permission, and nobody can be asked here: {verdict.subject.shown}."
    text = f"{needs} {why_asked(verdict)} {_INSTEAD}"
    if allowing is None:
        return text
    return f"{text} The user can allow it with this in plugins.permissions.rules of the settings: {as_json(allowing)}"


def why_user_denied(reason: str) -> str:
    """Return that the user denied a call, for the model.

    :param reason: in the user's words; empty when none was given.
    """
    return f"The user denied this call{f': {reason}' if reason else '.'}\n{_INSTEAD}"


def as_json(rule: Rule) -> str:
    """Return a rule as it stands in the settings."""
    return json.dumps(rule.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
