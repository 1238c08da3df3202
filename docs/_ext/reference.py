"""Generates the references of hooks, settings and the API from the code, and resolves names to their public place."""

from __future__ import annotations

import inspect
import json
import types
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import pi_core
from pi_core import contract_of, hookspecs
from pi_plugins.config import Settings
from pi_plugins.config.environment import variable
from pi_plugins.config.keys import all_keys, dotted, expected, value_at

OFFERING = {
    "coding_agent": "coding_agent.hookspecs",
    "sessions": "sessions.hookspecs",
    "prompt": "prompt.hookspecs",
    "config": "config.hookspecs",
    "modes": "modes.interactive.hookspecs",
}
OFFERED_INTRODUCTION = """\
A plugin implements them as it does the :doc:`hooks of the core <hooks>`: with the arguments it wants, ``def`` or
``async def``. Where the plugin that offers a hook does not take part, nobody calls it, and a plugin that implements it
is refused; one that can do without is marked ``@hookimpl(optionalhook=True)``. ``pi hooks show`` has the hooks of what
is installed, also those that other distributions offer.
"""
KINDS = {
    "register": "every answer counts, each with its owner",
    "notify": "answers are ignored",
    "record": "answers are ignored; runs before the matching event is announced",
    "first": "the first answer that is not None counts",
    "collect": "all answers count, each with its owner",
    "chain": "each gets what the previous one returned; None leaves it",
    "guard": "in order; the first Block stops",
}
AREAS = {
    "agent": "Agent",
    "build": "Build",
    "tools": "Tools",
    "messages": "Messages",
    "events": "Events",
    "context": "Context",
    "providers": "Providers",
    "assembler": "Responses in the making",
    "streams": "Streams",
    "completion": "One response without an agent",
    "partial_json": "Streamed JSON",
    "loop": "The loop",
    "batch": "Nested tool calls",
    "_requests": "Conversion",
    "_tracing": "Tracing",
    "_build_file": "Build files",
    "hooks": "Hooks",
    "plugin": "Typed plugins",
    "markers": "Markers",
    "commands": "Commands",
    "errors": "Errors",
}


def title(text: str, mark: str) -> list[str]:
    return [text, mark * len(text), ""]


def hooks_of(module: types.ModuleType) -> dict[str, Any]:
    return {name: spec for name, spec in vars(module).items() if contract_of(spec) is not None}


def hook_table(module: types.ModuleType) -> list[str]:
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - hook",
        "     - kind",
        "     - async",
        "     - an exception",
    ]
    for name, spec in hooks_of(module).items():
        contract = contract_of(spec)
        lines += [
            f"   * - :func:`~{module.__name__}.{name}`",
            f"     - {contract.kind.value}",
            f"     - {'yes' if contract.is_async else 'no'}",
            f"     - {contract.on_error.value}",
        ]
    return [*lines, ""]


def hook_entries(module: types.ModuleType, mark: str) -> list[str]:
    lines = [f".. currentmodule:: {module.__name__}", ""]
    for name, spec in hooks_of(module).items():
        contract = contract_of(spec)
        parameters = ", ".join(inspect.signature(spec).parameters)
        lines += [*title(name, mark), f".. function:: {name}({parameters})", ""]
        lines += [f"   {line}".rstrip() for line in (inspect.getdoc(spec) or "").splitlines()]
        lines += [
            "",
            f"   :Kind: {contract.kind.value}: {KINDS[contract.kind.value]}",
            f"   :Implementation: {'``def`` or ``async def``' if contract.is_async else '``def``'}",
            f"   :Wrappers: {'yes' if contract.wrappers else 'no'}",
            f"   :An exception: {contract.on_error.value}",
            "",
        ]
    return lines


def hook_page() -> str:
    lines = [*title("Hooks", "="), inspect.getdoc(hookspecs) or "", ""]
    lines += ["Plugins offer further hooks: :doc:`offered-hooks`.", ""]
    return "\n".join([*lines, *hook_table(hookspecs), *hook_entries(hookspecs, "-")])


def offered_page() -> str:
    lines = [*title("Hooks that plugins offer", "="), OFFERED_INTRODUCTION, ""]
    for plugin, name in OFFERING.items():
        module = import_module(f"pi_plugins.{name}")
        lines += [*title(f"Of the plugin {plugin}", "-"), inspect.getdoc(module) or "", ""]
        lines += [*hook_table(module), *hook_entries(module, "~")]
    return "\n".join(lines)


def api_page() -> str:
    lines = [*title("API", "="), inspect.getdoc(pi_core) or "", ""]
    for module, heading in AREAS.items():
        lines += title(heading, "-")
        for name in pi_core._HOMES[module]:
            value = getattr(pi_core, name)
            if inspect.isclass(value):
                lines += [f".. autoclass:: pi_core.{name}", ""]
            elif isinstance(value, types.FunctionType):
                lines += [f".. autofunction:: pi_core.{name}", ""]
            else:
                lines += [f".. autodata:: pi_core.{module}.{name}", "   :no-value:", ""]
    lines += [*title("Testing", "-"), ".. automodule:: pi_core.testing", "   :members:", ""]
    return "\n".join(lines)


def settings_page() -> str:
    defaults = Settings().model_dump(mode="json")
    lines = [*title("Settings", "="), "See :doc:`../how-to/configure` for where they are set.", ""]
    for path, text in all_keys().items():
        takes, default = expected(path), json.dumps(value_at(defaults, path))
        lines += [f"``{dotted(path)}``", f"   {text[:1].upper()}{text[1:]}", ""]
        lines += [f"   Takes {takes}; {default} by default. Environment: ``{variable(path)}``", ""]
    return "\n".join(lines)


def generate(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    pages = {"hooks": hook_page, "offered-hooks": offered_page, "api": api_page, "settings": settings_page}
    for name, text in ((name, make()) for name, make in pages.items()):
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def public_place(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Resolve ``pi_core.messages.X`` and a bare ``X`` to ``pi_core.X``."""
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    if name in pi_core.__all__ and node.get("reftarget") != f"pi_core.{name}":
        node["reftarget"] = f"pi_core.{name}"
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, contnode)
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    app.connect("missing-reference", public_place)
    return {"parallel_read_safe": True}
