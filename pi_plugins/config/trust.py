"""Whether a project's configuration is used: it can run code, so somebody has to say yes first."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pi_core import ConfigError, HookError, Hooks

from .json_file import PRIVATE, LockedJson, read_document
from .paths import TRUST_FILE, home_dir, project_dir
from .paths import agent_dir as default_agent_dir
from .settings import Settings

_NEEDING: Final = (
    "settings.json",
    "models.json",
    "plugins",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
)
_SHARED_SKILLS: Final = Path(".agents", "skills")

TrustChoice: TypeAlias = Literal["trust", "trust-parent", "once", "never", "not-now"]
"""What a user can answer: yes for good, with all of the folder above, or for this run; no for good, or for this run."""

TrustSource: TypeAlias = Literal["nothing to trust", "flag", "hook", "saved", "settings", "user", "nobody"]
"""What decided."""

Ask: TypeAlias = Callable[[str], Awaitable[TrustChoice | bool | None]]
"""Puts a question to the user; yes and no count for good, ``None`` is no answer."""


@dataclass(frozen=True, slots=True)
class Trust:
    """A decision about a project.

    :param source: what decided.
    :param files: what of the project is used only when it is trusted.
    :param notice: what the user should know: what was left out, and what to do about it.
    """

    trusted: bool
    source: TrustSource
    files: tuple[Path, ...] = ()
    notice: str | None = None


def needs_trust(cwd: Path, *, environ: Mapping[str, str] | None = None, agent_dir: Path | None = None) -> list[Path]:
    """Return the files and folders of a project that are used only when it is trusted.

    :param cwd: the folder that the agent works in.
    :param environ: environment variables, the process's own by default.
    :param agent_dir: the agent's folder; as the environment says by default.
    """
    own = {os.path.realpath(default_agent_dir(environ) if agent_dir is None else agent_dir)}
    own.add(os.path.realpath(home_dir(environ) / _SHARED_SKILLS))
    folder = project_dir(cwd)
    found = [] if os.path.realpath(folder) in own else [folder / name for name in _NEEDING]
    found += [above / _SHARED_SKILLS for above in (cwd, *cwd.parents)]
    return [path for path in found if os.path.exists(path) and os.path.realpath(path) not in own]


async def decide_trust(
    cwd: Path,
    *,
    environ: Mapping[str, str] | None = None,
    agent_dir: Path | None = None,
    settings: Settings | None = None,
    hooks: Hooks | None = None,
    flag: bool | None = None,
    ask: Ask | None = None,
) -> Trust:
    """Decide whether a project's configuration is used.

    The first that says something decides: the flag, the hook ``project_trust``, the nearest saved decision about the
    folder or one above it, the setting ``defaultProjectTrust``, the user.

    :param cwd: the folder that the agent works in.
    :param environ: environment variables, the process's own by default.
    :param agent_dir: the agent's folder; as the environment says by default.
    :param settings: the user's own; those of a project must not decide about it.
    :param hooks: the plugins to ask.
    :param flag: what the command line says, for this run.
    :param ask: asks the user; without it nobody is asked, and the answer is no.
    :raises ConfigError: the saved decisions cannot be read, or a new one cannot be saved.
    """
    folder = default_agent_dir(environ) if agent_dir is None else agent_dir
    files = tuple(needs_trust(cwd, environ=environ, agent_dir=folder))
    if not files:
        return Trust(True, "nothing to trust")
    if flag is not None:
        return Trust(flag, "flag", files)
    if hooks is not None and "project_trust" in hooks.implemented():
        try:
            answer = await hooks.call("project_trust", cwd=cwd)
        except HookError as error:
            return Trust(False, "hook", files, f"{_left_out(files)}: {error}")
        if answer is not None:
            return Trust(bool(answer), "hook", files)
    saved = saved_trust(cwd, agent_dir=folder)
    if saved is not None:
        return Trust(saved, "saved", files)
    default = (settings or Settings()).default_project_trust
    if default != "ask":
        return Trust(default == "always", "settings", files)
    choice = None if ask is None else await ask(_question(cwd, files))
    if choice is None:
        advice = "Look at them, then run: pi config trust, or give --approve for one run"
        return Trust(False, "nobody", files, f"{_left_out(files)}: nobody said that this project is trusted. {advice}")
    trusted = choice in (True, "trust", "trust-parent", "once")
    if choice not in ("once", "not-now"):
        save_trust(cwd.parent if choice == "trust-parent" else cwd, trusted, agent_dir=folder)
    return Trust(trusted, "user", files)


def saved_trust(cwd: Path, *, environ: Mapping[str, str] | None = None, agent_dir: Path | None = None) -> bool | None:
    """Return the saved decision about a folder or the nearest one above it; ``None`` without one.

    :raises ConfigError: the saved decisions cannot be read.
    """
    decisions = trust_decisions(environ=environ, agent_dir=agent_dir)
    real = Path(os.path.realpath(cwd))
    return next((decisions[str(above)] for above in (real, *real.parents) if str(above) in decisions), None)


def trust_decisions(*, environ: Mapping[str, str] | None = None, agent_dir: Path | None = None) -> dict[str, bool]:
    """Return all saved decisions, by folder.

    :raises ConfigError: they cannot be read; names file and line.
    """
    file = _trust_file(environ, agent_dir)
    saved = file.read()
    for folder, value in saved.items():
        if value is not None and not isinstance(value, bool):
            document = read_document(file.path)
            place = file.path if document is None else document.place((folder,))
            raise ConfigError(f"{place}: '{folder}': expected true, false or null")
    return {folder: value for folder, value in sorted(saved.items()) if value is not None}


def save_trust(
    path: Path, trusted: bool | None, *, environ: Mapping[str, str] | None = None, agent_dir: Path | None = None
) -> bool:
    """Save a decision about a folder and all below it.

    :param trusted: the decision; ``None`` forgets the one that was saved.
    :returns: whether anything changed.
    :raises ConfigError: the saved decisions cannot be read or written.
    """
    folder = os.path.realpath(path)

    def change(decisions: dict[str, bool | None]) -> bool:
        before = decisions.get(folder)
        decisions.pop(folder, None)
        if trusted is not None:
            decisions[folder] = trusted
        kept = sorted(decisions.items())
        decisions.clear()
        decisions.update(kept)
        return before is not trusted

    return _trust_file(environ, agent_dir).update(change)


def _trust_file(environ: Mapping[str, str] | None, agent_dir: Path | None) -> LockedJson:
    return LockedJson((default_agent_dir(environ) if agent_dir is None else agent_dir) / TRUST_FILE, mode=PRIVATE)


def _left_out(files: tuple[Path, ...]) -> str:
    return f"Left out {', '.join(map(str, files))}"


def _question(cwd: Path, files: tuple[Path, ...]) -> str:
    listed = "\n".join(f"  {file}" for file in files)
    return f"Do you trust {cwd}? Its configuration can run code on this computer:\n{listed}"


__all__ = [
    "Ask",
    "Trust",
    "TrustChoice",
    "TrustSource",
    "decide_trust",
    "needs_trust",
    "save_trust",
    "saved_trust",
    "trust_decisions",
]
