"""The table: which measurements make which row, and what is to be reached."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .durable import durable_job, is_installed
from .peers import Peer
from .processes import Job, MeasurementError, running_server, take_turns
from .startup import Startup
from .table import Row
from .work import CROWD_TURNS

MICRO: Final = 1e6


@dataclass(slots=True)
class Settings:
    """How thoroughly to measure.

    :param quick: a few rounds of each, and less work where one piece takes long.
    :param peers: whom to measure beside us.
    """

    quick: bool = False
    peers: Sequence[Peer] = field(default_factory=tuple)

    def rounds(self, full: int, quick: int = 3) -> int:
        """Return how often each side is measured."""
        return quick if self.quick else full

    def size(self, full: int, quick: int) -> int:
        """Return how large the work is."""
        return quick if self.quick else full

    def measured(self, jobs: Sequence[tuple[Peer, Job]]) -> Iterator[tuple[Peer, dict[str, float]]]:
        """Measure peers; one that fails is left out and named on stderr."""
        for peer, job in jobs:
            try:
                yield peer, take_turns([job], self.rounds(3, 1))[0]
            except MeasurementError as error:
                print(f"left out: {error}", file=sys.stderr)

    def peer_jobs(self, case: str, n: int) -> list[tuple[Peer, Job]]:
        """Return what is to be run for the peers."""
        return [(peer, peer.job(case, n)) for peer in self.peers if n <= peer.limit(case)]


Group = Callable[[Settings], Iterator[Row]]


def _per_unit(settings: Settings, case: str, n: int, rounds: int) -> tuple[float, float, dict[str, float]]:
    """Return CPU microseconds per unit of ours, of the floor, and of each peer."""
    peers = settings.peer_jobs(case, n)
    ours, floor = take_turns([Job("ours", case, n), Job("floor", case, n)], rounds)
    others = {peer.name: found["cpu_s"] / n * MICRO for peer, found in settings.measured(peers)}
    return ours["cpu_s"] / n * MICRO, floor["cpu_s"] / n * MICRO, others


def turns(settings: Settings) -> Iterator[Row]:
    """Turns of one tool call, and that they do not become dearer."""
    costs = {}
    for n, rounds in ((200, 11), (1_000, 9), (10_000, 5)):
        ours, floor, peers = _per_unit(settings, "turns", n, settings.rounds(rounds, 5 if n == 200 else 2))
        costs[n] = ours
        yield Row(f"turns, {n:,}", ours, floor, 6.0, "us/turn", n, peers=peers)
    yield Row(
        "turns, growth from 200 to 10,000", costs[10_000], costs[200], 1.2, "us/turn", 10_000, against="200 turns"
    )
    (plain,) = take_turns([Job("ours", "turns_plain", 1_000)], settings.rounds(7))
    yield Row("turns, plain subscriber", plain["cpu_s"] / 1_000 * MICRO, floor, None, "us/turn", 1_000)


def plugins(settings: Settings) -> Iterator[Row]:
    """Turns under the eyes of 20 plugins."""
    n = 200
    ours, without = take_turns([Job("plugged", "turns", n), Job("ours", "turns", n)], settings.rounds(11, 5))
    costs = (ours["cpu_s"] / n * MICRO, without["cpu_s"] / n * MICRO)
    yield Row("turns with 20 plugins", *costs, 2.0, "us/turn", n, against="no plugins")


def deltas(settings: Settings) -> Iterator[Row]:
    """Text deltas, and what is kept of them."""
    for n, rounds in ((2_000, 11), (20_000, 9), (200_000, 5)):
        ours, floor, peers = _per_unit(settings, "deltas", n, settings.rounds(rounds, 5 if n == 2_000 else 2))
        yield Row(f"deltas, {n:,}", ours, floor, 2.5, "us/delta", n, peers=peers)
    (plain,) = take_turns([Job("ours", "deltas_plain", 20_000)], settings.rounds(7))
    yield Row("deltas, plain subscriber", plain["cpu_s"] / 20_000 * MICRO, floor, None, "us/delta", 20_000)
    small, large = 20_000, settings.size(200_000, 100_000)
    jobs = [Job(side, "deltas", n, memory=True) for side in ("ours", "floor") for n in (small, large)]
    found = take_turns(jobs, 1)
    text = 5 * (large - small)
    for key, name, target in (("kept", "memory kept", 1.05), ("peak", "memory at most", None)):
        ours, floor = ((found[side + 1][key] - found[side][key]) / text for side in (0, 2))
        yield Row(f"deltas, {name}", ours, floor, target, "bytes/char", large, bounds="ours")


def arguments(settings: Settings) -> Iterator[Row]:
    """Deltas of tool arguments beside deltas of text, and that they do not become dearer."""
    small, n = 2_000, 20_000
    cases = [("ours", "arguments", n), ("ours", "deltas", n), ("ours", "arguments", small)]
    found = take_turns([Job(*case) for case in cases], settings.rounds(9))
    long, text, short = (one["cpu_s"] / size * MICRO for one, (_, _, size) in zip(found, cases, strict=True))
    yield Row("argument deltas, 20,000", long, text, 6.0, "us/delta", n, against="text deltas")
    yield Row("argument deltas, growth from 2,000", long, short, 1.2, "us/delta", n, against="2,000 deltas")


def parallel(settings: Settings) -> Iterator[Row]:
    """Tools side by side, wall time."""
    n = 100
    ours, floor = take_turns([Job("ours", "parallel", n), Job("floor", "parallel", n)], settings.rounds(11, 5))
    others = settings.measured(settings.peer_jobs("parallel", n))
    peers = {peer.name: found["wall_s"] * 1000 for peer, found in others}
    walls = (ours["wall_s"] * 1000, floor["wall_s"] * 1000)
    yield Row("100 tools of 10 ms side by side", *walls, 16.0, "ms", n, bounds="ours", peers=peers)


def network(settings: Settings) -> Iterator[Row]:
    """Chunks over loopback HTTP."""
    n = settings.size(5_000, 2_000)
    name = f"network chunks, {n:,}"
    with running_server(n) as environ:
        try:
            cases = [Job("network", case, n, environ=environ) for case in ("agent", "raw")]
            ours, raw = (one["cpu_s"] / n * MICRO for one in take_turns(cases, settings.rounds(5, 2)))
        except MeasurementError as error:
            yield Row(name, None, None, 0.85, "us/chunk", n, against="httpx lines", note=str(error))
            return
        yield Row(name, ours, raw, 0.85, "us/chunk", n, against="httpx lines")


def hooks(settings: Settings) -> Iterator[Row]:
    """Hook calls beside hand-written loops."""
    from .hookcalls import CALLS, KINDS

    targets: Mapping[int, float] = {0: 2.2, 1: 6.0, 5: 4.0, 20: 3.2}
    for kind in KINDS[:1] if settings.quick else KINDS:
        for n, target in targets.items():
            jobs = [Job("hookcalls", case, n) for case in (kind, f"{kind}_loop")]
            ours, loop = (one["cpu_s"] / CALLS * MICRO for one in take_turns(jobs, settings.rounds(5)))
            yield Row(f"{kind} hook, {n} plugins", ours, loop, target, "us/call", n, against="hand-written loop")


def crowd(settings: Settings) -> Iterator[Row]:
    """Many agents at once; what becomes dearer for bare loops too is not the framework's doing."""
    n = settings.size(1_000, 300)
    for side, name, target in (("crowd", "agents", 1.2), ("floor", "bare loops", None)):
        jobs = [Job(side, case, n) for case in ("together", "in_turn")]
        found = take_turns(jobs, settings.rounds(5, 2))
        together, alone = (one["cpu_s"] / n / CROWD_TURNS * MICRO for one in found)
        yield Row(f"{n:,} {name} at once", together, alone, target, "us/turn", n, against="one at a time")
    held = settings.size(1_000, 100)
    idle, rested = take_turns([Job("crowd", case, held, memory=True) for case in ("idle", "rested")], 1)
    yield Row("memory of an idle agent", idle["kept"] / held / 1024, None, 60.0, "KB", held, bounds="ours")
    name = f"memory of an agent after {CROWD_TURNS} turns"
    yield Row(name, rested["kept"] / held / 1024, None, None, "KB", held, bounds="ours")


