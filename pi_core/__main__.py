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
    if code is None:
        from .cli import run

        code = run(sys.argv[1:])
    sys.exit(code)


if __name__ == "__main__":
    main()
