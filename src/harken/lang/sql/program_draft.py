"""A program while it is written: variables, auxiliary relations, and the literals of a body."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from sqlglot import exp

from harken.errors import LanguageError, NameFault, Span, TypeFault, offered
from harken.ir.clauses import (
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    First,
    Literal,
    Numbered,
    clause_variables,
)
from harken.ir.operations import may_be_null
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.schema import Table as Table
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.lang.sql import decimals
from harken.lang.sql.lifting import Conversions
from harken.lang.sql.parser import Statement
from harken.lang.sql.type_names import type_name
from harken.values.types import BOOLEAN, INTEGER, NUMBER, Type, is_decimal

TRUE = Constant(True, BOOLEAN)
FALSE = Constant(False, BOOLEAN)


class Tables(Protocol):
    def table(self, name: str) -> Table | None: ...

    def table_names(self) -> Iterable[str]: ...


NO_TABLES = "this database is empty; --db FILE, or harken.connect(FILE), opens another"
"""The hint where the database is empty, which is what forgetting `--db` looks like."""


def unknown_table(
    tables: Tables, name: str, span: Span | None, what: str = "table or view"
) -> NameFault:
    names = sorted(tables.table_names())
    return NameFault(
        f"there is no {what} {name}",
        code="unknown-table",
        span=span,
        hint=offered(name, names, "tables and views") if names else NO_TABLES,
    )


def unknown_column(
    table: str, name: str, columns: Iterable[str], span: Span | None = None
) -> NameFault:
    return NameFault(
        f"{table} has no column {name}",
        code="unknown-column",
        span=span,
        hint=offered(name, columns, "columns"),
    )


@dataclass(slots=True)
class Draft:
    """Auxiliary relations are named after the `owner`. The `lot` is the seed of the random values
    of one statement."""

    statement: Statement
    owner: str
    lot: str = ""
    conversions: Conversions = field(default_factory=lambda: Conversions(0))
    """Of the values that were lifted out of the statement."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def place(self, node: exp.Expr) -> Span:
        return self.statement.place(node)

    def unsupported(self, node: exp.Expr, message: str, hint: str | None = None) -> LanguageError:
        return LanguageError(message, code="unsupported", span=self.place(node), hint=hint)

    def fresh(self, type_: Type, name: str = "") -> Variable:
        return Variable(f"{name.upper() or '_G'}#{next(self._numbers)}", type_)

    def define(
        self,
        kind: str,
        captured: Sequence[Variable],
        columns: Sequence[Column],
        heads: Sequence[tuple[Sequence[Term], Sequence[Literal]]],
        *,
        bag: bool,
        groups: Iterable[Relation] = (),
        first: First | None = None,
        numbered: Numbered | None = None,
        role: Role = Role.PART,
        of: str | None = None,
    ) -> Relation:
        """An auxiliary relation with one clause for each head and body. Its first columns are the
        captured variables."""
        arguments = tuple(Column(f"a{i}", each.type) for i, each in enumerate(captured))
        relation = Relation(
            name=f"{self.owner} {kind} {next(self._numbers)}",
            columns=(*arguments, *columns),
            inputs=0,
            kind=Kind.DERIVED,
            semantics=Semantics.BAG if bag else Semantics.SET,
            role=role,
            of=of,
        )
        clauses = tuple(
            Clause(Atom(relation, (*captured, *terms)), tuple(body)) for terms, body in heads
        )
        grouped = frozenset(each.id for each in groups)
        self.definitions[relation.id] = Definition(
            relation, clauses, False, grouped, first, numbered
        )
        return relation

    def compute(self, operation: str, arguments: Sequence[Term], type_: Type, body: Body) -> Term:
        """The result of an operation. A body computes the same operation only once."""
        result_type = type_.or_null(may_be_null(operation, [each.type for each in arguments]))
        for literal in body.literals:
            if (
                isinstance(literal, Computation)
                and literal.operation == operation
                and literal.arguments == tuple(arguments)
                and literal.result.type == type_
            ):
                return literal.result
        result = self.fresh(result_type)
        body.add(Computation(result, operation, tuple(arguments)))
        return result

    def coerce(self, term: Term, type_: Type, body: Body, node: exp.Expr) -> Term:
        """The term converted to another type, where SQL converts implicitly."""
        if term.type == type_:
            return term
        if isinstance(term, Constant):
            converted = _constant_as(term, type_)
            if converted is not None:
                return converted
        if isinstance(term, Parameter) and _is_rewritten(term.type, type_):
            return self.conversions.converted(term, type_, lambda each: _constant_as(each, type_))
        if term.type == INTEGER and type_ == NUMBER:
            return self.compute("widen", (term,), NUMBER, body)
        if is_decimal(type_) and (term.type == INTEGER or is_decimal(term.type)):
            return self.compute("rescale", (term,), type_, body)
        if is_decimal(term.type) and type_ == NUMBER:
            return self.compute("to_number", (term,), NUMBER, body)
        raise TypeFault(
            f"this is {type_name(term.type)}, but {type_name(type_)} is expected",
            code="type-mismatch",
            span=self.place(node),
            hint=f"convert it: CAST(... AS {type_name(type_)})",
        )


def _is_rewritten(given: Type, wanted: Type) -> bool:
    """Is a constant number written as another here, and not by the engine?"""
    is_exact = given == INTEGER or is_decimal(given)
    return is_exact and (wanted == NUMBER or is_decimal(wanted))


def _constant_as(term: Constant, type_: Type) -> Constant | None:
    value = term.value
    if value is None:
        return Constant(None, type_.or_null())
    if term.type == INTEGER or is_decimal(term.type):
        assert isinstance(value, int | decimal.Decimal)
        if type_ == NUMBER:
            return Constant(float(value), NUMBER)
        if is_decimal(type_):
            exact = decimals.rounded(decimal.Decimal(value), type_)
            return None if exact is None else Constant(exact, type_)
    return None


@dataclass(slots=True)
class Body:
    """The literals of a clause under construction."""

    literals: list[Literal] = field(default_factory=list)

    def add(self, *literals: Literal) -> None:
        self.literals += literals

    def require(self, condition: Term) -> None:
        """Keep only the rows for which the condition is true."""
        if condition == TRUE:
            return
        self.add(Comparison("=", condition, TRUE))

    def not_null(self, term: Term) -> None:
        if term.type.nullable or (isinstance(term, Constant) and term.value is None):
            self.add(Comparison("!=", term, Constant(None, term.type.or_null())))


def variables_in(terms: Iterable[Term], literals: Iterable[Literal]) -> set[Variable]:
    """The variables of terms and literals."""
    relation = Relation("used", (), 0, Kind.DERIVED, role=Role.PART)
    inside = clause_variables(Clause(Atom(relation, ()), tuple(literals)))
    return {term for term in terms if isinstance(term, Variable)} | set(inside)
