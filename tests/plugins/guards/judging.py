"""Asks the rules about calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pi_plugins.guards._policy import Policy, Verdict
from pi_plugins.guards._subjects import request_of
from pi_plugins.guards.options import PermissionOptions


def judged(options: dict[str, Any], tool: str, cwd: Path | str = "/", **arguments: Any) -> Verdict:
    folder = os.path.realpath(cwd)
    policy = Policy(PermissionOptions.model_validate(options), folder)
    return policy.judge(request_of(tool, arguments, folder))


def effect(options: dict[str, Any], tool: str, cwd: Path | str = "/", **arguments: Any) -> str:
    return judged(options, tool, cwd, **arguments).effect
