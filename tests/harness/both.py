"""Plans evaluated by both engines: the rows of one must be the rows of the other.

A `Case` has its answer from SQLite when it is made. Many of them become one statement of Spark,
with their data in it, so many cases are one job.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harken import HarkenError
from harken.engines.spark.faults import translated
from harken.engines.spark.functions import ForeignFunction, to_stored
from harken.engines.spark.query import SparkQuery, compile_plan
from harken.engines.spark.sql_expressions import literal, quote, spark_type
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote as quote_sqlite
from harken.ir.clauses import Program, atoms
from harken.ir.relations import Kind, Relation
from harken.planner.prepare import Plan, prepare
from harken.values.encoding import decoder
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TIMESTAMP, Hierarchy, Type

Row = tuple[Any, ...]


@dataclass
class Case:
    """A program with the data it reads, and what SQLite says: rows, or the code of an error."""

    name: str
    number: int
    query: SparkQuery
    values: Sequence[Any]
    data: dict[Relation, list[Row]]
    answer: Counter[Row] | str
    now: datetime.datetime | None = None

    @property
    def recursive(self) -> bool:
        return bool(self.query.fixpoints)

    def text(self) -> str:
        """The statement with the data in it; each row as an array of texts."""
        tables = ", ".join(
            f"{quote(view_name(self.number, relation))} AS ({_values(relation, rows)})"
            for relation, rows in self.data.items()
        )
        columns = ", ".join(
            f"CAST(c{i} AS STRING)" for i in range(max(1, self.query.relation.arity))
        )
        rows = f"SELECT {self.number} AS n, array({columns}) AS r "
        inner = self.query.text(self.values, self.now)
        with_ = f"WITH {tables} " if tables else ""
        return f"({with_}{rows} FROM ({inner}))"

    def check(self, found: Iterable[Row]) -> None:
        got = Counter(map(_rounded, found))
        assert got == self.answer, (
            f"{self.name}: Spark has {got - self.answer} too much, lacks {self.answer - got}\n"  # type: ignore[operator]
            f"{self.query.text(self.values, self.now)}\n{self.data}"
        )


@dataclass
class Cases:
    """Cases to be asked together."""

    cases: list[Case] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        name: str,
        program: Program,
        hierarchy: Hierarchy,
        engine: SQLiteEngine,
        values: Sequence[Any] = (),
        python: Mapping[str, ForeignFunction] | None = None,
        now: datetime.datetime | None = None,
    ) -> Case:
        """May raise what preparing the program raises."""
        return self.add_plan(name, prepare(program, hierarchy), engine, values, python, now)

    def add_plan(
        self,
        name: str,
        plan: Plan,
        engine: SQLiteEngine,
        values: Sequence[Any] = (),
        python: Mapping[str, ForeignFunction] | None = None,
        now: datetime.datetime | None = None,
    ) -> Case:
        number = len(self.cases)
        stored = list(stored_relations(plan.program))
        tables = {relation.id: view_name(number, relation) for relation in stored}
        try:
            answer: Any = Counter(map(_rounded, rows_of(engine, plan, values)))
        except HarkenError as error:
            answer = error.code
        query = compile_plan(plan, tables, python)
        data = {relation: _contents(engine, relation) for relation in stored}
        self.cases.append(Case(name, number, query, values, data, answer, now))
        return self.cases[-1]

    @property
    def answered(self) -> list[Case]:
        return [case for case in self.cases if not isinstance(case.answer, str)]

    @property
    def failing(self) -> list[Case]:
        return [case for case in self.cases if isinstance(case.answer, str)]

    def check(self, spark: Any, at_once: int = 30) -> None:
        """Every case that has an answer, in few jobs; Spark plans four of 30 sooner than one of
        120."""
        flat = [case for case in self.answered if not case.recursive]
        for start in range(0, len(flat), at_once):
            _check_together(spark, flat[start : start + at_once])
        for case in self.answered:
            if case.recursive:
                case.check(run_alone(spark, case))

    def check_failures(self, spark: Any, wanted: Callable[[str], bool] = bool) -> int:
        """Every case that fails on SQLite fails on Spark, for the same reason."""
        failing = [case for case in self.failing if wanted(str(case.answer))]
        for case in failing:
            found = outcome(spark, case)
            assert found == case.answer, f"{case.name}: {found}, on SQLite {case.answer}"
        return len(failing)


def run_alone(spark: Any, case: Case) -> list[Row]:
    provide(spark, case)
    return case.query.rows(spark, case.values, case.now)


def provide(spark: Any, case: Case, directory: Path | None = None) -> None:
    """Let the session have the data of a case: in its statements, or in files of a directory."""
    for number, (relation, rows) in enumerate(case.data.items()):
        frame = spark.sql(_values(relation, rows))
        if directory is not None:
            path = str(directory / f"{case.number}-{number}")
            frame.write.parquet(path)
            frame = spark.read.parquet(path)
        frame.createOrReplaceTempView(quote(view_name(case.number, relation)))


def outcome(spark: Any, case: Case) -> list[Row] | str:
    """The rows, or the code of an error."""
    try:
        return run_alone(spark, case)
    except HarkenError as error:
        return error.code


def _check_together(spark: Any, cases: Sequence[Case]) -> None:
    for case in cases:
        case.query.register(spark)
    try:
        with translated():
            rows = spark.sql(" UNION ALL ".join(case.text() for case in cases)).collect()
    except HarkenError:
        _blame(spark, cases)
        raise
    found: dict[int, list[Row]] = {case.number: [] for case in cases}
    for number, texts in rows:
        found[number].append(texts)
    for case in cases:
        types = [column.type for column in case.query.relation.columns]
        case.check([_parsed(texts, types) for texts in found[case.number]])


def _blame(spark: Any, cases: Sequence[Case]) -> None:
    """Find out which of the cases fails."""
    for case in cases:
        try:
            case.check(run_alone(spark, case))
        except HarkenError as error:
            text = case.query.text(case.values, case.now)
            cause = str(error.__cause__)[:1500]
            raise AssertionError(f"{case.name}: {error}\n{cause}\n{text}\n{case.data}") from error


@contextmanager
def settings(spark: Any, **changed: str) -> Iterator[None]:
    """Let the session have other settings for a while; `__` stands for a dot."""
    names = {name.replace("__", "."): value for name, value in changed.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


FAST = {
    "spark__sql__shuffle__partitions": "1",
    "spark__sql__leafNodeDefaultParallelism": "1",
    "spark__sql__adaptive__enabled": "false",
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
    "spark__sql__autoBroadcastJoinThreshold": "-1",
}
"""For many tiny queries: no shuffles, no compiling of Java. It changes no answer."""


def stored_relations(program: Program) -> Iterator[Relation]:
    found = {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.STORED
    }
    if program.goal.kind is Kind.STORED:
        found[program.goal.id] = program.goal
    return iter(found.values())


def rows_of(engine: SQLiteEngine, plan: Plan, values: Sequence[Any]) -> list[Row]:
    """The stored rows on SQLite, each of which has a meaning."""
    query = engine.compile(plan)
    rows = query.rows(values)
    for position, column in enumerate(query.relation.columns):
        decode = decoder(column.type)
        if decode:
            for row in rows:
                decode(row[position])
    return rows


def view_name(number: int, relation: Relation) -> str:
    return f"case {number} {relation.id}"


def _contents(engine: SQLiteEngine, relation: Relation) -> list[Row]:
    columns = ", ".join(f"c{i}" for i in range(relation.arity))
    table = quote_sqlite(table_name(relation))
    return list(engine.connection.rows(f"SELECT {columns} FROM {table}"))


def _values(relation: Relation, rows: Sequence[Row]) -> str:
    types = [column.type for column in relation.columns]
    if not rows:
        empty = (f"CAST(NULL AS {spark_type(type_)}) AS c{i}" for i, type_ in enumerate(types))
        return f"SELECT {', '.join(empty)} WHERE false"
    written = ", ".join(
        "(" + ", ".join(_written(v, t) for v, t in zip(row, types, strict=True)) + ")"
        for row in rows
    )
    names = ", ".join(f"c{i}" for i in range(len(types)))
    return f"SELECT * FROM VALUES {written} AS t({names})"


def _written(stored: Any, type_: Type) -> str:
    decode = decoder(type_)
    return literal(decode(stored) if decode else stored, type_)


def _parsed(texts: Sequence[str | None], types: Sequence[Type]) -> Row:
    return tuple(_value(text, type_) for text, type_ in zip(texts, types, strict=False))


def _value(text: str | None, type_: Type) -> Any:
    if text is None:
        return None
    if type_.surrogate or type_ == INTEGER:
        return int(text)
    if type_ == NUMBER:
        return float(text)
    if type_ == BOOLEAN:
        return int(text == "true")
    if type_ == DATE:
        return to_stored(datetime.date.fromisoformat(text))
    if type_ == TIMESTAMP:
        return to_stored(
            datetime.datetime.fromisoformat(text.ljust(26, "0") if "." in text else text)
        )
    return text


def _rounded(row: Row) -> Row:
    """A sum of numbers may be made in any order: the last digits are not compared."""
    return tuple(float(f"{v:.12g}") + 0.0 if isinstance(v, float) else v for v in row)
