"""A plan answered by Spark: every relation it reads as a DataFrame, then one statement.

Lake relations are the files of their version, restricted to the keys that are known here before
anything runs; near ones, Δ-sets among them, travel there. What is pending of a lake relation is put
instead of what it replaces.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harken.calculus.states import delta, old
from harken.engines import arrow_rows as conversion
from harken.engines.delta import weighted
from harken.engines.protocol import TooManyRows
from harken.engines.representable import WIDE_DECIMAL
from harken.engines.spark import keyfilter, stacked
from harken.engines.spark.faults import translated
from harken.engines.spark.functions import ForeignFunction, to_stored
from harken.engines.spark.inputs import AskedPlan, Inputs, LakeRelation, LargeChange
from harken.engines.spark.query import SparkQuery, collected, compile_plan
from harken.engines.spark.reader import LakeReader, spark_schema
from harken.engines.spark.version_changes import change_frame
from harken.engines.weighing import Weighing
from harken.errors import HarkenError
from harken.ir.clauses import stored_relations
from harken.ir.relations import Relation
from harken.planner.prepare import Plan
from harken.values.encoding import LARGEST, SMALLEST, WIDE
from harken.values.rows import Row
from harken.values.types import NUMBER, Type, decimal_digits, is_decimal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MOST_PUSHED = 100_000
"""More keys than these are not worth testing for in every scan."""


def answer(inputs: Inputs, query: AskedPlan, values: Sequence[Any]) -> list[Row]:
    """The rows of the query, as stored values."""
    inputs.tally.queries += 1
    with translated():
        return collected(query.relation, _Question(inputs).frame(query, values))


def recursive_rows(
    inputs: Inputs, query: AskedPlan, relations: Sequence[Relation], most: int
) -> list[list[Row]]:
    """The rows of each of these recursive relations of a query without parameters, as stored
    values, if there are not more than `most` of any."""
    inputs.tally.queries += 1
    with translated():
        compiled, stored = _Question(inputs).compiled(query, ())
        frames = compiled.evaluated(inputs.reader.session, (), inputs.now(), stored)
        found = [
            collected(each, frames[compiled.tables[each.id]].limit(most + 1)) for each in relations
        ]
    if any(len(rows) > most for rows in found):
        raise TooManyRows
    return found


def answer_together(inputs: Inputs, queries: Sequence[AskedPlan]) -> list[list[Row]]:
    """The rows of each query, by one job of Spark: what several of them read is read once, where
    Spark finds it in its plan or where it is kept."""
    inputs.tally.queries += 1
    question = _Question(inputs)
    with translated():
        frames = [question.frame(query, ()) for query in queries]
        rows = stacked.rows(frames)
    return [
        each if query.relation.arity else [() for _ in each]
        for query, each in zip(queries, rows, strict=True)
    ]


def counted(
    inputs: Inputs,
    query: AskedPlan,
    columns: Sequence[int],
    values: Sequence[int],
    present: int | None,
) -> list[Row]:
    """Some columns of the rows of a query, each once, with how often they occur and the sums of
    others, each None if it is too large; as stored. See `Query.counted`."""
    from pyspark.sql import functions as F

    inputs.tally.queries += 1
    sums = []
    for value in values:
        exact = is_decimal(query.relation.columns[value].type)
        given = F.col(f"c{value}")
        sums.append(F.try_sum(given if exact else given.cast("decimal(20)")))
    with translated():
        frame = _Question(inputs).frame(query, ())
        if present is not None:
            frame = frame.filter(F.col(f"c{present}").isNotNull())
        groups = frame.groupBy(*(f"c{i}" for i in columns))
        found = groups.agg(F.count(F.lit(1)).alias("n"), *sums).filter("n > 0").collect()
    return [tuple(map(to_stored, row)) for row in found]


def weighed(inputs: Inputs, query: AskedPlan, weighing: Weighing) -> list[Row]:
    """What the rows of a change come to, as stored; a sum that is too large is no integer."""
    from pyspark.sql import functions as F

    inputs.tally.queries += 1
    by = ["k"] * weighing.is_keyed + [f"c{i}" for i in weighing.by]
    weight = F.expr(weighing.weight)
    found, changed = [F.sum(weight).alias("n")], "n <> 0"
    for place in weighing.values:
        value, name = F.col(f"c{place}"), f"s{place}"
        if not is_decimal(query.relation.columns[place].type):
            value = value.cast("decimal(20)")
        found.append(F.try_sum(value * weight.cast("decimal(10)")).alias(name))
        changed += f" OR {name} <> 0 OR {name} IS NULL"
    with translated():
        frame = _Question(inputs).frame(query, ()).withColumn("k", F.lit(0))
        if weighing.present is not None:
            frame = frame.filter(F.col(f"c{weighing.present}").isNotNull())
        groups = frame.groupBy(*by).agg(*found).filter(changed).collect()
    rows = [tuple(map(to_stored, group)) for group in groups]
    sums = len(weighing.values)
    return [
        (*row[: len(row) - sums], *(each if _fits(each) else math.inf for each in row[-sums:]))
        if sums
        else row
        for row in rows
    ]


def _fits(total: int | None) -> bool:
    return total is not None and abs(total) <= LARGEST


class _Question:
    """What is asked of Spark at once. What more than one query reads travels there once."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._near: dict[str, DataFrame] = {}

    def frame(self, query: AskedPlan, values: Sequence[Any]) -> DataFrame:
        compiled, stored = self.compiled(query, values)
        inputs = self._inputs
        return compiled.dataframe(inputs.reader.session, values, inputs.now(), stored)

    def compiled(
        self, query: AskedPlan, values: Sequence[Any]
    ) -> tuple[SparkQuery, dict[str, DataFrame]]:
        """The query, and what it reads."""
        inputs, reader = self._inputs, self._inputs.reader
        keys = _known_keys(inputs, query, values)
        frames: dict[str, DataFrame] = {}
        names: dict[str, str] = {}

        def give(name: str, frame: DataFrame) -> None:
            names[name] = f"stored{len(names)}"
            frames[f"⟦{names[name]}⟧"] = frame

        for relation in stored_relations(query.plan.program).values():
            lake_relation, large = (
                inputs.lake_relations.get(relation.id),
                inputs.large.get(relation.id),
            )
            if lake_relation is not None:
                give(
                    relation.id,
                    _lake_frame(
                        reader, lake_relation, lake_relation.version, keys.get(relation.id)
                    ),
                )
            elif large is not None:
                give(relation.id, _kept_changes(reader, large))
            else:
                give(relation.id, self._travelled(relation))
        for large in inputs.large.values():
            before = old(large.lake_relation.relation).id
            if before in query.plan.program.definitions:
                give(before, _lake_frame(reader, large.lake_relation, large.before, None))
        python = {name: ForeignFunction(*each) for name, each in inputs.python.items()}
        return compile_plan(query.plan, names, python, marked=True), frames

    def _travelled(self, relation: Relation) -> DataFrame:
        if relation.id not in self._near:
            self._near[relation.id] = _near(self._inputs, self._inputs.reader, relation)
        return self._near[relation.id]


