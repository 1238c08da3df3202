"""Keys that the user pastes: whose they are, whether they are accepted, and where they are stored."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_core import complete
from pi_plugins.config.secrets import MASK, without_secrets
from pi_plugins.models.credentials import key_fault, literal

from .ui import Choice

if TYPE_CHECKING:
    from pi_plugins.models.runtime import ModelRuntime

    from .ui import Ui

# Beginnings that one provider alone gives its keys. A bare "sk-" is no such: several providers use it.
_BEGINNINGS: Final = (
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("sk-svcacct-", "openai"),
    ("AIza", "google"),
    ("gsk_", "groq"),
    ("xai-", "xai"),
    ("csk-", "cerebras"),
    ("nvapi-", "nvidia"),
    ("hf_", "huggingface"),
    ("fw_", "fireworks"),
    ("tgp_v1_", "together"),
)
_REST: Final = re.compile(r"[A-Za-z0-9_\-]{16,}")
_CHECK_SECONDS: Final = 20.0
_REFUSED: Final = (401, 403)


def provider_of_key(key: str) -> str | None:
    """Return the provider whose keys begin like this one; ``None`` when that does not say it for sure."""
    return next((provider for beginning, provider in _BEGINNINGS if key.startswith(beginning)), None)


def looks_like_key(word: str) -> bool:
    """Whether a word is a key of a provider."""
    found = next((beginning for beginning, _ in _BEGINNINGS if word.startswith(beginning)), None)
    return found is not None and _REST.match(word, len(found)) is not None


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """What came of a request with a key.

    :param accepted: ``None`` when that could not be found out.
    :param reason: why it was not accepted, or why nothing could be found out.
    """

    accepted: bool | None
    reason: str = ""


async def check_key(runtime: ModelRuntime, provider: str, key: str) -> KeyCheck:
    """Make one small request with a key, which need not be stored."""
    model = runtime.table.usual(provider)
    if model is None:
        return KeyCheck(None, f"no model of {provider} is known")
    asking = complete(model, "Say ok.", provider=runtime.stream, api_key=key, max_tokens=16, max_retries=0)
    try:
        answer = await asyncio.wait_for(asking, _CHECK_SECONDS)
    except TimeoutError:
        return KeyCheck(None, f"{provider} did not answer within {_CHECK_SECONDS:g} s")
    if answer.stop_reason not in ("error", "aborted"):
        return KeyCheck(True)
    reason = without_secrets((answer.error_message or "the request failed").replace(key, MASK))
    status = answer.error_details.status if answer.error_details else None
    # Google answers 400 to a key that it does not know.
    refused = status in _REFUSED or (status == 400 and "api key" in reason.lower())
    return KeyCheck(False if refused else None, reason)


async def login(ui: Ui, runtime: ModelRuntime, provider: str | None = None) -> str | None:
    """Ask for a key, check it and store it.

    :param provider: whose key it is; found out from the key, or asked, when absent.
    :returns: the provider whose key was stored; ``None`` when none was.
    :raises ConfigError: the credentials cannot be written.
    """
    title = "Paste an API key" if provider is None else f"Paste the key of {provider}"
    key = ((await ui.input(title, secret=True)) or "").strip()
    if not key:
        return None
    fault = key_fault(key)
    if fault is not None:
        ui.show(f"Nothing is stored: {fault}", "error")
        return None
    provider = provider or provider_of_key(key) or await ask_provider(ui, runtime)
    if provider is None:
        return None
    ui.set_status("login", f"Asking {provider} whether it accepts the key…")
    try:
        checked = await check_key(runtime, provider, key)
    finally:
        ui.set_status("login", None)
    if checked.accepted is False:
        message = f"{checked.reason}\nStore it all the same?"
        if not await ui.confirm(f"{provider} does not accept the key", message):
            return None
    await asyncio.to_thread(runtime.credentials.set_key, provider, literal(key))
    where = f"The key of {provider} is stored in {runtime.credentials.path}"
    if checked.accepted is None:
        ui.show(f"{where}. It could not be checked: {checked.reason}", "warning")
    else:
        ui.show(where + (". It works." if checked.accepted else ""))
    return provider


async def ask_provider(ui: Ui, runtime: ModelRuntime) -> str | None:
    """Let the user say whose key it is."""
    choices = [Choice(name, name, _known_key(runtime, name)) for name in runtime.providers()]
    chosen = await ui.select("Whose key is it?", choices, message="Type to look for the provider.")
    return None if chosen is None else str(chosen[0].value)


def _known_key(runtime: ModelRuntime, provider: str) -> str:
    source = runtime.key_source(provider)
    return "" if source is None else f"has a key: {source.label}"


__all__ = ["KeyCheck", "ask_provider", "check_key", "login", "looks_like_key", "provider_of_key"]
