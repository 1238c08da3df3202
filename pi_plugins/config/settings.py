"""The settings: every key, its type and its default. JSON spells them in camel case.

A text of the class that begins with ``:param name:`` says what each is; ``pi config show KEY`` prints it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pi_core import ThinkingLevel

Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=2**53 - 1)]
Words: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
QueueMode: TypeAlias = Literal["one-at-a-time", "all"]
Choice: TypeAlias = Literal["auto"] | bool


class _Group(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )


_DEFAULTS: Any = Field(default={}, validate_default=True)
# An object as the default would make a validator for its class alone, beside the one for all settings.


class CompactionLimits(_Group):
    """Compaction of one model; what is not given is as for the others.

    :param reserve_tokens: tokens that are kept free for the answer.
    :param keep_recent_tokens: tokens of the newest messages that are kept as they are.
    """

    reserve_tokens: Count | None = None
    keep_recent_tokens: Count | None = None


class CompactionSettings(_Group):
    """When a long session is summarized, and what of it is kept.

    :param enabled: whether it happens by itself.
    :param reserve_tokens: tokens of the context window that are kept free for the answer.
    :param keep_recent_tokens: tokens of the newest messages that are kept as they are.
    :param model_overrides: other limits of single models, by ``provider/id``.
    """

    enabled: bool = True
    reserve_tokens: Count = 16_384
    keep_recent_tokens: Count = 20_000
    model_overrides: dict[str, CompactionLimits] = {}


class BranchSummarySettings(_Group):
    """Summaries of a branch that is left.

    :param reserve_tokens: tokens of the context window that are kept free for the summary.
    :param skip_prompt: leave a branch without asking for a summary.
    """

    reserve_tokens: Count = 16_384
    skip_prompt: bool = False


class ProviderRetrySettings(_Group):
    """How a single request is repeated.

    :param timeout_ms: limit of the wait for each event, milliseconds; that of ``httpIdleTimeoutMs`` by default.
    :param max_retries: how often a request that was refused before any event is made again.
    :param max_retry_delay_ms: longest delay a server may ask for, milliseconds; 0 is no limit.
    """

    timeout_ms: Count | None = None
    max_retries: Count = 0
    max_retry_delay_ms: Count = 60_000


class RetrySettings(_Group):
    """How a failed answer is asked for again.

    :param enabled: whether that happens by itself.
    :param max_retries: how often.
    :param base_delay_ms: the first delay, milliseconds; each further one is twice as long.
    :param max_agent_delay_ms: the longest delay, milliseconds.
    :param provider: how a single request is repeated.
    """

    enabled: bool = True
    max_retries: Count = 3
    base_delay_ms: Count = 2_000
    max_agent_delay_ms: Count = 60_000
    provider: ProviderRetrySettings = _DEFAULTS


class ImageSettings(_Group):
    """Images in messages.

    :param auto_resize: make large images smaller before they are stored.
    :param block_images: never send an image to a model.
    """

    auto_resize: bool = True
    block_images: bool = False


class TerminalSettings(_Group):
    """What the terminal can do.

    :param show_images: draw images.
    :param image_width_cells: width of an image, in cells.
    :param clear_on_shrink: clear lines that are left over when the screen gets shorter.
    :param show_terminal_progress: tell the terminal that work goes on.
    :param hyperlinks: print links that can be clicked.
    :param images: the way images are drawn.
    :param true_color: use 24-bit colors.
    """

    show_images: bool = True
    image_width_cells: Positive = 60
    clear_on_shrink: bool = False
    show_terminal_progress: bool = False
    hyperlinks: Choice = "auto"
    images: Literal["auto", "kitty", "iterm2", "none"] = "auto"
    true_color: Choice = "auto"


class MarkdownSettings(_Group):
    """How answers are drawn.

    :param code_block_indent: what stands before each line of code.
    :param mermaid: when diagrams are drawn.
    """

    code_block_indent: str = "  "
    mermaid: Literal["streaming", "final", "off"] = "streaming"


class ModelSources(_Group):
    """Where ``pi models refresh`` reads about models; ``null`` leaves a source out.

    :param models_dev: address of a catalog in the form of models.dev.
    :param openrouter: address of a list of models in the form of OpenRouter.
    """

    models_dev: str | None = "https://models.dev/api.json"
    openrouter: str | None = "https://openrouter.ai/api/v1/models"


class Settings(_Group):
    """All settings.

    :param default_provider: provider of the model that is used when none is named.
    :param default_model: id of that model.
    :param default_thinking_level: thinking level when none is named.
    :param model_thinking_levels: thinking levels of single models, by ``provider/id``.
    :param thinking_budgets: tokens of thinking by level, for models that take a number.
    :param enabled_models: patterns of the models that are offered; all without any.
    :param provider_order: providers in the order in which one with a key is chosen.
    :param model_sources: where ``pi models refresh`` reads about models.
    :param offline: make no request but those to models.
    :param transport: how answers are streamed, where a provider has several ways.
    :param http_proxy: address of a proxy for all requests.
    :param http_idle_timeout_ms: milliseconds without any byte after which a request fails; 0 or ``disabled`` is never.
    :param retry: how a failed answer is asked for again.
    :param compaction: when a long session is summarized, and what of it is kept.
    :param branch_summary: summaries of a branch that is left.
    :param steering_mode: how many waiting messages reach a run at once.
    :param follow_up_mode: how many waiting messages start the next run at once.
    :param images: images in messages.
    :param session_dir: folder of the sessions; relative to the folder that the agent works in.
    :param default_project_trust: whether projects are trusted that nobody decided about.
    :param default_tools: names of tools; with ``+`` or ``-`` before each, changes of the usual ones.
    :param shell_path: program that runs commands.
    :param shell_command_prefix: what stands before each command.
    :param plugins: options of plugins, by plugin name.
    :param blocked_plugins: plugins or distributions that are left out.
    :param plugin_files: plugin files, or folders with an ``__init__.py``.
    :param skills: files, folders and patterns of skills.
    :param prompts: files, folders and patterns of prompt templates.
    :param themes: files, folders and patterns of themes.
    :param enable_skill_commands: offer each skill as ``/skill:name``.
    :param theme: name of the colors; ``light/dark`` names one for each background.
    :param quiet_startup: say nothing at the start.
    :param hide_thinking_block: do not show what the model thinks.
    :param show_cache_miss_notices: tell when a prompt was not found in the provider's cache.
    :param external_editor: command that edits a prompt; ``$VISUAL`` or ``$EDITOR`` by default.
    :param double_escape_action: what pressing Escape twice does.
    :param tree_filter_mode: what the tree of a session shows.
    :param editor_padding_x: columns beside the prompt.
    :param output_pad: columns beside the output.
    :param autocomplete_max_visible: most lines of a list of completions.
    :param show_hardware_cursor: show the terminal's own cursor.
    :param terminal: what the terminal can do.
    :param markdown: how answers are drawn.
    """

    default_provider: str | None = None
    default_model: str | None = None
    default_thinking_level: ThinkingLevel = "medium"
    model_thinking_levels: dict[str, ThinkingLevel] = {}
    thinking_budgets: dict[Literal["minimal", "low", "medium", "high"], Count] = {}
    enabled_models: Words | None = None
    provider_order: Words = ()
    model_sources: ModelSources = _DEFAULTS
    offline: bool = False
    transport: Literal["auto", "sse", "websocket", "websocket-cached"] = "auto"
    http_proxy: Annotated[str | None, Field(repr=False)] = None
    http_idle_timeout_ms: Count | Literal["disabled"] = 300_000
    retry: RetrySettings = _DEFAULTS
    compaction: CompactionSettings = _DEFAULTS
    branch_summary: BranchSummarySettings = _DEFAULTS
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    images: ImageSettings = _DEFAULTS
    session_dir: str | None = None
    default_project_trust: Literal["ask", "always", "never"] = "ask"
    default_tools: Words | None = None
    shell_path: str | None = None
    shell_command_prefix: str | None = None
    plugins: Annotated[dict[str, dict[str, Any]], Field(repr=False)] = {}
    blocked_plugins: Words = ()
    plugin_files: Words = ()
    skills: Words = ()
    prompts: Words = ()
    themes: Words = ()
    enable_skill_commands: bool = True
    theme: str = "system"
    quiet_startup: bool = False
    hide_thinking_block: bool = False
    show_cache_miss_notices: bool = False
    external_editor: str | None = None
    double_escape_action: Literal["tree", "fork", "none"] = "tree"
    tree_filter_mode: Literal["default", "no-tools", "user-only", "labeled-only", "all"] = "default"
    editor_padding_x: Count = 0
    output_pad: Count = 1
    autocomplete_max_visible: Positive = 5
    show_hardware_cursor: bool = False
    terminal: TerminalSettings = _DEFAULTS
    markdown: MarkdownSettings = _DEFAULTS


GLOBAL_ONLY: Final = frozenset({"defaultProjectTrust", "httpProxy"})
"""Keys that a project's settings cannot set."""

