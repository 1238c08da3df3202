"""The request of the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from pi_core import Context, Model, StreamOptions, Tool

from ._google_content import build_contents
from ._google_models import supports_strict_tools, thinking_config
from ._google_schema import google_schema
from ._strict_schema import strict_parameters
from ._text import clean
from ._tokens import output_limit

_COLLECTIONS: Final = ("models/", "tunedModels/", "projects/", "publishers/")
_MODES: Final[Mapping[str, str]] = {"auto": "AUTO", "none": "NONE", "any": "ANY", "required": "ANY"}


def model_path(model: Model) -> str:
    """Return the path of a model below the address of the API."""
    path = model.id if model.id.startswith(_COLLECTIONS) else f"models/{model.id}"
    return quote(path, safe="/:@")


def build_payload(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    """Return the body of a request.

    :raises ValueError: a tool asks for what the server cannot do.
    """
    payload: dict[str, Any] = {"contents": build_contents(context.messages, model)}
    if context.system_prompt:
        payload["systemInstruction"] = {"parts": [{"text": clean(context.system_prompt)}], "role": "user"}
    if context.tools:
        strict_supported = supports_strict_tools(model)
        declared = [_tool(tool, strict_supported) for tool in context.tools]
        payload["tools"] = [{"functionDeclarations": [declaration for declaration, _ in declared]}]
        calling = _calling(options.tool_choice, strict=any(strict for _, strict in declared))
        if calling is not None:
            payload["toolConfig"] = {"functionCallingConfig": calling}
    payload["generationConfig"] = _generation_config(model, context, options)
    return payload


def _tool(tool: Tool, strict_supported: bool) -> tuple[dict[str, Any], bool]:
    parameters, strict = strict_parameters(tool, supported=strict_supported)
    declaration = {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": google_schema(parameters),
    }
    return declaration, strict


def _calling(choice: Any, *, strict: bool) -> dict[str, Any] | None:
    """How tools are chosen; schemas are only enforced when that is said."""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        name = choice.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
        return {"mode": "ANY", "allowedFunctionNames": [name]} if name else None
    mode = _MODES.get(choice) if isinstance(choice, str) else None
    if strict and mode not in ("NONE", "ANY"):
        mode = "VALIDATED"
    return None if mode is None else {"mode": mode}


def _generation_config(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if options.temperature is not None:
        config["temperature"] = options.temperature
    limit = output_limit(model, context, options)
    if limit is not None:
        config["maxOutputTokens"] = limit
    thinking = thinking_config(model, options)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    return config
