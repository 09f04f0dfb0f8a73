"""A user's relation may have any name, also one that looks like what Harken calls its own."""

from __future__ import annotations

import pytest

import harken

NAMES = (
    "old x",
    "Δx",
    "Δ x",
    "ask_x",
    "m_x^bf",
    "affected x",
    "extent item",
    "activations of r",
    "parameters of p",
    "copy x",
    "recent x",
    "settled x",
    "x^del",
)


@pytest.mark.parametrize("name", NAMES)
def test_changes_are_found_whatever_a_table_is_called(name: str) -> None:
    db = harken.connect()
    db.sql(f'CREATE TABLE x (a INTEGER, b INTEGER); CREATE TABLE "{name}" (a INTEGER, b INTEGER)')
    db.sql(
        f'CREATE VIEW v AS SELECT y.a, count(x.b) AS n FROM "{name}" y LEFT JOIN x ON x.a = y.a '
        "GROUP BY y.a"
    )
    changes = db.monitor("v").changes
    db.sql(f'INSERT INTO "{name}" VALUES (1, 4)')
    assert [(each.plus, each.minus) for each in changes()] == [([(1, 0)], [])]
    db.sql("INSERT INTO x VALUES (1, 2)")
    assert [(each.plus, each.minus) for each in changes()] == [([(1, 1)], [(1, 0)])]
    assert db.sql("SELECT * FROM v").rows == [(1, 1)]
