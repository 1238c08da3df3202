"""Keys in the keyring of the system, through the package ``keyring``, which is an extra."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from pi_core import ConfigError
from pi_plugins.config.secrets import MASK

SERVICE: Final = "pi-agent-framework"
"""The name under which the keyring keeps the keys; the user name is the provider."""


def store(provider: str, key: str) -> None:
    """Store a key.

    :raises ConfigError: there is no keyring, or it refused.
    """
    with _refusals(key) as package:
        package.set_password(SERVICE, provider, key)


def read(provider: str) -> str | None:
    """Return a key, ``None`` if there is none.

    :raises ConfigError: there is no keyring, or it refused.
    """
    with _refusals() as package:
        found = package.get_password(SERVICE, provider)
    return str(found) if found else None


def forget(provider: str) -> None:
    """Remove a key, if there is one.

    :raises ConfigError: there is no keyring, or it refused.
    """
    with _refusals() as package:
        if package.get_password(SERVICE, provider) is not None:
            package.delete_password(SERVICE, provider)


@contextmanager
def _refusals(secret: str = "") -> Iterator[ModuleType]:
    """Give the package, and turn what it raises, or the part of the system it talks to, into one error."""
    try:
        yield importlib.import_module("keyring")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "keyring":
            text = "the package keyring is not installed: pip install 'pi-agent-framework[keyring]'"
        else:
            said = str(error).replace(secret, MASK) if secret else str(error)
            text = f"the keyring of the system cannot be used: {type(error).__name__}: {said}"
        raise ConfigError(text) from None
