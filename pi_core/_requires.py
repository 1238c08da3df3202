"""What a plugin says it needs: ``requires = "pi-agent-framework>=0.2"``, checked before anything of it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from . import __version__

if TYPE_CHECKING:
    from packaging.requirements import Requirement

FRAMEWORK: Final = "pi-agent-framework"
_EXAMPLE: Final = f"write it as in requires = '{FRAMEWORK}>={__version__}'"


def normalized(name: str) -> str:
    """Return a distribution name as the packaging standards compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def unmet(plugin: object) -> str:
    """Return why a plugin cannot be used with what is installed, and what to do; nothing when it can.

    :param plugin: an object with an attribute ``requires``: requirements as in a ``pyproject.toml``, in one text and
        separated by commas. Without it everything is fine.
    """
    stated = getattr(plugin, "requires", None)
    if stated is None:
        return ""
    if not isinstance(stated, str):
        return f"its 'requires' is to be a text, got {stated!r}; {_EXAMPLE}"
    from packaging.requirements import InvalidRequirement

    try:
        requirements = list(_parsed(stated))
    except InvalidRequirement:
        return f"its 'requires' cannot be read: {stated!r}; {_EXAMPLE}"
    return "; ".join(filter(None, map(_fault, requirements)))


def unmet_by_metadata(distribution: str) -> str:
    """Return why an installed distribution does not fit to this framework by its own metadata; nothing when it does."""
    from importlib import metadata

    try:
        stated = metadata.requires(distribution) or ()
    except metadata.PackageNotFoundError:
        return ""
    return "; ".join(filter(None, map(_fault, _about_the_framework(stated))))


def _about_the_framework(stated: Iterable[str]) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for text in stated:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if normalized(requirement.name) == FRAMEWORK and requirement.marker is None:
            yield requirement


def _parsed(stated: str) -> Iterator[Requirement]:
    """The requirements of a text; a part after a comma that has no name belongs to the one before it."""
    from packaging.requirements import Requirement

    for text in re.split(r",\s*(?=[A-Za-z0-9])", stated):
        yield Requirement(text)


def _fault(requirement: Requirement) -> str:
    from importlib import metadata

    if requirement.marker is not None and not requirement.marker.evaluate():
        return ""
    if normalized(requirement.name) == FRAMEWORK:
        version = __version__
    else:
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            return f"it needs {requirement}, which is not installed. Run: pip install '{requirement}'"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"it needs {requirement}, installed is {version}. Run: pip install '{requirement}'"
