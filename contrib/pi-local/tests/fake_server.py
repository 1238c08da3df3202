"""Keeps to the files of pi_local.state like the real server, and answers every chat with the same words.

The model file is JSON: ``starts`` is appended to at each start; ``die`` is printed before it fails; ``gate`` is a FIFO
whose other end has to be opened and closed before it is ready.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from filelock import Timeout
from pi_local._idle import IdleWatch
from pi_local.server import LOST_RACE
from pi_local.state import ServerFiles, ServerSpec, ServerState

ANSWER = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello from "}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "the fake"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]


class Handler(BaseHTTPRequestHandler):
    token = ""
    tasks = 0

    def do_GET(self) -> None:
        self._send("application/json", json.dumps([{"id": 0, "is_processing": False, "id_task": Handler.tasks}]))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {Handler.token}":
            self.send_error(401)
            return
        Handler.tasks += 1
        self._send("text/event-stream", "".join(f"data: {json.dumps(c)}\n\n" for c in ANSWER) + "data: [DONE]\n\n")

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        return


def main() -> int:
    spec = ServerSpec(**json.load(sys.stdin))
    behaviour = json.loads(Path(spec.model_path).read_text(encoding="utf-8").removeprefix("GGUF"))
    files = ServerFiles.of(spec)
    alive = files.alive_lock()
    try:
        alive.acquire(timeout=10, poll_interval=0.01)
    except Timeout:
        return LOST_RACE
    with open(behaviour["starts"], "a", encoding="utf-8") as stream:
        stream.write(f"{os.getpid()}\n")
    state = ServerState(os.getpid(), 0, secrets.token_urlsafe(8), time.time())
    files.write(state)
    if "die" in behaviour:
        print(behaviour["die"])
        return 3
    if "gate" in behaviour:
        Path(behaviour["gate"]).read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.token = state.token
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    state = dataclasses.replace(state, port=server.server_port)
    files.write(state)
    IdleWatch(files, state, spec.idle_seconds).run(stopped)
    files.remove_state()
    return 0


if __name__ == "__main__":
    sys.exit(main())
