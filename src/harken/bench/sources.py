"""`harken bench sources`: outside data that becomes a relation, and its changes.

A PostgreSQL server of its own is followed by its log. A million rows are loaded, beside COPY of the
same rows by the same driver into a table of SQLite; transactions of one row each arrive in a view;
a hundred sources are looked at in vain; a table is read again, beside reading it alone; and of
fifty pages one has changed.
"""

from __future__ import annotations

import datetime
import http.server
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import harken
from harken.bench import baseline
from harken.bench.figures import Figure, compare, seconds
from harken.bench.postgres import QUICK, NoPostgres, PostgresServer, free_port, postgres_server

TRANSACTIONS = 1_000
SOURCES = 100
LOOKS = 20
"""Idle seconds that are measured."""
CHANGED = 100
PAGES = 50
ROWS_OF_A_PAGE = 1_000
TABLE = "CREATE TABLE big (id int PRIMARY KEY, amount int, price float8, name text)"
FILL = "INSERT INTO big SELECT i, i %% 1000, i / 7.0, 'name ' || i FROM generate_series(1, %s) i"
SETTINGS = (*QUICK, "wal_level=logical", "max_replication_slots=10", "max_wal_senders=0")


class Clock:
    """Moved on by hand, so that what is due can be said."""

    def __init__(self) -> None:
        self.now = datetime.datetime.now(datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)


def figures(items: int = 1_000_000, rounds: int = 3) -> Iterator[Figure]:
    try:
        with postgres_server(*SETTINGS) as server:
            yield from _database_figures(server, items, rounds)
    except NoPostgres as reason:
        print(f"sources: {reason}; PostgreSQL is left out", flush=True)
    yield from _page_figures(rounds)


