"""A directory to work in and the tools that work there."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pi_plugins.tools
from pi_core import AbortSignal, ToolCallContent, ToolCallOutcome, ToolResult, run_tool_call
from pi_core.testing import scripted_message
from pi_plugins.tools import ToolsOptions, ToolsPlugin, _output


class Workspace:
    """Calls the tools the way the loop does, with arguments that are prepared and validated."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.options = ToolsOptions(cwd=str(root))
        self.updates: list[ToolResult] = []

    def configure(self, **options: Any) -> None:
        self.options = ToolsOptions(cwd=str(self.root), **options)

    async def run(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        signal: AbortSignal | None = None,
        on_update: Callable[[ToolResult], None] | None = None,
    ) -> ToolCallOutcome:
        call = ToolCallContent(id="call", name=name, arguments=arguments)
        return await run_tool_call(
            call,
            tools=ToolsPlugin(self.options).register_tools(),
            assistant_message=scripted_message(call),
            signal=signal,
            on_update=on_update or self.updates.append,
        )

    def call(self, name: str, **arguments: Any) -> ToolCallOutcome:
        return asyncio.run(self.run(name, arguments))

    def text(self, name: str, **arguments: Any) -> str:
        """Call a tool that succeeds, and return its text."""
        outcome = self.call(name, **arguments)
        assert not outcome.is_error, text_of(outcome)
        return text_of(outcome)

    def error(self, name: str, **arguments: Any) -> str:
        """Call a tool that fails, and return its text."""
        outcome = self.call(name, **arguments)
        assert outcome.is_error, text_of(outcome)
        return text_of(outcome)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def text_of(outcome: ToolCallOutcome) -> str:
    return "".join(block.text for block in outcome.result.content or [] if block.type == "text")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    root = tmp_path / "tw-work"
    root.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_output, "_directory", None)
    return Workspace(root)


@pytest.fixture
def closed_work(work: Workspace) -> Iterator[Workspace]:
    """A file and a directory that the user of the test may not read, whoever runs the tests."""
    root = work.root = Path(tempfile.mkdtemp(dir="/tmp"))
    work.configure()
    (root / "secret.txt").write_text("a\n")
    (root / "secret.txt").chmod(0)
    (root / "closed").mkdir(mode=0)
    root.chmod(0o755)
    is_root = os.geteuid() == 0
    if is_root:
        for module in pkgutil.iter_modules(pi_plugins.tools.__path__, "pi_plugins.tools."):
            importlib.import_module(module.name)
        os.seteuid(65534)
    try:
        yield work
    finally:
        if is_root:
            os.seteuid(0)
        (root / "closed").chmod(0o700)
        shutil.rmtree(root)
