"""Every plan has the same rows on Spark as on SQLite."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest

import harken
from harken import HarkenError
from harken.calculus.bags import differentiate_bag
from harken.calculus.differentials import differentiate, recompute
from harken.engines.spark.functions import ForeignFunction
from harken.engines.spark.sql_expressions import HOLDS
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Computation, Definition, Program
from harken.ir.operations import OPERATIONS, may_be_null
from harken.ir.relations import Column, Kind, Relation
from harken.ir.terms import Parameter, Variable
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.lang.amosql.scope import Scope
from harken.lang.amosql.translate import Translator
from harken.planner.prepare import prepare
from harken.statements.amosql.interface import argument_of
from harken.values.encoding import encode
from harken.values.sql_functions import SQL_FUNCTIONS
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type
from tests.generators.focuses import FOCUSES
from tests.harness.both import FAST, Case, Cases, rows_of, run_alone, settings
from tests.harness.case_scripts import CASES
from tests.harness.facts import Facts
from tests.harness.recorder import recorded
from tests.harness.twins import Twins
from tests.laws.test_clauses import STORED, Clauses
from tests.models.interpreter import Refused, as_query

UTC = datetime.UTC

POOLS: dict[Type, tuple[Any, ...]] = {
    INTEGER: (0, 1, -1, 2, 3, -7, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)),
    NUMBER: (
        *(0.0, 1.0, -1.5, 0.5, 2.5, -2.5, 0.1, -0.75, 1e16, 123456789.125, 1e300, -1e300, 5e-324),
        *(0.49999999999999994, 9.3e18, float(2**63), -float(2**63), 4503599627370497.5),
    ),
    TEXT: (
        *(
            "",
            "a",
            "ab",
            "AbC",
            "b",
            "å",
            "é",
            "ﬁ",
            "ß",
            "İ",
            "ΑΣ",
            "Ω",
            "😀x",
            "\ue000",
            "  p ",
            "\t",
        ),
        *("a%b_c", "%", "_", "a_", "%b%", "\\%", "\\a", "a\\", "'", '"', "{a}", "⟦now⟧", "x'y\\n"),
        *("12", "-7", " 42 ", "1_0", "1.5", "1e3", "nan", "9223372036854775808"),
        *(
            "2020-02-29",
            "2020-02-30",
            "20200229",
            "2020-01-01 10:00:00.5",
            "2020-01-01T10:00+02:00",
        ),
    ),
    BOOLEAN: (True, False),
    DATE: tuple(
        map(
            datetime.date.fromisoformat,
            ("1970-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "1582-10-10", "1969-12-31"),
        )
    ),
    TIMESTAMP: tuple(
        datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)
        for text in (
            *("1970-01-01T00:00:00", "2024-03-10T02:30:00", "2024-03-10T03:30:00.000001"),
            *("1883-11-18T12:03:58", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"),
            *("1969-12-31T23:59:59.5", "2024-11-03T01:30:00"),
        )
    ),
}
NATIVE = {"reverse", "shift_left_wrapping", "try_add", "try_subtract", "try_multiply"}
ALIKE = {*SQL_FUNCTIONS, *(f"try_{each}" for each in SQL_FUNCTIONS)} - NATIVE
"""Spark calls the same functions in Python as SQLite; `sql/test_scalars.py` has one of each."""
MOST = 120 if os.environ.get("HARKEN_NIGHTLY") else 20
"""How many combinations of arguments of one operation are tried."""


def relation(name: str, *types: Type, inputs: int = 0, kind: Kind = Kind.STORED) -> Relation:
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate(types))
    key = (0,) if kind is Kind.STORED else None
    return Relation(name, columns, inputs, kind, key=key)


def variables(*types: Type) -> tuple[Variable, ...]:
    return tuple(Variable(f"X{i}", type_) for i, type_ in enumerate(types))


# --- operations ----------------------------------------------------------------------------


class Tried:
    """One operation on many arguments: those it takes in one case, some others in one each."""

    def __init__(
        self, db: harken.Database, number: int, name: str, types: tuple[Type, ...], result: Type
    ):
        engine, self.hierarchy = db.internals.engine, db.internals.catalog.hierarchy
        rows = list(product(*(POOLS[type_] for type_ in types)))
        if len(rows) > MOST:
            rows = Random(number).sample(rows, MOST)
        given = relation(f"given{number}", INTEGER, *types)
        self.fine = relation(f"fine{number}", INTEGER)
        for each in (given, self.fine):
            engine.create(each)
        engine.insert_many(
            given,
            [
                (i, *(encode(v, t) for v, t in zip(row, types, strict=True)))
                for i, row in enumerate(rows)
            ],
        )
        self.name = f"{name}({', '.join(map(str, types))})"
        self.rows, self.given, self.engine = rows, given, engine
        self.operation, self.types = name, types
        self.result = result.or_null(may_be_null(name, types))

    def alone(self) -> Program:
        """The operation on the arguments of a number."""
        goal = relation("goal", self.result, kind=Kind.DERIVED)
        arguments, value = variables(*self.types), Variable("R", self.result)
        body = (
            Atom(self.given, (Parameter(0, INTEGER), *arguments)),
            Computation(value, self.operation, arguments),
        )
        return Program(goal, {goal.id: Definition(goal, (Clause(Atom(goal, (value,)), body),))})

    def together(self) -> Program:
        """The operation on all arguments that are fine; those that are not stand beside them."""
        goal = relation("goal", INTEGER, self.result, kind=Kind.DERIVED)
        arguments, value = variables(*self.types), Variable("R", self.result)
        which = Variable("I", INTEGER)
        body = (
            Atom(self.fine, (which,)),
            Atom(self.given, (which, *arguments)),
            Computation(value, self.operation, arguments),
        )
        head = Atom(goal, (which, value))
        return Program(goal, {goal.id: Definition(goal, (Clause(head, body),))})

    def add_to(self, cases: Cases) -> None:
        plan = prepare(self.alone(), self.hierarchy)
        seen: Counter[str] = Counter()
        for number in range(len(self.rows)):
            try:
                rows_of(self.engine, plan, (number,))
                self.engine.insert_many(self.fine, [(number,)])
            except HarkenError as error:
                seen[error.code] += 1
                if seen[error.code] == 1:
                    name = f"{self.name} of {self.rows[number]}"
                    case = cases.add(name, self.alone(), self.hierarchy, self.engine, (number,))
                    case.data[self.given] = [r for r in case.data[self.given] if r[0] == number]
        cases.add(self.name, self.together(), self.hierarchy, self.engine)


@pytest.fixture(scope="module")
def operations() -> Cases:
    cases, db = Cases(), harken.connect()
    number = 0
    for operation in OPERATIONS.values():
        for signature in operation.signatures:
            of_objects = any(type_.surrogate for type_ in signature.arguments)
            alike = of_objects or operation.name in ALIKE
            skipped = operation.fixed or operation.resident or alike
            if operation.name != "ambiguous" and not skipped:
                number += 1
                tried = Tried(db, number, operation.name, signature.arguments, signature.result)
                tried.add_to(cases)
    return cases


def test_every_operation_gives_the_same_value(spark: Any, operations: Cases) -> None:
    with settings(spark, **FAST):
        operations.check(spark)


@pytest.mark.nightly  # it takes long, and the errors of a question are in the tests below
def test_operations_fail_for_the_same_reason(spark: Any, operations: Cases) -> None:
    """One of each kind: a failure is a job of its own."""
    kinds = {(c.query.relation.columns[-1].type, c.answer): c for c in operations.failing}
    with settings(spark, **FAST):
        assert Cases(list(kinds.values())).check_failures(spark) >= 8


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_operation_fails_for_the_same_reason(spark: Any, operations: Cases) -> None:
    with settings(spark, **FAST):
        assert operations.check_failures(spark) >= 15


# --- programs ------------------------------------------------------------------------------


def random_questions(seeds: range, questions: int) -> Cases:
    """What the generators of programs ask, about databases that they fill."""
    cases = Cases()
    focuses = list(FOCUSES.items())
    for seed in seeds:
        focus, maker = focuses[seed % len(focuses)]
        twins = Twins(Random(seed), maker=maker)
        twins.build()
        runtime = twins.db.internals.runtime
        for number in range(questions):
            question = twins.random_question()
            try:
                program, values = twins.program_of(question.query, twins.is_bag(question.query))
                cases.add(
                    f"{focus} {seed}.{number}: {question.text}",
                    program,
                    runtime.catalog.hierarchy,
                    runtime.engine,
                    values,
                )
            except (HarkenError, Refused) as error:
                cases.refused[getattr(error, "code", "refused")] += 1
        twins.db.close()
    return cases


def random_clauses(seeds: range) -> Cases:
    """Clauses of any shape, and their changes by every method of the calculus."""
    cases = Cases()
    for seed in seeds:
        maker, facts = Clauses(Random(seed)), Facts()
        for name, arity in STORED.items():
            facts.create(name, arity, maker.one_in(2))
        for _ in range(6):
            facts.change(maker.change().replace("-", "+"))
        for name in ("d", "e", "f"):
            facts.define(*maker.definition(name, bag := maker.one_in(2)), bag=bag)
        facts.change(maker.change())
        changed = set(facts.watching.deltas())
        runtime = facts.db.internals.runtime
        for name, watch in facts.watching.watches.items():
            programs = {"rows": watch.program}
            if watch.is_bag:
                programs["change"] = differentiate_bag(watch.program, changed)
            else:
                by_parts = differentiate(watch.program, changed)
                again = recompute(watch.program, changed)
                programs |= {"plus": by_parts.plus, "minus": by_parts.minus, "again": again.plus}
            for what, program in programs.items():
                cases.add(
                    f"{name} {seed} {what}", program, runtime.catalog.hierarchy, runtime.engine
                )
        facts.db.close()
    return cases


LARGEST = 4_000
"""Longer statements than this are left out: Spark's optimiser takes too long for a test."""


