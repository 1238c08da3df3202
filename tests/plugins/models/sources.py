"""Catalogs for tests: what public sources would answer, and a server that answers it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pi_plugins.models._catalog_set import write_set
from pi_plugins.models._quirks import quirks
from pi_plugins.models._transform import from_models_dev

LONG_AGO = "2020-01-01T00:00:00+00:00"
MODELS = 4


def entry(**changes: Any) -> dict[str, Any]:
    """A model as models.dev has it."""
    return {
        "name": "A model",
        "reasoning": False,
        "tool_call": True,
        "modalities": {"input": ["text", "pdf"], "output": ["text"]},
        "limit": {"context": 1000, "output": 100},
        "cost": {"input": 1.5, "output": 6},
        **changes,
    }


def models_dev(context: int = 1000, count: int = MODELS) -> dict[str, Any]:
    """A catalog in which each provider has a few models, all with one context window."""

    def models() -> dict[str, Any]:
        return {f"m{number}": entry(limit={"context": context, "output": 100}) for number in range(count)}

    return {name: {"id": name, "models": models()} for name in quirks().sources.values()}


def openrouter(*models: dict[str, Any]) -> dict[str, Any]:
    """A list of models as OpenRouter has it."""
    return {"data": [{**_OPENROUTER_MODEL, **model} for model in models]}


_OPENROUTER_MODEL = {
    "id": "maker/model",
    "name": "Maker: Model",
    "context_length": 200_000,
    "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
    "pricing": {"prompt": "0.00000025", "completion": "0.000002", "input_cache_read": "0.000000025"},
    "top_provider": {"max_completion_tokens": 64_000},
    "supported_parameters": ["tools", "reasoning"],
}


def shipped(folder: Path, raw: dict[str, Any] | None = None, generated_at: str = LONG_AGO) -> Path:
    """Write what ships with the package."""
    made = from_models_dev(models_dev() if raw is None else raw, quirks())
    write_set(folder, made.providers, generated_at=generated_at, sources={})
    return folder


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone."""


class SourceServer:
    """Answers as a public catalog does.

    :ivar body: what it answers: JSON data, or the bytes themselves.
    :ivar etag: sent along, and answered with 304 when it is shown.
    :ivar before: called before each answer.
    :ivar asked: the headers of each request.
    """

    def __init__(self) -> None:
        self.body: Any = {}
        self.status = 200
        self.etag: str | None = None
        self.before: Callable[[], object] = lambda: None
        self.asked: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append({name.lower(): value for name, value in self.headers.items()})
                outer.before()
                status, body = outer.status, outer.body
                if outer.etag is not None and self.headers.get("if-none-match") == outer.etag:
                    status, body = 304, b""
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                if outer.etag is not None:
                    self.send_header("etag", outer.etag)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/models"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