def _database_figures(server: PostgresServer, items: int, rounds: int) -> Iterator[Figure]:
    import psycopg

    with psycopg.connect(server.place(), autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(FILL, [items])
        connection.execute("VACUUM ANALYZE big")
        params = {"items": items, "kind": "postgresql"}
        load = compare(partial(_first_load, server), partial(_copied, server), rounds)
        yield Figure("sources", "first load s", load.ours, params)
        yield Figure("sources", "first load/COPY into SQLite", load.ratio, params, "<= 2")
        yield from _polling(connection, server, params, rounds)
        yield from _arrivals(connection, server)
        yield from _idle(connection, server)


def _connected(path: Path | str = ":memory:", clock: Clock | None = None) -> harken.Database:
    settings = {"allow_private_addresses": True}
    return harken.connect(str(path), clock=clock or Clock(), settings=settings)


def _source(db: harken.Database, server: PostgresServer, table: str, capture: str) -> None:
    db.source(table, "postgresql", url=server.url(), table=table, capture=capture)


# --- the first rows --------------------------------------------------------------------------


def _first_load(server: PostgresServer) -> None:
    with baseline.directory() as directory, _connected(directory / "ours.db") as db:
        _source(db, server, "big", "logical")
        db.sql("DROP SOURCE big")


def _copied(server: PostgresServer) -> None:
    """Row by row, as a script would."""
    import psycopg

    with (
        baseline.directory() as directory,
        closing(baseline.connect(str(directory / "theirs.db"))) as target,
        psycopg.connect(server.place()) as connection,
        connection.cursor() as cursor,
        target,
    ):
        target.execute(
            "CREATE TABLE big (id INTEGER PRIMARY KEY, amount INTEGER, price REAL, name TEXT)"
        )
        with cursor.copy("COPY big TO STDOUT") as copy:
            copy.set_types(["int4", "int4", "float8", "text"])
            target.executemany("INSERT INTO big VALUES (?, ?, ?, ?)", copy.rows())


def _polling(
    connection: Any, server: PostgresServer, params: dict[str, Any], rounds: int
) -> Iterator[Figure]:
    with baseline.directory() as directory, _connected(directory / "ours.db") as db:
        _source(db, server, "big", "poll")
        steps = iter(range(1, 1_000))

        def refresh() -> None:
            db.sql("REFRESH SOURCE big")

        def change() -> None:
            step = next(steps)
            connection.execute(
                "UPDATE big SET amount = amount + 1 WHERE id %% %s = 0",
                [max(1, params["items"] // CHANGED)],
            )
            connection.execute("UPDATE big SET price = %s WHERE id = 1", [step])

        ours, theirs = [], []
        for _ in range(rounds):
            change()
            ours.append(seconds(refresh))
            theirs.append(seconds(partial(_read, server)))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        more = {**params, "changed": CHANGED}
        yield Figure("sources", "poll s", statistics.median(ours), more)
        yield Figure("sources", "poll/read", ratio, more, "<= 1.5")


def _read(server: PostgresServer) -> int:
    """The rows alone, as the kind reads them."""
    from harken.sources.kinds import outside_kind
    from harken.sources.outside import Context

    context = Context(
        now=lambda: datetime.datetime.now(datetime.UTC), name="big", allow_private_addresses=True
    )
    kind = outside_kind("postgresql")
    options = {each.name: each.default for each in kind.options}
    opened = kind.open({**options, "url": server.url(), "table": "big"}, context, "poll")
    assert opened.polled is not None
    with closing(opened.polled) as polled:
        snapshot = polled.snapshot()
        assert snapshot is not None
        return sum(batch.num_rows for batch in snapshot.batches)


# --- changes as they come --------------------------------------------------------------------


def _arrivals(connection: Any, server: PostgresServer) -> Iterator[Figure]:
    connection.execute("CREATE TABLE account (id int PRIMARY KEY, amount int)")
    connection.execute("INSERT INTO account SELECT i, 0 FROM generate_series(1, 1000) i")
    params = {"items": TRANSACTIONS, "kind": "postgresql"}
    clock = Clock()
    with baseline.directory() as directory, _connected(directory / "ours.db", clock) as db:
        _source(db, server, "account", "logical")
        db.sql("CREATE VIEW rich AS SELECT id, amount FROM account WHERE amount > 0")
        seen: dict[int, float] = {}

        def note(change: harken.Change) -> None:
            for _, amount in change.plus:
                seen[amount] = time.perf_counter()

        db.monitor("rich", note)
        for number in range(1, TRANSACTIONS + 1):
            _write(connection, number)
        clock.forward(1)
        took = seconds(db.run_due)
        assert len(seen) == TRANSACTIONS, len(seen)
        yield Figure("sources", "transactions/s", TRANSACTIONS / took, params, ">= 300")
        yield Figure("sources", "median delay ms", _delay(connection, db, clock, seen), params)


def _write(connection: Any, number: int) -> None:
    connection.execute("UPDATE account SET amount = %s WHERE id = %s", [number, number % 1_000 + 1])


def _delay(connection: Any, db: harken.Database, clock: Clock, seen: dict[int, float]) -> float:
    """Of transactions that come one after the other, while the log is looked at all the time."""
    written: dict[int, float] = {}
    first = TRANSACTIONS + 1

    def write() -> None:
        for number in range(first, first + TRANSACTIONS):
            _write(connection, number)
            written[number] = time.perf_counter()
            time.sleep(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        clock.forward(1)
        db.run_due()
    thread.join()
    clock.forward(1)
    db.run_due()
    return statistics.median(1_000 * max(0.0, seen[each] - at) for each, at in written.items())


def _idle(connection: Any, server: PostgresServer) -> Iterator[Figure]:
    """The processor time of this process in seconds in which nothing happens."""
    clock = Clock()
    with _connected(clock=clock) as db:
        for number in range(SOURCES):
            connection.execute(f"CREATE TABLE quiet{number} (id int PRIMARY KEY, n int)")
            _source(db, server, f"quiet{number}", "logical")
        for _ in range(3):
            clock.forward(1)
            db.run_due()
        start = time.process_time()
        for _ in range(LOOKS):
            clock.forward(1)
            db.run_due()
        share = 100 * (time.process_time() - start) / LOOKS
        yield Figure("sources", "idle % of a core", share, {"items": SOURCES}, "<= 2")


# --- pages -----------------------------------------------------------------------------------


def _page_figures(rounds: int) -> Iterator[Figure]:
    params = {"items": PAGES, "kind": "html", "rows": ROWS_OF_A_PAGE}
    clock = Clock()
    with _site() as (pages, port), _connected(clock=clock) as db:
        for number in range(PAGES):  # each on a host of its own, because hosts are spared
            pages[f"/{number}"] = _page(number, 0)
            url = f"http://127.0.0.{number + 1}:{port}/{number}"
            db.source(f"page{number}", "html", url=url, table=1, key="c1", every=60)

        def poll() -> None:
            clock.forward(61)
            db.run_due()

        quiet = statistics.median(seconds(poll) for _ in range(rounds))
        changed = []
        for step in range(1, rounds + 1):
            pages["/7"] = _page(7, step)
            changed.append(seconds(poll))
        yield Figure("sources", "pages, one changed s", statistics.median(changed), params)
        yield Figure("sources", "pages, none changed s", quiet, params)


def _page(number: int, step: int) -> bytes:
    rows = "".join(
        f"<tr><td>{number}-{i}</td><td>{i + (step if i == 7 else 0)}</td></tr>"
        for i in range(ROWS_OF_A_PAGE)
    )
    return f"<table><tr><th>c1</th><th>c2</th></tr>{rows}</table>".encode()


@contextmanager
def _site() -> Iterator[tuple[dict[str, bytes], int]]:
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *given: Any) -> None: ...

    port = free_port()
    hosts = [f"127.0.0.{number + 1}" for number in range(PAGES)]
    servers = [http.server.ThreadingHTTPServer((each, port), Handler) for each in hosts]
    threads = [
        threading.Thread(target=each.serve_forever, args=(0.1,), daemon=True) for each in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield pages, port
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
