"""The providers that speak an API served here: address, environment variables of the key, and a model to start with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """A provider.

    :param keys: environment variables that hold its key, the first that is set counts.
    :param model: what is taken when a key is found and no model was named; empty when a key is no reason to ask it.
    :param ambient: environment variables that its API reads by itself when there is no key.
    """

    api: str
    base_url: str
    keys: tuple[str, ...]
    model: str = ""
    ambient: tuple[str, ...] = ()


def _messages(base_url: str, key: str, model: str = "") -> KnownProvider:
    return KnownProvider("anthropic-messages", base_url, (key,), model)


def _compatible(base_url: str, key: str, model: str = "") -> KnownProvider:
    return KnownProvider("openai-completions", base_url, (key,), model)


PROVIDERS: Final[Mapping[str, KnownProvider]] = {
    "openai": KnownProvider("openai-responses", "https://api.openai.com/v1", ("OPENAI_API_KEY",), "gpt-5-mini"),
    "anthropic": KnownProvider(
        "anthropic-messages",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"),
        "claude-sonnet-4-6",
        ("ANTHROPIC_AUTH_TOKEN",),
    ),
    "google": KnownProvider(
        "google-generative-ai",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY",),
        "gemini-2.5-flash",
    ),
    "openrouter": _compatible("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter/auto"),
    "groq": _compatible("https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
    "deepseek": _compatible("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
    "mistral": _compatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-large-latest"),
    "cerebras": _compatible("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b"),
    "xai": _compatible("https://api.x.ai/v1", "XAI_API_KEY", "grok-4.3"),
    "together": _compatible("https://api.together.xyz/v1", "TOGETHER_API_KEY", "moonshotai/Kimi-K2.6"),
    "fireworks": _compatible(
        "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "accounts/fireworks/models/kimi-k2p6"
    ),
    # Its token is there for downloads in most cases.
    "huggingface": _compatible("https://router.huggingface.co/v1", "HF_TOKEN"),
    "minimax": _messages("https://api.minimax.io/anthropic", "MINIMAX_API_KEY", "MiniMax-M2.7"),
    "moonshot": _compatible("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k2.6"),
    "zai": _compatible("https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.1"),
    "nvidia": _compatible("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY", "moonshotai/kimi-k2.6"),
    "vercel-ai-gateway": _compatible(
        "https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY", "anthropic/claude-sonnet-4.6"
    ),
    "baseten": _compatible("https://inference.baseten.co/v1", "BASETEN_API_KEY", "moonshotai/Kimi-K2.6"),
    "deepinfra": _compatible("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY", "moonshotai/Kimi-K2.6"),
    "chutes": _compatible("https://llm.chutes.ai/v1", "CHUTES_API_KEY", "moonshotai/Kimi-K2.6-TEE"),
    "ollama-cloud": _compatible("https://ollama.com/v1", "OLLAMA_API_KEY", "kimi-k2.6"),
    "opencode": _compatible("https://opencode.ai/zen/v1", "OPENCODE_API_KEY", "kimi-k2.6"),
    "alibaba": _compatible(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", "qwen3.6-plus"
    ),
    "xiaomi": _compatible("https://api.xiaomimimo.com/v1", "XIAOMI_API_KEY", "mimo-v2.5-pro"),
    "zai-coding-cn": _compatible("https://open.bigmodel.cn/api/coding/paas/v4", "ZAI_CODING_CN_API_KEY", "glm-5.1"),
    "kimi-coding": _messages("https://api.kimi.com/coding", "KIMI_API_KEY", "k2p6"),
    "minimax-cn": _messages("https://api.minimaxi.com/anthropic", "MINIMAX_CN_API_KEY", "MiniMax-M2.7"),
}
"""In the order in which keys are looked for."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server people run on their own machine, and where it usually listens."""

    name: str
    label: str
    port: int

    @property
    def base_url(self) -> str:
        """The address of its OpenAI-compatible API."""
        return f"http://127.0.0.1:{self.port}/v1"


LOCAL_SERVERS: Final = (
    LocalServer("ollama", "Ollama", 11434),
    LocalServer("lmstudio", "LM Studio", 1234),
    LocalServer("llamacpp", "llama.cpp", 8080),
    LocalServer("vllm", "vLLM", 8000),
)


def local_names() -> list[str]:
    """Return the names of the servers people run on their own machine."""
    return [server.name for server in LOCAL_SERVERS]


def key_variables(provider: str) -> tuple[str, ...]:
    """Return the environment variables that hold the key of a provider, also of one that is not known here."""
    known = PROVIDERS.get(provider)
    if known is not None:
        return known.keys
    return ("".join(char if char.isalnum() else "_" for char in provider).upper() + "_API_KEY",)


def ambient_variables(provider: str) -> tuple[str, ...]:
    """Return the environment variables that the API of a provider reads by itself when there is no key."""
    known = PROVIDERS.get(provider)
    return () if known is None else known.ambient
