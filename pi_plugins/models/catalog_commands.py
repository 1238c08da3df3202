"""The commands ``pi models list``, ``show``, ``refresh`` and ``check``. None of them needs a build."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from pi_core import ConfigError

from ._listing import Row, nearest, search, table

if TYPE_CHECKING:
    from pi_plugins.config import Settings

    from .refresh import SourceReport
    from .runtime import ModelRuntime


@click.group()
def models() -> None:
    """Models: which there are, what is known of each, and newer data."""


@models.command("list")
@click.argument("words", nargs=-1, metavar="[SEARCH]")
@click.option("--provider", help="Only the models of this one.")
@click.option("--all", "scope", flag_value="all", help="Also models whose provider has no key.")
@click.option(
    "--available", "scope", flag_value="available", help="Only models whose provider has a key; if absent, if any has."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_list(words: tuple[str, ...], provider: str | None, scope: str | None, as_json: bool) -> int:
    """Models, by provider: those that can be used now, or all."""
    return list_models(" ".join(words), provider=provider, scope=scope, as_json=as_json)


def list_models(
    text: str = "",
    *,
    provider: str | None = None,
    scope: str | None = None,
    as_json: bool = False,
    runtime: ModelRuntime | None = None,
) -> int:
    """Print a list of models and return the exit code: 1 when there is none like that.

    :param text: what the models have in their provider, id or name.
    :param provider: only its models.
    :param scope: ``all``, or ``available`` for those whose provider has a key; ``None``: these, if there are any.
    :param runtime: the models and credentials; the user's own by default.
    """
    runtime = runtime or _runtime()
    _warn(runtime.problems())
    providers = runtime.providers()
    if provider is not None and provider not in providers:
        near = get_close_matches(provider, providers, n=1)
        return _nothing(f"There is no provider '{provider}'", near[0] if near else None)
    named = [provider] if provider is not None else sorted(providers)
    usable = {name for name in named if runtime.has_auth(name)}
    everything: list[Row] = [row for name in named for row in runtime.rows(name)]
    rows = everything if scope == "all" else [row for row in everything if row["provider"] in usable]
    if not rows and scope is None:
        rows = everything
        _warn(["No provider has a key, so all models are listed. Store one: pi auth login PROVIDER"])
    if not rows:
        return _nothing("No provider has a key. Store one with: pi auth login PROVIDER. All models: --all")
    found = search(rows, text)
    if not found and len(rows) < len(everything) and search(everything, text):
        return _nothing(f"No model whose provider has a key matches '{text}', but others do: --all")
    if not found:
        return _nothing(f"No model matches '{text}'", nearest(runtime.rows(provider), text))
    if as_json:
        click.echo(json.dumps([{**row, "available": row["provider"] in usable} for row in found], indent=2))
    else:
        click.echo("\n".join(table(found)))
    return 0


@models.command("show")
@click.argument("name", metavar="PROVIDER/ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_show(name: str, as_json: bool) -> int:
    """Everything that is known of a model, and where it is from."""
    from ._origins import origins

    runtime = _runtime()
    _warn(runtime.problems())
    providers = sorted(runtime.providers(), key=len, reverse=True)
    provider = next((one for one in providers if name.startswith(f"{one}/")), "")
    row = next((row for row in runtime.rows(provider) if f"{provider}/{row['id']}" == name), None) if provider else None
    if row is None:
        near = nearest(runtime.rows(), name)
        raise ConfigError(f"There is no model '{name}'" + (f", did you mean '{near}'?" if near else ""))
    model = runtime.model(provider, row["id"])
    assert model is not None
    from .levels import supported_levels

    levels = supported_levels(model)
    source = runtime.key_source(provider)
    found = origins(runtime.table, provider, row["id"])
    if as_json:
        key = None if source is None else source.label
        click.echo(json.dumps({"model": row, "levels": levels, "key": key, "origins": found}, indent=2))
        return 0
    shown = {field: value if isinstance(value, str) else json.dumps(value) for field, value in row.items()}
    shown |= {"levels": ", ".join(levels), "key": "none" if source is None else source.label}
    width = max(map(len, shown))
    last = ""
    for field, text in shown.items():
        origin = found.get(field, last)
        if origin != last:
            click.echo(f"# {origin}")
            last = origin
        click.echo(f"{field:<{width}}  {text}")
    return 0


@models.command("refresh")
@click.option("--strict", is_flag=True, help="Exit 1 when a part of a source could not be used.")
@click.option("--timeout", "seconds", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True)
@click.option("--allow-drop", is_flag=True, help="Accept that a provider loses more than half of its models.")
def models_refresh(strict: bool, seconds: float, allow_drop: bool) -> int:
    """Fetch newer data from public catalogs; the settings modelSources name them."""
    from pi_plugins.config.secrets import without_secrets

    from .catalog import Catalog
    from .refresh import refresh

    settings = _settings()
    directory = Catalog().directory
    if settings.offline:
        click.echo("pi: Nothing was fetched: requests are switched off (offline)", err=True)
        return 1 if strict else 0
    sources = {"models.dev": settings.model_sources.models_dev, "openrouter": settings.model_sources.openrouter}
    addresses = {name: address for name, address in sources.items() if address}
    if not addresses:
        raise ConfigError("There is nothing to fetch: the setting modelSources names no source")
    for name, address in addresses.items():
        click.echo(f"{name}: asking {without_secrets(address)}", err=True)
    reports = refresh(
        directory,
        addresses,
        seconds=seconds,
        proxy=settings.http_proxy,
        allow_drop=allow_drop,
        report=_tell,
    )
    failed = [report for report in reports if report.failed]
    return 1 if (failed and strict) or all(report.error for report in reports) else 0


def _tell(report: SourceReport) -> None:
    for fault in report.faults:
        click.echo(f"{report.name}: not used: {fault}", err=True)
    if report.error:
        click.echo(f"{report.name}: failed, its data of before stays: {report.error}", err=True)
    elif report.unchanged:
        click.echo(f"{report.name}: nothing new, {report.models} models", err=True)
    else:
        changes = f"{len(report.added)} new, {len(report.removed)} gone, {len(report.changed)} changed"
        click.echo(f"{report.name}: {report.size:,} bytes, {report.models} models: {changes}", err=True)


@models.command("check")
@click.option("--ignore-age", is_flag=True, help="Old data is told, and no failure.")
def models_check(ignore_age: bool) -> int:
    """Look for missing, damaged and old data of the catalog; exit 1 if there is some."""
    from ._health import check
    from .catalog import Catalog

    health = check(Catalog().directory)
    for line in (*health.lines, *health.faults, *health.notes):
        click.echo(line)
    return 1 if health.faults or (health.notes and not ignore_age) else 0


def _runtime() -> ModelRuntime:
    from ._command_runtime import command_runtime

    return command_runtime()


def _settings() -> Settings:
    from pi_plugins.config import current_dir, load_settings

    loaded = load_settings(current_dir())
    _warn(loaded.warnings)
    return loaded.settings


def _warn(problems: Iterable[str]) -> None:
    for problem in problems:
        click.echo(f"pi: {problem}", err=True)


def _nothing(said: str, near: str | None = None) -> int:
    _warn([f"{said}, did you mean '{near}'?" if near else said])
    return 1