ADDED_UP: Final = frozenset({"pluginFiles", "skills", "prompts", "themes"})
"""Lists of files in which a project's entries come before the user's, rather than in place of them."""

ELSEWHERE: Final = frozenset(
    {
        "cacheWarming",
        "changelog",
        "codemode",
        "collapseChangelog",
        "deviceId",
        "enableAnalytics",
        "enableInstallTelemetry",
        "extensionChangelogVersions",
        "extensions",
        "fullscreenCopyOnSelect",
        "fullscreenExitOutput",
        "fullscreenScrollbar",
        "fullscreenWheelScrollLines",
        "lastChangelogVersion",
        "npmCommand",
        "packages",
        "selfUpdateCommand",
        "sessionShareDestination",
        "trackingId",
        "tuiMode",
        "warnings",
        "websocketConnectTimeoutMs",
    }
)
"""Keys of the TypeScript original that have no meaning here; a file that both read may hold them."""

__all__ = [
    "ADDED_UP",
    "ELSEWHERE",
    "GLOBAL_ONLY",
    "BranchSummarySettings",
    "CompactionLimits",
    "CompactionSettings",
    "ImageSettings",
    "MarkdownSettings",
    "ModelSources",
    "ProviderRetrySettings",
    "RetrySettings",
    "Settings",
    "TerminalSettings",
]
