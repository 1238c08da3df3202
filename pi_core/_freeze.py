"""Freezes a build: one runnable file with the build file, its plugins and everything they need, made by pex."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ._build_file import FILE_NAME, BuildFile, read_build_file
from ._lock import read_lock
from ._snapshot import compare
from .errors import BuildError

PACKAGE: Final = "pi_frozen"
"""The package in the frozen file that holds the build file and starts it."""

_START: Final = f'''"""Starts the build that is frozen into this file."""

import sys
from pathlib import Path


def main():
    from pi_core.cli import run

    sys.exit(run(["--build", str(Path(__file__).with_name("{FILE_NAME}")), *sys.argv[1:]]))
'''


def freeze(path: Path, out: Path) -> list[str]:
    """Make one file of a build that is as locked, from what is installed here; nothing is downloaded.

    It runs with a Python of the same minor version on the same platform. Returns the distributions that are in it.

    :param path: the build file.
    :param out: the file to make; an existing one is replaced.
    :raises BuildError: it differs from its lock, a tool is missing, or the tool fails.
    """
    file = read_build_file(path)
    differences = compare(file.path).differences
    if differences:
        listed = "\n".join(f"  {difference}" for difference in differences)
        raise BuildError(f"{file.path} is not as locked. Put it right, or lock it as it is, then freeze:\n{listed}")
    if importlib.util.find_spec("pex") is None:
        raise BuildError("Freezing needs pex, which is not installed. Run: pip install 'pi-agent-framework[freeze]'")
    if sys.prefix == sys.base_prefix:
        raise BuildError("Freezing takes what is installed in a virtual environment: run it inside of one")
    lock = read_lock(file.lock_path)
    assert lock is not None
    wanted = [f"{name}=={found.version}" for name, found in lock.distributions.items()]
    with tempfile.TemporaryDirectory(prefix="pi-freeze-") as folder:
        _stage(file, Path(folder) / PACKAGE)
        _pex(wanted, Path(folder), out)
    return wanted


def _stage(file: BuildFile, package: Path) -> None:
    package.mkdir()
    (package / "__init__.py").write_text(_START, encoding="utf-8")
    shutil.copyfile(file.path, package / FILE_NAME)
    shutil.copyfile(file.lock_path, (package / FILE_NAME).with_suffix(".lock"))
    if file.build.system_prompt_file is not None:
        target = package / file.build.system_prompt_file
        if not target.resolve().is_relative_to(package.resolve()):
            raise BuildError(
                f"{file.path}: build.system_prompt_file: {file.build.system_prompt_file} is outside of the folder of "
                "the build file, so it cannot be frozen with it. Move it there"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path.parent / file.build.system_prompt_file, target)


def _pex(wanted: list[str], sources: Path, out: Path) -> None:
    command = [sys.executable, "-m", "pex", "--venv-repository", sys.prefix, "--sources-directory", str(sources)]
    command += ["--entry-point", f"{PACKAGE}:main", "--venv", "--output-file", str(out), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"pex could not make {out}:\n{(done.stderr or done.stdout).strip()}")
