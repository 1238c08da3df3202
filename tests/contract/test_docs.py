"""The code of the documentation runs, page by page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {"__name__": "documentation"}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def test_the_quick_start_has_two_commands_of_one_line() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"(?m)^#+ ", re.split(r"(?im)^#+ *quick start.*$", text)[1])[0]
    blocks = re.findall(r"```\w*\n(.*?)```", section, re.S)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]
