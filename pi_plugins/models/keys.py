"""Which key a provider is asked with, where it comes from, and why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pi_core import ConfigError

from ._known import ambient_variables, key_variables
from .credentials import CredentialStore, InvalidCredential, KeyringCredential, OAuthCredential
from .templates import Template, UnresolvedError

SourceKind: TypeAlias = Literal["runtime", "stored", "models_json", "environment"]


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the key of a provider comes from.

    :param label: the same in words: a file, an environment variable.
    """

    kind: SourceKind
    label: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key, which its ``repr`` does not show."""

    value: str = field(repr=False)
    source: KeySource


@dataclass(frozen=True, slots=True)
class ConfiguredKey:
    """The key of a provider in ``models.json``.

    :param place: the file and the line.
    """

    template: Template
    place: str


class Keys:
    """Finds keys: one given for this process, else a stored one, else that of ``models.json``, else the environment's.

    The first of them that has something owns the provider, also when it fails: no other is tried then.

    :param store: the stored credentials.
    :param environ: the environment of the process.
    :param configured: gives the key of a provider in ``models.json``.
    """

    def __init__(
        self,
        store: CredentialStore,
        environ: Mapping[str, str],
        configured: Callable[[str], ConfiguredKey | None],
    ) -> None:
        self.store = store
        self._environ = environ
        self._configured = configured
        self._given: dict[str, Key] = {}

    def give(self, provider: str, key: str | None) -> None:
        """Use a key in this process, before all others; ``None`` takes it back."""
        if key is None:
            self._given.pop(provider, None)
        else:
            self._given[provider] = Key(key, KeySource("runtime", "a key given for this run"))

    def within(self, environ: Mapping[str, str]) -> Keys:
        """Return the same with another environment."""
        other = Keys(self.store, environ, self._configured)
        other._given = self._given
        return other

    def environ(self, provider: str) -> Mapping[str, str]:
        """Return the environment that counts for a provider: the process's own, under that of its credential."""
        own = self.own_environ(provider)
        return {**self._environ, **own} if own else self._environ

    def own_environ(self, provider: str) -> Mapping[str, str]:
        """Return the environment variables stored with the credential of a provider."""
        stored = self.store.get(provider)
        return {} if stored is None else stored.env

    def source(self, provider: str) -> KeySource | None:
        """Return where the key of a provider comes from, without asking for it; ``None`` when there is nothing."""
        if provider in self._given:
            return self._given[provider].source
        if self.store.get(provider) is not None:
            return KeySource("stored", str(self.store.path))
        configured = self._configured(provider)
        if configured is not None:
            return KeySource("models_json", configured.place)
        name = self._variable(provider)
        return None if name is None else KeySource("environment", name)

    def fault(self, provider: str) -> str | None:
        """Return why the key of a provider cannot be had, as far as that is known without running a command."""
        if provider in self._given:
            return None
        stored = self.store.get(provider)
        if isinstance(stored, InvalidCredential):
            return stored.reason
        try:
            if isinstance(stored, OAuthCredential):
                stored.token(provider)
            elif not isinstance(stored, KeyringCredential):
                template = self._template(provider)
                if template is not None and template.command is None:
                    template.expand(self.environ(provider))
        except UnresolvedError as error:
            return str(error)
        return None

    async def key(self, provider: str) -> Key | None:
        """Return the key of a provider, ``None`` when nothing is there to give one, or its API finds it by itself.

        The command of a stored key runs once in a process, the command of one in ``models.json`` every time.

        :raises UnresolvedError: what should give the key does not; says where it is, and why.
        """
        source = self.source(provider)
        if source is None:
            return None
        if source.kind == "runtime":
            return self._given[provider]
        try:
            if source.kind == "environment":
                if source.label not in key_variables(provider):
                    return None
                value = self._environ[source.label]
            elif source.kind == "stored":
                value = await self._stored(provider)
            else:
                value = await self._resolve(provider)
        except UnresolvedError as error:
            raise UnresolvedError(f"{source.label}: {error}") from None
        return Key(value.strip(), source)

    async def _stored(self, provider: str) -> str:
        stored = self.store.get(provider)
        if isinstance(stored, InvalidCredential):
            raise UnresolvedError(stored.reason)
        if isinstance(stored, OAuthCredential):
            return stored.token(provider)
        if isinstance(stored, KeyringCredential):
            import asyncio

            return await asyncio.to_thread(_from_keyring, provider)
        template = self._template(provider)
        if stored is None or template is None or template.command is None:
            return await self._resolve(provider)
        from ._once import ONCE

        what = (str(self.store.path), provider, template, tuple(sorted(stored.env.items())))
        return await ONCE.value(what, lambda: self._resolve(provider))

    async def _resolve(self, provider: str) -> str:
        template = self._template(provider)
        if template is None:
            raise UnresolvedError("the credential was removed meanwhile")
        return await template.resolve(self.environ(provider))

    def _template(self, provider: str) -> Template | None:
        """The template that owns a provider, ``None`` when something else does."""
        stored = self.store.get(provider)
        if stored is not None:
            return stored.key if stored.type == "api_key" else None
        configured = self._configured(provider)
        return None if configured is None else configured.template

    def _variable(self, provider: str) -> str | None:
        names = (*key_variables(provider), *ambient_variables(provider))
        return next((name for name in names if self._environ.get(name, "").strip()), None)


def _from_keyring(provider: str) -> str:
    from ._keyring import read

    try:
        found = read(provider)
    except ConfigError as error:
        raise UnresolvedError(str(error)) from None
    if found is None:
        raise UnresolvedError(f"the keyring has no key for it; store one with: pi auth login {provider} --keyring")
    return found
