"""A database and its model side by side: the same program is given to both, and both are asked.

The database is the system under test; the model is the reference interpreter, which is told the
objects' numbers but nothing else. Every disagreement is an AssertionError that shows the script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from random import Random
from typing import Any

import harken
from harken import (
    EvaluationError,
    HarkenError,
    IntegrityError,
    LanguageError,
    Object,
    SafetyFault,
)
from harken.ir.assemble import assemble
from harken.ir.clauses import Program
from harken.ir.relations import extent_relation
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.lang.amosql.scope import Scope
from harken.lang.amosql.translate import Translator
from harken.lang.amosql.tree_walk import descendants
from harken.statements.amosql.interface import argument_of
from harken.values.types import Type
from tests.engines.reference import EvaluationFailed, evaluate
from tests.generators.expressions import POOLS, Signature, literal
from tests.generators.programs import Maker
from tests.models.interpreter import TooLong, World
from tests.models.meanings import Failure, Row, tagged
from tests.models.revisions import Impossible, Revised, Untold, revised
from tests.models.statics import Refused, as_query

PATIENCE = 5
"""After how many million instructions SQLite gives up an answer."""
TOO_EARLY = {"ambiguous", "overflow"}
"""Errors that may be met for rows that do not count: SQLite moves a condition on a column of a
subquery before the subquery's own."""


