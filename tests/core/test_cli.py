from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

from pi_core import Build, __version__
from pi_core.cli import hook_table, run

GOOD = """
import click
from pi_core import Command, hookimpl, tool

@tool
def shout(text: str) -> str:
    "Say it loudly."
    return text.upper()

def load():
    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    @click.option("--fail")
    @click.pass_obj
    def deploy(build, words, fail):
        "Deploy."
        if fail:
            raise {"value": ValueError, "exit": SystemExit, "interrupt": KeyboardInterrupt}[fail]("boom")
        click.echo("deployed " + " ".join(words) + " with " + type(build).__name__)
        return 7 if "seven" in words else None
    return deploy

class Plugin:
    @hookimpl
    def register_tools(self):
        return [shout]

    @hookimpl
    def register_commands(self):
        return [Command("deploy", "Deploys things.", load)]

    @hookimpl
    def before_tool_call(self, call):
        return None

    @hookimpl
    async def execute_tool(self, call, *, proceed):
        return await proceed()
"""
BROKEN = "raise ImportError('no engine')"
BROKEN_COMMAND = """
from pi_core import Command, hookimpl

def load():
    raise ImportError("no engine")

class Plugin:
    @hookimpl
    def register_commands(self):
        return [Command("fly", "Flies.", load), Command("{name}", "Talks.", load, default={default})]
"""


class SiteLike(Protocol):
    def add(self, name: str, plugins: dict[str, str]) -> Path: ...


