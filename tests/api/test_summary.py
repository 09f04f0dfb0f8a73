"""`db.explain` in short: the same questions are answered for whatever has rows or a condition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

import harken
from harken.api.summary import MOST_LINES, Summary

KINDS = {
    "sale": "sale is a table",
    "total": "total is a materialized view",
    "big": "big is a view",
    "edge": "edge is a relation",
    "path": "path is a relation with rules",
    "quantity": "quantity(item) is a stored function",
    "low": "low is a strict, deferred rule, active",
}


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as database:
        database.sql(
            "CREATE TABLE sale (city STRING, n INT); INSERT INTO sale VALUES ('Oslo', 3);"
            "CREATE MATERIALIZED VIEW total AS SELECT city, sum(n) AS s FROM sale GROUP BY city;"
            "CREATE VIEW big AS SELECT city FROM total WHERE s > 5"
        )
        database.datalog(
            ".decl edge(x: number, y: number) edge(1, 2). edge(2, 3)."
            ".decl path(x: number, y: number) path(x, y) :- edge(x, y)."
            "path(x, z) :- path(x, y), edge(y, z)."
        )
        database.amosql(
            "create type item properties (quantity integer);"
            "create function twice(integer i) -> integer as select i * 2;"
            "create rule low() as when for each item i where quantity(i) < 5 do print(i);"
            "activate low(); commit;"
        )
        yield database


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_in_each_format(db: harken.Database, name: str) -> None:
    text = str(db.explain(name))
    assert text.startswith(f"{KINDS[name]}\nreads    ")
    for heading in ("changes", "stored", "costs"):
        assert f"\n{heading:<9}" in text
    assert len(text.splitlines()) <= MOST_LINES
    parts = json.loads(str(db.explain(name, format="json")))
    assert parts["title"] == KINDS[name]
    long = json.loads(str(db.explain(name, verbose=True, format="json")))
    assert long["kind"] == parts["kind"]
    drawing = ElementTree.fromstring(str(db.explain(name, format="svg")))
    assert drawing.tag.endswith("svg")


VIEWS = {"total": "sale", "big": "total", "path": "path", "low": "quantity(item)"}
"""With what each reads."""


@pytest.mark.parametrize("name", VIEWS)
def test_the_verbose_one_adds_clauses_differentials_and_sql(db: harken.Database, name: str) -> None:
    text = str(db.explain(name, verbose=True))
    assert "SELECT " in text
    assert "s ObjectLog:" in text
    assert "The network:\n\nlevel " in text
    assert f"When {VIEWS[name]}" in text
    parts = json.loads(str(db.explain(name, verbose=True, format="json")))
    (influent,) = [each for each in parts["influents"] if each["relation"].startswith(VIEWS[name])]
    assert influent["gains"]
    assert influent["gain_sql"].startswith("SELECT ")
    drawing = str(db.explain(name, format="svg"))
    assert f">{len(influent['gains']) + len(influent['losses'])} differential" in drawing


def test_it_says_the_decision_that_was_taken(db: harken.Database) -> None:
    db.monitoring("naive")
    db.sql("INSERT INTO sale VALUES ('Oslo', 5)")
    summary = db.explain("total")
    assert isinstance(summary, Summary)
    last = summary.network[0].decisions[-1]
    assert last.reason == "forced"
    assert last.sentence in summary.changes[0]
    assert "its rows, kept up to date: 1" in summary.stored


def test_explaining_decides_nothing(db: harken.Database) -> None:
    db.sql("INSERT INTO sale VALUES ('Oslo', 5)")
    before = str(db.explain("total"))
    assert str(db.explain("total")) == before


def test_a_view_that_nobody_follows(db: harken.Database) -> None:
    assert "nobody follows it here" in str(db.explain("big"))
    with db.monitor("big"):
        assert "nobody follows it here" not in str(db.explain("big"))


def test_a_function_with_arguments_has_no_network(db: harken.Database) -> None:
    assert "it needs arguments" in str(db.explain("twice"))
    with pytest.raises(harken.TypeFault, match="needs arguments"):
        db.explain("twice", format="svg")


def test_a_wrong_name_or_format(db: harken.Database) -> None:
    with pytest.raises(harken.NameFault) as error:
        db.explain("totals")
    assert error.value.hint == "did you mean total?"
    with pytest.raises(harken.TypeFault, match="there is no format pdf"):
        db.explain("total", format="pdf")
