"""Stored credentials: ``auth.json`` in the agent's folder, which only its owner can read.

What is stored is a template (see :mod:`pi_plugins.models.templates`), a token of an OAuth login that another program
made, or a note that the key is in the keyring of the system. Nothing here shows a secret in its ``repr``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pi_core import ConfigError
from pi_plugins.config.json_file import PRIVATE, LockedJson

from .templates import Template, UnresolvedError

AUTH_FILE: Final = "auth.json"
CredentialType: TypeAlias = Literal["api_key", "oauth", "keyring", "invalid"]


@dataclass(frozen=True, slots=True)
class ApiKeyCredential:
    """A key as it is written, and environment variables that count for its provider only.

    :param env: they win over those of the process, in the key itself, in headers and in requests.
    """

    key: Template
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    type: Literal["api_key"] = "api_key"


@dataclass(frozen=True, slots=True)
class OAuthCredential:
    """A token of an OAuth login. It is used until it expires and never renewed, since no login is made here.

    :param expires: Unix time in milliseconds; ``None`` when the login did not say.
    """

    access: str = field(repr=False)
    expires: int | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    type: Literal["oauth"] = "oauth"

    @property
    def expired(self) -> bool:
        """Whether the token is no longer good."""
        return self.expires is not None and self.expires <= time.time() * 1000

    def token(self, provider: str) -> str:
        """Return the token.

        :raises UnresolvedError: it has expired.
        """
        if self.expired:
            at = datetime.fromtimestamp(max(self.expires or 0, 0) / 1000, UTC)
            raise UnresolvedError(
                f"the token of an OAuth login expired at {at:%Y-%m-%d %H:%M} UTC and is not renewed here: log in again "
                f"with the program that stored it, or store a key with: pi auth login {provider}"
            )
        return self.access


@dataclass(frozen=True, slots=True)
class KeyringCredential:
    """A note that the key is in the keyring of the system."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    type: Literal["keyring"] = "keyring"


@dataclass(frozen=True, slots=True)
class InvalidCredential:
    """An entry that cannot be used. It still owns its provider: nothing else is tried in its place.

    :param reason: what is wrong with it.
    """

    reason: str
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    type: Literal["invalid"] = "invalid"


Credential: TypeAlias = ApiKeyCredential | OAuthCredential | KeyringCredential | InvalidCredential


class CredentialStore:
    """The credentials in a file.

    When the file cannot be read any more, the ones that were read last stay; it is never written over then.

    :param path: the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LockedJson(path, mode=PRIVATE)
        self._last: Mapping[str, Any] = {}
        self.problem: str | None = None
        """Why the file could not be read the last time it was looked at."""

    def list(self) -> list[tuple[str, CredentialType]]:
        """Return provider and type of what is stored, by provider; no value is looked at."""
        return [(provider, _parse(entry).type) for provider, entry in sorted(self._read().items())]

    def get(self, provider: str) -> Credential | None:
        """Return what is stored for a provider, ``None`` if nothing is."""
        entry = self._read().get(provider)
        return None if entry is None else _parse(entry)

    def set_key(self, provider: str, key: str, *, env: Mapping[str, str] | None = None) -> None:
        """Store a key, in place of what was there.

        :param key: a template; a text that is to be taken as it is goes through :func:`literal` first.
        :param env: environment variables for this provider only; those that were there stay by default.
        :raises ConfigError: the file cannot be read or written.
        """
        self._put(provider, {"type": "api_key", "key": key}, env)

    def set_keyring(self, provider: str, *, env: Mapping[str, str] | None = None) -> None:
        """Store the note that the key is in the keyring, in place of what was there.

        :param env: environment variables for this provider only; those that were there stay by default.
        :raises ConfigError: the file cannot be read or written.
        """
        self._put(provider, {"type": "keyring"}, env)

    def remove(self, provider: str) -> CredentialType | None:
        """Forget a provider and return the type of what was stored, ``None`` if nothing was.

        :raises ConfigError: the file cannot be read or written.
        """

        def change(stored: dict[str, Any]) -> CredentialType | None:
            return _parse(stored.pop(provider)).type if provider in stored else None

        return self._file.update(change) if self.path.exists() else None

    def _put(self, provider: str, entry: dict[str, Any], env: Mapping[str, str] | None) -> None:
        def change(stored: dict[str, Any]) -> None:
            kept = _parse(stored[provider]).env if env is None and provider in stored else env
            stored[provider] = entry | ({"env": dict(kept)} if kept else {})

        self._file.update(change)

    def _read(self) -> Mapping[str, Any]:
        try:
            self._last = self._file.read()
            self.problem = None
        except ConfigError as error:
            self.problem = str(error)
        return self._last


def literal(text: str) -> str:
    """Return the template of a text that is to be taken as it is."""
    escaped = text.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped


def key_fault(key: str) -> str | None:
    """Return why a text cannot be a key; ``None`` when it can be one."""
    if not key:
        return "the key is empty"
    if not key.isascii() or not key.isprintable() or " " in key:
        return "the key has a space or a character that no key has. Was more copied than the key?"
    return None


def _parse(entry: object) -> Credential:
    if not isinstance(entry, dict):
        return InvalidCredential('expected an object with a "type"')
    env = entry.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        return InvalidCredential('"env" has to map names to texts')
    kind = entry.get("type")
    if kind == "api_key":
        key = entry.get("key")
        if isinstance(key, str) and key.strip():
            return ApiKeyCredential(Template(key), env)
        return InvalidCredential('a credential of type "api_key" needs a "key"', env)
    if kind == "oauth":
        access, expires = entry.get("access"), entry.get("expires")
        if isinstance(access, str) and access.strip() and (expires is None or isinstance(expires, int | float)):
            return OAuthCredential(access, None if expires is None else int(expires), env)
        return InvalidCredential('a credential of type "oauth" needs "access", and "expires" in milliseconds', env)
    if kind == "keyring":
        return KeyringCredential(env)
    return InvalidCredential('"type" has to be "api_key", "oauth" or "keyring"', env)