def chosen(cases: Cases, recursive: int) -> Cases:
    """Without the largest, and not too many that are recursive: each round is a job of its own."""
    small = [case for case in cases.cases if len(case.query.sql) <= LARGEST]
    late = [case.number for case in small if case.recursive][recursive:]
    return Cases([case for case in small if case.number not in late])


def test_random_questions_have_the_same_answers(spark: Any) -> None:
    cases = chosen(random_questions(range(14), 3), 2)
    assert len(cases.answered) >= 25
    with settings(spark, **FAST):
        cases.check(spark)
        cases.check_failures(spark, lambda code: code != "overflow")


def test_random_clauses_and_their_changes_have_the_same_rows(spark: Any) -> None:
    cases = chosen(random_clauses(range(6)), 2)
    assert len(cases.answered) >= 30
    with settings(spark, **FAST):
        cases.check(spark)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_random_programs_have_the_same_rows_all_night(spark: Any) -> None:
    with settings(spark, **FAST):
        for start in range(0, 2_000, 40):
            cases = chosen(random_questions(range(start, start + 40), 8), 10)
            cases.check(spark)
            chosen(random_clauses(range(start, start + 20)), 10).check(spark)


# --- everything that the cases ask ----------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_the_whole_case_suite_has_the_same_rows(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = chosen(recorded(monkeypatch, CASES), 40)
    with settings(spark, **FAST):
        cases.check(spark, at_once=50)
        cases.check_failures(spark)


