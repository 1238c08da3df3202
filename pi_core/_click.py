"""Runs click commands: what they return, raise and print becomes an exit code."""

from __future__ import annotations

from collections.abc import Callable

import click

from ._log import log
from .errors import PiError


def reported(action: Callable[[], int]) -> int:
    """Run what a command line asks for and return the exit code. An error made on purpose is printed."""
    try:
        return action()
    except PiError as error:
        log().info("the command failed", exc_info=error)
        click.echo(f"pi: {error}", err=True)
        return 1
    except KeyboardInterrupt:
        return 130


def invoke(command: click.Command, arguments: list[str], obj: object, name: str) -> int:
    """Run a click command and return the exit code.

    :param obj: what the command gets with ``click.pass_obj``.
    :param name: what the usage text calls it.
    """
    try:
        result = command.main(arguments, prog_name=name, standalone_mode=False, obj=obj)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return result if isinstance(result, int) else 0


def failure_of(who: str, command: str, error: BaseException) -> str:
    """Say that a command failed, and whose it is."""
    return f"{who}, command '{command}': {type(error).__name__}: {error} (--verbose shows where)"