def sessions(settings: Settings) -> Iterator[Row]:
    """Session files: reading a long one, and that adding to one does not become dearer."""
    n = settings.size(50_000, 5_000)
    jobs = [Job("transcripts", case, n) for case in ("read", "lines")]
    ours, lines = (one["cpu_s"] / n * MICRO for one in take_turns(jobs, settings.rounds(3, 2)))
    yield Row(f"session of {n:,} messages read", ours, lines, 3.0, "us/message", n, against="json.loads of its lines")
    small, large = 400, settings.size(20_000, 4_000)
    jobs = [Job("transcripts", "append", size) for size in (small, large)]
    short, long = take_turns(jobs, settings.rounds(5))
    costs = (long["cpu_s"] / large * MICRO, short["cpu_s"] / small * MICRO)
    yield Row(f"message added, growth to {large:,}", *costs, 1.2, "us/message", large, against=f"{small} messages")


def startup(settings: Settings) -> Iterator[Row]:
    """Processes that start."""
    with Startup() as start:
        for measured in (start.imports, start.version, start.first_byte, start.build, start.pinned, start.search):
            yield measured(settings.rounds(11, 3))


def terminal(settings: Settings) -> Iterator[Row]:
    """The interactive mode in a pseudo terminal while 2,000 deltas a second come."""
    n = settings.size(20_000, 4_000)
    job = Job(command=(sys.executable, "-m", f"{__package__}.terminal", str(n)), reports=True)
    (found,) = take_turns([job], settings.rounds(3, 1))
    what = "terminal, 2,000 deltas/s"
    yield Row(f"{what}, text to screen", found["lag_ms"], None, 100.0, "ms", n, bounds="ours", against="-")
    yield Row(f"{what}, key to screen", found["key_ms"], None, 100.0, "ms", n, bounds="ours", against="-")
    yield Row(f"{what}, CPU", found["cpu"], None, 1.0, "cores", n, bounds="ours", against="-")


