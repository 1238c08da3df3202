"""How servers of the responses API differ: what is known of a host, and what a model's ``compat`` says."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from pi_core import Model


@dataclass(frozen=True, slots=True)
class Compat:
    """The switches of one model. The ``compat`` of the model has them in camel case and wins over what is known."""

    supports_developer_role: bool = True
    supports_max_output_tokens: bool = True
    supports_strict_mode: bool = False
    supports_openai_grammar_tools: bool = False
    supports_long_cache_retention: bool = True
    supports_explicit_prompt_cache_mode: bool = False
    supports_mid_convo_effort: bool = False
    prompt_cache_key_mode: str = "auto"
    reasoning_summary: str = "auto"
    send_session_affinity_headers: bool | str = "openai"


_ALIASES: Final = {"supportsOpenAIGrammarTools": "supports_openai_grammar_tools"}
FIELDS: Final = {to_camel(field.name): field.name for field in dataclasses.fields(Compat)} | _ALIASES


def compat_of(model: Model) -> Compat:
    """Return the switches of a model: by its provider id or address, each overridden by its own ``compat``."""
    values: dict[str, Any] = {}
    if model.provider == "openrouter" or "openrouter.ai" in model.base_url:
        values["send_session_affinity_headers"] = "openrouter"
    for key, value in (model.compat or {}).items():
        name = FIELDS.get(key)
        if name is not None:
            values[name] = value
    return Compat(**values)
