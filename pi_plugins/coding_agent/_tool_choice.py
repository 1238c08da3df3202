"""Which tools a model may call: the defaults, a list that replaces them, or changes to them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pi_core import Build, ConfigError

if TYPE_CHECKING:
    from .options import SessionOptions

BUILT_IN = "tools"
"""The plugin of the tools that ship here."""


def choose_tools(build: Build, options: SessionOptions, default: Sequence[str] | None) -> list[str]:
    """Return the names of the tools a session starts with.

    Without a list these are the defaults and what other plugins contribute. A list of names and ``*`` patterns replaces
    them; a list of ``+name`` and ``-name`` changes them.

    :param default: ``defaultTools`` of the settings, a list of either kind; ``None`` when they do not say.
    :raises ConfigError: a list mixes both kinds, or names a tool that does not exist.
    """
    registered = build.registry.tools
    known = registered.names()
    owners = {name: registered.owner(name) for name in known}
    if options.no_tools:
        return []
    if build.settings is not None and build.settings.tools is not None:
        chosen = list(build.settings.tools)
    else:
        standard = [name for name in _STANDARD if name in known]
        built_in = standard if default is None else apply_names(default, standard, known, "defaultTools")
        others = [name for name in known if (owner := owners[name]) is not None and owner.plugin != BUILT_IN]
        chosen = built_in + [name for name in others if name not in built_in]
    if options.no_builtin_tools:
        chosen = [name for name in chosen if (owner := owners.get(name)) is None or owner.plugin != BUILT_IN]
    if options.tools is not None:
        chosen = apply_names(options.tools, chosen, known, "--tools")
    for pattern in options.exclude_tools:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ConfigError(f"--exclude-tools: {_unknown(pattern, known)}")
        chosen = [name for name in chosen if not fnmatchcase(name, pattern)]
    return chosen


_STANDARD = ("read", "bash", "edit", "write")


def apply_names(wanted: Sequence[str], before: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    """Return the tools that a list leaves: those it names, or ``before`` with its changes.

    :param wanted: names and ``*`` patterns, or ``+name`` and ``-name``.
    :param known: the names of all tools.
    :param where: where the list is, for messages.
    :raises ConfigError: it mixes both kinds, or names a tool that does not exist.
    """
    changes = [name for name in wanted if name[:1] in ("+", "-")]
    if changes and len(changes) != len(wanted):
        raise ConfigError(f"{where}: either names ({'read,grep'}) or changes ({'+grep,-write'}), not both")
    if not changes:
        return [name for pattern in wanted for name in _matching(pattern, known, where)]
    chosen = list(before)
    for change in changes:
        for name in _matching(change[1:], known, where):
            if change[0] == "-":
                chosen = [kept for kept in chosen if kept != name]
            elif name not in chosen:
                chosen.append(name)
    return chosen


def _matching(pattern: str, known: Sequence[str], where: str) -> list[str]:
    if "/" in pattern:
        return [pattern]  # owner/name, which Build.tools() looks up
    found = [name for name in known if fnmatchcase(name, pattern)]
    if not found:
        raise ConfigError(f"{where}: {_unknown(pattern, known)}")
    return found


def _unknown(pattern: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(pattern, known, n=1)
    hint = f", did you mean '{close[0]}'?" if close else f". Tools here: {', '.join(known) or 'none'}"
    return f"there is no tool '{pattern}'{hint}"
