"""``pi auth``: stores, removes, lists and checks credentials. No command shows a key."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from pi_core import ConfigError, SelectionContext

from ._command_runtime import command_runtime
from ._models_schema import closest
from .credentials import InvalidCredential, KeyringCredential, OAuthCredential, key_fault, literal
from .keys import KeySource

if TYPE_CHECKING:
    from .runtime import ModelRuntime

_NO_KEY: Final = "No provider has a key. Store one with: pi auth login PROVIDER"
_CODES: Final = {"ready": 0, "not_ready": 1, "invalid": 2}


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a check.

    :param status: ``ready``: requests have what they need. ``not_ready``: a key is missing, or cannot be had now.
        ``invalid``: what was asked for, or what is stored, cannot be used as it is.
    """

    status: Literal["ready", "not_ready", "invalid"]
    provider: str
    model: str | None = None
    source: KeySource | None = None
    reason: str | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        return _CODES[self.status]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without what is not known."""
        source = None if self.source is None else {"kind": self.source.kind, "label": self.source.label}
        fields = {"status": self.status, "provider": self.provider, "model": self.model, "source": source}
        return {name: value for name, value in {**fields, "reason": self.reason}.items() if value is not None}

    def __str__(self) -> str:
        name = self.provider if self.model is None else f"{self.provider}/{self.model}"
        origin = "" if self.source is None else f" ({self.source.label})"
        reason = "" if self.reason is None else f": {self.reason}"
        return f"{name}: {self.status.replace('_', ' ')}{origin if self.status == 'ready' else ''}{reason}"


@click.group()
def auth() -> None:
    """Store, remove and check credentials."""


@auth.command()
@click.argument("provider")
@click.option("--key", help="The key itself, which other users may see in the list of processes.")
@click.option("--env", "variable", metavar="NAME", help="Take the key from an environment variable at each request.")
@click.option("--command", metavar="COMMAND", help="Take what a shell command prints, once in a process.")
@click.option("--keyring", is_flag=True, help="Keep the key in the keyring of the system, and not in the file.")
def login(provider: str, key: str | None, variable: str | None, command: str | None, keyring: bool) -> None:
    """Store the key of PROVIDER.

    It is asked for without showing it, or read from the standard input, when no option says where it comes from.
    """
    given = [name for name, value in (("--key", key), ("--env", variable), ("--command", command)) if value is not None]
    if len(given) > 1 or (keyring and given and given != ["--key"]):
        raise click.UsageError(f"{' and '.join([*given, *(['--keyring'] if keyring else [])])} exclude each other")
    runtime = command_runtime()
    store = runtime.credentials
    _warn_of(runtime, provider)
    if isinstance(store.get(provider), OAuthCredential):
        click.echo(f"pi: this takes the place of the OAuth login that was stored for {provider}", err=True)
    if variable is not None:
        if not variable.isidentifier() or not variable.isascii():
            raise click.UsageError("--env takes the name of an environment variable, as in --env WORK_OPENAI_KEY")
        store.set_key(provider, f"${variable}")
    elif command is not None:
        if not command.strip():
            raise click.UsageError("--command is empty")
        store.set_key(provider, f"!{command}")
    else:
        value = _checked(key if key is not None else _asked(provider))
        if keyring:
            from . import _keyring

            _keyring.store(provider, value)
            store.set_keyring(provider)
        else:
            store.set_key(provider, literal(value))
    where = "the keyring of the system" if keyring else str(store.path)
    click.echo(f"The key of {provider} is stored in {where}. To try it: pi auth check --provider {provider}")


@auth.command()
@click.argument("provider")
def logout(provider: str) -> None:
    """Remove what is stored for PROVIDER."""
    runtime = command_runtime()
    if isinstance(runtime.credentials.get(provider), KeyringCredential):
        from . import _keyring

        # First: without the note nobody would look for the key there.
        _keyring.forget(provider)
    if runtime.credentials.remove(provider) is not None:
        click.echo(f"What was stored for {provider} is removed.")
    else:
        click.echo(f"Nothing is stored for {provider}.")
    left = runtime.key_source(provider)
    if left is not None:
        click.echo(f"It still has a key: {left.label}")


@auth.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> int:
    """List the providers that have something that gives a key. Nothing is run to find out whether it does.

    Exit code 1: what is stored cannot be read, so that the list may lack something.
    """
    runtime = command_runtime()
    stored = dict(runtime.credentials.list())
    rows = []
    for provider in sorted({*runtime.providers(), *stored}):
        source = runtime.key_source(provider)
        if source is None:
            continue
        row = {"provider": provider, "source": source.kind, "label": source.label}
        if provider in stored:
            row["type"] = stored[provider]
        fault = runtime.key_fault(provider)
        rows.append(row if fault is None else {**row, "fault": fault})
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        click.echo(_NO_KEY)
    else:
        width = max(len(row["provider"]) for row in rows)
        for row in rows:
            kind = f", {row['type'].replace('_', ' ')}" if "type" in row else ""
            fault = f": {row['fault']}" if "fault" in row else ""
            click.echo(f"{row['provider']:{width}}  {row['label']}{kind}{fault}")
    return 1 if _say_problem(runtime) else 0


@auth.command()
@click.option("--provider", help="Check one provider.")
@click.option("--model", help="Check the provider of a model, and the headers its requests carry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(provider: str | None, model: str | None, as_json: bool) -> int:
    """Check whether requests have what they need; commands are run. All providers that have something by default.

    Exit code 0: ready, 1: not ready, 2: cannot be used as it is.
    """
    if provider is not None and model is not None:
        raise click.UsageError("--provider and --model exclude each other")
    runtime = command_runtime()
    checked = asyncio.run(_check(runtime, provider, model))
    if as_json:
        named = provider is not None or model is not None
        data = checked[0].to_json() if named else [one.to_json() for one in checked]
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        for one in checked:
            click.echo(str(one))
        if not checked:
            click.echo(_NO_KEY)
    code = max((one.code for one in checked), default=_CODES["not_ready"])
    return _CODES["invalid"] if _say_problem(runtime) else code


async def _check(runtime: ModelRuntime, provider: str | None, model: str | None) -> list[Checked]:
    if model is not None:
        return [await _check_model(runtime, model)]
    if provider is not None:
        return [await _check_provider(runtime, provider)]
    stored = [name for name, _ in runtime.credentials.list()]
    configured = [name for name in runtime.providers() if _says_something(runtime, name)]
    return [await _check_provider(runtime, name) for name in sorted({*stored, *configured})]


def _says_something(runtime: ModelRuntime, provider: str) -> bool:
    """Whether somebody set a provider up: gave it a key, or described one that needs none."""
    if runtime.key_source(provider) is not None:
        return True
    return runtime.table.entry(provider) is not None and runtime.has_auth(provider)


async def _check_provider(runtime: ModelRuntime, provider: str) -> Checked:
    source = runtime.key_source(provider)
    stored = runtime.credentials.get(provider)
    if isinstance(stored, InvalidCredential):
        return Checked("invalid", provider, source=source, reason=f"{runtime.credentials.path}: {stored.reason}")
    if source is None and provider not in runtime.providers():
        near = closest(provider, runtime.providers())
        return Checked("invalid", provider, reason=f"there is no provider '{provider}'{near}")
    try:
        found = await runtime.api_key(provider)
    except ConfigError as error:
        return Checked("not_ready", provider, source=source, reason=str(error))
    if found is None and not runtime.has_auth(provider):
        return Checked("not_ready", provider, reason=f"nothing gives a key. Store one with: pi auth login {provider}")
    return Checked("ready", provider, source=source)


async def _check_model(runtime: ModelRuntime, name: str) -> Checked:
    selection = SelectionContext(environ=runtime.environ)
    try:
        model = await runtime.select(name, selection)
    except ConfigError as error:
        return Checked("invalid", name.partition("/")[0], reason=str(error))
    checked = await _check_provider(runtime, model.provider)
    reason = checked.reason
    if checked.status == "ready":
        try:
            await runtime.request_auth(model)
        except ConfigError as error:
            return Checked("not_ready", model.provider, model.id, checked.source, str(error))
    return Checked(checked.status, model.provider, model.id, checked.source, reason)


def _asked(provider: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        return str(click.prompt(f"Key of {provider}", hide_input=True, err=True))
    given = "" if sys.stdin is None else sys.stdin.readline()
    if not given.strip():
        raise click.UsageError("there is no key: type it at a terminal, or give it on the standard input")
    return given


def _checked(key: str) -> str:
    key = key.strip()
    fault = key_fault(key)
    if fault is not None:
        raise click.UsageError(fault)
    return key


def _warn_of(runtime: ModelRuntime, provider: str) -> None:
    known = runtime.providers()
    if provider not in known:
        near = closest(provider, known)
        click.echo(f"pi: no provider is called '{provider}' here{near or '; models.json can describe it'}", err=True)


def _say_problem(runtime: ModelRuntime) -> bool:
    """Tell why what is stored cannot be read, and return whether that is so."""
    runtime.credentials.list()
    if runtime.credentials.problem is not None:
        click.echo(f"pi: {runtime.credentials.problem}", err=True)
    return runtime.credentials.problem is not None
