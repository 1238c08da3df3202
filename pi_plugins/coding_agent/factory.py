"""From options to a session: configuration, trust, plugins, model, transcript, tools and prompt, in this order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_core import Build, ConfigError, Model, SelectionContext, StreamOptions, ThinkingLevel
from pi_plugins.config import current_dir

from .options import SessionOptions
from .prompt_parts import load_prompt_parts
from .session import AgentSession

if TYPE_CHECKING:
    from pi_plugins.config import LoadedSettings, Settings
    from pi_plugins.config.trust import Ask
    from pi_plugins.models.runtime import ModelRuntime
    from pi_plugins.sessions import Session


@dataclass(slots=True)
class Prepared:
    """What was found before there is a session: configuration, and the plugins it leads to.

    :param loaded: the settings, and where they came from.
    :param notices: one sentence for each thing that was chosen without being named.
    :param warnings: one sentence for each thing that is wrong and was passed over.
    """

    options: SessionOptions
    build: Build
    loaded: LoadedSettings
    trusted: bool
    cwd: Path
    agent_dir: Path
    environ: Mapping[str, str]
    notices: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.loaded.settings


async def prepare_session(
    options: SessionOptions | None = None, build: Build | None = None, *, ask_trust: Ask | None = None
) -> Prepared:
    """Read the configuration, decide about trust, and load the plugins of user and project.

    :param build: the plugins to start from; what is installed by default.
    :param ask_trust: asks the user when nothing else decides; without it an unknown project is not trusted.
    :raises ConfigError: the folder cannot be used.
    """
    from pi_plugins.config import agent_dir, decide_trust, load_settings, plugin_files

    options = options or SessionOptions()
    environ = os.environ if options.environ is None else options.environ
    cwd = _folder(options.cwd)
    home = options.agent_dir or agent_dir(environ)
    build = build or Build.from_environment(environ=environ)
    loaded = load_settings(cwd, environ=environ, overrides=options.overrides, agent_dir=home)
    trust = await decide_trust(
        cwd,
        environ=environ,
        agent_dir=home,
        settings=loaded.settings,
        hooks=build.hooks,
        flag=options.trust,
        ask=ask_trust,
    )
    loaded = loaded.reload(trusted=trust.trusted)
    settings = loaded.settings
    prepared = Prepared(options, build, loaded, trust.trusted, cwd, home, environ)
    prepared.warnings += loaded.warnings
    if trust.notice:
        prepared.notices.append(trust.notice)
    files = list(options.plugin_files)
    if build.settings is None:
        if not options.no_plugin_files:
            files += plugin_files(cwd, environ=environ, agent_dir=home, trusted=trust.trusted, settings=settings)
        given, blocked = _plugin_options(cwd, settings), settings.blocked_plugins
        if files or given or blocked:
            prepared.build = build.extended(files=files, options=given, block=blocked)
    elif files:
        prepared.build = build.extended(files=files)
    return prepared


def _plugin_options(cwd: Path, settings: Settings) -> dict[str, dict[str, Any]]:
    """What the settings say to plugins, by plugin name."""
    shared = {
        "cwd": None if cwd == Path.cwd() else str(cwd),
        "shell": settings.shell_path,
        "command_prefix": settings.shell_command_prefix,
        "resize_images": None if settings.images.auto_resize else False,
    }
    options = dict(settings.plugins)
    tools = {name: value for name, value in shared.items() if value is not None} | options.get("tools", {})
    return options | ({"tools": tools} if tools else {})


async def create_session(
    options: SessionOptions | None = None,
    build: Build | None = None,
    *,
    prepared: Prepared | None = None,
    callables: dict[str, Callable[..., Any]] | None = None,
) -> AgentSession:
    """Make a session as ``pi`` does: with the user's settings, credentials, plugins and resources.

    :param prepared: what :func:`prepare_session` found; it is called when this is not given.
    :param callables: implementations of hooks by name, called before those of plugins.
    :raises ConfigError: no model can be used, a tool or session does not exist, or another process writes the session.
    """
    from pi_plugins.models.levels import clamp_level
    from pi_plugins.models.runtime import ModelRuntime
    from pi_plugins.models.shared import share_runtime

    prepared = prepared or await prepare_session(options, build)
    options, settings = prepared.options, prepared.settings
    models = ModelRuntime(
        agent_dir=prepared.agent_dir,
        cwd=prepared.cwd,
        environ=prepared.environ,
        settings=settings,
        trusted=prepared.trusted,
        registry=prepared.build.registry,
    )
    share_runtime(models)
    prepared.warnings += models.problems()
    folder, store, reason = open_store(prepared)
    try:
        model, level, scoped = await _choose_model(prepared, models, store)
        parts = await load_prompt_parts(prepared)
        prepared.warnings += parts.resources.warnings
        session = AgentSession(
            build=prepared.build,
            store=store,
            folder=folder,
            models=models,
            settings=settings,
            resources=parts.resources,
            model=model,
            thinking_level=clamp_level(model, level),
            tools=parts.tools,
            cwd=prepared.cwd,
            system_prompt=parts.system_prompt,
            append_system_prompt=parts.append,
            scoped_models=scoped,
            source=options.source,
            trusted=prepared.trusted,
            options=_stream_options(options.stream_options or StreamOptions(), settings, store.id),
            callables={**_given_key(options, model.provider), **(callables or {})},
        )
        if options.name is not None:
            session.set_name(options.name)
        await session.start(reason)
    except BaseException:
        store.close()
        raise
    return session


def _given_key(options: SessionOptions, provider: str) -> dict[str, Callable[..., Any]]:
    """What gives the key of this run, before any plugin is asked for one."""
    key, owner = options.api_key, provider

    def get_api_key(provider: str) -> str | None:
        return key if provider == owner else None

    return {} if key is None else {"get_api_key": get_api_key}


def _stream_options(given: StreamOptions, settings: Settings, session_id: str) -> StreamOptions:
    """What every request is made with: what is asked for, and the settings where nothing is."""
    retry = settings.retry.provider
    idle = settings.http_idle_timeout_ms
    timeout = retry.timeout_ms or (idle if isinstance(idle, int) else 0)
    wanted: dict[str, Any] = {
        "session_id": session_id,
        "transport": settings.transport,
        "timeout_ms": timeout or None,
        "max_retries": retry.max_retries,
        "max_retry_delay_ms": retry.max_retry_delay_ms,
        "thinking_budgets": settings.thinking_budgets or None,
    }
    return given.replace(**{name: value for name, value in wanted.items() if getattr(given, name) is None})


async def find_model(build: Build, models: ModelRuntime, provider: str, model_id: str) -> Model | None:
    """Return the model of a provider and an id, when it can be used; those that only a plugin knows too."""
    model = models.model(provider, model_id)
    if model is not None:
        return model if models.has_auth(provider) else None
    environ = {**models.environ, "PI_CODING_AGENT_DIR": str(models.agent_dir)}
    try:
        model = await build.resolve_model(f"{provider}/{model_id}", SelectionContext(environ=environ))
    except ConfigError:
        return None
    return model if (model.provider, model.id) == (provider, model_id) else None


def _folder(cwd: Path | None) -> Path:
    if cwd is None:
        return current_dir()
    try:
        return cwd.resolve(strict=True)
    except OSError as error:
        raise ConfigError(f"The directory {cwd} cannot be used: {error.strerror}. Change to another one") from None


def open_store(prepared: Prepared) -> tuple[Path | None, Session, str]:
    """Open or make the session that the options name.

    :returns: the folder of all sessions, ``None`` when none is kept; the session; and why it begins: ``startup``,
        ``resume`` or ``fork``.
    :raises ConfigError: it does not exist, is no session, another process writes it, or options exclude each other.
    """
    from pi_plugins.sessions import Session, find_session, latest_session, sessions_dir

    options, cwd = prepared.options, prepared.cwd
    _check_session_options(options)
    prepared.notices += _passed_over(options)
    types = dict(prepared.build.registry.message_types.items())
    if options.in_memory:
        return None, Session.in_memory(cwd, id=options.session_id, types=types), "startup"
    folder = sessions_dir(
        cwd, prepared.settings, prepared.environ, agent_dir=prepared.agent_dir, directory=options.session_dir
    )
    if options.fork is not None:
        source = Session.open(find_session(options.fork, cwd, folder), types=types, read_only=True)
        prepared.warnings += [f"{source.path}: {problem}" for problem in source.problems]
        forked = Session.fork(source, cwd, directory=folder, id=options.session_id, types=types)
        return folder, forked, "fork"
    path = None
    if options.session_id is not None:
        path = find_session(options.session_id, cwd, folder, exact=True, missing_ok=True)
    elif options.session is not None:
        path = find_session(options.session, cwd, folder)
    elif options.continue_last:
        path = latest_session(cwd, folder)
        if path is None:
            prepared.notices.append("There is no session in this folder yet: a new one begins")
    if path is None:
        return folder, Session.create(cwd, directory=folder, id=options.session_id, types=types), "startup"
    store = Session.open(path, types=types)
    prepared.warnings += [f"{path}: {problem}" for problem in store.problems]
    if store.cwd != str(cwd):
        prepared.notices.append(f"The session was begun in {store.cwd}, and goes on in {cwd}")
    return folder, store, "resume"


def _passed_over(options: SessionOptions) -> list[str]:
    """One sentence for each option that another one leaves without effect."""
    said = []
    if options.in_memory and (options.session or options.continue_last):
        said.append("--no-session: no session is gone on with")
    elif options.session and options.continue_last:
        said.append("--session: --continue has no effect")
    return said


def _check_session_options(options: SessionOptions) -> None:
    chosen = [
        name
        for name, given in (
            ("--session", options.session),
            ("--continue", options.continue_last),
            ("--no-session", options.in_memory),
        )
        if given
    ]
    for name, given in (("--fork", options.fork), ("--session-id", options.session_id)):
        excluded = [other for other in chosen if name == "--fork" or other != "--no-session"]
        if given and excluded:
            raise ConfigError(f"{name} cannot be used with {' and '.join(excluded)}")


async def _choose_model(
    prepared: Prepared, models: ModelRuntime, store: Session
) -> tuple[Model, ThinkingLevel, list[tuple[Model, ThinkingLevel | None]]]:
    options, settings = prepared.options, prepared.settings
    patterns = list(options.models) or list(settings.enabled_models or ())
    scoped, warnings = models.scope(patterns) if patterns else ([], [])
    prepared.warnings += warnings
    if options.api_key is not None and options.model is None and not options.models and not options.base_url:
        raise ConfigError("--api-key needs a model: name one with --model, or several with --models")
    saved = store.projection()
    level: ThinkingLevel | None = options.thinking
    model: Model | None = None
    asked = options.model or options.base_url or options.provider
    if not asked and saved.model is not None:
        model = await find_model(prepared.build, models, *saved.model)
        if model is None:
            name = "/".join(saved.model)
            prepared.warnings.append(f"The session's model {name} cannot be used here: another one takes its place")
        else:
            level = level or saved.thinking_level or settings.default_thinking_level
    pinned = prepared.build.settings
    if not asked and model is None and scoped and (pinned is None or pinned.model is None):
        model, scoped_level = scoped[0]
        level = level or scoped_level
    if model is None:
        selection = SelectionContext(
            environ={**prepared.environ, "PI_CODING_AGENT_DIR": str(prepared.agent_dir)},
            base_url=options.base_url,
            api=options.api,
            provider=options.provider,
            api_key=options.api_key,
            thinking_level=options.thinking,
        )
        try:
            model = await prepared.build.resolve_model(options.model, selection)
        finally:
            prepared.notices += selection.notices
        level = level or selection.thinking_level or (None if pinned is None else pinned.thinking)
    if options.api_key is not None:
        models.set_runtime_key(model.provider, options.api_key)
    named = settings.model_thinking_levels.get(f"{model.provider}/{model.id}")
    return model, level or named or settings.default_thinking_level, scoped


__all__ = ["Prepared", "create_session", "find_model", "open_store", "prepare_session"]