@dataclass(frozen=True)
class Question:
    """A query to ask more than once; parsed once."""

    text: str

    @cached_property
    def query(self) -> syntax.Query:
        node = parse_statement(self.text)
        assert isinstance(node, syntax.ExpressionStatement)
        return as_query(node.expression)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The interface variables it mentions."""
        nodes = (node for node, _ in descendants(self.query))
        return frozenset(n.name for n in nodes if isinstance(n, syntax.InterfaceVariable))


class Twins:
    def __init__(self, random: Random, path: str = ":memory:", maker: type[Maker] = Maker) -> None:
        self.maker = maker(random)
        self.schema = self.maker.schema
        self.world = World()
        self.script: list[str] = []
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._open(path)

    def _open(self, path: str) -> None:
        self._path = path
        self._ticks = 0
        self.db = harken.connect(path)
        self.db.internals.connection.raw.set_progress_handler(self._tick, 1_000_000)

    def _tick(self) -> bool:
        """True stops SQLite: the query joins too much for a test."""
        self._ticks += 1
        return self._ticks > PATIENCE

    # --- building --------------------------------------------------------------------------

    def build(self) -> None:
        """Types, objects, stored functions with data, derived functions."""
        maker = self.maker
        for _ in range(maker.between(maker.types)):
            self.make_type()
        for _ in range(maker.between(maker.objects)):
            self.make_object()
        for _ in range(maker.between(maker.stored)):
            self.define(maker.stored_function())
        for function in list(self.schema.functions.values()):
            self.fill(function)
        for _ in range(maker.between(maker.derived)):
            self.make_derived()
        self.run("commit")

    def make_type(self) -> None:
        text = self.maker.type_statement()
        self.run(text)
        node = parse_statement(text)
        assert isinstance(node, syntax.CreateType)
        self.world.supertypes[node.name] = node.supertypes or ("object",)

    def make_object(self) -> None:
        name = self.maker.fresh("o")
        first, *more = self.maker.object_types()
        self.run(f"create {first} instances :{name}")
        for type_ in more:
            self.run(f"add {type_} to :{name}")
        made = self.db.variables[name]
        self.world.interface[name] = made
        self.world.objects[made] = set().union(*map(self.schema.ancestors, (first, *more)))
        self.schema.objects[name] = self.world.objects[made]
        self.world.changed()

    def make_derived(self) -> None:
        for text in self.maker.definition():
            self.define(text)

    def define(self, text: str) -> bool:
        """Create a function in both; false if the system refuses it."""
        self.counts["definitions"] += 1
        self._ticks = 0
        node = parse_statement(text)
        assert isinstance(node, syntax.CreateFunction)
        try:
            self.run(text)
        except HarkenError as error:
            self._refused("definition", error, text)
            known = {f.id for fs in self.world.functions.values() for f in fs.values()}
            for name in self.schema.functions.keys() - known:
                del self.schema.functions[name]
            return False
        self.world.define(node)
        return True

    def fill(self, function: Signature) -> None:
        """Give a stored function some rows."""
        for _ in range(self.maker.between(self.maker.rows)):
            row = self.maker.row(function)
            if row is not None:
                self.put(function, row)

    def put(self, function: Signature, row: Row) -> None:
        """Add a row to a bag; to another function only where it has no value."""
        model = self.world.functions[function.name][function.id]
        width = len(function.takes)
        values = tuple(self._value(value) for value in row)
        if function.bag or not any(known[:width] == values[:width] for known in model.rows):
            self.revise(update("add" if function.bag else "set", function, row))

    def revise(self, text: str) -> None:
        """Make a change in both, or in neither."""
        node = parse_statement(text)
        assert isinstance(node, syntax.Update)
        new: Revised = []
        codes: set[str] = set()
        try:
            new = revised(self.world, node)
        except (Untold, TooLong):
            return
        except Impossible as error:
            codes = error.codes
        except Refused:
            codes = {"refused"}
        self.counts["changes"] += 1
        self._ticks = 0
        try:
            self.run(text)
        except HarkenError as error:
            self.counts["changes failed"] += 1
            if error.code not in codes | self.world.discarded:
                self._refused("change", error, text)
            return
        if codes:
            raise self.disagreement("", f"should fail: {', '.join(codes)}")
        for function, rows in new:
            function.rows = rows
        self.world.changed()

    def _value(self, value: Any) -> Any:
        is_variable = isinstance(value, str) and value.startswith(":")
        return self.world.interface[value[1:]] if is_variable else value

    def run(self, text: str) -> harken.Results:
        results = self.db.amosql(text)
        self.script.append(text)
        return results

    def _refused(self, what: str, error: HarkenError, text: str) -> None:
        """A refusal is the system's right, if it says why; being broken is not."""
        if self._ticks > PATIENCE:
            self.counts["too long"] += 1
            return
        if not isinstance(error, LanguageError | IntegrityError):
            raise self.disagreement(text, f"fails with [{error.code}] {error}")
        self.counts[f"{what} refused"] += 1
        self.refusals[f"{what} {error.code}"] += 1

    # --- changing --------------------------------------------------------------------------

    def change(self) -> None:
        """One change of the data or, less often, of the schema."""
        match self.maker.choose(self.maker.changes):
            case "put":
                self._change_row(self._put_or_set)
            case "put by object":
                self._change_row(self._put_by_object)
            case "compute":
                self.revise(self.maker.computed_change())
            case "remove":
                self._change_row(self._remove)
            case "add type":
                self._change_types("add", "to", self.world.add_type)
            case "remove type":
                self._change_types("remove", "from", self.world.remove_type)
            case "new object":
                self.make_object()
            case "delete object":
                self._delete_object()
            case "new function":
                self._new_function()

    def _change_row(self, change: Callable[[Signature, Row], None]) -> None:
        function = self.maker.choose([f for f in self.schema.functions.values() if f.stored])
        row = self.maker.row(function)
        if row is not None:
            change(function, row)

    def _put_by_object(self, function: Signature, row: Row) -> None:
        """Whichever function of the name that the arguments choose."""
        verb = self.maker.choose(("set", "add", "remove"))
        self.revise(update(verb, function, row, dot=False))

    def _put_or_set(self, function: Signature, row: Row) -> None:
        self.revise(update("add" if function.bag else "set", function, row))

    def _remove(self, function: Signature, row: Row) -> None:
        """Rather a row that is there than one that is not."""
        model = self.world.functions[function.name][function.id]
        names = {thing: f":{name}" for name, thing in self.world.interface.items()}
        if model.rows:
            row = tuple(names.get(value, value) for value in self.maker.choose(model.rows))
        self.revise(update("remove", function, row))

    def _change_types(self, verb: str, word: str, change: Callable[[Object, str], None]) -> None:
        if self.schema.objects:
            name = self.maker.choose(list(self.schema.objects))
            type_name = self.maker.choose(list(self.schema.supertypes))
            self.run(f"{verb} {type_name} {word} :{name}")
            change(self.world.interface[name], type_name)

    def _delete_object(self, name: str | None = None) -> None:
        if self.schema.objects:
            name = name or self.maker.choose(list(self.schema.objects))
            self.run(f"delete :{name}")
            self.world.delete(self.world.interface.pop(name))
            del self.schema.objects[name]

    def _new_function(self) -> None:
        if self.maker.one_in(2):
            text = self.maker.stored_function()
            if self.define(text):
                self.fill(list(self.schema.functions.values())[-1])
        else:
            self.make_derived()

    # --- asking ----------------------------------------------------------------------------

    def random_question(self) -> Question:
        return Question(self.maker.question())

    def ask(self, question: Question) -> None:
        """Both answer the query alike, or the system refuses it."""
        if not question.variables <= self.world.interface.keys():
            return
        self.counts["queries"] += 1
        text, query = question.text, question.query
        bag = self.is_bag(query)
        self._ticks = 0
        try:
            found: list[Any] | EvaluationError = self.db.amosql(text).rows
        except EvaluationError as error:
            found = error
        except HarkenError as error:
            self._refused("query", error, text)
            return
        try:
            wanted = self.world.answer(query, bag)
        except Refused as refusal:
            raise self.disagreement(text, f"should be refused: {refusal}") from None
        except TooLong:
            self.counts["too long"] += 1
            return
        self._compare(question, found, wanted, bag)

    def is_bag(self, query: syntax.Query) -> bool:
        """A query at the top level counts its rows if it shows the values of a bag."""
        return not query.distinct and any(
            isinstance(item, syntax.Call)
            and any(f.bag for f in self.world.functions.get(item.function, {}).values())
            for item in query.items
        )

    def _compare(self, question: Question, found: Any, wanted: list[Any], bag: bool) -> None:
        text = question.text
        failures = {row.code for row in wanted if isinstance(row, Failure)}
        if isinstance(found, EvaluationError):
            known = failures | self.world.discarded | TOO_EARLY
            if found.code not in known and not self.world.is_recursive(question.query):
                raise self.disagreement(text, f"fails with [{found.code}] {found}")
            self.counts["failed"] += 1
            return
        if failures:
            self.counts["failure not met"] += 1
            return
        got, want = Counter(map(tagged, found)), Counter(map(tagged, wanted))
        if got != want:
            raise self.disagreement(
                text,
                f"as a {'bag' if bag else 'set'} gives {shown(got - want)} too much, "
                f"lacks {shown(want - got)}",
            )
        self.counts["answered"] += 1
        self.counts["with rows"] += bool(wanted)
        self.counts["bags"] += bag

    # --- other ways to ask -----------------------------------------------------------------

    def ask_inside(self) -> None:
        """The same query at the top level and as the body of a function."""
        maker = self.maker
        gives = tuple(maker.any_type() for _ in range(1 + maker.one_in(3)))
        question = Question(maker.query(gives, (), 1 + maker.below(2)))
        name = maker.fresh("q")
        result = f"<{', '.join(gives)}>" if len(gives) > 1 else gives[0]
        bag = "bag of " if self.is_bag(question.query) else ""
        if self.define(f"create function {name}() -> {bag}{result} as {question.text}"):
            self.ask(question)
            self.ask(Question(f"{name}()"))
            self.ask(Question(f"select count({name}())"))

    def check_handles(self) -> None:
        """`db.function(...)` gives the values of every function for every argument."""
        for function in self.schema.functions.values():
            overloaded = len(self.schema.overloads(function.name)) > 1
            dot = f"{function.takes[0]}." if overloaded and function.takes else ""
            handle = self.db.function(dot + function.name)
            for row in islice(product(*map(self._range, function.takes)), 60):
                self._check_handle(function, handle, row)

    def _range(self, type_name: str) -> list[Any]:
        return list(POOLS.get(type_name, ())) or self.world.extent(type_name)

    def _check_handle(self, function: Signature, handle: Any, arguments: Row) -> None:
        model = self.world.functions[function.name][function.id]
        self.world.discarded = set()
        self._ticks = 0
        try:
            wanted = self.world.call(model, arguments)
            values = handle(*arguments)
        except (EvaluationError, SafetyFault, TooLong):
            return
        if any(isinstance(row, Failure) for row in wanted):
            return
        rows = [value if len(function.gives) > 1 else (value,) for value in values]
        if Counter(map(tagged, rows)) != Counter(map(tagged, wanted)):
            raise self.disagreement(
                f"{function.id} of {arguments}", f"the handle gives {rows}, not {wanted}"
            )
        self.counts["handles"] += 1

    def reopen(self) -> None:
        """Close the file and open it again; interface variables belong to the session."""
        self.db.close()
        self._open(self._path)
        for name, thing in self.world.interface.items():
            self.db.assign(name, thing)

    def remove_and_put_back(self) -> None:
        for function in [f for f in self.schema.functions.values() if f.stored]:
            model = self.world.functions[function.name][function.id]
            names = {thing: f":{name}" for name, thing in self.world.interface.items()}
            rows = [tuple(names.get(value, value) for value in row) for row in model.rows]
            for row in rows[::2]:
                self.run(update("remove", function, row))
            self.make_object()
            self._delete_object(list(self.schema.objects)[-1])
            for row in rows[::2]:
                self.run(update("add", function, row))

    # --- ObjectLog -------------------------------------------------------------------------

    def ask_oracle(self, question: Question) -> None:
        """The naive evaluator of ObjectLog gives the translated query the rows that the
        reference interpreter gives its text."""
        text, query = question.text, question.query
        bag = self.is_bag(query)
        try:
            program, values = self.program_of(query, bag)
            parameters = [stored(value) for value in values]
            wanted = self.world.answer(query, bag)
            found = evaluate(program, self._stored(), parameters)
        except (HarkenError, EvaluationFailed, TooLong):
            return
        if self.world.discarded or any(isinstance(row, Failure) for row in wanted):
            return
        columns = program.goal.columns
        got = Counter(
            {
                tagged(
                    tuple(
                        Object(value) if column.type.surrogate else value
                        for value, column in zip(row, columns, strict=True)
                    )
                ): times
                for row, times in found.items()
            }
        )
        want = Counter(map(tagged, wanted))
        if got != want:
            raise self.disagreement(
                text,
                f"translated, gives {shown(got - want)} too much, lacks {shown(want - got)}",
            )
        self.counts["evaluated as ObjectLog"] += 1

    def program_of(self, query: syntax.Query, bag: bool) -> tuple[Program, list[Any]]:
        runtime = self.db.internals.runtime
        translator = Translator.for_schema(
            runtime.catalog, interface=lambda node: argument_of(runtime, node.name, node)
        )
        branches = translator.branches(query, Scope(), bag)
        relation = translator.draft.query_relation("query", (), branches, bag)
        translator.draft.define(relation, (), branches)
        program = assemble(relation, translator.draft.auxiliaries.values(), runtime.catalog)
        values = [self.world.interface[str(s.key)] for s in translator.draft.parameters.sources]
        return program, values

    def _stored(self) -> dict[str, list[Row]]:
        """The model's data as ObjectLog sees it."""
        extents = {
            extent_relation(Type(name)).id: [(thing.oid,) for thing in self.world.extent(name)]
            for name in self.world.supertypes
        }
        functions = {
            function.id: [tuple(map(stored, row)) for row in function.rows]
            for overloads in self.world.functions.values()
            for function in overloads.values()
            if function.query is None
        }
        return extents | functions

    def disagreement(self, text: str, complaint: str) -> AssertionError:
        script = "".join(f"{statement};\n" for statement in self.script)
        return AssertionError(f"{script}{text};\n/* {complaint} */")


def update(verb: str, function: Signature, row: tuple[Any, ...], dot: bool = True) -> str:
    """`set t0.f(:a, 1) = <2, "x">`"""
    columns = [
        literal(value) if type_ in POOLS else value
        for value, type_ in zip(row, (*function.takes, *function.gives), strict=True)
    ]
    width = len(function.takes)
    arguments, values = ", ".join(columns[:width]), ", ".join(columns[width:])
    if len(function.gives) > 1:
        values = f"<{values}>"
    qualifier = f"{function.takes[0]}." if dot and function.takes else ""
    return f"{verb} {qualifier}{function.name}({arguments}) = {values}"


def stored(value: Any) -> Any:
    return value.oid if isinstance(value, Object) else value


def shown(rows: Counter[Any]) -> str:
    return (
        ", ".join(
            f"{times} x <{', '.join(str(value) for _, value in row)}>"
            for row, times in rows.items()
        )
        or "nothing"
    )