def durable(settings: Settings) -> Iterator[Row]:
    """Durable runs, where their distribution is installed: a step beside one of the engine, and more workers."""
    if not is_installed():
        print("durable: pi-dbos is not installed", file=sys.stderr)
        return
    n = settings.size(400, 100)
    jobs = [durable_job("step", side, str(n)) for side in ("ours", "floor")]
    ours, floor = (one["wall_s"] / n * 1000 for one in take_turns(jobs, settings.rounds(5, 2)))
    yield Row("step of a durable run", ours, floor, 1.5, "ms/step", n, against="step of the engine")
    runs = settings.size(1_000, 100)
    seconds = {count: durable_job("workers", str(count), str(runs)).measure()["wall_s"] for count in (1, 2, 4)}
    for count, target in ((2, 1 / 1.7), (4, None)):
        name = f"{runs:,} durable runs, {count} workers"
        yield Row(name, seconds[count], seconds[1], target, "s", runs, against="one worker")


GROUPS: Final[dict[str, Group]] = {
    "turns": turns,
    "plugins": plugins,
    "deltas": deltas,
    "arguments": arguments,
    "parallel": parallel,
    "network": network,
    "hooks": hooks,
    "crowd": crowd,
    "sessions": sessions,
    "startup": startup,
    "terminal": terminal,
    "durable": durable,
}
"""The parts of the table by name, in order."""
