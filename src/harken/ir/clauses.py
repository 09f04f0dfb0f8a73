"""Clauses: a head, and a body that is a conjunction of literals.

Disjunction is several clauses with the same head. Nested calls do not exist: every intermediate
value has a variable. Negation and aggregation apply to a single atom, so a negated or aggregated
conjunction is an auxiliary relation of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from harken.errors import Span
from harken.ir.operations import AGGREGATES, COMPARISONS, OPERATIONS
from harken.ir.relations import Kind, Relation
from harken.ir.terms import Term, Variable
from harken.values.types import Type


@dataclass(frozen=True, slots=True)
class Atom:
    """`r(X, Y)` or `¬r(X, Y)`."""

    relation: Relation
    terms: tuple[Term, ...]
    negated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.terms) != self.relation.arity:
            raise ValueError(f"{self.relation.id} takes {self.relation.arity} terms: {self.terms}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`X < Y`; `=` also binds the one side that is free.

    `=` says that both are the same, NULL the same as NULL, and `!=` that they are not; the others
    hold for no NULL. What SQL calls `=` is the operation `is =`.
    """

    operator: str
    left: Term
    right: Term
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.operator not in COMPARISONS:
            raise ValueError(f"unknown comparison {self.operator}")


@dataclass(frozen=True, slots=True)
class Computation:
    """`R = X + Y`: a built-in operation of its bound arguments."""

    result: Term
    operation: str
    arguments: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"unknown operation {self.operation}")


