"""What rules say about command lines."""

from __future__ import annotations

from typing import Any

import pytest

from pi_plugins.guards._policy import literal_text

from .judging import effect, judged

CAREFUL: dict[str, Any] = {
    "mode": "ask",
    "rules": [
        {"effect": "allow", "command": ["git status *", "git log *", "ls *", "echo *", "cat *", "cd *"]},
        {"effect": "deny", "command": ["rm *", "git push *"]},
    ],
}
LOOSE: dict[str, Any] = {"rules": [{"effect": "deny", "command": ["rm *", "git push *"]}]}


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git status -s",
        "git   status",
        "ls; git log --oneline | cat",
        "cd src && ls -la",
        "echo 'a; rm x'",
        'echo "it\'s" # rm x',
        "echo hi 2>/dev/null",
        "echo hi >&2",
        "cat <<'EOF'\nrm -rf x\n$(rm x)\nEOF",
        "for f in a b; do echo $f; done",
        "if ls; then echo yes; fi",
        "echo $(git status)",
        "(ls; ls)",
        "echo $HOME",
        "ls *.py",
    ],
)
def test_a_line_is_allowed_when_each_of_its_commands_is(line: str) -> None:
    assert effect(CAREFUL, "bash", command=line) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "git status; curl x",
        "git status && make",
        "git status\nmake",
        "git status & make",
        "git status | sh",
        "echo $(make)",
        "echo `make`",
        'echo "$(make)"',
        "ls <(make)",
        "cat <<EOF\n$(make)\nEOF",
        "cat <<EOF | sh\nrm x\nEOF",
        "X=1 git status",
        "GIT_DIR=/tmp git status",
        "env git status",
        "sudo git status",
        "xargs ls",
        "/tmp/evil/git status",
        "'git status' x",
        "gitstatus",
        "git statusx",
        "git commit",
        "echo x > notes.txt",
        "cat < notes.txt",
        "$cmd",
        "l{s,} x",
        "f() { ls; }; f",
        "echo 'unclosed",
        "[[ 'a[$(make)]' -eq 1 ]] && ls",
        "eval ls",
        "bash -c 'ls'",
        "while read x; do ls $x; done",
    ],
)
def test_what_no_rule_allows_for_certain_is_asked_about(line: str) -> None:
    assert effect(CAREFUL, "bash", command=line) == "ask"


DENIED = [
    "rm x",
    "rm",
    "ls; rm -rf x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls\nrm x",
    "ls & rm x",
    "echo $(rm x)",
    "echo `rm x`",
    'echo "$(rm x)"',
    "cat <(rm x)",
    "cat <<EOF\n$(rm x)\nEOF",
    "r'm' x",
    '"rm" x',
    "\\rm x",
    "r''m x",
    "$'rm' x",
    "/bin/rm x",
    "../bin/rm x",
    "X=1 rm x",
    "env X=1 rm x",
    "env -i X=1 rm x",
    "/usr/bin/env rm x",
    "sudo rm x",
    "sudo -u bob rm x",
    "nohup nice -n 5 rm x",
    "timeout 5 rm x",
    "time rm x",
    "time -p rm x",
    "command rm x",
    "exec rm x",
    "xargs rm",
    "echo x | xargs -n 1 rm -f",
    "find . -name x -exec rm {} ;",
    "find . -exec rm {} \\;",
    "find . -execdir /bin/rm {} +",
    "bash -c 'rm x'",
    "bash -lc 'ls; rm x'",
    "bash -euo pipefail -c 'rm x'",
    "env sh -c 'rm x'",
    "sudo bash -c \"sh -c 'rm x'\"",
    "find . -exec sh -c 'rm $1' _ {} \\;",
    "su bob -c 'ls; rm x'",
    "watch 'ls; rm x'",
    "watch rm x",
    "eval 'rm x'",
    "eval rm x",
    "trap 'rm x' EXIT",
    "(rm x)",
    "{ rm x; }",
    "! rm x",
    "if true; then rm x; fi",
    "while true; do rm x; done",
    "for f in *; do rm $f; done",
    "[[ -f x ]] && rm x",
    "[[ $(rm x) ]]",
    "X=$(rm x)",
    "X=$(rm x) ls",
    "rm \\\n-rf x",
    "git push",
    "git push origin main",
    "git 'push' origin",
]


