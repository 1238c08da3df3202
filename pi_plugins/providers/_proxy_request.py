"""What a client asks of the proxy: read strictly, since it is spent on the proxy's keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from pi_core import (
    AssistantMessage,
    Context,
    CustomMessage,
    Message,
    Model,
    StreamOptions,
    ThinkingLevel,
    Tool,
    WireModel,
    parse_message,
)

from ._proxy_wire import API, OPTIONS

SAMPLING: Final = frozenset({
    "temperature", "top_p", "top_k", "top_a", "min_p", "typical_p", "tfs_z", "top_n_sigma", "seed", "stop",
    "samplers", "logit_bias", "length_penalty", "frequency_penalty", "presence_penalty", "repetition_penalty",
    "repeat_penalty", "repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range",
    "dynatemp_exponent", "xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base", "dry_allowed_length",
    "dry_penalty_last_n", "dry_sequence_breakers", "topP", "topK", "stopSequences", "frequencyPenalty",
    "presencePenalty"
})  # fmt: skip
"""The sampling parameters a client may set. They are merged into the request last, so that others could choose another
model, or read what other requests left with the provider."""


class BadRequestError(Exception):
    """A request that makes no sense or asks for what the proxy does not allow; the text is for the client."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """What a client asks. Of the model only its name counts: where it is served is the proxy's own business."""

    provider: str
    model: str
    context: Context
    options: StreamOptions


class _ModelName(WireModel):
    id: str = Field(min_length=1)
    provider: str = Field(min_length=1)


class _ToolDeclaration(WireModel):
    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    constrained_sampling: dict[str, Any] | Literal[False] | None = None


class _SystemMessage(WireModel):
    """How the original's newer versions say prompt and tools: in the transcript."""

    content: str | list[dict[str, Any]] = ""
    sections: dict[str, str | None] = Field(default_factory=dict)
    tools_added: list[_ToolDeclaration] = Field(default_factory=list)
    tools_removed: list[str] = Field(default_factory=list)


class _Context(WireModel):
    system_prompt: str = ""
    messages: list[dict[str, Any]]
    tools: list[_ToolDeclaration] = Field(default_factory=list)


class _Options(WireModel):
    temperature: float | None = Field(default=None, allow_inf_nan=False)
    sampling_params: dict[str, Any] | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    reasoning: ThinkingLevel | None = None
    cache_retention: Literal["none", "short", "long"] | None = None
    session_id: str | None = None
    headers: dict[str, str | None] | None = None
    metadata: dict[str, Any] | None = None
    transport: str | None = None
    thinking_budgets: dict[str, int] | None = None
    max_retry_delay_ms: int | None = Field(default=None, ge=0)


class _Body(WireModel):
    model: _ModelName
    context: _Context
    options: _Options = _Options()


def parse_request(body: bytes, headers: Collection[str] = ()) -> ProxyRequest:
    """Return what a body asks for.

    :param headers: the names, in lower case, of headers that a client may set in requests to providers.
    :raises BadRequestError: it cannot be read, or asks for what is not allowed.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("The body is not JSON") from None
    try:
        asked = _Body.model_validate(data)
    except ValidationError as error:
        raise BadRequestError(_fault(error)) from None
    options = {name: getattr(asked.options, name) for name in OPTIONS.values()}
    if options["reasoning"] == "off":
        options["reasoning"] = None
    _check_allowed("option headers", options["headers"], headers, "--allow-header lets it through", str.lower)
    _check_allowed("option samplingParams", options["sampling_params"], SAMPLING, "it is no sampling parameter")
    return ProxyRequest(
        provider=asked.model.provider,
        model=asked.model.id,
        context=_context(asked.context),
        options=StreamOptions(**options),
    )


def own_names(messages: Iterable[Message], names: Mapping[tuple[str, str], Model]) -> list[Message]:
    """Return a history in which the models behind the proxy have their own names again.

    Only so the provider knows what it wrote itself, and accepts its signatures.

    :param names: the models by the provider and the id that clients call them.
    """
    known = []
    for message in messages:
        if isinstance(message, AssistantMessage) and message.api == API:
            model = names.get((message.provider, message.model))
            if model is not None:
                own = {"api": model.api, "provider": model.provider, "model": model.id}
                message = message.model_copy(update=own)
        known.append(message)
    return known


def _fault(error: ValidationError, where: str = "") -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(part for part in (where, *map(str, first["loc"])) if part) or "body"
    return f"{place}: {first['msg']}"


def _check_allowed(
    what: str, given: Mapping[str, Any] | None, allowed: Collection[str], hint: str, form: Any = str
) -> None:
    for name in given or {}:
        if form(name) not in allowed:
            raise BadRequestError(f"{what}: '{name[:100]}' is not allowed by this proxy ({hint})")


def _context(asked: _Context) -> Context:
    messages: list[Message] = []
    prompt: list[str] = [asked.system_prompt] if asked.system_prompt else []
    sections: dict[str, str] = {}
    tools = {tool.name: tool for tool in asked.tools}
    for position, data in enumerate(asked.messages):
        where = f"context.messages.{position}"
        try:
            if data.get("role") == "system":
                said = _SystemMessage.model_validate(data)
                prompt += [_text(said)] if _text(said) else []
                for name, text in said.sections.items():
                    if text is None:
                        sections.pop(name, None)
                    else:
                        sections[name] = text
                for name in said.tools_removed:
                    tools.pop(name, None)
                tools.update((tool.name, tool) for tool in said.tools_added)
                continue
            message = parse_message(data)
        except ValidationError as error:
            raise BadRequestError(_fault(error, where)) from None
        except ValueError as error:
            raise BadRequestError(f"{where}: {error}") from None
        if isinstance(message, CustomMessage):
            raise BadRequestError(f"{where}: the role {message.role[:100]!r} is not for a model")
        messages.append(message)
    return Context("\n\n".join([*prompt, *sections.values()]), messages, tuple(map(_tool, tools.values())))


def _text(message: _SystemMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(block.get("text", "")) for block in message.content if block.get("type") == "text")


def _tool(asked: _ToolDeclaration) -> Tool:
    try:
        return Tool(
            name=asked.name,
            description=asked.description,
            parameters=asked.parameters,
            execute=_not_here,
            constrained_sampling=asked.constrained_sampling,
        )
    except ValueError as error:
        raise BadRequestError(f"context.tools: {error}") from None


def _not_here(arguments: Any, context: Any) -> None:
    """Tools run where the client is."""
    raise RuntimeError("the proxy runs no tools")
