"""The commands of the rpc mode, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pi_core import ImageContent, ThinkingLevel
from pi_plugins.coding_agent import AgentSession
from pi_plugins.coding_agent.events import compaction_json
from pi_plugins.coding_agent.inputs import Delivery
from pi_plugins.prompt import commands as resource_commands

Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None] | None]
Given: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Callable[[AgentSession, Given, Send], Awaitable[Any]]


class BadCommandError(ValueError):
    """A command lacks a field, or one has a value that it cannot have."""


# --- fields -------------------------------------------------------------------------------------------------------


def _text(given: Given, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise BadCommandError(f"{given.get('type')}: '{name}' is to be a text, got {value!r}")
    return value


def _optional_text(given: Given, name: str) -> str | None:
    return None if given.get(name) is None else _text(given, name)


def _path(session: AgentSession, text: str) -> Path:
    return session.cwd / Path(text).expanduser()


def _flag(given: Given, name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise BadCommandError(f"{given.get('type')}: '{name}' is to be true or false, got {value!r}")
    return value


def _one_of(given: Given, name: str, choices: tuple[str, ...]) -> str:
    value = _text(given, name)
    if value not in choices:
        raise BadCommandError(f"{given.get('type')}: '{name}' is one of {', '.join(choices)}, got {value!r}")
    return value


def _images(given: Given) -> list[ImageContent]:
    try:
        return [ImageContent.model_validate(image) for image in given.get("images") or ()]
    except (TypeError, ValueError):
        raise BadCommandError(
            f"{given.get('type')}: 'images' is a list of objects with 'data' and 'mimeType'"
        ) from None


# --- prompts ------------------------------------------------------------------------------------------------------


async def _prompt(session: AgentSession, given: Given, send: Send) -> Any:
    delivery = None
    if given.get("streamingBehavior") is not None:
        delivery = cast("Delivery", _one_of(given, "streamingBehavior", get_args(Delivery)))
    return {"disposition": await session.submit(_text(given, "message"), _images(given), delivery=delivery)}


def _queue(delivery: Delivery) -> Run:
    async def run(session: AgentSession, given: Given, send: Send) -> Any:
        return {"disposition": await session.enqueue(_text(given, "message"), _images(given), delivery)}

    return run


async def _abort(session: AgentSession, given: Given, send: Send) -> None:
    session.abort()
    await session.runs.aborted_run()


async def _clear_queue(session: AgentSession, given: Given, send: Send) -> Any:
    steering, follow_up = session.clear_queue()
    return {"steering": list(steering), "followUp": list(follow_up)}


# --- state --------------------------------------------------------------------------------------------------------


async def _state(session: AgentSession, given: Given, send: Send) -> Any:
    store = session.store
    data: dict[str, Any] = {
        "model": session.model.to_json(),
        "thinkingLevel": session.thinking_level,
        "isStreaming": session.runs.active,
        "isCompacting": session.compactor.active,
        "steeringMode": session.steering.mode,
        "followUpMode": session.follow_ups.mode,
        "sessionId": store.id,
        "autoCompactionEnabled": session.compactor.enabled,
        "messageCount": len(session.agent.state.messages),
        "pendingMessageCount": len(session.steering) + len(session.follow_ups),
    }
    if store.path is not None:
        data["sessionFile"] = str(store.path)
    if store.name is not None:
        data["sessionName"] = store.name
    return data


async def _messages(session: AgentSession, given: Given, send: Send) -> Any:
    return {"messages": [message.to_json() for message in session.agent.state.messages]}


async def _stats(session: AgentSession, given: Given, send: Send) -> Any:
    store = session.store
    data = {"sessionId": store.id, **session.stats().to_json()}
    if store.path is not None:
        data["sessionFile"] = str(store.path)
    usage = session.context_usage()
    return data if usage is None else {**data, "contextUsage": usage}


async def _last_text(session: AgentSession, given: Given, send: Send) -> Any:
    return {"text": session.answer_text()}


async def _commands(session: AgentSession, given: Given, send: Send) -> Any:
    found = [
        {
            "name": command.name,
            "description": command.description,
            "source": "extension",
            "sourceInfo": {"path": owner.plugin, "source": owner.distribution or "file"},
        }
        for owner, command in session.commands.items()
    ]
    found += [
        {
            "name": command.name,
            "description": command.description,
            "source": command.source,
            "sourceInfo": {"path": str(command.path)},
        }
        for command in resource_commands(session.resources)
    ]
    return {"commands": found}


async def _set_name(session: AgentSession, given: Given, send: Send) -> None:
    session.set_name(_text(given, "name"))


# --- model --------------------------------------------------------------------------------------------------------


async def _set_model(session: AgentSession, given: Given, send: Send) -> Any:
    provider, identifier = _text(given, "provider"), _text(given, "modelId")
    model = await session.find_model(provider, identifier)
    if model is None:
        raise BadCommandError(f"Model not found: {provider}/{identifier}")
    await session.choice.set_model(model)
    return model.to_json()


async def _cycle_model(session: AgentSession, given: Given, send: Send) -> Any:
    cycled = await session.choice.cycle_model()
    if cycled is None:
        return None
    model, level = cycled
    return {"model": model.to_json(), "thinkingLevel": level, "isScoped": bool(session.choice.scoped)}


async def _available_models(session: AgentSession, given: Given, send: Send) -> Any:
    return {"models": [model.to_json() for model in session.models.available()]}


async def _set_level(session: AgentSession, given: Given, send: Send) -> None:
    await session.choice.set_level(cast("ThinkingLevel", _one_of(given, "level", get_args(ThinkingLevel))))


async def _cycle_level(session: AgentSession, given: Given, send: Send) -> Any:
    level = await session.choice.cycle_level()
    return None if level is None else {"level": level}


async def _levels(session: AgentSession, given: Given, send: Send) -> Any:
    return {"levels": session.choice.levels}


def _mode_of(queue: Literal["steering", "follow_ups"]) -> Run:
    async def run(session: AgentSession, given: Given, send: Send) -> None:
        mode = _one_of(given, "mode", ("all", "one-at-a-time"))
        getattr(session, queue).mode = mode

    return run


# --- compaction, attempts, commands of the user -------------------------------------------------------------------


async def _compact(session: AgentSession, given: Given, send: Send) -> Any:
    return compaction_json(await session.compactor.manually(_optional_text(given, "customInstructions")))


async def _set_compaction(session: AgentSession, given: Given, send: Send) -> None:
    session.compactor.enabled = _flag(given, "enabled")


async def _set_retry(session: AgentSession, given: Given, send: Send) -> None:
    session.runs.retrying = _flag(given, "enabled")


async def _abort_retry(session: AgentSession, given: Given, send: Send) -> None:
    session.runs.abort_retry()


async def _bash(session: AgentSession, given: Given, send: Send) -> Any:
    head = {"type": "bash_execution_update"} | ({"id": given["id"]} if given.get("id") is not None else {})
    result = await session.bash.run(
        _text(given, "command"),
        exclude_from_context=_flag(given, "excludeFromContext"),
        on_update=lambda delta: send({**head, "delta": delta}),
    )
    data: dict[str, Any] = {"output": result.output}
    if result.exit_code is not None:
        data["exitCode"] = result.exit_code
    data |= {"cancelled": result.cancelled, "truncated": result.truncated}
    if result.full_output_path is not None:
        data["fullOutputPath"] = result.full_output_path
    return data


async def _abort_bash(session: AgentSession, given: Given, send: Send) -> None:
    session.bash.abort()


# --- sessions -----------------------------------------------------------------------------------------------------


async def _new_session(session: AgentSession, given: Given, send: Send) -> Any:
    await session.moves.new(parent=_optional_text(given, "parentSession"))
    return {"cancelled": False}


async def _switch(session: AgentSession, given: Given, send: Send) -> Any:
    await session.moves.open(_path(session, _text(given, "sessionPath")))
    return {"cancelled": False}


async def _fork(session: AgentSession, given: Given, send: Send) -> Any:
    return {"text": await session.moves.fork(_text(given, "entryId")), "cancelled": False}


async def _clone(session: AgentSession, given: Given, send: Send) -> Any:
    leaf = session.store.leaf_id
    if leaf is None or not session.agent.state.messages:
        raise BadCommandError("Nothing has been said yet: there is nothing to clone")
    await session.moves.fork(leaf, "at")
    return {"cancelled": False}


async def _fork_messages(session: AgentSession, given: Given, send: Send) -> Any:
    return {"messages": [{"entryId": entry, "text": text} for entry, text in session.moves.fork_points()]}


async def _entries(session: AgentSession, given: Given, send: Send) -> Any:
    entries = list(session.store.entries)
    since = _optional_text(given, "since")
    if since is not None:
        position = next((place for place, entry in enumerate(entries) if entry.id == since), None)
        if position is None:
            raise BadCommandError(f"There is no entry '{since}' in this session")
        entries = entries[position + 1 :]
    return {"entries": [entry.to_json() for entry in entries], "leafId": session.store.leaf_id}


async def _tree(session: AgentSession, given: Given, send: Send) -> Any:
    return {"tree": [node.to_json() for node in session.store.tree()], "leafId": session.store.leaf_id}


async def _export(session: AgentSession, given: Given, send: Send) -> Any:
    from pi_plugins.sessions import export_session

    if session.store.path is None:
        raise BadCommandError("The session is kept in memory: there is no file to export")
    if not session.stats().total_messages:
        raise BadCommandError("Nothing has been said yet: there is nothing to export")
    target = _path(session, _optional_text(given, "outputPath") or ".")
    return {"path": str(await asyncio.to_thread(export_session, session.store.path, target))}


COMMANDS: Final[Mapping[str, Run]] = {
    "prompt": _prompt,
    "steer": _queue("steer"),
    "follow_up": _queue("followUp"),
    "abort": _abort,
    "clear_queue": _clear_queue,
    "new_session": _new_session,
    "get_state": _state,
    "get_messages": _messages,
    "set_model": _set_model,
    "cycle_model": _cycle_model,
    "get_available_models": _available_models,
    "set_thinking_level": _set_level,
    "cycle_thinking_level": _cycle_level,
    "get_available_thinking_levels": _levels,
    "set_steering_mode": _mode_of("steering"),
    "set_follow_up_mode": _mode_of("follow_ups"),
    "compact": _compact,
    "set_auto_compaction": _set_compaction,
    "set_auto_retry": _set_retry,
    "abort_retry": _abort_retry,
    "bash": _bash,
    "abort_bash": _abort_bash,
    "get_session_stats": _stats,
    "export_html": _export,
    "switch_session": _switch,
    "fork": _fork,
    "clone": _clone,
    "get_fork_messages": _fork_messages,
    "get_entries": _entries,
    "get_tree": _tree,
    "get_last_assistant_text": _last_text,
    "set_session_name": _set_name,
    "get_commands": _commands,
}