def _known_keys(
    inputs: Inputs, query: AskedPlan, values: Sequence[Any]
) -> dict[str, pa.Table | None]:
    """For lake relations of which only some keys can be needed: those, if they are few."""
    found: dict[str, pa.Table | None] = {}
    for demand, question in query.asked:
        name = demand.relation.id
        if question is None or _asks_lake(inputs, demand.plan):
            found[name] = None
            continue
        lake_relation = inputs.lake_relations[name]
        try:
            known = question.rows(values)
        except HarkenError:  # asked too early: the query itself may not get so far
            found[name] = None
            continue
        if len(known) > MOST_PUSHED or not lake_relation.is_written:
            found[name] = None
            continue
        table = lake_relation.keys(demand.columns, known)
        before = found.get(name, table)
        if before is None or before.column_names != table.column_names:
            found[name] = None
        elif name in found:
            found[name] = pa.concat_tables([before, table])
        else:
            found[name] = table
    return found


def _asks_lake(inputs: Inputs, plan: Plan | None) -> bool:
    """Does the question itself read what is not here?"""
    if plan is None:
        return True
    asked = stored_relations(plan.program)
    return bool(asked.keys() & (inputs.lake_relations.keys() | inputs.large.keys()))


def _near(inputs: Inputs, reader: LakeReader, relation: Relation) -> DataFrame:
    rows = inputs.resident_rows(relation)
    return reader.small(conversion.to_arrow(rows, relation.columns, _schema(relation)))


def _schema(relation: Relation) -> pa.Schema:
    types = [conversion.arrow_type(column.type) for column in relation.columns]
    return pa.schema([(f"c{i}", type_) for i, type_ in enumerate(types)])


def _lake_frame(
    reader: LakeReader, lake_relation: LakeRelation, version: int, keys: pa.Table | None
) -> DataFrame:
    relation, schema = lake_relation.relation, _schema(lake_relation.relation)
    if not lake_relation.is_written:
        frame = reader.small(schema.empty_table())
    else:
        frame = _named(
            reader.frame(lake_relation.table, version, keys), lake_relation.columns, schema
        )
        if not lake_relation.is_own:
            frame = _sound(frame, relation)
    pending = lake_relation.pending_rows()
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


