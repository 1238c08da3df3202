"""The code of the documentation runs, page by page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:python|\{literalinclude\} (?P<file>\S+))\n(?P<text>.*?)^```", re.S | re.M)


def included(page: Path, file: str, options: str) -> str:
    """What a literalinclude of Python code shows; nothing for other languages and for parts of a file."""
    source = page.parent / file
    text = source.read_text(encoding="utf-8")
    given = dict(re.findall(r"^:(\w+): (.*)$", options, re.M))
    assert given.pop("language"), f"{page.name}: {file} is included without a language"
    if name := given.pop("pyobject", None):
        assert re.search(rf"^(async )?(def|class) {name}\b", text, re.M), f"{file} has no {name}"
        return ""
    if lines := given.pop("lines", None):
        first, last = map(int, lines.split("-"))
        assert 1 <= first <= last <= len(text.splitlines())
        assert not "".join(text.splitlines()[last : last + 1]).strip(), (
            f"{page.name}: lines {lines} of {file} end within a function"
        )
        return ""
    assert not given, f"{page.name}: what does {given} do to {file}?"
    return text if source.suffix == ".py" else ""


def blocks(page: Path) -> list[str]:
    """The Python code of a page, in order."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [included(page, match["file"], match["text"]) if match["file"] else match["text"] for match in found]


WITH_CODE = [page for page in PAGES if any(blocks(page))]


def test_the_tutorial_has_the_code_of_a_distribution() -> None:
    code = blocks(ROOT / "docs" / "tutorial" / "first-plugin.md")
    assert code[0] == (ROOT / "contrib" / "pi-example-tool" / "pi_example_tool.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {"__name__": "documentation"}
    for number, block in enumerate(blocks(page), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def test_the_quick_start_has_two_commands_of_one_line() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"(?m)^#+ ", re.split(r"(?im)^#+ *quick start.*$", text)[1])[0]
    blocks = re.findall(r"```\w*\n(.*?)```", section, re.S)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]
