"""What it costs to start: CPU time of whole processes in an environment that holds nothing else."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final, Self

from .environment import BareEnvironment
from .processes import Job, MeasurementError, cpu_to_first_byte, process_cpu, take_turns
from .table import Row

_PLUGINS: Final = 20
_FIRST_BYTE_BASE: Final = "import asyncio, ssl, click, pydantic, httpx"
_MODEL: Final = "import pydantic\nclass M(pydantic.BaseModel):\n    x: int"
_BUILD: Final = """
from pi_core import Build
build = Build.from_environment()
build.agent(stream=lambda model, context, options: None)
assert sum(record.state == "loaded" for record in build.plugins) >= {count}, build.problems()
"""
_LOADED: Final = """
from pi_core import Build
for record in Build.from_environment().plugins:
    if record.state == "loaded":
        print(record.target)
"""
_REGISTER: Final = """
import importlib
import pluggy
manager = pluggy.PluginManager("pi")
for target in {targets!r}:
    module, _, name = target.partition(":")
    manager.register(getattr(importlib.import_module(module), name)())
"""


class Startup:
    """Makes the environment on entry and removes it on exit."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="pi-bench-")
        self._bare = BareEnvironment(Path(self._folder.name) / "bare")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def _python(self, code: str) -> tuple[str, ...]:
        return (self._bare.python, "-c", code)

    def _compare(
        self, name: str, commands: tuple[tuple[str, ...], tuple[str, ...]], target: float, against: str, rounds: int
    ) -> Row:
        jobs = [Job(command=command, environ=self._bare.environ) for command in commands]
        for job in jobs:
            job.measure()
        ours, base = (found["cpu_s"] * 1000 for found in take_turns(jobs, rounds))
        return Row(name, ours, base, target, "ms", 1, against=against)

    def imports(self, rounds: int) -> Row:
        """Importing the agent."""
        commands = (self._python("from pi_core import Agent"), self._python(_MODEL))
        return self._compare("import of pi_core and Agent", commands, 1.3, "pydantic and one model", rounds)

    def version(self, rounds: int) -> Row:
        """Asking for the version."""
        commands = ((self._bare.pi, "--version"), self._python("import click"))
        return self._compare("pi --version", commands, 1.5, "import click", rounds)

    def first_byte(self, rounds: int) -> Row:
        """From the start of ``pi -p`` until it speaks to the server."""
        name = "pi -p to the first byte sent"
        base = self._python(_FIRST_BYTE_BASE)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            command = (self._bare.pi, "-p", "--model", "openai/bench", "--base-url", address, "--api-key", "none", "hi")
            try:
                ours, floor = _alternate(
                    lambda: cpu_to_first_byte(command, self._bare.environ, listener),
                    lambda: process_cpu(base, self._bare.environ),
                    rounds,
                )
            except MeasurementError as error:
                return Row(name, None, None, 1.5, "ms", 1, against=_FIRST_BYTE_BASE, note=str(error))
        return Row(name, ours * 1000, floor * 1000, 1.5, "ms", 1, against=_FIRST_BYTE_BASE)

    def build(self, rounds: int) -> Row:
        """Finding, loading and registering 20 plugins beside the built-in ones, up to an agent."""
        environ = self._bare.add_plugins(_PLUGINS)
        targets = tuple(_output(self._python(_LOADED), environ).split())
        commands = (self._python(_BUILD.format(count=_PLUGINS)), self._python(_REGISTER.format(targets=targets)))
        jobs = [Job(command=command, environ=environ) for command in commands]
        ours, floor = (found["cpu_s"] * 1000 for found in take_turns(jobs, rounds))
        name = f"build with {_PLUGINS} plugins installed"
        return Row(name, ours, floor, 1.5, "ms", _PLUGINS, against="imported and registered by hand")


def _alternate(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Return the medians of two measurements taken in turn, after one of each that does not count."""
    found = [(first(), second()) for _ in range(rounds + 1)][1:]
    return median(one for one, _ in found), median(other for _, other in found)


def _output(command: tuple[str, ...], environ: dict[str, str]) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementError(done.stderr.strip().splitlines()[-1])
    return done.stdout
