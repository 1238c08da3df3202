"""Who lives."""

from __future__ import annotations

import asyncio
from contextlib import closing

import psycopg
from pi_dbos._engine import database_url
from pi_dbos._liveness import PostgresLiveness, liveness
from pi_dbos._order import Order
from sqlalchemy.engine import make_url


def test_a_worker_is_dead_when_it_does_not_hold_its_lock(site) -> None:
    url = database_url(site.url)
    with closing(liveness(url, "one")) as one:
        other = liveness(url, "other")
        with one.dead("other") as dead:
            assert not dead
        other.close()

        def is_dead() -> bool:
            with one.dead("other") as dead:
                return dead

        site.until(is_dead)  # a server notices the end of a session a moment later


def test_only_one_worker_at_a_time_is_told_that_another_is_dead(site) -> None:
    url = database_url(site.url)
    with closing(liveness(url, "one")) as one, closing(liveness(url, "two")) as two:
        with one.dead("gone") as first, two.dead("gone") as second:
            assert (first, second) == (True, False)
        with two.dead("gone") as dead:
            assert dead


def test_a_worker_that_lost_its_connection_says_again_that_it_lives(site) -> None:
    url = database_url(site.url)
    with closing(liveness(url, "one")) as one, closing(liveness(url, "two")) as two:
        if isinstance(two, PostgresLiveness):
            address = make_url(site.url).set(drivername="postgresql").render_as_string(hide_password=False)
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            one.keep()
            two.keep()
            two.keep()
        with one.dead("two") as dead:
            assert not dead


def test_those_who_come_leave_in_the_order_they_came() -> None:
    left: list[int] = []

    async def go(order: Order, number: int, waits: int) -> None:
        place = order.take()
        for _ in range(waits):
            await asyncio.sleep(0)
        await place.turn()
        left.append(number)
        place.leave()

    async def main() -> None:
        order = Order()
        await asyncio.gather(*(go(order, number, 10 - number) for number in range(5)))

    asyncio.run(main())
    assert left == [0, 1, 2, 3, 4]
