"""``/plugins``, ``/hooks`` and ``/trace``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pi_core import ConfigError, Hooks
from pi_plugins.coding_agent import SlashCommand
from pi_plugins.config.paths import expand
from pi_plugins.trace import TraceWriter

from ._rows import rows

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui


class PluginCommands:
    """Who takes part in the run, and what they do."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._stop: Callable[[], None] | None = None

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("plugins", "What is loaded, and what is wrong", self.plugins),
            SlashCommand("hooks", "Who implements which hook", self.hooks, _complete_hook),
            SlashCommand("trace", "Write every call of a plugin to a file: on FILE, off", self.trace, _complete_trace),
        ]

    def plugins(self, text: str, session: AgentSession) -> None:
        """Show the plugins and their problems."""
        pairs = []
        for record in session.build.plugins:
            state = "" if record.state == "loaded" else f"{record.state}: {record.reason}"
            pairs.append((record.name, "  ".join(part for part in (record.origin, state) if part)))
        self._ui.show(rows(pairs))
        told = {record.reason for record in session.build.plugins}
        for problem in session.build.problems():
            if problem not in told:
                self._ui.show(problem, "warning")

    def hooks(self, text: str, session: AgentSession) -> str:
        """Show the hooks that plugins implement, or the implementations of one in call order."""
        hooks = session.agent.hooks
        specifications = {name: (arguments, contract) for name, arguments, contract in hooks.specifications()}
        if not text:
            names = hooks.implemented()
            self._ui.show(rows((name, _owners(hooks, name)) for name in specifications if name in names))
            return "/hooks NAME says more about one"
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


def _owners(hooks: Hooks, name: str) -> str:
    return ", ".join(dict.fromkeys(owner.plugin for owner, _, _ in hooks.implementations(name)))


def _complete_hook(text: str, session: AgentSession) -> list[str]:
    return [name for name, _, _ in session.agent.hooks.specifications() if text in name]


def _complete_trace(text: str, session: AgentSession) -> list[str]:
    return [word for word in ("on ", "off") if word.startswith(text)]


__all__ = ["PluginCommands"]
