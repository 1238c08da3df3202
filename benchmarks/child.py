"""One measurement in a process of its own: ``python -m benchmarks.child SIDE CASE N [--memory]`` prints a line of JSON.

SIDE is a module of this package with a table ``CASES``.
"""

from __future__ import annotations

import importlib
import json
import sys

from .work import measure


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    side, case, n = arguments[:3]
    module = importlib.import_module(f".{side}", __package__)
    if hasattr(module, "warm_up"):
        module.warm_up()
    cases = module.CASES
    print(json.dumps(measure(cases[case](int(n)), memory="--memory" in arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
