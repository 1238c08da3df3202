"""The exceptions of the framework: each names what failed, where, and what to do.

Failures of a model, a provider or a tool are data (an error message, an error result) and never raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class PiError(Exception):
    """Base class of every exception the framework raises on purpose."""


class ConfigError(PiError):
    """A setting, a model name, a credential or a command line that cannot be used; the text says what to do."""


class BuildError(PiError):
    """A build file that cannot be turned into an agent."""


class AgentBusyError(PiError):
    """A run was asked for while another one of the same agent is still going."""


class ContinueError(PiError):
    """A run cannot be continued: there are no messages, or the last one is an assistant message."""


class ToolArgumentsError(PiError):
    """The model's arguments for a tool do not fit its parameters; the text is written for the model.

    :param message: the whole text.
    :param paths: dotted places of every fault, ``root`` for the value itself.
    """

    def __init__(self, message: str, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


class PluginError(PiError):
    """A fault of one plugin.

    :param plugin: its plugin name (the entry-point name).
    :param distribution: name and version of the distribution it came from, or ``""`` when it was passed as an object.
    """

    def __init__(self, message: str, *, plugin: str, distribution: str = "") -> None:
        super().__init__(message)
        self.plugin = plugin
        self.distribution = distribution


class PluginLoadError(PluginError):
    """A plugin could not be imported, created, registered or configured."""


class PluginConflictError(PluginError):
    """Two plugins own the same name.

    :param owners: the plugin names of all owners, in call order.
    """

    def __init__(self, message: str, *, plugin: str, owners: Iterable[str], distribution: str = "") -> None:
        super().__init__(message, plugin=plugin, distribution=distribution)
        self.owners = tuple(owners)


class HookError(PluginError):
    """An implementation of a hook raised; the original exception is ``__cause__``.

    The text starts with the original message, so that a tool result made from it tells the model what happened.

    :param hook: the name of the hook.
    """

    def __init__(self, message: str, *, plugin: str, hook: str, distribution: str = "") -> None:
        super().__init__(message, plugin=plugin, distribution=distribution)
        self.hook = hook


def describe_owner(plugin: str, distribution: str = "") -> str:
    """Name a plugin the way every message of the framework does: ``plugin 'x' (pi-x 1.2)``."""
    return f"plugin '{plugin}' ({distribution})" if distribution else f"plugin '{plugin}'"


def error_text(error: BaseException) -> str:
    """The text of an exception for a message or a result: its own words; an empty text stays empty."""
    text = own_words(error)
    return f"KeyError: {text}" if isinstance(error, KeyError) and len(error.args) == 1 else text


def own_words(error: BaseException) -> str:
    """What an exception says, also when it cannot say it."""
    try:
        return str(error)
    except Exception as unreadable:
        return f"{type(error).__name__}, whose text cannot be read: {type(unreadable).__name__}"


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """A failure of a plugin that did not fail the run.

    :param disabled: whether the implementation is switched off for the rest of the run.
    """

    plugin: str
    distribution: str
    hook: str
    error: Exception
    disabled: bool = False

    def __str__(self) -> str:
        owner = describe_owner(self.plugin, self.distribution)
        off = "; switched off for the rest of this run" if self.disabled else ""
        return f"{owner}, hook {self.hook}: {type(self.error).__name__}: {own_words(self.error)}{off}"