# --- by hand -------------------------------------------------------------------------------

SHOP = """
create type item;
create type special subtype of item;
create function quantity(item) -> integer;
create function price(item) -> number;
create function label(item) -> charstring;
create function since(item) -> date;
create function seen(item) -> timestamp;
create function active(item) -> boolean;
create function tags(item) -> bag of charstring;
create function sizes(item) -> bag of integer;
create function numbers() -> bag of integer;
create function nothing() -> bag of integer;
create function texts() -> bag of charstring;
create function next(item) -> item;
create function big() -> bag of integer;
create function half(integer n) -> integer as select div(n, 2);
create function share(item i) -> number as select 100 / quantity(i);
create function stocked(item i) -> boolean as select true where quantity(i) > 0;
create function total(item i) -> integer as select sum(sizes(i));
create function ratio(item i, integer n) -> integer as select div(quantity(i), n);
create function safe_share(item i) -> number as select share(i) where quantity(i) != 0;
create function each_size() -> bag of integer as select sizes(i) for each item i;
create item instances :a, :b, :c, :d;
create special instances :s;
set quantity(:a) = 4; set quantity(:b) = 0; set quantity(:c) = 10; set quantity(:s) = -3;
set price(:a) = 1.5; set price(:b) = 2.0; set price(:c) = 0.25;
set label(:a) = "z"; set label(:b) = "é"; set label(:c) = "Z"; set label(:d) = "😀";
set label(:s) = "";
set since(:a) = |2024-02-29|; set since(:b) = |1999-12-31|;
set seen(:a) = |2024-03-10/02:30:00|; set seen(:b) = |2024-03-10/03:30:00.25|;
set active(:a) = true; set active(:b) = false;
add tags(:a) = "x"; add tags(:a) = "x"; add tags(:a) = "y"; add tags(:c) = "x";
add sizes(:a) = 1; add sizes(:a) = 1; add sizes(:a) = 5; add sizes(:b) = 0; add sizes(:s) = 7;
add numbers() = 1; add numbers() = 2; add numbers() = 2; add numbers() = 0; add numbers() = -1;
add texts() = "a"; add texts() = "B"; add texts() = "a%"; add texts() = "å"; add texts() = "";
set next(:a) = :b; set next(:b) = :c; set next(:c) = :a; set next(:d) = :s;
add big() = 9223372036854775807; add big() = 9223372036854775807;
add big() = -9223372036854775807; add big() = -9223372036854775807; add big() = 5;
"""

