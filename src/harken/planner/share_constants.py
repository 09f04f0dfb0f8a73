"""Programs that differ in constants alone, as one program and a table of constants.

    q(X) ← t(X, Y) ∧ Y > 5 ∧ ¬r(X)                        with q, r the program's own relations
    r(X) ← u(X, "Oslo")

becomes, for all queries of that shape together,

    q(Q, X) ← parameters(Q, C0, C1) ∧ t(X, Y) ∧ Y > C0 ∧ ¬r(Q, X)
    r(Q, X) ← parameters(Q, C0, C1) ∧ u(X, C1)

Relations that depend on no constant stay as they are, so all queries read the same rows of them.
Aggregates over relations that do depend on one have the query among their groups, and first rows
are those of each query.

Law: the rows of the shared goal that begin with a query, without it, are the rows of the goal with
the constants of that query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    First,
    Literal,
    Numbered,
    atoms,
    clause_variables,
    literal_terms,
    with_atoms,
    with_terms,
)
from harken.ir.operations import COMPARISONS
from harken.ir.relations import Column, Relation, Role
from harken.ir.strata import depends_on
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.values.types import BOOLEAN, INTEGER, Type

LIFTED = frozenset({"is among", *(f"is {each}" for each in COMPARISONS)})
"""The computations whose constants are lifted: those that compare."""
QUERY = Variable("QUERY#", INTEGER)
ParametersNamed = Callable[[str, Sequence[Type]], Relation]


@dataclass(frozen=True, slots=True)
class SharedProgram:
    label: str
    """Equal for programs that differ in constants alone."""
    goal: Relation
    definitions: tuple[Definition, ...]
    constants: tuple[Constant | Parameter, ...]
    parameters: Relation | None
    """One row for each query: its number, and its constants. None if there is no constant."""
    looked_up: tuple[int, ...]
    """The columns of the parameters that are compared with something else."""


def share_constants(
    own: Sequence[Definition], parameters_named: ParametersNamed
) -> SharedProgram | None:
    """`own` are the definitions that may be changed, that of the goal first. Parameters stand for
    constants. None if they cannot be shared without a loss: they are recursive, each query has its
    own first rows of many, or a parameter would have to stay."""
    if _is_recursive(own):
        return None
    lifting = _Lifting()
    lifted = [lifting.definition(each) for each in _renamed(own, "part")]
    told = repr((lifted, lifting.types))
    label = f"of shape {hashlib.sha256(told.encode()).hexdigest()[:24]}"
    lifted = _renamed(lifted, f"answers {label}")
    if any(_has_parameter(clause) for each in lifted for clause in each.clauses):
        return None
    if not lifting.constants:
        return SharedProgram(label, lifted[0].relation, tuple(lifted), (), None, ())
    parameters = parameters_named(f"answers {label}", lifting.types)
    sharing = _Sharing(lifted, parameters, lifting.variables)
    if sharing.has_first_rows() and not lifting.selects:
        return None
    return SharedProgram(
        label,
        sharing.name(sharing.goal),
        tuple(map(sharing.shared, lifted)),
        tuple(lifting.constants),
        parameters,
        tuple(i for i, each in enumerate(lifting.variables, 1) if each in lifting.compared),
    )


def _has_parameter(clause: Clause) -> bool:
    terms = (term for literal in clause.body for term in literal_terms(literal))
    return any(isinstance(each, Parameter) for each in (*clause.head.terms, *terms))


def _is_recursive(own: Sequence[Definition]) -> bool:
    names = {each.relation.id: depends_on(each).keys() for each in own}
    while names:
        bottom = [name for name, below in names.items() if below.isdisjoint(names)]
        if not bottom:
            return True
        for name in bottom:
            del names[name]
    return any(each.limit is not None or each.relation.in_rounds for each in own)


def _renamed(own: Sequence[Definition], name: str) -> list[Definition]:
    """The definitions with names that depend on their order alone."""
    named = {
        each.relation.id: replace(each.relation, name=f"{name} {number}" if number else name)
        for number, each in enumerate(own)
    }

    def atom(each: Atom) -> Atom:
        return replace(each, relation=named.get(each.relation.id, each.relation))

    def identity(name: str) -> str:
        return named[name].id if name in named else name

    return [
        _with(
            each,
            named[each.relation.id],
            [with_atoms(clause, atom) for clause in each.clauses],
            identity,
        )
        for each in own
    ]


def _with(
    definition: Definition,
    relation: Relation,
    clauses: Iterable[Clause],
    identity: Callable[[str], str],
    shift: int = 0,
) -> Definition:
    first, numbered = definition.first, definition.numbered
    return replace(
        definition,
        relation=relation,
        clauses=tuple(clauses),
        groups=frozenset(map(identity, definition.groups)),
        first=None if first is None else _moved(first, identity, shift),
        numbered=None if numbered is None else _numbered(numbered, identity, shift),
    )


def _moved(first: First, identity: Callable[[str], str], shift: int) -> First:
    return replace(
        first,
        relation=identity(first.relation),
        captured=first.captured + shift,
        order=_shifted(first.order, shift),
    )


def _numbered(numbered: Numbered, identity: Callable[[str], str], shift: int) -> Numbered:
    return replace(
        numbered,
        relation=identity(numbered.relation),
        captured=numbered.captured + shift,
        partition=tuple(each + shift for each in numbered.partition),
        order=_shifted(numbered.order, shift),
    )


def _shifted(
    order: tuple[tuple[int, bool, bool], ...], shift: int
) -> tuple[tuple[int, bool, bool], ...]:
    return tuple((place + shift, upwards, nulls) for place, upwards, nulls in order)


@dataclass(slots=True)
class _Lifting:
    """Constants that are compared, or shown, become variables. Those of other computations stay,
    because plans may depend on them; so do those that say which rows are the first."""

    constants: list[Constant | Parameter] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    compared: set[Variable] = field(default_factory=set)
    """Those that are compared with something, so that an index on them is of use."""
    selects: bool = False
    """Whether one must be equal to something that varies."""

    @property
    def types(self) -> list[Type]:
        return [each.type for each in self.variables]

    def definition(self, definition: Definition) -> Definition:
        if definition.first is not None or definition.numbered is not None:
            return definition
        return replace(definition, clauses=tuple(map(self._clause, definition.clauses)))

    def _clause(self, clause: Clause) -> Clause:
        body = tuple(map(self._literal, clause.body))
        terms = tuple(map(self._term, clause.head.terms))
        return Clause(replace(clause.head, terms=terms), body)

    def _literal(self, literal: Literal) -> Literal:
        match literal:
            case Computation(operation=operation) if operation in LIFTED:
                return with_terms(literal, self._term)
            case Comparison(operator=operator):
                found = with_terms(literal, self._term)
                assert isinstance(found, Comparison)
                for before, now, other in (
                    (literal.left, found.left, found.right),
                    (literal.right, found.right, found.left),
                ):
                    if before is not now and isinstance(now, Variable):
                        self.compared.add(now)
                        self.selects |= operator == "=" and isinstance(other, Variable)
                return found
        return literal

    def _term(self, term: Term) -> Term:
        if isinstance(term, Variable) or term.type == BOOLEAN:
            return term
        if isinstance(term, Constant) and term.value is None:
            return term
        variable = Variable(f"CONSTANT#{len(self.constants)}", term.type.or_null(False))
        self.constants.append(term)
        self.variables.append(variable)
        return variable


class _Sharing:
    """The definitions with the query as first column, where they depend on a constant."""

    def __init__(
        self, own: Sequence[Definition], parameters: Relation, variables: Sequence[Variable]
    ) -> None:
        self.definitions = own
        self.goal = own[0].relation
        self._active = Atom(parameters, (QUERY, *variables))
        self._variables = frozenset(variables)
        self._dependent = set[str]()
        """The relations that differ between queries, and the goal."""
        while found := {each.relation.id for each in own if self._depends(each)} - self._dependent:
            self._dependent |= found
        self._dependent.add(self.goal.id)

    def _depends(self, definition: Definition) -> bool:
        return any(
            self._mentions_constants(clause)
            or any(each.relation.id in self._dependent for each in atoms(clause.body))
            for clause in definition.clauses
        )

    def _mentions_constants(self, clause: Clause) -> bool:
        return not self._variables.isdisjoint(clause_variables(clause))

    def has_first_rows(self) -> bool:
        """Whether each query has first rows of its own, which could be kept if it were alone."""
        return any(
            each.first is not None
            and not each.first.captured
            and each.first.relation in self._dependent
            for each in self.definitions
        )

    def name(self, relation: Relation) -> Relation:
        if relation.id not in self._dependent:
            return relation
        return replace(
            relation,
            columns=(Column("query", INTEGER), *relation.columns),
            inputs=relation.inputs + 1 if relation.inputs else 0,
            key=None if relation.key is None else (0, *(i + 1 for i in relation.key)),
            role=Role.CONDITION if relation.id == self.goal.id else relation.role,
        )

    def shared(self, definition: Definition) -> Definition:
        if definition.relation.id not in self._dependent:
            return definition
        clauses = map(self._clause, definition.clauses)
        return _with(definition, self.name(definition.relation), clauses, self._identity, 1)

    def _identity(self, name: str) -> str:
        found = next((each.relation for each in self.definitions if each.relation.id == name), None)
        return name if found is None else self.name(found).id

    def _clause(self, clause: Clause) -> Clause:
        has_query = any(
            isinstance(each, Atom) and not each.negated and each.relation.id in self._dependent
            for each in clause.body
        )
        body = tuple(map(self._literal, clause.body))
        if not has_query or self._mentions_constants(clause):
            body = (self._active, *body)
        return Clause(self._atom(clause.head), body)

    def _literal(self, literal: Literal) -> Literal:
        match literal:
            case Atom():
                return self._atom(literal)
            case Aggregation(atom=atom) if atom.relation.id in self._dependent:
                groups = (QUERY, *literal.groups)
                return replace(literal, atom=self._atom(atom), groups=groups)
        return literal

    def _atom(self, atom: Atom) -> Atom:
        if atom.relation.id not in self._dependent:
            return atom
        return replace(atom, relation=self.name(atom.relation), terms=(QUERY, *atom.terms))
