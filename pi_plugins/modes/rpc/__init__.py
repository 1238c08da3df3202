"""The rpc mode: commands as lines of JSON on standard input, answers and events as lines of JSON on standard output."""

from __future__ import annotations

from .server import run_rpc as run_rpc

__all__ = ["run_rpc"]