QUESTIONS = (
    # joins, sets and bags
    "select i, quantity(i) for each item i",
    "select tags(i) for each item i",
    "select distinct tags(i) for each item i",
    "select tags(:a)",
    "select i, j for each item i, item j where quantity(i) < quantity(j)",
    "select i for each special i",
    "select numbers(), numbers()",
    "select n + m for each integer n, integer m where n = numbers() and m = numbers()",
    "select i for each item i where next(next(i)) = i or quantity(i) = 4",
    'select 1, true, 1.5, "it\'s {x} \\\\ å", |2024-02-29|, |2024-03-10/02:30:00.5|',
    "select each_size()",
    # nothing
    "select nothing()",
    "select count(nothing()), sum(nothing())",
    "select min(nothing())",
    "select max(nothing()), count(numbers())",
    "select avg(nothing())",
    "select some(nothing()), notany(nothing())",
    "select i, count(tags(i)), sum(sizes(i)) for each item i",
    "select i, min(sizes(i)), max(sizes(i)), avg(sizes(i)) for each item i",
    "select i for each item i where count(tags(i)) = 0",
    "select i, count(select j for each item j where quantity(j) > quantity(i)) for each item i",
    "select count(select i for each item i where quantity(i) > 100)",
    "select i, sum(select price(j) for each item j where quantity(j) <= quantity(i)) "
    "for each item i",
    "select total(i) for each item i",
    "select sum(big()), count(big()), avg(big())",
    "select max(label(i)), min(label(i)) for each item i",
    "select max(select label(i) for each item i), min(select label(i) for each item i)",
    "select min(select since(i) for each item i), max(select active(i) for each item i)",
    # negation
    "select i for each item i where not (quantity(i) = 4)",
    "select i for each item i where notany(tags(i))",
    "select i for each item i where some(select 1 where sizes(i) > 3)",
    "select i for each item i where not (some(select j for each item j where next(j) = i))",
    "select n for each integer n where n = numbers() and not (n = nothing())",
    'select i for each item i where not (tags(i) = "x" and sizes(i) = 1)',
    "select 1 where not (numbers() = 7)",
    # what can fail, where it cannot
    "select share(i) for each item i where quantity(i) != 0",
    "select safe_share(i) for each item i",
    "select i for each item i where quantity(i) != 0 and 100 / quantity(i) > 20",
    "select i for each item i where 100 / quantity(i) > 20 and quantity(i) != 0",
    "select i for each item i where not (quantity(i) = 0 or 100 / quantity(i) <= 20)",
    "select i for each item i where quantity(i) != 0 "
    "and some(select 1 where 100 / quantity(i) > 20)",
    "select i, j for each item i, item j where next(i) = j and active(i) = true "
    "and div(8, quantity(i)) = 2",
    "select n for each integer n where n = numbers() and n != 0 and div(4, n) > 1",
    "select i, count(select n for each integer n where n = numbers() and ratio(i, n) > 1) "
    "for each item i where quantity(i) > 100",
    "select count(select n for each integer n where n = numbers() and n != 0 and ratio(:a, n) > 1)",
    "select i, count(select n for each integer n where n = numbers() and div(n, quantity(i)) > 0) "
    "for each item i where quantity(i) > 3",
    # an aggregate that depends on nothing, for rows of which there are none
    "select count(select max(select div(-1, 0) for each item j) for each item i "
    "where numbers() > 1000000)",
    "select half(n) for each integer n where n = numbers()",
    "select n for each integer n where n + 1 = numbers()",
    # text and time
    'select label(i) for each item i where label(i) < "é"',
    "select t, u for each charstring t, charstring u where t = texts() and u = texts() and t < u",
    'select t for each charstring t where t = texts() and like(t, "a%")',
    'select t for each charstring t where t = texts() and like(t, "a\\\\%")',
    'select t for each charstring t where t = texts() and like("abc", t)',
    'select upper(t) + "!" for each charstring t where t = texts()',
    "select since(i) + 1, year(since(i)) for each item i",
    "select seen(:b) - seen(:a), seen(:a) + 3600",
    "select i for each item i where since(i) < |2020-01-01|",
    # recursion
    "select i, tclose(next, i) for each item i",
    "select tclose(next, :a)",
    "select i for each item i where tclose(next, i) = :c",
    "select i, count(tclose(next, i)) for each item i",
    "select i for each item i where not (tclose(next, i) = i)",
)

