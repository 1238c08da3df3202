"""``pi proxy serve``: the proxy as a process."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from typing import Any, Final

import click

from pi_core import Build, ConfigError

from ._proxy_app import PATH, ProxyApp, ProxyLimits

DEFAULT_PORT: Final = 8737
_HELP: Final = {"help_option_names": ["-h", "--help"]}
_MEGABYTE: Final = 1024 * 1024


@click.group(context_settings=_HELP)
def proxy() -> None:
    """Serve models to machines without keys."""


@proxy.command(context_settings=_HELP)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option(
    "--token", envvar="PI_PROXY_TOKEN", help="What clients must send; PI_PROXY_TOKEN shows it to nobody else."
)
@click.option("--model", "models", multiple=True, help="A model that may be asked, as provider/id; all if absent.")
@click.option("--cors", "origins", multiple=True, metavar="ORIGIN", help="A web page that may ask; * for all.")
@click.option(
    "--allow-header", "headers", multiple=True, metavar="NAME", help="A header clients may send to providers."
)
@click.option("--max-body", default=32, show_default=True, type=click.IntRange(1), help="Longest request, megabytes.")
@click.option("--max-streams", default=32, show_default=True, type=click.IntRange(1), help="Requests at one time.")
@click.option("--idle", default=300.0, show_default=True, type=click.FloatRange(1), help="Longest silence, seconds.")
@click.option("--grace", default=10, show_default=True, type=click.IntRange(0), help="Seconds to finish when stopped.")
@click.pass_obj
def serve(build: Build, /, host: str, port: int, **options: Any) -> int:
    """Answer requests with the keys of this machine, until Ctrl-C or SIGTERM."""
    token = (options["token"] or "").strip()
    if not token and not _is_loopback(host):
        raise ConfigError(
            f"--host {host} can be reached from other machines, so the proxy needs a token: set PI_PROXY_TOKEN, for "
            'example to the output of: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    if not all("!" <= char <= "~" for char in token):
        raise ConfigError("The token may hold only visible ASCII characters: it travels in a header")
    if "*" in options["origins"] and not token:
        raise ConfigError("--cors '*' lets every web page ask, so the proxy needs a token: set PI_PROXY_TOKEN")
    limits = ProxyLimits(options["max_body"] * _MEGABYTE, options["max_streams"], options["idle"])
    for problem in build.problems():
        click.echo(f"pi: {problem}", err=True)
    app = ProxyApp(
        build,
        token=token,
        models=options["models"],
        origins=options["origins"],
        headers=options["headers"],
        limits=limits,
    )
    asyncio.run(_run(app, host, port, options["grace"], bool(token), options["models"]))
    return 0


async def _run(app: ProxyApp, host: str, port: int, grace: int, token: bool, models: tuple[str, ...]) -> None:
    try:
        import uvicorn
    except ImportError as error:
        raise ConfigError("pi proxy serve needs the extra 'proxy': pip install 'pi-agent-framework[proxy]'") from error
    await app.load_models()
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
    )
    listening = _listen(host, port)
    try:
        where = f"[{host}]" if ":" in host else host
        click.echo(
            f"pi: proxy at http://{where}:{listening.getsockname()[1]} ({PATH}); "
            f"models: {', '.join(models) or 'all that are known here'}; token: {'wanted' if token else 'none'}",
            err=True,
        )
        sys.stderr.flush()
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"The proxy cannot listen on {host}, port {port}: {error.strerror or error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
