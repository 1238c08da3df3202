"""Values as they are written in configuration files."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pi_plugins.models import _shell
from pi_plugins.models.templates import Template, UnresolvedError

PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def resolve(source: str, **environ: str) -> str:
    return asyncio.run(Template(source).resolve({**PATH, **environ}))


def reason(source: str, **environ: str) -> str:
    with pytest.raises(UnresolvedError) as caught:
        resolve(source, **environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("sk-plain", "sk-plain"),
        ("MY_KEY", "MY_KEY"),
        ("$NAME", "n"),
        ("${NAME}", "n"),
        ("a-${NAME}b$NAME-c", "a-nbn-c"),
        ("x$$y", "x$y"),
        ("$!echo", "!echo"),
        ("$$NAME", "$NAME"),
        ("a!b", "a!b"),
        ("cost: 5$", "cost: 5$"),
        ("$5 ${} ${1X} ${NAME ${NA-ME}", "$5 ${} ${1X} ${NAME ${NA-ME}"),
        ("$NÄME", "$NÄME"),
    ],
)
def test_text_with_variables(source: str, value: str) -> None:
    if source == "$NÄME":
        assert reason(source, NAME="n") == "the environment variable N is not set, or empty"
    else:
        assert resolve(source, NAME="n") == value


def test_missing_variables_are_named_once_each() -> None:
    assert reason("$A-$B-$A-$C", B="b", C="") == "the environment variables A, C are not set, or empty"
    assert Template("$A-$B-$A").variables == ("A", "B")
    assert Template("$A-$B").missing({"B": "b"}) == ["A"]


def test_an_empty_value_is_none() -> None:
    assert reason("  ") == "the value is empty"
    assert reason("!  ") == "there is no command after '!'"


def test_the_value_is_what_a_command_prints() -> None:
    assert resolve("!printf ' k-%s\\n\\n' $NAME; echo noise >&2", NAME="n") == "k-n"


def test_a_command_has_nothing_to_read() -> None:
    assert resolve("!cat; echo done") == "done"


def test_a_command_that_fails_says_how_and_its_last_words() -> None:
    said = reason("!echo out; echo first >&2; echo 'vault is locked' >&2; exit 3")
    assert said == "the command 'echo …' ended with exit code 3: vault is locked"
    assert reason("!kill -9 $$") == "the command 'kill …' was ended by signal 9"
    assert reason("!true") == "the command 'true' printed nothing"
    assert "no-such-program" in reason("!no-such-program")


def test_a_command_that_prints_too_much_gives_no_value() -> None:
    assert reason("!head -c 70000 /dev/zero | tr '\\0' x") == (
        "the command 'head …' printed more than 64 KiB, which is no key"
    )


def test_what_could_be_a_secret_is_not_in_the_reason() -> None:
    secret = "sk-ant-0123456789abcdef"
    sources = [
        f"!echo {secret}; echo 'bad {secret}' >&2; exit 1",
        f"!KEY={secret} false",
        f"!{secret}",
        f"!./{secret}",
        '!echo "refused $MY_TOKEN" >&2; exit 1',
        "!echo short1; echo 'refused short1' >&2; exit 1",
    ]
    for source in sources:
        said = reason(source, MY_TOKEN="hunter")
        assert secret not in said
        assert "hunter" not in said
        assert "short1" not in said
        assert secret not in repr(Template(source))
    assert repr(Template(secret)) == "Template(a text)"
    assert repr(Template("$A$B")) == "Template(A, B)"


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(fifo: Path) -> None:
    command = f"sh -c 'trap \"\" TERM; exec 9>{fifo}; echo up >&9; sleep 60' & wait"

    async def main() -> str:
        ended = asyncio.create_task(asyncio.to_thread(fifo.read_text))
        with pytest.raises(_shell.CommandError, match=r"the command 'sh …' was not done after 0\.5 seconds"):
            await _shell.output_of(command, PATH, 0.5)
        return await ended

    assert asyncio.run(main()) == "up\n"


def test_a_command_of_a_cancelled_caller_is_ended(fifo: Path) -> None:
    async def main() -> None:
        task = asyncio.create_task(Template(f"!exec 9>{fifo}; echo up >&9; sleep 60").resolve(PATH))
        with await asyncio.to_thread(fifo.open) as file:
            assert await asyncio.to_thread(file.readline) == "up\n"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(file.read) == ""

    asyncio.run(main())


def test_a_child_in_the_background_does_not_hold_up_the_value(tmp_path: Path) -> None:
    child = tmp_path / "child"
    assert resolve(f"!sleep 60 & echo $! > {child}; echo the-key") == "the-key"
    os.kill(int(child.read_text()), signal.SIGKILL)


def test_the_loop_goes_on_while_a_command_runs(fifo: Path) -> None:
    async def main() -> str:
        task = asyncio.create_task(Template(f"!cat {fifo}").resolve(PATH))
        await asyncio.to_thread(fifo.write_text, "from-the-fifo")
        return await task

    assert asyncio.run(main()) == "from-the-fifo"