FAILURES = (
    "select share(i) for each item i",
    "select i for each item i where 100 / quantity(i) > 20",
    "select n * 9223372036854775807 for each integer n where n = numbers()",
    "select sum(select n for each integer n where n = big() and n > 0)",
    "select i, count(select n for each integer n where n = numbers() and ratio(i, n) > 1) "
    "for each item i",
    "select to_integer(t) for each charstring t where t = texts()",
    "select sqrt(n) for each integer n where n = numbers()",
    "select since(i) + 5000000 for each item i",
    "select 1 where some(select n for each integer n where n = numbers() and div(1, n) = 1)",
)


class Shop:
    """A database to ask, and the questions with their answers on SQLite."""

    def __init__(self) -> None:
        self.db = harken.connect()
        self.db.amosql(SHOP)
        self.cases = Cases()

    def ask(self, text: str, **more: Any) -> Case:
        node = parse_statement(text)
        assert isinstance(node, syntax.ExpressionStatement)
        runtime = self.db.internals.runtime
        program, values = translated_query(self.db, as_query(node.expression))
        return self.cases.add(
            text, program, runtime.catalog.hierarchy, runtime.engine, values, **more
        )


def translated_query(db: harken.Database, query: syntax.Query) -> tuple[Program, list[Any]]:
    runtime = db.internals.runtime
    translator = Translator.for_schema(
        runtime.catalog, interface=lambda node: argument_of(runtime, node.name, node)
    )
    bag = not query.distinct
    branches = translator.branches(query, Scope(), bag)
    goal = translator.draft.query_relation("query", (), branches, bag)
    translator.draft.define(goal, (), branches)
    program = assemble(goal, translator.draft.auxiliaries.values(), runtime.catalog)
    return program, [runtime.interface[str(s.key)] for s in translator.draft.parameters.sources]


@pytest.fixture(scope="module")
def shop() -> Shop:
    made = Shop()
    for text in (*QUESTIONS, *FAILURES):
        made.ask(text)
    return made


def test_questions_have_the_same_answers(spark: Any, shop: Shop) -> None:
    assert [case.name for case in shop.cases.failing] == list(FAILURES)
    with settings(spark, **FAST):
        shop.cases.check(spark)


def test_questions_that_fail_do_so_for_the_same_reason(spark: Any, shop: Shop) -> None:
    with settings(spark, **FAST):
        assert shop.cases.check_failures(spark) == len(FAILURES)


def test_answers_do_not_depend_on_the_session(spark: Any, shop: Shop) -> None:
    """Compiled code, shuffles and broadcasts instead of none, and other settings of the user."""
    with settings(
        spark,
        spark__sql__ansi__enabled="false",
        spark__sql__parser__escapedStringLiterals="true",
        spark__sql__session__timeZone="Asia/Kathmandu",
    ):
        answered = [case for case in shop.cases.answered if not case.recursive]
        Cases([case for case in answered if HOLDS in case.query.sql][:12]).check(spark)


def test_foreign_functions_are_called_for_what_is_asked(spark: Any) -> None:
    shop = Shop()

    def upto(n: int) -> list[int]:
        if n < 0:
            raise ValueError("negative")
        return list(range(n))

    shop.db.amosql('create function upto(integer) -> bag of integer as foreign "builtins:range"')
    shop.db.foreign("upto", upto)
    relation = next(r.relation for r in shop.db.internals.catalog.overloads("upto"))
    python = {relation.id: ForeignFunction(upto, [int])}
    for text in (
        "select upto(n) for each integer n where n = numbers() and n >= 0",
        "select n, count(upto(n)) for each integer n where n = numbers() and n >= 0",
        "select n for each integer n where n = numbers() and n >= 0 and not (upto(n) = 1)",
        "select upto(3)",
        "select upto(n) for each integer n where n = numbers()",
    ):
        shop.ask(text, python=python)
    assert [case.answer for case in shop.cases.failing] == ["foreign"]
    shop.cases.check(spark)
    shop.cases.check_failures(spark)


def test_the_time_is_that_of_the_query(spark: Any) -> None:
    shop = Shop()
    now = datetime.datetime(2026, 11, 15, 23, 30, tzinfo=UTC)
    case = shop.ask("select now(), today() + 1", now=now)
    ((moment, day),) = run_alone(spark, case)
    assert (moment, day) == (encode(now, TIMESTAMP), encode(datetime.date(2026, 11, 16), DATE))
