"""The ``pi`` command. Asking for the version imports nothing else, a declared command no plugin."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"], ["-v"]):
        from . import __version__

        print(f"pi {__version__}")
        return
    from ._light import run_declared

    code = run_declared(sys.argv[1:])
    sys.exit(_run() if code is None else code)


def _run() -> int:
    """Import what every command needs and run the one that is asked for.

    What is imported stays to the end of the process, so the garbage collector need not look at it, now or later. An
    interrupt meanwhile ends the process without a word: there is nothing to close yet.
    """
    import gc
    import signal

    gc.disable()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import run

    signal.signal(signal.SIGINT, before)
    gc.freeze()
    gc.enable()
    return run(sys.argv[1:])


if __name__ == "__main__":
    main()
