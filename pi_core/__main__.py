"""The ``pi`` command. Asking for the version imports nothing else."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"], ["-v"]):
        from . import __version__

        print(f"pi {__version__}")
        return
    from .cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
