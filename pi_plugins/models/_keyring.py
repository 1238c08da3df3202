"""Keys in the keyring of the system, through the package ``keyring``, which is an extra."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Final

from pi_core import ConfigError

SERVICE: Final = "pi-agent-framework"
"""The name under which the keyring keeps the keys; the user name is the provider."""


def store(provider: str, key: str) -> None:
    """Store a key.

    :raises ConfigError: there is no keyring, or it refused.
    """
    package = _package()
    try:
        package.set_password(SERVICE, provider, key)
    except package.errors.KeyringError as error:
        raise _refused(error) from None


def read(provider: str) -> str | None:
    """Return a key, ``None`` if there is none.

    :raises ConfigError: there is no keyring, or it refused.
    """
    package = _package()
    try:
        found = package.get_password(SERVICE, provider)
    except package.errors.KeyringError as error:
        raise _refused(error) from None
    return str(found) if found else None


def forget(provider: str) -> None:
    """Remove a key, if there is one.

    :raises ConfigError: there is no keyring, or it refused.
    """
    package = _package()
    try:
        if package.get_password(SERVICE, provider) is not None:
            package.delete_password(SERVICE, provider)
    except package.errors.KeyringError as error:
        raise _refused(error) from None


def _package() -> ModuleType:
    try:
        importlib.import_module("keyring.errors")
        return importlib.import_module("keyring")
    except ImportError:
        raise ConfigError("the package keyring is not installed: pip install 'pi-agent-framework[keyring]'") from None


def _refused(error: Exception) -> ConfigError:
    return ConfigError(f"the keyring of the system cannot be used: {type(error).__name__}: {error}")
