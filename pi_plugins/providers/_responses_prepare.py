"""A request of the responses API from its parts, and a plainer one when the server cannot read its own reasoning."""

from __future__ import annotations

import re
from typing import Any, Final

from pi_core import Context, MessageAssembler, Model, StreamOptions

from ._errors import ResponseError
from ._grammar import grammar_arguments
from ._headers import api_address
from ._responses_compat import compat_of
from ._responses_decode import ResponsesDecoder
from ._responses_request import build_headers, build_payload, moving_effort
from ._stream import Prepared
from ._thinking import requested_level

# Reasoning is encrypted for an organisation and a model; after a change of either, and at a server that expected what
# another one stored, the conversation goes on without it.
_UNREADABLE: Final = re.compile(
    r"encrypted[_ ]content|required (?:following item|'?reasoning'? item)|item with id '?\w+'? not found",
    re.IGNORECASE,
)


def prepare(
    model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler, *, plain: bool = False
) -> Prepared:
    """Return the request to make.

    :param plain: leave out reasoning and the ids of items.
    :raises ResponseError: the model has no address.
    :raises ValueError: a tool asks for what the server cannot do.
    """
    address = api_address(model)
    compat = compat_of(model)
    grammar_tools = grammar_arguments(context.tools, supported=compat.supports_openai_grammar_tools)
    effort = moving_effort(model, compat, requested_level(model, options.reasoning))
    if effort is not None:
        assembler.update(provider_thinking_level=effort)
    payload = build_payload(model, compat, context, options, grammar_tools, plain=plain)

    def recover(refusal: ResponseError) -> Prepared | None:
        if plain or refusal.details.status not in (400, 404) or not _UNREADABLE.search(refusal.text):
            return None
        plainer = prepare(model, context, options, assembler, plain=True)
        return plainer if plainer.payload != payload else None

    return Prepared(
        url=f"{address}/responses",
        headers=build_headers(model, compat, context, options),
        key_headers=("authorization", "cf-aig-authorization", "api-key", "x-api-key"),
        payload=payload,
        decoder=ResponsesDecoder(assembler, model, grammar_tools, _text(payload.get("service_tier"))),
        error_form=f"{_label(model)} API error ({{status}}): {{error}}",
        recover=recover,
    )


def _label(model: Model) -> str:
    return "OpenAI" if model.provider == "openai" else model.provider.replace("{", "{{").replace("}", "}}")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
