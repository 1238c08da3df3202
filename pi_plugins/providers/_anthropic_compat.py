"""How servers of the messages API differ: what is known of a host, and what a model's ``compat`` says."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from pi_core import Model

from ._headers import host_of


@dataclass(frozen=True, slots=True)
class Compat:
    """The switches of one model. The ``compat`` of the model has them in camel case and wins over what is known."""

    force_adaptive_thinking: bool = False
    supports_temperature: bool = True
    supports_mid_convo_effort: bool = False
    supports_mid_convo_tool_changes: bool = False
    supports_strict_tools: bool = False
    supports_eager_tool_input_streaming: bool = True
    supports_cache_control_on_tools: bool = True
    supports_long_cache_retention: bool = True
    supports_message_threads: bool = False
    allow_empty_signature: bool = False
    send_session_affinity_headers: bool | str = False
    allowed_fallback_models: tuple[dict[str, Any], ...] = ()


FIELDS: Final = {to_camel(field.name): field.name for field in dataclasses.fields(Compat)}


def compat_of(model: Model) -> Compat:
    """Return the switches of a model: by its provider id or address, each overridden by its own ``compat``."""
    values: dict[str, Any] = {"supports_message_threads": host_of(model.base_url) == "api.anthropic.com"}
    if model.provider == "openrouter" or "openrouter.ai" in model.base_url:
        values["send_session_affinity_headers"] = "openrouter"
    for key, value in (model.compat or {}).items():
        name = FIELDS.get(key)
        if name is not None:
            values[name] = value
    fallbacks = values.get("allowed_fallback_models") or ()
    values["allowed_fallback_models"] = tuple(
        entry for entry in fallbacks if isinstance(entry, dict) and isinstance(entry.get("model"), str)
    )
    return Compat(**values)
