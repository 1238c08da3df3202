"""The recorded cases: the same results, but for the listed deviations, each with its reason."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pi_core import AbortController, ToolCallOutcome, ToolResult
from pi_plugins.tools import ToolsPlugin

DATA = json.loads((Path(__file__).parent / "data" / "tools.json").read_text(encoding="utf-8"))
CASES = {f"{case['tool']}-{case['name']}": case for case in DATA["cases"]}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

NO_EXTRA_LINE = "a final newline begins no line of its own"
FIXED_ORDER = "files come in the order of their names, so that a limit always shows the same ones"

Deviation = tuple[str, dict[str, str]]
"""Why a case differs, and what in its recorded texts is replaced by what."""

DEVIATIONS: dict[str, Deviation] = {
    "read-offset-limit": (NO_EXTRA_LINE, {"[3 more": "[2 more"}),
    "read-offset-beyond": (NO_EXTRA_LINE, {"(6 lines": "(5 lines"}),
    "read-big-2000-lines": (NO_EXTRA_LINE, {"of 3001": "of 3000"}),
    "read-negative-limit": (
        "a limit below 1 means 1; nothing but a notice helps nobody",
        {"\n\n[6 more lines in file. Use offset=1": "one\n\n[4 more lines in file. Use offset=2"},
    ),
    "read-directory": ("the error names the directory", {"directory, read": "directory, read '<cwd>/sub'"}),
    "find-limit": (FIXED_ORDER, {"a.ts\nnode_modules/m/i.ts\n": ".hidden.ts\na.ts\n"}),
    "find-limit-zero": (FIXED_ORDER, {"node_modules/m/i.ts": ".hidden.ts"}),
    "find-path-missing": (
        "a plain error instead of another program's",
        {
            "[fd error]: Search path '": "Path not found: ",
            "' is not a directory.\n[fd error]: No valid search paths given.": "",
        },
    ),
    "grep-literal": (
        "in the order of names, and .gitignore counts outside of a git repository too",
        {"node_modules/m/i.js:1: foo\n": ".hidden:1: foo\n", "\n.hidden:1: foo": ""},
    ),
    "grep-git-gitignore-respected": (
        FIXED_ORDER,
        {"t.txt:3: hit one\nt.txt:7: hit two\n": "", "]\n\n[Some": "]\nt.txt:3: hit one\nt.txt:7: hit two\n\n[Some"},
    ),
    "grep-git-limit": (FIXED_ORDER, {"t.txt:3: hit one": ".env:1: hit hidden"}),
}

REFUSED = {
    "read-binary": (
        "bytes that are no text are not shown as text",
        "bin.dat is a binary file (application/octet-stream, 5B); use bash to look into it",
    ),
}


def main_tree(root: Path) -> None:
    files: dict[str, str | bytes] = {
        ".gitignore": "node_modules/\n",
        ".hidden": "foo\n",
        "a.txt": "one\ntwo\nthree\nfour\nfive\n",
        "big.txt": "".join(f"line {number}\n" for number in range(1, 3001)),
        "bin.dat": b"\x00\x01\x02\xff\xfe",
        "bom.txt": "\ufeffhello\nworld\n",
        "crlf.txt": "x\r\ny\r\n",
        "empty.txt": "",
        "img.png": PIXEL,
        "long.txt": "z" * 60_000 + "\nshort\n",
        "node_modules/m/i.js": "foo\n",
        "nonl.txt": "no newline",
        "sub/x.ts": "export const foo = 1;\nconst bar = foo;\n",
        "sub/y.js": "foo()\n",
        "sub/deep/z.md": "# z\nfoo bar\n",
        "wide.txt": "\n".join(f"{number}:{'q' * 1000}" for number in range(100)),
        "e1.txt": "alpha\nbeta\ngamma\n",
        "e2.txt": "a\nb\nc\nd\n",
        "e3.txt": "a\nb\n",
        "e4.txt": "a\nb\n",
        "e5.txt": "a\na\n",
        "e6.txt": "abcdef\n",
        "e7.txt": "a\n",
        "e8.txt": "a\n",
        "e9.txt": "a\r\nb\r\nc\r\n",
        "e10.txt": "\ufeffa\nb\n",
        "e11.txt": "say \u201chello\u201d \u2014 ok\n",
        "e12.txt": "a\n",
        "e13.txt": "a\n",
        "e14.txt": "a\nb\n",
        "e15.txt": "a\n",
        "n/e/w.txt": "hi\n",
        "u.txt": "\u00e9",
    }
    fill(root, files)


def find_tree(root: Path) -> None:
    names = ".hidden.ts a.ts docs/R.md docs/readme.md node_modules/m/i.ts pkg/src/d.ts src/b.ts src/deep/c.ts x.log"
    fill(root, {".gitignore": "*.log\n", **dict.fromkeys(names.split(), "")})
    (root / "emptydir").mkdir()


def git_tree(root: Path) -> None:
    files: dict[str, str | bytes] = {
        ".env": "hit hidden\n",
        ".gitignore": "ignored.txt\n",
        "ignored.txt": "hit ignored\n",
        "src/long.txt": f"hit {'y' * 600}\n",
        "t.txt": "l1\nl2\nhit one\nl4\nl5\nl6\nhit two\nl8\n",
    }
    fill(root, files)
    subprocess.run(["git", "init", "-q", str(root)], check=True)


def fill(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def expected_text(case_id: str, text: str) -> str:
    for old, new in DEVIATIONS.get(case_id, ("", {}))[1].items():
        text = text.replace(old, new, 1)
    return text


def same(case_id: str, actual: str, recorded: str, root: Path) -> bool:
    """Compare texts of which the recording may leave out the middle, naming its length."""
    actual = actual.replace(str(root), "<cwd>")
    actual = re.sub(r"/[^ ]*/pi-bash-\w+\.log", "<tmp>/pi-bash-<id>.log", actual)
    recorded = expected_text(case_id, recorded)
    cut = re.search("\u2026<(\\d+) chars>\u2026", recorded)
    if cut is None:
        return actual == recorded
    begin, end = recorded[: cut.start()], recorded[cut.end() :]
    if "pi-bash" in recorded:
        return actual.startswith(begin) and actual.endswith(end)
    return actual.startswith(begin) and actual.endswith(end) and len(actual) == len(begin) + int(cut[1]) + len(end)


def assert_same(case_id: str, actual: Any, recorded: Any, root: Path, place: str = "result") -> None:
    if isinstance(recorded, str):
        assert isinstance(actual, str), place
        assert same(case_id, actual, recorded, root), f"{place}: {actual!r} is not {recorded!r}"
    elif isinstance(recorded, dict):
        assert isinstance(actual, dict), place
        assert set(actual) == set(recorded), place
        for key, value in recorded.items():
            if key == "wall_time_seconds":
                assert 0 <= actual[key] < 30
            else:
                assert_same(case_id, actual[key], value, root, f"{place}.{key}")
    elif isinstance(recorded, list):
        assert isinstance(actual, list), place
        assert len(actual) == len(recorded), place
        for index, value in enumerate(recorded):
            assert_same(case_id, actual[index], value, root, f"{place}[{index}]")
    else:
        assert actual == recorded, place


def run_case(case_id: str, case: dict[str, Any], work: Any) -> ToolCallOutcome:
    arguments = {**case["args"]}
    if arguments.get("path") == "<path>":
        arguments["path"] = str(work.root / "a.txt")
    if case_id != "bash-abort":
        return work.call(case["tool"], **arguments)
    controller = AbortController()

    def abort_once_it_runs(update: ToolResult) -> None:
        work.updates.append(update)
        if update.content and update.content[0].text:
            controller.abort()

    return asyncio.run(work.run("bash", arguments, signal=controller.signal, on_update=abort_once_it_runs))


@pytest.mark.parametrize("case_id", CASES)
def test_case(case_id: str, work: Any) -> None:
    case = CASES[case_id]
    tree = git_tree if case["name"].startswith("git-") else find_tree if case["tool"] == "find" else main_tree
    tree(work.root)
    if case_id == "write-new-file-nested":
        (work.root / "n/e/w.txt").unlink()
        (work.root / "n/e").rmdir()

    outcome = run_case(case_id, case, work)

    result = outcome.result.to_json()
    text = "".join(block.get("text", "") for block in result["content"])
    if case_id in REFUSED:
        assert outcome.is_error
        assert text == REFUSED[case_id][1]
    elif "error" in case:
        assert outcome.is_error
        assert same(case_id, text, case["error"], work.root), text
    else:
        assert outcome.is_error == case["result"].get("isError", False), text
        assert_same(case_id, result, case["result"], work.root)
    if "after" in case:
        content = (work.root / case["args"]["path"]).read_bytes().decode("utf-8")
        assert content == case["after"]
    if "updates" in case:
        # One when the command starts, more while it prints; how many more depends on the machine.
        assert len(work.updates) >= min(2, case["updates"])


def test_deviations_name_cases_and_change_them() -> None:
    for case_id, (reason, changes) in DEVIATIONS.items():
        assert reason
        recorded = json.dumps(CASES[case_id], ensure_ascii=False)
        for old in changes:
            assert json.dumps(old, ensure_ascii=False)[1:-1] in recorded, case_id
    assert set(REFUSED) < set(CASES)


@pytest.mark.parametrize("name", DATA["definitions"])
def test_definition(name: str) -> None:
    recorded = DATA["definitions"][name]
    tool = next(tool for tool in ToolsPlugin().register_tools() if tool.name == name)

    assert without_descriptions(tool.schema) == without_descriptions(recorded["parameters"])
    assert tool.label == recorded["label"]
    assert tool.constrained_sampling == recorded.get("constrainedSampling")
    assert (tool.prepare_arguments is not None) == recorded["hasPrepareArguments"]
    assert all(place.get("description") for place in tool.schema["properties"].values())


def without_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: without_descriptions(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [without_descriptions(item) for item in schema] if isinstance(schema, list) else schema
