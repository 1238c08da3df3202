"""The first start: no model can be used yet, and a short choice leads to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_core import ConfigError, SelectionContext
from pi_plugins.models.shared import shared_runtime

from .api_keys import login
from .ui import Choice

if TYPE_CHECKING:
    from pi_plugins.coding_agent import Prepared

    from .ui import Ui

EMBEDDED_PLUGIN: Final = "local"
"""The plugin of the model that runs on this machine."""


async def has_no_model(prepared: Prepared) -> bool:
    """Whether no model was named, and none is found: no key, no server, no model on this machine."""
    options, settings = prepared.options, prepared.build.settings
    named = (options.model, options.models, options.base_url, options.provider, settings and settings.model)
    return not any(named) and not await _is_there(prepared)


async def first_start(ui: Ui, prepared: Prepared) -> bool:
    """Let the user come to a model.

    :returns: whether there is one now; ``False`` when the user leaves.
    """
    while True:
        chosen = await ui.select(
            "How do you want to begin?",
            [
                Choice("key", "Paste an API key", "Anthropic, OpenAI, Google, OpenRouter …"),
                Choice("server", "Use a server on this machine", "Ollama, LM Studio, llama.cpp, vLLM"),
                Choice("embedded", "Run a small model on this machine", "no key, 1.1 GB"),
                Choice("leave", "Leave"),
            ],
            message="pi needs a model to talk to, and found none.",
            filter=False,
        )
        if chosen is None or chosen[0].value == "leave":
            return False
        if chosen[0].value == "key":
            if await login(ui, shared_runtime(_environ(prepared))) is None:
                continue
        elif chosen[0].value == "server":
            ui.show(
                "Looked for Ollama, LM Studio, llama.cpp and vLLM at their usual ports on 127.0.0.1. "
                "Another address is given at the start: pi --base-url http://127.0.0.1:PORT/v1"
            )
        else:
            ui.show(_embedded(prepared))
            await ui.confirm("Look for it now?", "Say yes when both commands are done.")
        if await _is_there(prepared):
            return True
        ui.show("There is still no model that can be used", "warning")


def _embedded(prepared: Prepared) -> str:
    loaded = any(record.name == EMBEDDED_PLUGIN for record in prepared.build.plugins)
    install = "" if loaded else "  pip install pi-local\n"
    return f"In another terminal:\n{install}  pi local pull"


async def _is_there(prepared: Prepared) -> bool:
    try:
        await prepared.build.resolve_model(None, SelectionContext(environ=_environ(prepared)))
    except ConfigError:
        return False
    return True


def _environ(prepared: Prepared) -> dict[str, str]:
    return {**prepared.environ, "PI_CODING_AGENT_DIR": str(prepared.agent_dir)}


__all__ = ["EMBEDDED_PLUGIN", "first_start", "has_no_model"]
