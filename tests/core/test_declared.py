"""Commands that distributions declare in their metadata."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

from pi_core import Build
from pi_core._light import run_declared
from pi_core.cli import run

SHIP = """
import click
from pi_core import Command, ConfigError, hookimpl

@click.command()
@click.argument("words", nargs=-1)
@click.option("--fail")
@click.pass_obj
def deploy(build, words, fail):
    if fail:
        raise {"value": ValueError, "config": ConfigError, "interrupt": KeyboardInterrupt}[fail]("boom")
    click.echo("deployed " + " ".join(words) + " with " + type(build).__name__)
    return 7 if "seven" in words else None

class Plugin:
    @hookimpl
    def register_commands(self):
        return [Command("deploy", "Deploys things.", lambda: deploy)]
"""
DECLARED = "[pi.commands]\ndeploy = pi_ship.ship:deploy\n"


class SiteLike(Protocol):
    folder: Path

    def add(self, name: str, plugins: dict[str, str]) -> Path: ...

    def changed(self) -> None: ...


def declare(site: SiteLike, name: str, text: str) -> None:
    with (site.folder / f"{name.replace('-', '_')}-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write(text)
    site.changed()


@pytest.fixture
def ship(site: SiteLike) -> SiteLike:
    site.add("pi-ship", {"ship": SHIP})
    declare(site, "pi-ship", DECLARED)
    return site


@pytest.mark.usefixtures("ship")
def test_it_runs_without_a_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_declared(["deploy", "a", "b"]) == 0
    assert capsys.readouterr().out == "deployed a b with NoneType\n"
    assert run_declared(["deploy", "seven"]) == 7


@pytest.mark.usefixtures("ship")
def test_a_wrong_command_line_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_declared(["deploy", "--no-such"]) == 2
    assert "Usage: pi deploy" in capsys.readouterr().err


@pytest.mark.usefixtures("ship")
@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("config", 1, "pi: boom\n"),
        ("value", 1, "pi: pi-ship 1.0, command 'deploy': ValueError: boom (--verbose shows where)\n"),
        ("interrupt", 130, "\n"),
    ],
)
def test_what_fails_is_said(capsys: pytest.CaptureFixture[str], fault: str, code: int, said: str) -> None:
    assert run_declared(["deploy", "--fail", fault]) == code
    assert capsys.readouterr().err == said


def test_one_that_cannot_be_imported_names_its_distribution(site: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("pi-ship", {"ship": "raise ImportError('no engine')"})
    declare(site, "pi-ship", DECLARED)
    assert run_declared(["deploy"]) == 1
    assert capsys.readouterr().err.startswith("pi: pi-ship 1.0, command 'deploy': ImportError: no engine")


@pytest.mark.usefixtures("ship")
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a prompt"],
        ["other"],
        ["--build", "deploy"],
        ["plugins", "list"],
        ["deploy", "--no-plugins"],
        ["--verbose", "deploy"],
        ["deploy", "--verbose"],
    ],
)
def test_everything_else_takes_a_build(arguments: list[str]) -> None:
    assert run_declared(arguments) is None


@pytest.mark.usefixtures("ship")
def test_after_two_dashes_the_options_are_the_commands_own() -> None:
    assert run_declared(["deploy", "--", "--verbose"]) == 0


@pytest.mark.usefixtures("ship")
def test_what_is_blocked_is_decided_by_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_BLOCK", "pi-ship")
    assert run_declared(["deploy"]) is None
    monkeypatch.setenv("PI_BLOCK", "trace")
    assert run(["deploy", "a"]) == 0
    assert capsys.readouterr().out == "deployed a with Build\n"


def test_two_that_declare_one_name_are_a_conflict(ship: SiteLike, capsys: pytest.CaptureFixture[str]) -> None:
    ship.add("pi-boat", {"boat": SHIP})
    declare(ship, "pi-boat", "[pi.commands]\ndeploy = pi_boat.boat:deploy\n")
    assert run_declared(["deploy"]) is None
    assert run(["deploy"]) == 1
    assert "command 'deploy' is offered by plugin 'boat' (pi-boat 1.0) and plugin 'ship' (pi-ship 1.0)" in (
        capsys.readouterr().err
    )


def test_the_name_is_that_of_who_declares_it_and_the_other_is_reported(
    ship: SiteLike, capsys: pytest.CaptureFixture[str]
) -> None:
    ship.add("pi-boat", {"boat": SHIP.replace("deployed", "rowed")})
    said = (
        "command 'deploy' is offered by plugin 'boat' (pi-boat 1.0) and plugin 'ship' (pi-ship 1.0); plugin 'ship' "
        "(pi-ship 1.0) has the name, because its distribution declares it (pi.commands). The other is called "
        "'boat/deploy'; PI_BLOCK blocks one"
    )
    assert said in Build.from_environment().problems()
    assert run_declared(["deploy", "a"]) == 0
    assert run(["deploy", "b"]) == 0
    assert run(["boat/deploy", "c"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "deployed a with NoneType",
        "deployed b with Build",
        "rowed c with Build",
    ]


def test_a_decision_of_the_build_goes_before(ship: SiteLike) -> None:
    ship.add("pi-boat", {"boat": SHIP})
    build = Build(conflicts={"deploy": "boat"})
    owner = build.registry.commands.owner("deploy")
    assert owner is not None
    assert owner.plugin == "boat"
    assert not [problem for problem in build.problems() if "deploy" in problem]


def test_a_declared_command_of_ours_imports_no_plugin() -> None:
    code = (
        "import sys; sys.argv = ['pi', 'models', 'list', 'gpt-5-mini', '--all']\n"
        "from pi_core.__main__ import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as left:\n"
        "    assert not left.code, left.code\n"
        "heavy = ('pydantic', 'asyncio', 'httpx', 'pi_core.build', 'pi_plugins.providers')\n"
        "print(*[name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == ""
    assert "openai/gpt-5-mini" in done.stdout
