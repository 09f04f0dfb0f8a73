"""What is kept for continual queries does not grow with time: the active delta zone of all queries.

A long run, with queries of every kind that are installed, fired, executed and dropped; then the
same again, several times. After each part the file holds as much as after the one before.
"""

from __future__ import annotations

import pytest

from tests.continual.conftest import Watched

QUERIES = {
    "daily": "SELECT symbol, price FROM stock WHERE price > 3 TRIGGER EVERY HOUR",
    "naive": "SELECT count(*) AS n FROM stock TRIGGER EVERY HOUR STRATEGY naive",
    "fallen": "SELECT symbol FROM stock TRIGGER WHEN price DECBY 2",
    "chain": "SELECT symbol FROM stock TRIGGER WHEN (price > 5) THEN (price < 3)",
    "lasting": "SELECT symbol FROM stock TRIGGER WHEN price > 5 FOR MORE THAN 20 MINUTES",
    "counted": "SELECT symbol, price FROM stock TRIGGER AFTER 4 CHANGES",
    "late": "SELECT symbol FROM stock TRIGGER 5 MINUTES AFTER WHEN price > 7",
    "gone": "SELECT symbol FROM stock TRIGGER ON DELETE OF stock",
}
OURS = "harken_"


def live(watched: Watched, hours: int, first: int) -> None:
    """Hours in the life of a database."""
    for hour in range(first, first + hours):
        for turn in range(3):
            number = hour * 3 + turn
            symbol = f"s{number % 5}"
            watched.sql(f"DELETE FROM stock WHERE symbol = '{symbol}'" if number % 7 == 0 else "")
            watched.sql(
                f"INSERT INTO stock VALUES ('{symbol}', 'X', {number * 7 % 10}) "
                "ON CONFLICT (symbol) DO UPDATE SET price = excluded.price"
            )
            watched.run(minutes=20)
        watched.sql("CREATE CONTINUAL QUERY brief AS SELECT symbol FROM stock TRIGGER ON REQUEST")
        watched.sql("EXECUTE CONTINUAL QUERY brief; DROP CONTINUAL QUERY brief")


def sizes(watched: Watched) -> dict[str, int]:
    """The rows of each table of the file."""
    raw = watched.db.internals.connection.raw
    names = [
        name
        for (name,) in raw.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
        if not name.startswith("sqlite_")
    ]
    return {name: next(raw.execute(f'SELECT count(*) FROM main."{name}"'))[0] for name in names}


def check(watched: Watched, parts: int, hours: int) -> None:
    watched.db.close()
    watched.db = watched.connect(continual_executions=5, delivered_messages=10)
    for name, text in QUERIES.items():
        watched.sql(f"CREATE CONTINUAL QUERY {name} AS {text} NOTIFY LOG")
    live(watched, hours, 0)
    before = sizes(watched)
    for part in range(1, parts + 1):
        live(watched, hours, part * hours)
        now = sizes(watched)
        grown = {
            name: (before.get(name, 0), n)
            for name, n in now.items()
            if n > before.get(name, 0) + 12
        }
        assert not grown
    assert watched.sql("SELECT count(*) FROM continual_execution")[0][0] <= 5 * len(QUERIES)
    for name in QUERIES:
        watched.sql(f"DROP CONTINUAL QUERY {name}")
    left = {name: n for name, n in sizes(watched).items() if "previous" in name or "answer" in name}
    assert not any(left.values()), left


def test_nothing_grows_with_time(watched: Watched) -> None:
    check(watched, parts=2, hours=4)


@pytest.mark.nightly
def test_nothing_grows_in_months(watched: Watched) -> None:
    check(watched, parts=20, hours=40)
