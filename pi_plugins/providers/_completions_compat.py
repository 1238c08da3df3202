"""How servers of the chat completions API differ: what is known of a host, and what a model's ``compat`` says."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from pi_core import Model


@dataclass(frozen=True, slots=True)
class Compat:
    """The switches of one model. The ``compat`` of the model has them in camel case and wins over what is known."""

    supports_store: bool = True
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    supports_strict_mode: bool = False
    supports_finish_reason: bool = True
    supports_long_cache_retention: bool = True
    supports_openai_grammar_tools: bool = False
    max_tokens_field: str = "max_completion_tokens"
    thinking_format: str = "openai"
    thinking_token_budget_field: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    chat_template_args: dict[str, Any] | None = None
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_thinking_as_text: bool = False
    requires_non_null_assistant_content: bool = False
    requires_reasoning_content_on_assistant_messages: bool = False
    requires_tools_with_tool_history: bool = False
    prompt_cache_key_mode: str = "auto"
    cache_control_format: str | None = None
    send_session_affinity_headers: bool | str = False
    open_router_routing: dict[str, Any] | None = None
    vercel_gateway_routing: dict[str, Any] | None = None
    vllm_priority: int | None = None
    zai_tool_stream: bool = False
    thinking_in_text: bool = False


_ALIASES: Final = {"supportsOpenAIGrammarTools": "supports_openai_grammar_tools"}
FIELDS: Final = {to_camel(field.name): field.name for field in dataclasses.fields(Compat)} | _ALIASES

_PLAIN: Final = {"supports_store": False, "max_tokens_field": "max_tokens"}
_PLAIN_EFFORT: Final = _PLAIN | {"supports_reasoning_effort": False}
_NO_LONG_CACHE: Final = {"supports_long_cache_retention": False}

_KNOWN: Final[tuple[tuple[frozenset[str], tuple[str, ...], dict[str, Any]], ...]] = (
    (frozenset({"openai"}), ("api.openai.com",), {"supports_developer_role": True}),
    (
        frozenset({"deepseek"}),
        ("deepseek.com",),
        _PLAIN | {"thinking_format": "deepseek", "requires_reasoning_content_on_assistant_messages": True},
    ),
    (frozenset({"zai", "zai-coding-cn"}), ("api.z.ai", "bigmodel.cn"), _PLAIN_EFFORT | {"thinking_format": "zai"}),
    (
        frozenset({"together"}),
        ("api.together.ai", "api.together.xyz"),
        _PLAIN_EFFORT | _NO_LONG_CACHE | {"thinking_format": "together"},
    ),
    (frozenset({"moonshotai", "moonshotai-cn"}), ("api.moonshot.",), _PLAIN_EFFORT),
    (
        frozenset({"openrouter"}),
        ("openrouter.ai",),
        {"thinking_format": "openrouter", "send_session_affinity_headers": "openrouter"},
    ),
    (frozenset({"cloudflare-ai-gateway"}), ("gateway.ai.cloudflare.com",), _PLAIN_EFFORT | _NO_LONG_CACHE),
    (frozenset({"cloudflare-workers-ai"}), ("api.cloudflare.com",), {"supports_store": False} | _NO_LONG_CACHE),
    (frozenset({"nvidia"}), ("integrate.api.nvidia.com",), _PLAIN_EFFORT | _NO_LONG_CACHE),
    (
        frozenset({"ant-ling"}),
        ("api.ant-ling.com",),
        _PLAIN_EFFORT | _NO_LONG_CACHE | {"thinking_format": "ant-ling"},
    ),
    (frozenset({"xai"}), ("api.x.ai",), {"supports_store": False, "supports_reasoning_effort": False}),
    (frozenset({"cerebras"}), ("cerebras.ai",), {"supports_store": False}),
    (frozenset({"opencode"}), ("opencode.ai",), {"supports_store": False}),
    (frozenset({"chutes"}), ("chutes.ai",), _PLAIN),
    (frozenset({"ollama", "lmstudio", "llamacpp", "vllm", "local", "custom"}), (), {"thinking_in_text": True}),
)


def compat_of(model: Model) -> Compat:
    """Return the switches of a model: by its provider id or address, each overridden by its own ``compat``."""
    values: dict[str, Any] = {}
    for providers, hosts, known in _KNOWN:
        if model.provider in providers or any(host in model.base_url for host in hosts):
            values = dict(known)
            break
    if values.get("thinking_format") == "openrouter" and model.id.startswith("anthropic/"):
        values["cache_control_format"] = "anthropic"
    for key, value in (model.compat or {}).items():
        name = FIELDS.get(key)
        if name is not None:
            values[name] = value
    return Compat(**values)
