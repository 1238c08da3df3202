"""The agent of a team that keeps a glossary: its build file, and the agent made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pi_core import Agent, Build

FILE = Path(__file__).with_name("pi-build.toml")


def agent(**options: Any) -> Agent:
    """Return an agent of the build.

    :param options: what is to be otherwise than in the build file, as arguments of :class:`~pi_core.Agent`.
    :raises BuildError: what is installed is not what the build names.
    """
    return Build.load(FILE).agent(**options)
