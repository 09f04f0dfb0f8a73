"""FROM in all its forms: joins in parentheses, their aliases, columns that are called the same."""

from __future__ import annotations

from typing import Any

import pytest

import harken
from tests.harness.watched import Watched

SCHEMA = """
CREATE TABLE ship (name STRING, port STRING, crew INT);
CREATE TABLE port (name STRING, country STRING);
CREATE TABLE cargo (ship STRING, tons INT);
"""
FILL = """
INSERT INTO ship VALUES ('Fram', 'Oslo', 16), ('Gjoa', 'Oslo', 7), ('Vega', NULL, 30);
INSERT INTO port VALUES ('Oslo', 'N'), ('Turku', 'FI');
INSERT INTO cargo VALUES ('Fram', 5), ('Fram', 5), ('Vega', 1)
"""
SAME_NAMES = "SELECT s.name, p.name, crew FROM ship AS s LEFT JOIN port AS p ON p.name = s.port"

# title: query, its rows
CASES: dict[str, tuple[str, list[Any]]] = {
    "a join with an alias": (
        "SELECT q.name, q.tons FROM (ship JOIN cargo ON ship = name) AS q WHERE q.crew > 20",
        [("Vega", 1)],
    ),
    "a join with an alias and names for its first columns": (
        "SELECT q.who, q.tons FROM (ship JOIN cargo ON ship = name) AS q(who, home)",
        [("Fram", 5), ("Fram", 5), ("Vega", 1)],
    ),
    "joins in joins, whose tables keep their names": (
        "SELECT ship.name, c.tons, port.country FROM "
        "((ship LEFT JOIN port ON port.name = ship.port) JOIN (cargo) AS c ON c.ship = ship.name)",
        [("Fram", 5, "N"), ("Fram", 5, "N"), ("Vega", 1, None)],
    ),
    "a query with its alias inside of the parentheses": (
        "SELECT q.n FROM ((SELECT count(*) AS n FROM cargo) AS q)",
        [(3,)],
    ),
    "two columns of one name, below a window": (
        f"SELECT x.*, rank() OVER (ORDER BY x.crew) FROM ({SAME_NAMES}) AS x",
        [("Gjoa", "Oslo", 7, 1), ("Fram", "Oslo", 16, 2), ("Vega", None, 30, 3)],
    ),
    "two columns of one name, in WITH and a set": (
        f"WITH x AS ({SAME_NAMES}) SELECT * FROM x UNION SELECT * FROM x WHERE crew < 10",
        [("Fram", "Oslo", 16), ("Gjoa", "Oslo", 7), ("Vega", None, 30)],
    ),
    "two columns of one name, through an outer join": (
        f"SELECT x.* FROM port LEFT JOIN ({SAME_NAMES}) AS x ON crew < 10 AND port.name = 'Oslo'",
        [("Gjoa", "Oslo", 7), (None, None, None)],
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_each(title: str) -> None:
    query, rows = CASES[title]
    width = len(rows[0])
    view = f"SELECT * FROM ({query}) AS renamed({', '.join(f'c{i}' for i in range(width))})"
    watched = Watched(SCHEMA, {"v": view}, "incremental")
    watched.run(FILL)
    assert sorted(watched.rows("v").elements(), key=repr) == sorted(rows, key=repr)
    assert sorted(watched.db.sql(query).rows, key=repr) == sorted(rows, key=repr)
    watched.run("DELETE FROM cargo WHERE tons = 1; UPDATE ship SET port = 'Turku' WHERE crew < 20")
    watched.run("DELETE FROM port; INSERT INTO ship VALUES ('Gjoa', 'Oslo', 7)")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"SELECT name FROM ({SAME_NAMES}) AS x", "ambiguous"),
        (f"SELECT x.name FROM ({SAME_NAMES}) AS x", "ambiguous"),
        ("SELECT a FROM port AS p(a, b, c)", "arity"),
        ("SELECT * FROM port ORDER BY 3", "arity"),
        ("SELECT *, 1 FROM port ORDER BY 0", "arity"),
        ("SELECT name FROM port GROUP BY 2.5", "ungrouped"),
    ],
)
def test_what_cannot_be_meant_is_an_error(text: str, code: str) -> None:
    with harken.connect() as db:
        db.sql(SCHEMA + FILL)
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(text)
        assert caught.value.code == code


def test_order_by_all_is_by_each_column() -> None:
    with harken.connect() as db:
        db.sql(SCHEMA + FILL)
        found = db.sql("SELECT port, crew FROM ship ORDER BY ALL DESC").rows
        assert found == [("Oslo", 16), ("Oslo", 7), (None, 30)]
        first = db.sql("SELECT * FROM (SELECT port, crew FROM ship ORDER BY ALL LIMIT 2)").rows
        assert sorted(first, key=repr) == [("Oslo", 7), (None, 30)]