def _sound(frame: DataFrame, relation: Relation) -> DataFrame:
    """A number that is not finite is none, and a row with a NULL where there can be none says
    nothing. (Asked of each column by itself: of one condition on many columns, `dropna`, Spark
    works out all its forms under the names that a plan gives them, and there are 2ⁿ.)"""
    from pyspark.sql import functions as F

    columns = [(f"c{i}", column.type) for i, column in enumerate(relation.columns)]
    for name, type_ in columns:
        if type_ == NUMBER or (is_decimal(type_) and not type_.nullable):
            frame = frame.withColumn(name, F.when(_has_value(F.col(name), type_), F.col(name)))
    for name, type_ in columns:
        if not type_.nullable:
            frame = frame.filter(F.col(name).isNotNull())
    return frame


def _has_value(value: Column, type_: Type) -> Column:
    """Is there a value that a function can have? NaN is above infinity."""
    from pyspark.sql import functions as F

    if type_ == NUMBER:
        return F.abs(value) < F.lit(math.inf)
    if is_decimal(type_) and decimal_digits(type_)[0] >= WIDE_DECIMAL:
        scale = decimal_digits(type_)[1]
        least, most = (F.lit(Decimal(each).scaleb(-scale, WIDE)) for each in (SMALLEST, LARGEST))
        return value.between(least, most)
    return value.isNotNull()


def repeated_key(
    reader: LakeReader, lake_relation: LakeRelation, keys: pa.Table | None
) -> Row | None:
    """A key that has several rows in the version that is read, among these keys if any are
    given."""
    from pyspark.sql import functions as F

    names = [f"c{i}" for i in lake_relation.relation.key or ()]
    frame = _lake_frame(reader, lake_relation, lake_relation.version, keys)
    counted = frame.groupBy(*names).agg(F.count("*").alias("rows")).filter("rows > 1")
    found = reader.collect(counted.select(*names).limit(1)).to_pylist()
    return tuple(found[0].values()) if found else None


def count_unsound(
    reader: LakeReader,
    lake_relation: LakeRelation,
    names: Sequence[str],
    between: tuple[int, int] | None = None,
) -> tuple[int, int, dict[str, int]]:
    """How many rows have no value in one of these columns, of how many, and in how many each of
    them has none. The rows are those of the version that is read, or those that came `between` two
    versions."""
    from pyspark.sql import functions as F

    if between is None:
        frame, weight = reader.frame(lake_relation.table, lake_relation.version, None), F.lit(1)
    else:
        frame = change_frame(reader, lake_relation.table, *between, lake_relation.columns)
        weight = F.greatest(F.col(weighted.WEIGHT), F.lit(0))
    types = dict(
        zip(
            lake_relation.columns,
            (each.type for each in lake_relation.relation.columns),
            strict=True,
        )
    )
    tests = []
    for name in names:
        sound = _has_value(F.col(keyfilter.quoted(name)), types[name])
        tests.append(~F.coalesce(sound, F.lit(False)))
    anywhere = functools.reduce(lambda a, b: a | b, tests)
    wanted = (F.lit(True), anywhere, *tests)
    sums = [F.sum(F.when(test, weight)).alias(f"c{i}") for i, test in enumerate(wanted)]
    (found,) = reader.collect(frame.agg(*sums)).to_pylist()
    of, rows, *causes = (found[f"c{i}"] or 0 for i in range(len(wanted)))
    return rows, of, dict(zip(names, causes, strict=True))


def _kept_changes(reader: LakeReader, large: LargeChange) -> DataFrame:
    """The rows of a Δ-set that is not held here, each with its weight. Every differential reads
    it, on every level, so Spark keeps it until it has been propagated."""
    kept: DataFrame | None = large.kept
    if kept is None:
        lake_relation = large.lake_relation
        frame = change_frame(
            reader, lake_relation.table, large.before, large.after, lake_relation.columns
        )
        schema = _schema(delta(lake_relation.relation))
        named = _named(frame, [*lake_relation.columns, weighted.WEIGHT], schema)
        kept = _sound(named, delta(lake_relation.relation)).persist()
        large.kept = kept
    return kept


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
            # By the key alone the other columns need not be read to see what is gone.
            told = relation.key or range(relation.arity)
            gone = gone.select(*(F.col(f"c{i}").alias(f"g{i}") for i in told))
            same = [F.col(f"c{i}").eqNullSafe(F.col(f"g{i}")) for i in told]
            frame = frame.join(F.broadcast(gone), same, "left_anti")
        else:
            frame = frame.exceptAll(gone)
    if plus:
        come = conversion.to_arrow(plus, relation.columns, schema)
        frame = frame.unionAll(reader.small(weighted.positive_zeros(come)))
    return frame
