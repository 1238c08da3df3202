"""The lock of a build as a run keeps it: short, and enough to say how it differs from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pi_core import Build, BuildError, ConfigError

Parts: TypeAlias = dict[str, str]
"""What a lock holds, by name of the part; contents are hashes."""


@dataclass(frozen=True, slots=True)
class LockedBuild:
    """A build whose lock is what is installed.

    :param version: names the lock; runs and workers of one version belong together.
    :param parts: what is in it.
    """

    path: Path
    version: str
    parts: Parts


def locked_build(path: Path) -> LockedBuild:
    """Read the lock of a build file and check that it is what is installed.

    :param path: the build file, or its folder.
    :raises ConfigError: there is no lock, or something else is installed; names what.
    :raises BuildError: the build file is wrong.
    """
    file = path / "pi-build.toml" if path.is_dir() else path
    differences = Build.check(file)
    if differences:
        listed = "\n".join(f"  {line}" for line in differences)
        raise ConfigError(
            f"{file}: what is installed is not what is locked:\n{listed}\nAfter a look: pi build lock {file}"
        )
    try:
        text = file.with_suffix(".lock").read_text(encoding="utf-8")
        parts = dict(_parts(json.loads(text)))
    except (OSError, ValueError) as error:
        raise BuildError(f"{file.with_suffix('.lock')}: {error}") from None
    parts["build file"] = _digest(file.read_text(encoding="utf-8"))
    return LockedBuild(file, _digest(parts), parts)


def differences(wanted: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Name what a run's lock and another one differ in, a line each."""
    lines = []
    for name in sorted({*wanted, *here}):
        was, found = wanted.get(name, "nothing"), here.get(name, "nothing")
        if was != found:
            lines.append(f"{name}: {was} in the run, {found} here")
    return lines


def _parts(lock: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, distribution in lock["distributions"].items():
        yield name, f"{distribution['version']} ({_digest(distribution['files'])[:8]})"
    for name, version in lock["requirements"].items():
        yield name, version
    yield "plugins", ", ".join(plugin["name"] for plugin in lock["plugins"])
    yield "hooks and names", _digest([lock["hooks"], lock["names"]])[:8]


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
