"""A plan answered by Spark: every relation it reads as a DataFrame, then one statement.

Far relations are the files of their version, restricted to the keys that are known here before
anything runs; near ones, Δ-sets among them, travel there. What is pending of a far relation is put
in the place of what it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harken.calculus.states import delta, old
from harken.engines.lake import rows as conversion
from harken.engines.lake.far import FarRelation
from harken.engines.spark import keyfilter, weighted
from harken.engines.spark.changes import change_frame
from harken.engines.spark.functions import ForeignFunction
from harken.engines.spark.query import compile_plan
from harken.engines.spark.reader import LakeReader, spark_schema
from harken.engines.sqlite.compile import table_name
from harken.engines.sqlite.expressions import quote
from harken.ir.clauses import stored_relations
from harken.ir.relations import Relation
from harken.planner.prepare import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from harken.engines.lake.engine import LakeEngine, LargeDelta
    from harken.engines.lake.query import FarQuery

Row = tuple[Any, ...]

MOST_PUSHED = 100_000
"""More keys than these are not worth testing for in every scan."""


def answer(engine: LakeEngine, query: FarQuery, values: Sequence[Any]) -> list[Row]:
    """The rows of the query, as stored values."""
    reader = engine.reader
    relations = stored_relations(query.plan.program)
    keys = _known_keys(engine, query, values)
    frames: dict[str, DataFrame] = {}
    names: dict[str, str] = {}

    def give(name: str, frame: DataFrame) -> None:
        names[name] = f"stored{len(names)}"
        frames[f"⟦{names[name]}⟧"] = frame

    for relation in relations.values():
        far, large = engine.far.get(relation.id), engine.large.get(relation.id)
        if far is not None:
            give(relation.id, _far(reader, far, far.place.version, keys.get(relation.id)))
        elif large is not None:
            give(relation.id, _changes(reader, large))
        else:
            give(relation.id, _near(engine, reader, relation))
    for large in engine.large.values():
        before = old(large.far.relation).id
        if before in query.plan.program.definitions:
            give(before, _far(reader, large.far, large.before, None))
    engine.tally.queries += 1
    python = {name: ForeignFunction(*each) for name, each in engine.python.items()}
    compiled = compile_plan(query.plan, names, python, marked=True)
    return compiled.rows(reader.session, values, engine.connection.now(), frames)


def _known_keys(
    engine: LakeEngine, query: FarQuery, values: Sequence[Any]
) -> dict[str, pa.Table | None]:
    """For far relations of which only some keys can be needed: those, if they are few."""
    found: dict[str, pa.Table | None] = {}
    for demand, question in query.asked:
        name = demand.relation.id
        if question is None or _asks_far(engine, demand.plan):
            found[name] = None
            continue
        far = engine.far[name]
        known = question.rows(values)
        if len(known) > MOST_PUSHED or not far.is_written:
            found[name] = None
            continue
        table = far.keys(demand.columns, known)
        before = found.get(name, table)
        if before is None or before.column_names != table.column_names:
            found[name] = None
        elif name in found:
            found[name] = pa.concat_tables([before, table])
        else:
            found[name] = table
    return found


def _asks_far(engine: LakeEngine, plan: Plan | None) -> bool:
    """Does the question itself read what is not here?"""
    if plan is None:
        return True
    asked = stored_relations(plan.program)
    return bool(asked.keys() & (engine.far.keys() | engine.large.keys()))


def _near(engine: LakeEngine, reader: LakeReader, relation: Relation) -> DataFrame:
    columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "1"
    rows = engine.connection.rows(f"SELECT {columns} FROM {quote(table_name(relation))}")
    return reader.small(conversion.to_arrow(rows, relation.columns, _schema(relation)))


def _schema(relation: Relation) -> pa.Schema:
    types = [conversion.arrow_type(column.type) for column in relation.columns]
    return pa.schema([(f"c{i}", type_) for i, type_ in enumerate(types)])


def _far(reader: LakeReader, far: FarRelation, version: int, keys: pa.Table | None) -> DataFrame:
    relation, schema = far.relation, _schema(far.relation)
    if not far.is_written:
        frame = reader.small(schema.empty_table())
    else:
        frame = _named(reader.frame(far.table, version, keys), far.columns, schema)
        if not far.place.is_own:
            frame = frame.dropna()
    pending = far.pending.rows() if far.place.is_own else []
    return _with_pending(reader, frame, relation, pending) if pending else frame


def _named(frame: DataFrame, columns: Sequence[str], schema: pa.Schema) -> DataFrame:
    """These columns, under the names and with the types that statements know them by."""
    from pyspark.sql import functions as F

    types = spark_schema(schema)
    return frame.select(
        *(
            F.col(keyfilter.quoted(name)).cast(types[i].dataType).alias(f"c{i}")
            for i, name in enumerate(columns)
        )
    )


def _changes(reader: LakeReader, large: LargeDelta) -> DataFrame:
    """The rows of a Δ-set that is not held here, each with its weight."""
    far = large.far
    frame = change_frame(reader, far.table, large.before, large.after, far.columns)
    schema = _schema(delta(far.relation))
    return _named(frame, [*far.columns, weighted.WEIGHT], schema).dropna()


def _with_pending(
    reader: LakeReader, frame: DataFrame, relation: Relation, pending: list[Row]
) -> DataFrame:
    """A row that is there n times and pending with weight w is there n + w times."""
    from pyspark.sql import functions as F

    schema = _schema(relation)
    plus = [row[:-1] for row in pending if row[-1] > 0 for _ in range(row[-1])]
    minus = [row[:-1] for row in pending if row[-1] < 0 for _ in range(-row[-1])]
    if minus:
        gone = reader.small(conversion.to_arrow(minus, relation.columns, schema))
        if relation.is_set:
            gone = gone.toDF(*(f"g{i}" for i in range(relation.arity)))
            same = [F.col(f"c{i}") == F.col(f"g{i}") for i in range(relation.arity)]
            frame = frame.join(F.broadcast(gone), same, "left_anti")
        else:
            frame = frame.exceptAll(gone)
    if plus:
        come = conversion.to_arrow(plus, relation.columns, schema)
        frame = frame.unionAll(reader.small(weighted.positive_zeros(come)))
    return frame