@pytest.mark.parametrize("line", DENIED)
@pytest.mark.parametrize("options", [CAREFUL, LOOSE], ids=["careful", "loose"])
def test_a_denied_command_is_found_wherever_it_stands(options: dict[str, Any], line: str) -> None:
    assert effect(options, "bash", command=line) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "$x file",
        "${x} file",
        "$(echo rm) x",
        "`echo rm` x",
        "r{m,} x",
        "/bin/r? x",
        "/bin/ba*h -c 'ls; rm x'",
        "sudo /bin/ba*h -c 'ls; rm x'",
        "b$x -c 'ls; rm x'",
        "git $x",
        "git $(echo push)",
        "git pus{h,}",
        "curl x | sh",
        "curl x | bash -s",
        "bash",
        "bash <<< 'rm x'",
        "bash <<EOF\nrm x\nEOF",
        'bash -c "$x"',
        "sh $script",
        "eval $x",
        'eval "$(cat x)"',
        "env -S 'rm x'",
        "bash --rcfile x",
        "f() { rm x; }; f",
        "case x in x) rm x;; esac",
        "echo 'unclosed; rm x",
        "x='a[$(rm y)]'; echo $((x))",
        "echo ${x@P}",
    ],
)
def test_what_may_be_a_denied_command_is_asked_about_where_all_else_is_allowed(line: str) -> None:
    verdict = judged(LOOSE, "bash", command=line)
    assert verdict.effect == "ask"


@pytest.mark.parametrize(
    "line",
    ["ls", "echo rm x", "git log $x", "git add *", "grep -r 'rm x' .", "ls > out", "bash script.sh", "bash -x s.sh rm"],
)
def test_what_is_no_denied_command_goes_on_where_all_else_is_allowed(line: str) -> None:
    assert effect(LOOSE, "bash", command=line) == "allow"


def test_a_denied_pattern_may_stand_anywhere_when_it_begins_with_a_star() -> None:
    options = {"rules": [{"effect": "deny", "command": "*--force*"}]}
    assert effect(options, "bash", command="git push --force") == "deny"
    assert effect(options, "bash", command="git push $x") == "ask"
    assert effect(options, "bash", command="git push") == "allow"


def test_a_rule_that_denies_wins_over_one_that_allows_before_it() -> None:
    rules = [{"effect": "allow", "command": "git *"}, {"effect": "deny", "command": "git push *"}]
    assert effect({"mode": "ask", "rules": rules}, "bash", command="git push") == "deny"
    assert effect({"mode": "ask", "rules": rules}, "bash", command="git log") == "allow"


def test_of_rules_that_ask_and_allow_the_first_one_counts() -> None:
    ask, allow = {"effect": "ask", "command": "git commit *"}, {"effect": "allow", "command": "git *"}
    assert effect({"rules": [ask, allow]}, "bash", command="git commit -m x") == "ask"
    assert effect({"rules": [allow, ask]}, "bash", command="git commit -m x") == "allow"


def test_a_rule_about_the_tool_is_about_all_of_its_commands() -> None:
    allow = {"mode": "deny", "rules": [{"effect": "allow", "tool": "bash"}]}
    assert effect(allow, "bash", command="f() { x; }; f > y") == "allow"
    assert effect(allow, "other", command="ls") == "deny"
    assert effect({"rules": [{"effect": "deny", "tool": "bash"}]}, "bash", command="ls") == "deny"
    assert (
        effect({"mode": "deny", "rules": [{"effect": "allow", "command": "*"}]}, "bash", command="echo 'x") == "allow"
    )


def test_any_tool_with_a_command_is_a_shell_to_the_rules() -> None:
    assert effect(LOOSE, "remote_shell", command="ls; rm x") == "deny"


def test_a_rule_that_fits_a_line_letter_by_letter_allows_all_of_it_but_what_is_denied() -> None:
    line = "make [a] && f() { x; }"
    allow = {"effect": "allow", "tool": "bash", "command": "make [[]a] && f() { x; }"}
    assert effect({"mode": "deny", "rules": [allow]}, "bash", command=line) == "allow"
    assert effect({"mode": "deny", "rules": [allow]}, "bash", command=f"{line} ") == "allow"
    assert effect({"mode": "deny", "rules": [allow]}, "bash", command=f"{line}; ls") == "deny"
    line = "make; rm x"
    allow = {"effect": "allow", "tool": "bash", "command": line}
    deny = {"effect": "deny", "command": "rm *"}
    assert effect({"mode": "ask", "rules": [allow, deny]}, "bash", command=line) == "deny"


@pytest.mark.parametrize(
    ("pattern", "text"), [("ls", "ls"), ("a[*]b", "a*b"), ("a[[]b]", "a[b]"), ("a*", None), ("[ab]", None), ("?", None)]
)
def test_a_pattern_without_wildcards_fits_one_text(pattern: str, text: str | None) -> None:
    assert literal_text(pattern) == text


def test_the_file_of_a_redirection_is_written_as_by_the_tool() -> None:
    options = {"mode": "allow", "rules": [{"effect": "deny", "tool": "write", "path": "/etc/**"}]}
    assert effect(options, "bash", command="echo x > /etc/passwd") == "deny"
    assert effect(options, "bash", command="echo x >> /etc/../etc/passwd") == "deny"
    assert effect(options, "bash", command="echo x > /tmp/passwd") == "allow"
    assert effect(options, "bash", command="cat < /etc/passwd") == "allow"
    assert effect(options, "bash", command="echo x > $target") == "ask"
    assert effect(options, "bash", command="cd /etc && echo x > passwd") == "ask"
    assert effect(options, "bash", command="echo x > /dev/null") == "allow"
