"""``/plugins``, ``/hooks`` and ``/trace``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.coding_agent import SlashCommand
from pi_plugins.config.paths import expand
from pi_plugins.trace import TraceWriter

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession


class PluginCommands:
    """Who takes part in the run, and what they do."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("plugins", "What is loaded, and what is wrong", self.plugins),
            SlashCommand("hooks", "Who implements which hook", self.hooks, _complete_hook),
            SlashCommand("trace", "Write every call of a plugin to a file: on FILE, off", self.trace, _complete_trace),
        ]

    def plugins(self, text: str, session: AgentSession) -> str:
        """List the plugins and their problems."""
        lines = []
        for record in session.build.plugins:
            origin = f"  {record.origin}" if record.origin else ""
            state = "" if record.state == "loaded" else f"  {record.state}: {record.reason}"
            lines.append(f"{record.name}{origin}{state}")
        told = {record.reason for record in session.build.plugins}
        lines += [f"problem: {problem}" for problem in session.build.problems() if problem not in told]
        return "\n".join(lines)

    def hooks(self, text: str, session: AgentSession) -> str:
        """List the hooks that plugins implement, or the implementations of one in call order."""
        hooks = session.agent.hooks
        specifications = {name: (arguments, contract) for name, arguments, contract in hooks.specifications()}
        if not text:
            implemented = hooks.implemented()
            lines = []
            for name in specifications:
                if name in implemented:
                    owners = dict.fromkeys(owner.plugin for owner, _, _ in hooks.implementations(name))
                    lines.append(f"{name}: {', '.join(owners)}")
            return "\n".join([*lines, "/hooks NAME says more about one"])
        if text not in specifications:
            raise ConfigError(f"There is no hook '{text}'")
        arguments, contract = specifications[text]
        lines = [f"{text}({', '.join(arguments)}), {contract.kind.value}: an exception {contract.on_error.value}"]
        for position, (owner, function, wrapper) in enumerate(hooks.implementations(text), 1):
            place = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', repr(function))}"
            lines.append(f"{position}. {owner}  {place}{'  wrapper' if wrapper else ''}")
        return "\n".join(lines)

    def trace(self, text: str, session: AgentSession) -> str:
        """Begin to write calls of plugins to a file, or end it."""
        word, _, name = text.partition(" ")
        if word == "off" and not name:
            if self._stop is None:
                return "Nothing is traced"
            self._stop()
            self._stop = None
            return "Nothing is traced any more"
        if word != "on" or not name.strip():
            raise ConfigError("expected 'on FILE' or 'off', as in /trace on hooks.jsonl")
        path = expand(name.strip(), session.cwd, session.models.environ)
        try:
            writer = TraceWriter(path)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        if self._stop is not None:
            self._stop()
        end = session.agent.hooks.trace(writer)

        def stop() -> None:
            end()
            writer.close()

        self._stop = stop
        return f"Calls of plugins are written to {path}. pi trace show reads it"


def _complete_hook(text: str, session: AgentSession) -> list[str]:
    return [name for name, _, _ in session.agent.hooks.specifications() if text in name]


def _complete_trace(text: str, session: AgentSession) -> list[str]:
    return [word for word in ("on ", "off") if word.startswith(text)]


__all__ = ["PluginCommands"]
