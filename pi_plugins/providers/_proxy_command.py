"""``pi proxy serve``: the proxy as a process."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from pi_core import Build, ConfigError

from ._proxy_app import PATH, ProxyApp, ProxyLimits

if TYPE_CHECKING:
    import uvicorn

DEFAULT_PORT: Final = 8737
_HELP: Final = {"help_option_names": ["-h", "--help"]}
_MEGABYTE: Final = 1024 * 1024
_LAST_SECONDS: Final = 5
"""How long the last words of a proxy that stops may take."""


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
    models = ", ".join(options["models"]) or "all that are known here"
    about = f"models: {models}; token: {'wanted' if token else 'none'}"
    received = asyncio.run(_run(app, host, port, options["grace"], about))
    return 128 + received[0] if received else 0


def make_server(app: ProxyApp, grace: int) -> uvicorn.Server:
    """Return the HTTP server around a proxy.

    :param grace: seconds that requests may go on when it is stopped.
    :raises ConfigError: there is none installed.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise ConfigError("pi proxy serve needs the extra 'proxy': pip install 'pi-agent-framework[proxy]'") from error

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            stopping = asyncio.get_running_loop().call_later(grace, app.stop)
            await super().shutdown(sockets)
            stopping.cancel()

    return Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=grace + _LAST_SECONDS,
        )
    )


async def _run(app: ProxyApp, host: str, port: int, grace: int, about: str) -> list[int]:
    """Serve until a signal comes, and return those that came."""
    server = make_server(app, grace)
    await app.load_models()
    listening = listen(host, port)
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        server.should_exit = True

    # While the server runs it takes the signals itself, and passes them on afterwards.
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        where = f"[{host}]" if ":" in host else host
        click.echo(f"pi: proxy at http://{where}:{listening.getsockname()[1]} ({PATH}); {about}", err=True)
        await server.serve(sockets=[listening])
    finally:
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return received


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    :raises ConfigError: it cannot.
    """
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
