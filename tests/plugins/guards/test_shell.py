"""Every command that a shell would run is found in a command line, or the line is not understood."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_plugins.guards._commands import look_at
from pi_plugins.guards._shell import read_commands
from pi_plugins.guards._shell_words import ShellSyntaxError


def commands(line: str) -> list[str]:
    return [" ".join(word.text for word in (*found.assignments, *found.words)) for found in read_commands(line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git status; rm -rf x", ["git status", "rm -rf x"]),
        ("a && b || c | d & e\nf |& g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("echo $(rm x)", ["rm x", "echo $(rm x)"]),
        ('echo "$(rm x)"', ["rm x", "echo $(rm x)"]),
        ("echo `rm x`", ["rm x", "echo `rm x`"]),
        ("echo `a \\`b\\``", ["b", "a `b`", "echo `a \\`b\\``"]),
        ("echo '$(rm x)' \\`rm\\`", ["echo $(rm x) `rm`"]),
        ("diff <(a) >(b)", ["a", "b", "diff <(...) >(...)"]),
        ("(cd x; a)", ["cd x", "a"]),
        ("{ a; b; }", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done", ["a", "b"]),
        ("for f in $(a) b; do c $f; done", ["a", "c $f"]),
        ("[[ -f $(a) && x ]] && b", ["a", "b"]),
        ("[ -f x ] && b", ["[ -f x ]", "b"]),
        ("! a", ["a"]),
        ("time a", ["time a"]),
        ("X=$(a) b", ["a", "X=$(a) b"]),
        ("r'm' \\x", ["rm x"]),
        ("$'a b' c", ["a b c"]),
        ("a # b\nc", ["a", "c"]),
        ("a b\\\nc", ["a bc"]),
        ("cat <<EOF\n$(a)\nEOF\nb", ["cat", "a", "b"]),
        ("cat <<'EOF'\n$(a)\nEOF\nb", ["cat", "b"]),
        ("cat <<-EOF\n\t`a`\n\tEOF\nb", ["cat", "a", "b"]),
        ("cat <<EO\\\nF\n$(a)\nEOF\nb", ["cat", "a", "b"]),
        ("cat <<E\\OF\n$(a)\nEOF\nb", ["cat", "b"]),
        ("cat <<< $(a)", ["a", "cat"]),
        ("echo $((1 + (2 * 3))) ${x:-y} $1", ["echo $((1 + (2 * 3))) ${x:-y} $1"]),
        ("", []),
    ],
)
def test_all_commands_of_a_line_are_found(line: str, found: list[str]) -> None:
    assert sorted(commands(line)) == sorted(found)


@pytest.mark.parametrize(
    "line",
    [
        "echo 'a",
        'echo "a',
        "echo `a",
        "echo $(a",
        "(a",
        "a)",
        "a \\",
        "a >",
        "a ;; b",
        "cat <<EOF\nno end",
        "cat <<EOF",
        "cat <<EOF\nEO\\\nF\nrm x\nEOF",
        "cat <<$x\n$x\n",
        'echo "$\\\n(rm x)"',
        "echo $\\\n(rm x)",
        "cat <\\\n<EOF\n$(rm x)\nEOF\n",
        "echo <\\\n(rm x)",
        "f() { rm x; }; f",
        "function f { rm x; }",
        "case x in a) rm x;; esac",
        "((i++))",
        "echo $((a)&&(rm x))",
        "echo $(( $(rm x) ))",
        "echo ${x:-$(rm x)}",
        "echo ${x@P}",
        "x='a[$(rm y)]'; echo $((x))",
        "[[ 'a[$(rm y)]' -eq 1 ]]",
        "for x in 'a[`rm y`]'; do echo $((x)); done",
        "[[ a; rm x ]]",
        "[[ a < <(rm x) ]]",
        "a=(1 2)",
        "echo !(a)",
        "$'\\x72m' x",
        "$(" * 60 + "a" + ")" * 60,
    ],
)
def test_what_is_not_certain_is_an_error(line: str) -> None:
    with pytest.raises(ShellSyntaxError):
        read_commands(line)


@pytest.mark.parametrize(
    ("line", "text", "known"),
    [
        ("r{m,} x", "r{m,}", 1),
        ("$x y", "$x", 0),
        ("/bin/r? x", "/bin/r?", 6),
        ("a*b c", "a*b", 1),
        ("x[12] c", "x[12]", 1),
        ("pre$(a)post", "pre$(a)post", 3),
        ('"$x"', "$x", 0),
        ("plain", "plain", 5),
    ],
)
def test_what_is_only_known_when_it_runs_is_marked(line: str, text: str, known: int) -> None:
    word = read_commands(line)[-1].words[0]
    assert (word.text, word.known, word.certain) == (text, known, known == len(text))


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("a > f 2>&1", [("f", True)]),
        ("a >> f < g", [("f", True), ("g", False)]),
        ("a &> f", [("f", True)]),
        ("a &>> f", [("f", True)]),
        ("a >& f", [("f", True)]),
        ("a >| f", [("f", True)]),
        ("a <> f", [("f", True)]),
        ("a 2>f 3<&- 4>&1", [("f", True)]),
        ("> f", [("f", True)]),
        ("(a; b) > f", [("f", True)]),
        ("echo 2 > f", [("f", True)]),
        ("a <<< f", []),
    ],
)
def test_files_of_redirections_are_found(line: str, files: list[tuple[str, bool]]) -> None:
    found = [(file.target.text, file.writes) for command in read_commands(line) for file in command.redirects]
    assert found == files


# --- beside a real shell ---

NAMES = ("aaa", "bbb", "ccc")
PIECES = st.sampled_from(
    [
        *NAMES,
        *("aaa x", "X=1", "'bbb'", '"ccc"', "\\aaa", "a''aa", "$X", "${X:-bbb}", "$(", ")", "`", "(", "{ ", "; }"),
        *(
            ";",
            "&&",
            "||",
            "|",
            "\n",
            " ",
            "  ",
            "#",
            "'",
            '"',
            "\\",
            "\\\n",
            "if ",
            "; then ",
            "; fi",
            "! ",
            "[[ '' ]]",
        ),
        *("for i in a b; do ", "; done", "<<EOF", "\nEOF\n", "<<'EOF'", "> out", "2>&1", "<(", "eval ", "env "),
        *("$((1))", "$((", "))", "$'bbb'", "bash -c ", "while ", "case x in x) ", ";;", "*", "[", "]", "~", "x=("),
    ]
)
SIMPLE = st.sampled_from([*NAMES, "'aaa' x", "X=1 bbb", "r=ccc; $r", "a''aa", '"bbb" "y z"', "\\ccc", "{aaa,bbb}"])
FRAMES = st.sampled_from(
    [
        *("{}; {}", "{} && {}", "{} || {}", "{} | {}", "{}\n{}", "{} & {}", "({}; {})", "{{ {}; {}; }}", "! {}; {}"),
        *("if {}; then {}; fi", "for i in a b; do {}; {}; done", "aaa $({}) `{}`", 'bbb "$({})" "`{}`"'),
        *("bash -c '{}'; {}", "eval '{}'; {}", "env {}; {}", "aaa <({}) <({})", "aaa <<EOF\n$({}) `{}`\nEOF\n"),
        *(
            "aaa <<'EOF'\n{}\nEOF\n{}",
            "X=$({}) {}",
            'aaa "$\\\n({})" {}',
            "aaa <<EO\\\nF\n$({}) {}\nEOF",
            "aaa # {}\n{}",
            "[[ $({}) ]]; {}",
            "aaa '{}'; {}",
            'aaa "{}"; {}',
        ),
        *(
            "while false; do {}; done; {}",
            "aaa \\\n{}; {}",
            "{} > out; {} < out",
            "time {}; {}",
            "aaa $((1)) $(({}; {}))",
        ),
    ]
)


def framed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(str.format, FRAMES, inner, inner)


LINES = st.recursive(SIMPLE, framed, max_leaves=6) | st.lists(PIECES, min_size=1, max_size=9).map("".join)


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but a shell and programs that write down that they ran."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "bin").mkdir()
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    for name in NAMES:
        program = folder / "bin" / name
        script = f"#!{bash}\necho {name} >> {folder}/ran\nmapfile -t ran < {folder}/ran\n((${{#ran[@]}} < 9))\n"
        program.write_text(script, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for name in ("bash", "env"):
        (folder / "bin" / name).symlink_to(shutil.which(name) or bash)
    return folder


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=LINES)
def test_nothing_runs_that_was_not_found(shell: Path, line: str) -> None:
    """Programs that a real shell starts are among those found, unless the line is unclear."""
    seen = look_at(line)
    if seen.unclear is not None:
        return
    ran = run(shell, line)
    known = [text[:certain].split(" ")[0] for command in seen.commands for text, certain in command.variants]
    whole = [text.split(" ")[0] for command in seen.commands for text, _ in command.variants]
    for name in ran:
        assert name in whole or any(
            name.startswith(begin) for begin, all_ in zip(known, whole, strict=True) if begin != all_
        )


def run(shell: Path, line: str) -> set[str]:
    """The programs that a line starts."""
    for name in set(os.listdir(shell)) - {"bin"}:
        (shell / name).unlink()
    process = subprocess.Popen(
        [shell / "bin" / "bash", "-c", line],
        cwd=shell,
        env={"PATH": str(shell / "bin")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):  # a loop without end
            process.wait(timeout=2)
    finally:
        with contextlib.suppress(ProcessLookupError):  # what it left in the background
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    log = shell / "ran"
    return set(log.read_text(encoding="utf-8").split()) if log.exists() else set()
