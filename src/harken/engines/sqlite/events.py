"""Event detection: what a transaction changes in a stored relation, as it happens.

While something depends on the changes of a relation, three triggers on its table keep its Δ-set: a
temporary table of the changed rows with their weights. Weights add up, so what was done and
undone weighs nothing. Triggers and Δ-sets belong to the session and take part in its
transactions: a rollback, also of a single statement, takes its events back.

Law: the rows with a weight are exactly the difference between the table now and when the Δ-set was
last cleared.
"""

from __future__ import annotations

from harken.calculus.states import delta
from harken.engines.sqlite.compile import table_name
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.expressions import literal_text, quote
from harken.ir.relations import Relation

MARKS = "harken_changed"
CREATE_MARKS = f"CREATE TEMP TABLE IF NOT EXISTS {MARKS} (name TEXT PRIMARY KEY) WITHOUT ROWID"


def create_delta(relation: Relation) -> str:
    columns = ", ".join(f"c{i}" for i in range(relation.arity))
    weight = f"c{relation.arity}"
    return (
        f"CREATE TEMP TABLE IF NOT EXISTS {_delta_table(relation)} "
        f"({columns}, {weight} INTEGER NOT NULL, PRIMARY KEY ({columns})) WITHOUT ROWID"
    )


def create_triggers(relation: Relation) -> list[str]:
    table = f"main.{quote(table_name(relation))}"
    mark = f"INSERT INTO {MARKS} VALUES ({literal_text(relation.id)}) ON CONFLICT DO NOTHING;"
    events = {
        "insert": [_count(relation, "NEW", 1), mark],
        "delete": [_count(relation, "OLD", -1), mark],
        "update": [_count(relation, "OLD", -1), _count(relation, "NEW", 1), mark],
    }
    return [
        f"CREATE TEMP TRIGGER IF NOT EXISTS {_trigger(relation, event)} AFTER {event.upper()} "
        f"ON {table} BEGIN {' '.join(body)} END"
        for event, body in events.items()
    ]


def drop(relation: Relation) -> list[str]:
    triggers = [
        f"DROP TRIGGER IF EXISTS temp.{_trigger(relation, event)}"
        for event in ("insert", "delete", "update")
    ]
    return [*triggers, f"DROP TABLE IF EXISTS temp.{_delta_table(relation)}"]


def capture(connection: Connection, relation: Relation) -> None:
    for sql in (CREATE_MARKS, create_delta(relation), *create_triggers(relation)):
        connection.run(sql)


def marked(connection: Connection) -> list[str]:
    """The ids of the relations that may have changed: their change flags."""
    return [str(name) for (name,) in connection.rows(f"SELECT name FROM temp.{MARKS}")]


def unmark(connection: Connection) -> None:
    connection.run(f"DELETE FROM temp.{MARKS}")


def size(connection: Connection, relation: Relation) -> int:
    return int(connection.value(f"SELECT count(*) FROM temp.{_delta_table(relation)}"))


def release(connection: Connection, relation: Relation) -> None:
    for sql in drop(relation):
        connection.run(sql)


def has_changed(connection: Connection, relation: Relation) -> bool:
    weight = f"c{relation.arity}"
    table = _delta_table(relation)
    return bool(connection.value(f"SELECT EXISTS (SELECT 1 FROM temp.{table} WHERE {weight} <> 0)"))


def clear(connection: Connection, relation: Relation) -> None:
    connection.run(f"DELETE FROM temp.{_delta_table(relation)}")


def _count(relation: Relation, row: str, weight: int) -> str:
    columns = ", ".join(f"c{i}" for i in range(relation.arity))
    values = ", ".join(f"{row}.c{i}" for i in range(relation.arity))
    total = f"c{relation.arity}"
    return (
        f"INSERT INTO {_delta_table(relation)} ({columns}, {total}) VALUES ({values}, {weight}) "
        f"ON CONFLICT ({columns}) DO UPDATE SET {total} = {total} + ({weight});"
    )


def _delta_table(relation: Relation) -> str:
    return quote(delta(relation).id)


def _trigger(relation: Relation, event: str) -> str:
    return quote(f"{event} {table_name(relation)}")