Setting: TypeAlias = str | float | bool | tuple[int, ...] | tuple[tuple[bool, bool], ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`R = sum(V : r(X, V))`: over the rows of the atom that agree with the bound terms.

    Every variable of the atom that the rest of the clause binds is a group term; the others range
    over the group. `value` is None for `some` and `notany`, and for `count` of rows. Over no rows
    count and sum are 0, some is false, notany is true, and the others have no value. With `or_null`
    it is SQL's: NULLs are left out, and over nothing all but count are NULL.

    An aggregate of `FOLDED` is a function of the whole group in whatever order: of `value`, which
    is not NULL, and of the `others` beside it, with `settings` that are the same for all groups.
    """

    result: Term
    aggregate: str
    value: Variable | None
    atom: Atom
    groups: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    or_null: bool = False
    others: tuple[Variable, ...] = ()
    settings: tuple[Setting, ...] = ()

    @property
    def type(self) -> Type:
        """The type of its value, whatever it is compared with."""
        return self.result.type.or_null(self.or_null)

    def __post_init__(self) -> None:
        if self.aggregate not in AGGREGATES:
            raise ValueError(f"unknown aggregate {self.aggregate}")
        if self.atom.negated:
            raise ValueError("an aggregate ranges over a positive atom")


Literal: TypeAlias = Atom | Comparison | Computation | Aggregation


@dataclass(frozen=True, slots=True)
class Clause:
    head: Atom
    body: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if self.head.negated:
            raise ValueError("a head is never negated")


@dataclass(frozen=True, slots=True)
class First:
    """Of the rows of a relation, for each value of its first `captured` columns, `count` after
    `offset` in an order: columns, each upwards or downwards, NULLs first or last, as many as it
    takes to tell rows apart. The columns that only order are the last, and are left out."""

    relation: str
    captured: int
    order: tuple[tuple[int, bool, bool], ...]
    count: int | None
    offset: int

    @property
    def apart(self) -> frozenset[int]:
        """The columns by which rows are kept apart: each of their values has its own order."""
        return frozenset(range(self.captured))


@dataclass(frozen=True, slots=True)
class Numbered:
    """The rows of a relation, with a number as last column: from 1 in each partition (the values of
    its first `captured` columns and of some others), in an order as that of `First`."""

    relation: str
    captured: int
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]

    @property
    def apart(self) -> frozenset[int]:
        """The columns by which rows are kept apart: each of their values has its own numbers."""
        return frozenset(range(self.captured)).union(self.partition)


@dataclass(frozen=True, slots=True)
class Definition:
    """A derived relation with its clauses; no clause means the empty relation.

    `exclusive` says that no row comes from two clauses, which spares a removal of duplicates.
    `groups` names relations of which these rows are the groups: their first columns, without
    duplicates. `first` says that they are the first rows of another relation, `numbered` that they
    are its rows with a number. All of that is in the clauses, too; an engine that can do better
    with it does.

    A definition that is `tabled` may be computed once for all who mention it. The evaluation of a
    recursive one with a `limit` ends with the round in which it has that many rows.
    """

    relation: Relation
    clauses: tuple[Clause, ...]
    exclusive: bool = False
    groups: frozenset[str] = frozenset()
    first: First | None = None
    numbered: Numbered | None = None
    tabled: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        if any(clause.head.relation != self.relation for clause in self.clauses):
            raise ValueError(f"a clause of {self.relation.id} has another head")


@dataclass(frozen=True)
class Program:
    """The definitions a relation needs, by id; what is not in it is stored or foreign."""

    goal: Relation
    definitions: Mapping[str, Definition]

    def definition(self, relation: Relation) -> Definition | None:
        return self.definitions.get(relation.id)

    def replacing(self, definitions: Mapping[str, Definition]) -> Program:
        return Program(self.goal, {**self.definitions, **definitions})


def literal_terms(literal: Literal) -> tuple[Term, ...]:
    """Every term of a literal, in the order in which it is written."""
    match literal:
        case Atom():
            return literal.terms
        case Comparison():
            return (literal.left, literal.right)
        case Computation():
            return (literal.result, *literal.arguments)
        case Aggregation():
            return (literal.result, *literal.groups)


def literal_variables(literal: Literal) -> tuple[Variable, ...]:
    """The variables through which a literal touches the rest of its clause."""
    return tuple(term for term in literal_terms(literal) if isinstance(term, Variable))


def clause_variables(clause: Clause) -> frozenset[Variable]:
    inside = (variable for literal in clause.body for variable in literal_variables(literal))
    head = (term for term in clause.head.terms if isinstance(term, Variable))
    return frozenset((*head, *inside))


def unread_results(clause: Clause) -> list[Variable]:
    """Results that nothing reads: they are computed all the same, for they may fail."""
    results = [
        literal.result
        for literal in clause.body
        if isinstance(literal, Computation) and isinstance(literal.result, Variable)
    ]
    read = Counter(term for literal in clause.body for term in literal_terms(literal))
    return [each for each in results if read[each] == 1 and each not in clause.head.terms]


def ambiguities(clause: Clause) -> list[Variable]:
    """Results of ambiguous calls: they are errors even for a reader that asks only whether there is
    a row. One that is no variable is tested already."""
    return [
        literal.result
        for literal in clause.body
        if isinstance(literal, Computation)
        and literal.operation == "ambiguous"
        and isinstance(literal.result, Variable)
    ]


def atoms(body: tuple[Literal, ...]) -> Iterator[Atom]:
    """The atoms of a body, those under an aggregate included."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal
        elif isinstance(literal, Aggregation):
            yield literal.atom


def substitute_term(term: Term, mapping: Mapping[Variable, Term]) -> Term:
    return mapping.get(term, term) if isinstance(term, Variable) else term


def substitute(literal: Literal, mapping: Mapping[Variable, Term]) -> Literal:
    """The literal with variables replaced; the private variables of an aggregate stay."""

    def many(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(substitute_term(term, mapping) for term in terms)

    match literal:
        case Atom():
            return replace(literal, terms=many(literal.terms))
        case Comparison():
            left, right = many((literal.left, literal.right))
            return replace(literal, left=left, right=right)
        case Computation():
            return replace(
                literal,
                result=substitute_term(literal.result, mapping),
                arguments=many(literal.arguments),
            )
        case Aggregation():
            value = literal.value
            return replace(
                literal,
                result=substitute_term(literal.result, mapping),
                value=None if value is None else _renamed(value, mapping),
                others=tuple(_renamed(each, mapping) for each in literal.others),
                atom=replace(literal.atom, terms=many(literal.atom.terms)),
                groups=many(literal.groups),
            )


def _renamed(variable: Variable, mapping: Mapping[Variable, Term]) -> Variable:
    renamed = mapping.get(variable, variable)
    if not isinstance(renamed, Variable):
        raise ValueError("the value of an aggregate stays a variable")
    return renamed


def canonical(clause: Clause, only: str = "") -> Clause:
    """The clause with its variables numbered as they appear, to compare two of them; `only` those
    whose names begin so."""
    numbers: dict[Variable, Term] = {}
    inside = (term for literal in clause.body for term in _all_terms(literal))
    for term in (*clause.head.terms, *inside):
        if isinstance(term, Variable) and term.name.startswith(only) and term not in numbers:
            numbers[term] = Variable(f"{only or 'V'}{len(numbers) + 1}", term.type)
    head = replace(clause.head, terms=tuple(substitute_term(t, numbers) for t in clause.head.terms))
    return Clause(head, tuple(substitute(literal, numbers) for literal in clause.body))


def _all_terms(literal: Literal) -> tuple[Term, ...]:
    inside = literal.atom.terms if isinstance(literal, Aggregation) else ()
    return (*literal_terms(literal), *inside)


def rename_relations(definition: Definition, named: Callable[[Relation], Relation]) -> Definition:
    """The definition with every relation in it, its own included, replaced by `named` of it."""

    def atom(each: Atom) -> Atom:
        return replace(each, relation=named(each.relation))

    clauses = tuple(with_atoms(clause, atom) for clause in definition.clauses)
    return Definition(
        named(definition.relation),
        clauses,
        definition.exclusive,
        tabled=definition.tabled,
        limit=definition.limit,
    )


def with_atoms(clause: Clause, changed: Callable[[Atom], Atom]) -> Clause:
    """The clause with `changed` of every atom in it, its head included."""

    def literal(each: Literal) -> Literal:
        match each:
            case Atom():
                return changed(each)
            case Aggregation():
                return replace(each, atom=changed(each.atom))
        return each

    return Clause(changed(clause.head), tuple(map(literal, clause.body)))


def with_terms(literal: Literal, changed: Callable[[Term], Term]) -> Literal:
    """The literal with `changed` of every term that is compared or computed with."""
    match literal:
        case Comparison():
            return replace(literal, left=changed(literal.left), right=changed(literal.right))
        case Computation():
            return replace(literal, arguments=tuple(map(changed, literal.arguments)))
    return literal


def written_out(program: Program) -> int:
    """How many literals a program has with every derived relation written out where it is
    mentioned: the length of a statement that says all of it."""
    known: dict[str, int] = {}
    waiting = [program.goal.id]
    opened: set[str] = set()
    while waiting:  # a program may be deeper than Python's stack is
        name = waiting[-1]
        if name not in program.definitions:
            known.setdefault(name, 0)
        elif name not in opened:
            opened.add(name)
            known[name] = 0  # what a recursive relation says of itself is said once
            inside = dict.fromkeys(a.relation.id for a in _mentioned(program.definitions[name]))
            waiting += [each for each in inside if each not in opened]
            continue
        elif not known[name]:
            bodies = [clause.body for clause in program.definitions[name].clauses]
            inner = sum(known[atom.relation.id] for body in bodies for atom in atoms(body))
            known[name] = inner + sum(map(len, bodies))
        waiting.pop()
    return known[program.goal.id]


def _mentioned(definition: Definition) -> Iterator[Atom]:
    return (atom for clause in definition.clauses for atom in atoms(clause.body))


def stored_relations(program: Program) -> dict[str, Relation]:
    """The stored relations that a program reads, by id."""
    goal = program.goal
    is_stored = goal.kind is Kind.STORED and goal.id not in program.definitions
    return ({goal.id: goal} if is_stored else {}) | {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.STORED
    }
