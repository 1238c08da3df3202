"""``python -m benchmarks``: measure and print the table."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from .peers import find_peers
from .plots import write_plots
from .processes import MeasurementError
from .rows import GROUPS, Settings
from .table import Row, as_json, as_text


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; the exit code is 1 when a measurement failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the framework beside the floor.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write rows, versions and machine as JSON")
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look: under a minute")
    parser.add_argument("--only", metavar="NAME", action="append", choices=GROUPS, help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--peers", metavar="DIR", type=Path, help="folder of environments, one for each peer by name")
    parser.add_argument("--all-peers", action="store_true", help="the slow peers too")
    parser.add_argument("--plots", metavar="DIR", type=Path, help="draw turns and deltas as SVG")
    given = parser.parse_args(arguments)
    peers = find_peers(given.peers, slow=given.all_peers) if given.peers else []
    settings = Settings(quick=given.quick, peers=peers)
    rows: list[Row] = []
    failed = False
    for name in given.only or GROUPS:
        began = time.perf_counter()
        try:
            rows.extend(GROUPS[name](settings))
        except MeasurementError as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(as_text(rows))
    if given.json:
        given.json.write_text(json.dumps(as_json(rows), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if given.plots:
        for path in write_plots(rows, given.plots):
            print(path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
