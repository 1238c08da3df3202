"""What it costs to start: CPU time of whole processes in an environment that holds nothing else."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Final, Self

from .environment import BareEnvironment
from .processes import Job, MeasurementError, cpu_to_first_byte, process_cpu, take_turns
from .table import Row

_PLUGINS: Final = 20
_PINNED_PLUGINS: Final = 10
_OTHERS: Final = 100
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
_PINNED: Final = """
from pi_core import Build
build = Build.load({path!r})
build.hooks
assert len(build.plugins) == {count}, build.plugins
"""
_SEARCH: Final = """
import email.parser, importlib.metadata, json, time
from pi_core._loader import installed
began = time.process_time()
{search}
print(json.dumps({{"cpu_s": time.process_time() - began}}))
"""


class Startup:
    """Makes the environment on entry and removes it on exit."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="pi-bench-")
        self._bare = BareEnvironment(Path(self._folder.name) / "bare")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    @cached_property
    def crowded(self) -> dict[str, str]:
        """Environment variables that add 10 plugins and 100 distributions that offer none."""
        return self._bare.add_plugins(_PINNED_PLUGINS, _OTHERS)

    @cached_property
    def pinned_build(self) -> str:
        """A program that loads a build file, which names each of those plugins with its distribution."""
        path = Path(self._folder.name) / "pi-build.toml"
        names = [f"bench_plugin{number}" for number in range(_PINNED_PLUGINS)]
        tables = [f'[[plugins]]\nname = "{name}"\ndistribution = "{name}"\n' for name in names]
        path.write_text("\n".join(('[build]\nname = "bench"\n', *tables)), encoding="utf-8")
        return _PINNED.format(path=str(path), count=len(names))

    def output(self, code: str) -> str:
        """Run a program where :attr:`crowded` is and return what it prints.

        :raises MeasurementError: it failed.
        """
        return _output(self._python(code), self.crowded)

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

    def pinned(self, rounds: int) -> Row:
        """Loading a build file that says where its plugins are, however much else is installed."""
        targets = tuple(f"bench_plugin{number}:Plugin" for number in range(_PINNED_PLUGINS))
        programs = (self.pinned_build, _REGISTER.format(targets=targets))
        jobs = [Job(command=self._python(code), environ=self.crowded) for code in programs]
        take_turns(jobs, 1)
        ours, floor = (found["cpu_s"] * 1000 for found in take_turns(jobs, rounds))
        name = f"pinned build of {_PINNED_PLUGINS} plugins, {_OTHERS} distributions installed"
        return Row(name, ours, floor, 1.5, "ms", _PINNED_PLUGINS, against="imported and registered by hand")

    def search(self, rounds: int) -> Row:
        """Finding what is installed for two builds of one process; imports are not counted."""
        searches = ("installed(), installed()", "importlib.metadata.entry_points(group='pi')")
        jobs = [
            Job(command=self._python(_SEARCH.format(search=search)), reports=True, environ=self.crowded)
            for search in searches
        ]
        take_turns(jobs, 1)
        ours, floor = (found["cpu_s"] * 1000 for found in take_turns(jobs, rounds))
        return Row(f"scan of {_OTHERS} distributions", ours, floor, 1.2, "ms", _OTHERS, against="entry_points once")


def _alternate(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Return the medians of two measurements taken in turn, after one of each that does not count."""
    found = [(first(), second()) for _ in range(rounds + 1)][1:]
    return median(one for one, _ in found), median(other for _, other in found)


def _output(command: tuple[str, ...], environ: dict[str, str]) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementError(done.stderr.strip().splitlines()[-1])
    return done.stdout
