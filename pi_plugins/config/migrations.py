"""Keys of earlier versions, read as what they are now."""

from __future__ import annotations

from typing import Any

from .json_text import JsonPath


def migrate(data: dict[str, Any]) -> dict[JsonPath, JsonPath]:
    """Move the values of old keys of a settings file to where they belong now; a new key that is there wins.

    :param data: is changed.
    :returns: the old path of every value that was moved, by its new one.
    """
    moved: dict[JsonPath, JsonPath] = {}

    def move(source: JsonPath, target: str, value: Any, into: dict[str, Any], inside: JsonPath = ()) -> None:
        if target not in into:
            into[target] = value
            moved[(*inside, target)] = source

    if "queueMode" in data:
        move(("queueMode",), "steeringMode", data.pop("queueMode"), data)
    if isinstance(data.get("websockets"), bool):
        move(("websockets",), "transport", "websocket" if data.pop("websockets") else "sse", data)
    skills = data.get("skills")
    if isinstance(skills, dict):
        del data["skills"]
        if "enableSkillCommands" in skills:
            move(("skills", "enableSkillCommands"), "enableSkillCommands", skills["enableSkillCommands"], data)
        if "customDirectories" in skills:
            move(("skills", "customDirectories"), "skills", skills["customDirectories"], data)
    retry = data.get("retry")
    if isinstance(retry, dict) and "maxDelayMs" in retry:
        provider = retry.setdefault("provider", {})
        if isinstance(provider, dict):
            source: JsonPath = ("retry", "maxDelayMs")
            move(source, "maxRetryDelayMs", retry.pop("maxDelayMs"), provider, ("retry", "provider"))
    return moved


__all__ = ["migrate"]
