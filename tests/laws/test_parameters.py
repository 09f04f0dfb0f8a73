"""A parameter means what a constant of the same value means in its place, errors included."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import harken

TEMPLATES = (
    "SELECT id, s FROM t WHERE id = {} ORDER BY id",
    "SELECT id FROM t WHERE s = {} OR id > {} ORDER BY id",
    "SELECT id + {} AS x FROM t ORDER BY {}",
    "SELECT id % 2 = {} AS x, count(*) FROM t GROUP BY id % 2 = {} ORDER BY x",
    "SELECT id FROM t WHERE id IN ({}, {}) ORDER BY 1 LIMIT {}",
    "SELECT id FROM t WHERE c >= {} AND n < {} ORDER BY id",
    "SELECT {}",
    "INSERT INTO t VALUES ({}, {}, {}, {})",
    "UPDATE t SET s = {}, c = c + {} WHERE id = {}",
    "DELETE FROM t WHERE id BETWEEN {} AND {}",
    "SELECT upper({}), coalesce({}, 'x'), - {} FROM t ORDER BY id LIMIT 1",
    "SELECT CASE WHEN id < {} THEN {} ELSE {} END AS x FROM t ORDER BY id",
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.decimals(-100, 100, places=2),
    st.decimals(-9, 9, places=1),
    st.sampled_from(["", "a", "1", "it's", "é\n", "2024-01-02", "1.0"]),
)


def written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"{value}"


def outcome(db: harken.Database, text: str, values: Any = None) -> Any:
    try:
        found = db.sql(text, values)
        state = db.sql("SELECT * FROM t ORDER BY id").rows
        return [each.rows for each in found], state
    except harken.HarkenError as error:
        return error.code, error.message


@given(st.sampled_from(TEMPLATES), st.lists(VALUES, min_size=4, max_size=4))
@settings(max_examples=150, deadline=None)
def test_a_parameter_is_a_constant(template: str, values: list[Any]) -> None:
    used = values[: template.count("{}")]
    found = []
    for text, given_values in (
        (template.format(*map(written, used)), None),
        (template.replace("{}", "?"), used),
    ):
        with harken.connect() as db:
            db.sql("CREATE TABLE t (id INT PRIMARY KEY, s STRING, c DECIMAL(8, 2), n DOUBLE)")
            db.sql("INSERT INTO t VALUES (1, 'a', 1.5, 2.5), (2, '1', 2, NULL), (3, NULL, 0, 1e0)")
            found.append(outcome(db, text, given_values))
    assert found[0] == found[1]
