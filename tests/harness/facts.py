"""Relations of integers and clauses over them, written as the papers write them.

    facts = Facts("q(1, 1)  r(1, 2)  r(2, 3)")
    facts.define("p(X, Z) ← q(X, Y) ∧ r(Y, Z)")
    facts.change("+q(1, 2)  -r(2, 3)")

A relation is a set, or with `bag=True` a bag. Negation is `¬q(X, Y)`, arithmetic `Z = X + Y`, an
aggregate `N = sum(V : d(X, V))` over a relation that is derived.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import harken
from harken.calculus.differentials import Differential, differentiate
from harken.calculus.states import delta
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    literal_terms,
)
from harken.ir.printer import print_clause
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.strata import reachable
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import INTEGER
from tests.harness.watching import Row, Watch, Watching, Weights

ATOM = re.compile(r"([-+¬]?)(\w+)\(([^)]*)\)")
AGGREGATE = re.compile(r"(\w+) = (\w+)\((\w*) ?: (\w+)\((.*)\)\)")
COMPARISON = re.compile(r"(\w+) (=|!=|<=|>=|<|>) (\w+)(?: ([-+*]) (\w+))?")


class Facts:
    def __init__(self, facts: str = "", *, bag: bool = False, relations: str = "") -> None:
        """`relations` are those without facts, as in `q/2 r/2`."""
        self.db = harken.connect()
        self.watching = Watching(self.db)
        self._engine = self.db.internals.engine
        self._bag = bag
        self._stored: dict[str, Relation] = {}
        self._derived: dict[str, Definition] = {}
        for name, arity in re.findall(r"(\w+)/(\d)", relations):
            self.create(name, int(arity), bag)
        for _, name, terms in ATOM.findall(facts):
            if name not in self._stored:
                self.create(name, len(terms.split(",")), bag)
            self._change("+", name, terms)

    def create(self, name: str, arity: int, bag: bool) -> None:
        relation = _relation(name, arity, Kind.STORED, bag)
        self._engine.create(relation)
        self._stored[name] = relation

    # --- changing --------------------------------------------------------------------------

    def change(self, text: str) -> None:
        """`+q(1, 2)` asserts a fact, `-q(1, 2)` retracts it."""
        for sign, name, terms in ATOM.findall(text):
            self._change(sign, name, terms)

    def _change(self, sign: str, name: str, terms: str) -> None:
        relation = self._stored[name]
        row = tuple(int(term) for term in terms.split(","))
        if sign == "-":
            self._engine.remove_row(relation, row)
        elif relation.is_set:
            self._engine.set_row(relation, row)
        else:
            self._engine.insert_many(relation, [row])

    def rows(self, name: str) -> Counter[Row]:
        return self.watching.rows(self._stored[name])

    def delta(self, name: str) -> Weights:
        """The Δ-set of a stored relation, as its triggers have it."""
        return self.watching.deltas().get(self._stored[name].id, {})

    # --- defining --------------------------------------------------------------------------

    def define(self, *clauses: str, bag: bool | None = None) -> Watch:
        """Define the relation of the clauses and watch it; they may use it, and earlier ones."""
        head = ATOM.match(clauses[0])
        assert head is not None
        name = head[2]
        is_bag = self._bag if bag is None else bag
        relation = _relation(name, len(head[3].split(",")), Kind.DERIVED, is_bag)
        self._derived[name] = Definition(relation, ())
        parsed = tuple(self._clause(text, relation) for text in clauses)
        self._derived[name] = Definition(relation, parsed)
        known = {each.relation.id: each for each in self._derived.values()}
        watch = Watch(self.db, name, Program(relation, reachable(relation, known)))
        self.watching.watch(watch)
        return watch

    def _clause(self, text: str, relation: Relation) -> Clause:
        head, _, body = text.partition(" ← ")
        found = ATOM.match(head)
        assert found is not None
        literals = [self._literal(each.strip()) for each in body.split("∧")]
        head_terms = _terms(found[3])
        return Clause(Atom(relation, head_terms), tuple(_with_groups(literals, head_terms)))

    def _literal(self, text: str) -> Literal:
        if found := ATOM.fullmatch(text):
            sign, name, terms = found.groups()
            known = self._stored.get(name) or self._derived[name].relation
            return Atom(known, _terms(terms), negated=sign == "¬")
        if found := AGGREGATE.fullmatch(text):
            result, aggregate, value, name, terms = found.groups()
            inner = Variable(value, INTEGER) if value else None
            atom = Atom(self._derived[name].relation, _terms(terms))
            return Aggregation(_term(result), aggregate, inner, atom, ())
        found = COMPARISON.fullmatch(text)
        assert found is not None, text
        left, operator, right, operation, other = found.groups()
        if operation:
            return Computation(_term(left), operation, (_term(right), _term(other)))
        return Comparison(operator, _term(left), _term(right))

    # --- asking ----------------------------------------------------------------------------

    def check(self) -> dict[str, Weights]:
        """The changes since the last time, which must be those of the recomputed states."""
        found = self.watching.check()
        self.watching.forget()
        return found

    def differentials(self, name: str) -> list[tuple[str, str]]:
        """`ΔP/Δ+Q` and its body for each partial differential, as the papers write them."""
        watch = self.watching.watches[name]
        change = differentiate(watch.program, watch.influents)
        return [(_title(each, name), _body(each)) for each in change.differentials]


def _relation(name: str, arity: int, kind: Kind, bag: bool) -> Relation:
    columns = tuple(Column(f"c{i}", INTEGER) for i in range(arity))
    if bag:
        return Relation(name, columns, 0, kind, Semantics.BAG)
    key = tuple(range(arity)) if kind is Kind.STORED else None
    return Relation(name, columns, 0, kind, Semantics.SET, key)


def _with_groups(literals: list[Literal], head: tuple[Term, ...]) -> Iterator[Literal]:
    """What an aggregated atom shares with the rest of its clause is its group."""
    for literal in literals:
        if not isinstance(literal, Aggregation):
            yield literal
            continue
        others = (term for other in literals if other is not literal for term in _outer(other))
        shared = {*head, *others} - {literal.result}
        groups = tuple(term for term in literal.atom.terms if term in shared)
        yield replace(literal, groups=groups)


def _outer(literal: Literal) -> tuple[Term, ...]:
    return (literal.result,) if isinstance(literal, Aggregation) else literal_terms(literal)


def _terms(text: str) -> tuple[Term, ...]:
    return tuple(_term(each.strip()) for each in text.split(","))


def _term(text: str) -> Term:
    if text.lstrip("-").isdigit():
        return Constant(int(text), INTEGER)
    return Variable(text, INTEGER)


def _title(differential: Differential, name: str) -> str:
    sign = next(
        literal.terms[-1]
        for literal in differential.clause.body
        if isinstance(literal, Atom) and literal.relation == delta(differential.influent)
    )
    changed = "+" if sign == Constant(1, INTEGER) else "−"
    return f"Δ{'+' if differential.sign > 0 else '−'}{name}/Δ{changed}{differential.influent.name}"


def _body(differential: Differential) -> str:
    text = print_clause(differential.clause).partition("←")[2]
    text = re.sub(r"Δ(\w+?)_[\w,]+\((.*), 1\)", r"Δ+\1(\2)", text)
    text = re.sub(r"Δ(\w+?)_[\w,]+\((.*), -1\)", r"Δ−\1(\2)", text)
    text = re.sub(r"old (\w+?)_[\w,]+\(", r"\1@old(", text)
    return " ".join(re.sub(r"(\w+?)_[\w,]+\(", r"\1(", text).split())


def grouped(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Differentials with the same title together: one for each clause and occurrence."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return {title: [b for _, b in found] for title, found in groupby(ordered, lambda p: p[0])}
