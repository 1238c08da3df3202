"""Context files: what the user and the project tell every model, ``AGENTS.md`` and its like."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from .files import PromptFile, read_file_or_warn

NAMES: Final = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""What a context file may be called; the first of them counts for its folder."""


def load_context_files(cwd: Path, agent_dir: Path, warnings: list[str]) -> tuple[PromptFile, ...]:
    """Return the context files of the agent's folder and of each folder from the root to ``cwd``.

    A file that two folders share is returned once. What cannot be read is added to the warnings.
    """
    cwd = cwd.absolute()
    checkout = _linked_worktree(cwd)
    seen: set[str] = set()
    found: list[PromptFile] = []
    for folder in (agent_dir, *reversed(cwd.parents), cwd):
        file = _context_file(folder, warnings)
        if file is None or (checkout is not None and _is_in_worktree(file.path, *checkout)):
            continue
        real = os.path.realpath(file.path)
        if real not in seen:
            seen.add(real)
            found.append(file)
    return tuple(found)


def _context_file(folder: Path, warnings: list[str]) -> PromptFile | None:
    for name in NAMES:
        path = folder / name
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            warnings.append(f"{folder} cannot be searched for context files: {error.strerror}")
            return None
        if os.path.isdir(path):
            continue
        file = read_file_or_warn(path, warnings)
        if file is not None:
            return file
    return None


def _linked_worktree(cwd: Path) -> tuple[Path, Path] | None:
    """Return the linked git worktree that a folder is in and the checkout it belongs to; ``None`` for any other folder.

    In a linked worktree ``.git`` is a file that names a folder, and that folder names the one of the checkout.
    """
    for folder in (cwd, *cwd.parents):
        marker = folder / ".git"
        if os.path.isdir(marker):
            return None
        try:
            git_dir = folder / marker.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            common = git_dir / (git_dir / "commondir").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            if os.path.lexists(marker):
                return None
            continue
        except (OSError, ValueError):
            return None
        checkout = Path(os.path.realpath(common))
        return (folder, checkout.parent) if checkout.name == ".git" else None
    return None


def _is_in_worktree(path: Path, worktree: Path, checkout: Path) -> bool:
    """Whether a file of the checkout is there in the worktree, too, which has its own version of it then."""
    real = Path(os.path.realpath(path.parent))
    if real.is_relative_to(os.path.realpath(worktree)) or not real.is_relative_to(checkout):
        return False
    return os.path.lexists(worktree / real.relative_to(checkout) / path.name)


__all__ = ["NAMES", "load_context_files"]
