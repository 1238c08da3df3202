"""The server process: llama.cpp's own HTTP server on a free loopback port, with a random key, until nobody needs it."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import secrets
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import Timeout

from ._idle import IdleWatch
from .server import LOST_RACE
from .state import ServerFiles, ServerSpec, ServerState

_ALIVE_SECONDS = 10.0
_END_SECONDS = 5.0
_PROMPT_CACHE_MIB = 512


def main() -> int:
    """Serve the model of the spec on standard input; returns the exit code."""
    spec = ServerSpec(**json.load(sys.stdin))
    files = ServerFiles.of(spec)
    alive = files.alive_lock()
    try:
        alive.acquire(timeout=_ALIVE_SECONDS, poll_interval=0.01)
    except Timeout:
        return LOST_RACE
    state = ServerState(os.getpid(), 0, secrets.token_urlsafe(32), time.time())
    files.write(state)
    try:
        server = _load(spec, state.token)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        files.remove_state()
        return 1
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())
    state = dataclasses.replace(state, port=urlsplit(server.listening_address).port or 0)
    files.write(state)
    IdleWatch(files, state, spec.idle_seconds).run(stopped)
    files.remove_state()
    # A response that is being generated may keep the server from ending.
    threading.Timer(_END_SECONDS, os._exit, (0,)).start()
    del server
    os._exit(0)


def _load(spec: ServerSpec, token: str) -> Any:
    xllamacpp = import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = spec.model_path
    parameters.model_alias = {spec.name}
    if spec.template_path is not None:
        parameters.chat_template = Path(spec.template_path).read_text(encoding="utf-8")
    parameters.use_jinja = True
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [token]
    parameters.n_ctx = spec.context
    parameters.n_predict = spec.max_tokens
    parameters.n_parallel = 1
    parameters.cache_ram_mib = _PROMPT_CACHE_MIB
    # On x86-64, weights as they are in the file read a prompt a quarter faster than repacked, without a copy of them.
    parameters.no_extra_bufts = platform.machine() in ("x86_64", "AMD64")
    parameters.sampling.temp = 0.0
    parameters.ui = False
    parameters.verbosity = 2
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    sys.exit(main())
