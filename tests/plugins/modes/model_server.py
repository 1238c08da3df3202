"""A model server on loopback: answers each request with the next reply, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One response of the chat completions API.

    :param call: name and arguments of a tool call.
    :param status: an HTTP status; not 200 sends ``error`` as the body.
    """

    text: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    finish: str = ""
    status: int = 200
    error: Any = None
    usage: tuple[int, int] = (100, 5)


@dataclass
class ModelServer:
    """What a server answers, and what it was asked."""

    replies: list[Reply]
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        """The address of its API."""
        return f"http://127.0.0.1:{self.port}/v1"


def chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    """The events of a streamed response."""

    def delta(content: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"id": "c1", "model": "m1", "choices": [{"index": 0, "delta": content, "finish_reason": finish}]}

    if reply.text:
        yield delta({"role": "assistant", "content": reply.text})
    if reply.call is not None:
        name, arguments = reply.call
        function = {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))}
        yield delta({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    yield delta({}, reply.finish or ("tool_calls" if reply.call else "stop"))
    prompt, completion = reply.usage
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    yield {"id": "c1", "model": "m1", "choices": [], "usage": usage}


@contextmanager
def model_server(replies: Sequence[Reply]) -> Iterator[ModelServer]:
    """Serve replies in their order, each to one request."""
    state = ModelServer(list(replies))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            position = len(state.requests)
            state.requests.append({"url": self.path, "headers": headers, "body": body})
            reply = state.replies[position] if position < len(state.replies) else Reply(status=500, error="no reply")
            if reply.status != 200:
                data = json.dumps(reply.error).encode()
                self.send_response(reply.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for chunk in chunks(reply):
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
