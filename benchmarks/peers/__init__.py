"""Others doing the same work, each in an environment of its own, where one is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..processes import Job


@dataclass(frozen=True)
class Peer:
    """A peer that can be run.

    :param name: its distribution, which is also the name of its environment.
    :param module: its program in this package.
    :param python: the interpreter of its environment.
    :param slow: whether it is left out unless asked for.
    :param limits: the largest work it is given, by case; 0 leaves a case out.
    """

    name: str
    module: str
    python: str = ""
    slow: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)

    def limit(self, case: str) -> int:
        """Return how large the work may be."""
        return self.limits.get(case, {"turns": 1_000, "deltas": 20_000}.get(case, 100))

    def job(self, case: str, n: int) -> Job:
        """Return the measurement of a case."""
        return Job(f"peers.{self.module}", case, n, python=self.python)


_SLOW_LIMITS: Final = {"turns": 200, "deltas": 2_000}
_KNOWN: Final = (
    Peer("pi-ai-python", "pi_ai_python"),
    Peer("pp-agent-core", "pp_agent_core"),
    Peer("aelix-agent-core", "aelix"),
    Peer("pydantic-ai", "pydantic_ai", slow=True, limits=_SLOW_LIMITS),
    Peer("openai-agents", "openai_agents", slow=True, limits=_SLOW_LIMITS),
    Peer("langgraph", "langgraph", slow=True, limits=_SLOW_LIMITS),
)


def find_peers(folder: Path, *, slow: bool = False) -> list[Peer]:
    """Return the peers that have an environment in a folder.

    :param slow: those too that take minutes.
    """
    found = []
    for peer in _KNOWN:
        python = folder.resolve() / peer.name / "bin" / "python"
        if python.exists() and (slow or not peer.slow):
            found.append(Peer(peer.name, peer.module, str(python), peer.slow, peer.limits))
    return found
