"""Old values and changes as values: what a relation held when the transaction, or the statement,
began.

    before(R) = (R − Δ+R) ∪ Δ−R
    delta_plus(R) = R − before(R)        delta_minus(R) = before(R) − R

ΔR here is the *history* of R: its net change since then, not since the last wave. Nothing else is
kept (thesis, 2.3 and 5.3). For the calculus before(R) is a stored relation that does not change
while the transaction runs: a wave differentiates what is around it, and finds exactly what became
true against values that stay the same. `calculus.past_states` writes it out, when a plan is made.

Law: before(R) has the rows that R had when the transaction, or the statement, began.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    atoms,
    rename_relations,
)
from harken.ir.relations import COPIES, Column, Kind, Relation, Role, Semantics
from harken.ir.terms import Variable
from harken.values.types import INTEGER

TRANSACTION, STATEMENT = "transaction", "statement"
PAST = frozenset({Role.BEFORE, Role.HISTORY, Role.NET_GAIN, Role.NET_LOSS})


def before(relation: Relation, since: str = TRANSACTION) -> Relation:
    """The relation as it was when the transaction, or the statement, began. What was before the
    beginning is not known: an old value of an old value is the old value."""
    if relation.kind is Kind.FOREIGN or relation.role in PAST:
        return relation
    return relation.variant(Role.BEFORE, f"old {relation.name}", past=True, since=since)


def history(relation: Relation, since: str = TRANSACTION) -> Relation:
    """The net change of a stored relation since the transaction, or the statement, began."""
    return relation.variant(
        Role.HISTORY,
        f"Δ{relation.name}",
        columns=(*relation.columns, Column("weight", INTEGER)),
        kind=Kind.STORED,
        semantics=Semantics.SET,
        key=tuple(range(relation.arity)),
        past=True,
        since=since,
    )


def net_change(relation: Relation, sign: int, since: str = TRANSACTION) -> Relation:
    """delta_plus or delta_minus: the rows that a relation gained or lost since then; of a bag, each
    as often as that."""
    role, name = (Role.NET_GAIN, "delta_plus") if sign > 0 else (Role.NET_LOSS, "delta_minus")
    named = f"{name} {relation.name}"
    return relation.variant(
        role, named, kind=Kind.DERIVED, inputs=0, key=None, past=True, since=since
    )


def made_of(relation: Relation) -> Relation:
    assert isinstance(relation.of, Relation), relation.id
    return relation.of


def in_the_past(literal: Literal) -> Literal:
    """The literal, as it was when the transaction began."""
    match literal:
        case Atom():
            return replace(literal, relation=before(literal.relation))
        case Aggregation():
            return replace(
                literal, atom=replace(literal.atom, relation=before(literal.atom.relation))
            )
    return literal


def past_definition(relation: Relation, present: Definition | None) -> Definition:
    """The definition of a derived relation of the past; `present` is that of what it was made of,
    if that is derived."""
    since = relation.since
    if relation.role is Role.BEFORE:
        assert present is not None
        return replace(
            rename_relations(present, lambda each: before(each, since)),
            groups=frozenset(),
            first=None,
            numbered=None,
        )
    return _net_change(relation, since)


def _net_change(relation: Relation, since: str) -> Definition:
    now, then = made_of(relation), before(made_of(relation), since)
    if relation.role is Role.NET_LOSS:
        now, then = then, now
    row = row_of(relation)
    if relation.is_set:
        body: tuple[Literal, ...] = (Atom(now, row), Atom(then, row, negated=True))
        return Definition(relation, (Clause(Atom(relation, row), body),))
    here, there, more, which = (Variable(n, INTEGER) for n in ("HERE", "THERE", "MORE", "WHICH"))
    counts: tuple[Literal, ...] = (
        Aggregation(here, "count", None, Atom(_part(relation, "here"), row), row),
        Aggregation(there, "count", None, Atom(_part(relation, "there"), row), row),
        Comparison(">", here, there),
        Computation(more, "-", (here, there)),
        Atom(COPIES, (more, which)),
    )
    once = Atom(_part(relation, "rows"), row)
    return Definition(relation, (Clause(Atom(relation, row), (once, *counts)),))


def _part(relation: Relation, what: str) -> Relation:
    """What the net change of a bag is computed with: its rows once, and as often as they are
    there now, and were there then."""
    semantics = Semantics.SET if what == "rows" else Semantics.BAG
    return relation.variant(Role.AUXILIARY, f"{what} {relation.name}", semantics=semantics)


def parts_of(relation: Relation) -> Iterator[Definition]:
    """The definitions that the net change of a bag is made with."""
    if relation.role in (Role.NET_GAIN, Role.NET_LOSS) and not relation.is_set:
        now, then = made_of(relation), before(made_of(relation), relation.since)
        if relation.role is Role.NET_LOSS:
            now, then = then, now
        row = row_of(relation)
        for what, of in (("rows", now), ("here", now), ("there", then)):
            part = _part(relation, what)
            yield Definition(part, (Clause(Atom(part, row), (Atom(of, row),)),))


def row_of(relation: Relation) -> tuple[Variable, ...]:
    return tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))


def since_statement(program: Program) -> Program:
    """The program reading the past of the statement instead of that of the transaction. All that
    does so, directly or not, gets other names: others may read the same functions."""
    reading = _reading_past(program)
    if not reading:
        return program

    def named(relation: Relation) -> Relation:
        if relation.role in PAST:
            return replace(relation, since=STATEMENT, of=named(made_of(relation)))
        if relation.id not in reading or relation == program.goal:
            return relation
        if relation.role is Role.PLAIN:
            return relation.variant(Role.AUXILIARY, relation.name, since=STATEMENT)
        return replace(relation, name=f"{relation.name} of the statement")

    changed = [rename_relations(each, named) for each in program.definitions.values()]
    return Program(program.goal, {each.relation.id: each for each in changed})


def _reading_past(program: Program) -> set[str]:
    """The derived relations that read the past, directly or through others."""
    found: set[str] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for name, definition in program.definitions.items():
            mentioned = [a.relation for c in definition.clauses for a in atoms(c.body)]
            if any(each.role in PAST or each.id in found for each in mentioned):
                found.add(name)
    return found


def reads_past(program: Program) -> bool:
    """Whether a program reads what was before the transaction or the statement."""
    return any(each.role in PAST for each in _mentioned(program))


def _mentioned(program: Program) -> Iterator[Relation]:
    for definition in program.definitions.values():
        for clause in definition.clauses:
            yield from (atom.relation for atom in atoms(clause.body))
