"""Others doing the same work, each in an environment of its own, where one is installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..processes import Job


@dataclass(frozen=True)
class Peer:
    """A peer that can be run.

    :param name: its distribution, which is also the name of its environment.
    :param module: its program in this package; one that ends in ``.mjs`` is run by Node.
    :param home: its environment: a virtual environment, or a folder that holds ``node_modules``.
    :param slow: whether it is left out unless asked for.
    """

    name: str
    module: str
    home: Path = Path()
    slow: bool = False

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.home / "bin" / "python"

    @property
    def modules(self) -> Path:
        """Its packages, if it runs on Node."""
        return self.home / "node_modules"

    @property
    def is_installed(self) -> bool:
        """Whether it can be run."""
        if self.module.endswith(".mjs"):
            return self.modules.is_dir() and _node(self.modules) is not None
        return self.python.exists()

    def limit(self, case: str) -> int:
        """Return how large the work may be."""
        limits = {"turns": 200, "deltas": 2_000} if self.slow else {"turns": 1_000, "deltas": 20_000}
        return limits.get(case, 100)

    def job(self, case: str, n: int) -> Job:
        """Return the measurement of a case."""
        if self.module.endswith(".mjs"):
            program = str(Path(__file__).parent / self.module)
            command = (str(_node(self.modules)), "--expose-gc", program, str(self.modules), case, str(n))
            return Job(f"peers.{self.module}", case, n, command=command, reports=True)
        return Job(f"peers.{self.module}", case, n, python=str(self.python))


def _node(modules: Path) -> str | None:
    own = modules / ".bin" / "node"
    return str(own) if own.exists() else shutil.which("node")


_KNOWN: Final = (
    Peer("pi-agent-core", "pi_node.mjs"),
    Peer("pi-ai-python", "pi_ai_python"),
    Peer("pp-agent-core", "pp_agent_core"),
    Peer("aelix-agent-core", "aelix"),
    Peer("pydantic-ai", "pydantic_ai_peer", slow=True),
    Peer("openai-agents", "openai_agents_peer", slow=True),
    Peer("langgraph", "langgraph_peer", slow=True),
)


def find_peers(folder: Path, *, slow: bool = False) -> list[Peer]:
    """Return the peers that have an environment in a folder.

    :param slow: those too that take minutes.
    """
    found = [replace(peer, home=folder.resolve() / peer.name) for peer in _KNOWN if slow or not peer.slow]
    return [peer for peer in found if peer.is_installed]