def pi(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``pi`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pi_core", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


# --- commands of plugins ---


def test_a_plugin_s_command_runs_with_the_build(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    assert run(["deploy", "all", "of", "it"]) == 0
    assert capsys.readouterr().out == "deployed all of it with Build\n"
    assert run(["deploy", "seven"]) == 7
    assert run(["ship/deploy"]) == 0
    assert run(["deploy", "--", "--no-plugins"]) == 0
    assert "deployed --no-plugins with Build" in capsys.readouterr().out


def test_a_command_that_fails_names_its_plugin(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    assert run(["deploy", "--fail", "value"]) == 1
    assert capsys.readouterr().err == (
        "pi: plugin 'ship' (pi-ship 1.0), command 'deploy': ValueError: boom (--verbose shows where)\n"
    )
    assert run(["deploy", "--fail", "interrupt"]) == 130
    with pytest.raises(SystemExit, match="boom"):
        run(["deploy", "--fail", "exit"])
    assert run(["deploy", "--nope"]) == 0
    assert run(["plugins", "--nope"]) == 2
    assert "No such option '--nope'" in capsys.readouterr().err.replace(": --nope", " '--nope'")


def test_two_owners_of_a_command_are_an_error_and_no_prompt(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    site.add("pi-boat", {"boat": GOOD})
    assert run(["deploy", "it"]) == 1
    said = capsys.readouterr().err
    assert "command 'deploy' is offered by plugin 'boat' (pi-boat 1.0) and plugin 'ship' (pi-ship 1.0)" in said
    assert "use 'boat/deploy' or 'ship/deploy'" in said
    assert run(["boat/deploy", "it"]) == 0


def test_help_lists_every_command_whatever_is_broken(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    site.add("pi-plane", {"plane": BROKEN_COMMAND.format(name="talk", default=False)})
    site.add("pi-bad", {"bad": BROKEN})
    for flag in ("-h", "--help"):
        assert run([flag]) == 0
        out = capsys.readouterr().out
        for line in (
            "deploy +Deploys things.",
            "fly +Flies.",
            "plugins  ",
            "hooks  ",
            "--model [A-Z]+",
            "PI_BLOCK",
        ):
            assert re.search(line, out)
    assert run(["fly"]) == 1
    assert "plugin 'plane' (pi-plane 1.0), command 'fly': ImportError: no engine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("pi mod", {"models"}),
        ("pi hooks s", {"show"}),
        ("pi --mod", {"--mode", "--model", "--models"}),
        ("pi -p --thinking min", {"minimal"}),
    ],
)
def test_a_shell_completes_commands_and_the_options_of_the_default_command(
    typed: str, found: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        run([])
    assert {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()} == found


def test_two_default_commands(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-plane", {"plane": BROKEN_COMMAND.format(name="talk", default=True)})
    assert run(["hello"]) == 1
    assert "command 'default' is offered by plugin 'modes'" in capsys.readouterr().err
    assert run(["--help"]) == 0
    assert "command 'default' is offered by" in " ".join(capsys.readouterr().out.split())
    assert run(["plugins", "check"]) == 1


def test_no_default_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PI_BLOCK", "modes")
    assert run([]) == 1
    assert "There is no default command, which the plugin 'modes' has (pi plugins list)" in capsys.readouterr().err
    assert run(["hello"]) == 1
    said, _, commands = capsys.readouterr().err.partition(" Commands: ")
    assert said == "pi: There is no command 'hello', and no default command."
    assert {"build", "hooks", "plugins"} <= set(commands.strip().split(", "))
    assert run(["plugins", "list"]) == 0


# --- pi plugins ---


def test_plugins_list(site: SiteLike, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("pi-ship", {"ship": GOOD})
    site.add("pi-bad", {"bad": BROKEN})
    site.add("pi-off", {"off": BROKEN})
    monkeypatch.setenv("PI_BLOCK", "off, zzz")
    assert run(["plugins", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines if not line.startswith(" ")}
    assert "loaded    pi-ship 1.0" in rows["ship"]
    assert "pi_ship.ship:Plugin" in rows["ship"]
    assert "failed    pi-bad 1.0" in rows["bad"]
    assert "blocked   pi-off 1.0" in rows["off"]
    assert any(line.startswith("    plugin 'bad' (pi-bad 1.0) failed to load from pi_bad.bad:Plugin") for line in lines)
    assert (
        rows["problem:"] == "problem: 'zzz' is to be blocked, but no plugin and no distribution of one is called that"
    )
    assert run(["plugins", "list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    ship = next(row for row in data["plugins"] if row["name"] == "ship")
    assert isinstance(ship.pop("importMs"), float)
    assert ship == {
        "name": "ship",
        "target": "pi_ship.ship:Plugin",
        "distribution": "pi-ship 1.0",
        "state": "loaded",
        "reason": "",
    }
    assert len(data["problems"]) == 2


def test_plugins_why(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    site.add("pi-boat", {"boat": GOOD.replace("deploy", "row")})
    site.add("pi-bad", {"bad": BROKEN})

    def why(name: str) -> tuple[int, str]:
        code = run(["plugins", "why", name])
        said = capsys.readouterr()
        return code, said.out + said.err

    assert why("deploy") == (0, "command 'deploy' comes from plugin 'ship' (pi-ship 1.0)\n")
    assert why("boat/shout") == (0, "tool 'boat/shout' comes from plugin 'boat' (pi-boat 1.0)\n")
    assert "provider api 'scripted' comes from plugin 'scripted'" in why("scripted")[1]
    assert "tool 'shout' is offered by plugin 'boat' (pi-boat 1.0) and plugin 'ship'" in why("shout")[1]
    assert why("ship") == (0, "plugin 'ship' (pi_ship.ship:Plugin from pi-ship 1.0) is loaded\n")
    assert "is failed: plugin 'bad' (pi-bad 1.0) failed to load" in why("bad")[1]
    assert why("zzz")[0] == 1
    assert "Nothing here is called 'zzz'" in why("zzz")[1]


def test_plugins_check(site: SiteLike, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_BLOCK", ",".join(_failing()))
    assert run(["plugins", "check"]) == 0
    assert "plugins loaded, no problem" in capsys.readouterr().out
    site.add("pi-bad", {"bad": BROKEN})
    assert run(["plugins", "check"]) == 1
    assert capsys.readouterr().out.startswith("plugin 'bad' (pi-bad 1.0) failed to load")
    assert run(["plugins", "check", "--no-plugins"]) == 0


def _failing() -> list[str]:
    """The plugins of this checkout that cannot be loaded here."""
    return [record.name for record in Build().plugins if record.state == "failed"]


def test_plugins_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "new", "weather", "--folder", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for line in out.splitlines()[:-1]:
        assert Path(line).is_file()
    assert out.splitlines()[-1] == f"Next: pip install -e {tmp_path / 'pi-weather'}, then: pi plugins list"
    assert run(["plugins", "new", "weather", "--folder", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert run(["plugins", "new", "x", "--kind", "zzz"]) == 2
    assert "there is no kind 'zzz'; kinds: tool, provider, message, hooks" in capsys.readouterr().err


# --- pi hooks ---


def test_hooks_show(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": GOOD})
    site.add("pi-boat", {"boat": GOOD})
    assert run(["hooks", "show", "before_tool_call"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == (
        "before_tool_call(call, ctx)  [guard]  "
        "an exception blocks what was asked for and is reported through plugin_error"
    )
    ours = [row.split() for row in rows if "pi_" in row and ("ship" in row or "boat" in row)]
    assert [row[1:] for row in ours] == [
        ["boat", "pi-boat", "1.0", "pi_boat.boat:Plugin.before_tool_call"],
        ["ship", "pi-ship", "1.0", "pi_ship.ship:Plugin.before_tool_call"],
    ]
    assert run(["hooks", "show", "execute_tool", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["arguments"] == ["call", "ctx"]
    assert (row["kind"], row["async"], row["onError"]) == ("first", True, "becomes the error result of the tool call")
    assert [(found["plugin"], found["wrapper"]) for found in row["implementations"]] == [("boat", True), ("ship", True)]
    assert run(["hooks", "show"]) == 0
    out = capsys.readouterr().out
    assert "register_tools()  [register, sync]" in out
    assert "input(given, session)  [chain, of coding_agent]" in out
    assert run(["hooks", "show", "zzz"]) == 1
    assert "There is no hook 'zzz'. Hooks: register_hookspecs, configure" in capsys.readouterr().err


def test_the_table_of_hooks_has_every_hook() -> None:
    build = Build([], only=[])
    assert [row["hook"] for row in hook_table(build)] == [name for name, _, _ in build.hooks.specifications()]


# --- everywhere ---


def test_no_plugins_is_taken_anywhere_before_the_dashes(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-bad", {"bad": BROKEN})
    for arguments in (["--no-plugins", "plugins", "list"], ["plugins", "list", "--no-plugins"]):
        assert run(arguments) == 0
        assert "bad                  left out" in capsys.readouterr().out


def test_verbose_shows_tracebacks(site: SiteLike) -> None:
    folder = site.add("pi-bad", {"bad": BROKEN}).parent
    environ = {"PYTHONPATH": str(folder)}
    quiet = pi("plugins", "list", environ=environ)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    loud = pi("plugins", "list", "--verbose", environ=environ)
    assert loud.stdout.splitlines()[0].split()[:2] == quiet.stdout.splitlines()[0].split()[:2]
    assert 'raise ImportError("no engine")'.replace('"', "'") in loud.stderr
    assert "Traceback" in loud.stderr


def test_the_version_imports_nothing(tmp_path: Path) -> None:
    for flag in ("--version", "-V", "-v"):
        done = pi(flag)
        assert (done.returncode, done.stdout) == (0, f"pi {__version__}\n")
    code = "import sys; sys.argv = ['pi', '-V']; from pi_core.__main__ import main; main(); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pluggy" not in out
    assert "pydantic" not in out


def test_the_collector_passes_over_what_the_command_line_imports_and_works_on_the_rest() -> None:
    code = (
        "import gc, sys\nsys.argv = ['pi', 'plugins', '--help']\nfrom pi_core.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "True True"


def test_a_pipe_that_closes_ends_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pi_core", "hooks", "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"Traceback" not in err


def test_what_an_interruption_while_loading_gives(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-slow", {"slow": "raise KeyboardInterrupt"})
    assert run(["plugins", "list"]) == 130


def test_an_error_of_the_core_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise AssertionError("a fault of ours")

    monkeypatch.setattr(Build, "problems", fail)
    with pytest.raises(AssertionError, match="a fault of ours"):
        run(["plugins", "check"])


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_while_the_command_line_is_imported_ends_it_without_a_traceback() -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pi_core.cli':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from pi_core.__main__ import main\n"
        "sys.argv[1:] = ['-p', 'never']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
