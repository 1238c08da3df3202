"""One measurement in a process of its own: ``python -m benchmarks.child SIDE CASE N [--memory]`` prints a line of JSON.

SIDE is a module of this package with a table ``CASES``, and perhaps the case that is run ``FIRST``.
"""

from __future__ import annotations

import importlib
import json
import sys

from .work import measure

FIRST_RUNS = 5


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    side, case, n = arguments[:3]
    module = importlib.import_module(f".{side}", __package__)
    # Before the clock starts, so that what the first runs import, compile and specialise is not measured with the rest.
    first = getattr(module, "FIRST", None) or module.CASES.get("turns")
    for _ in range(FIRST_RUNS if first is not None else 0):
        measure(first(1))
    print(json.dumps(measure(module.CASES[case](int(n)), memory="--memory" in arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
