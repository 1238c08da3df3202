"""The switches that the ``compat`` of a model may have, for what reads them from a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from . import _anthropic_compat, _completions_compat, _responses_compat

_MODULES = {
    "anthropic-messages": _anthropic_compat,
    "openai-completions": _completions_compat,
    "openai-responses": _responses_compat,
}


@cache
def switches(api: str) -> Mapping[str, Any] | None:
    """Return the type of each switch of an API by its name; ``None`` for an API that is not served here."""
    if api == "google-generative-ai":
        return {"supportsStrictMode": bool}
    module = _MODULES.get(api)
    if module is None:
        return None
    types = get_type_hints(module.Compat)
    return {name: types[field] for name, field in module.FIELDS.items()}


__all__ = ["switches"]
