"""The clauses of one statement while they are written. It works on terms and knows no syntax.

It names variables, and builds the literals of calls, the auxiliary relations of sub-queries, and
clauses from heads and bodies.

Law: the columns of an auxiliary relation are as true as those of any other. A variable ranges over
its declared type, by an atom of its own or by one that already confines it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harken.errors import Span
from harken.ir.clauses import (
    Atom,
    Clause,
    Computation,
    Definition,
    Literal,
    literal_variables,
    substitute_term,
)
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import unbound
from harken.ir.schema import Function, Schema
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.ir.typing import operation_mismatch
from harken.ir.unify import unify
from harken.lang.amosql.overload_resolution import Argument, unknown_type
from harken.lang.amosql.scope import Parameters, Scope
from harken.values.types import ALIASES, INTEGER, NUMBER, Type

Declared = list[tuple[Variable, Type]]


@dataclass(slots=True)
class Branch:
    """One alternative of a query: its body, what it selects, and the variables it ranges over."""

    body: list[Literal]
    items: tuple[Term, ...]
    declared: Declared


@dataclass(slots=True)
class Draft:
    """Auxiliary relations collect in `auxiliaries`, what the text depends on in the two sets."""

    schema: Schema
    owner: str = "query"
    parameters: Parameters = field(default_factory=Parameters)
    auxiliaries: dict[str, Definition] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    _fresh: int = 0
    _taken: dict[str, int] = field(default_factory=dict)

    def fresh(self, type_: Type) -> Variable:
        self._fresh += 1
        return Variable(f"_G{self._fresh}", type_)

    def declare(self, scope: Scope, name: str, type_: Type) -> Variable:
        """A variable the user named, in capitals as the papers write it."""
        upper = name.upper()
        if upper.startswith("_G"):  # the names of generated variables
            upper = f"V{upper}"
        count = self._taken[upper] = self._taken.get(upper, 0) + 1
        variable = Variable(upper if count == 1 else f"{upper}_{count}", type_)
        scope.names[name] = variable
        return variable

    def type(self, name: str, span: Span | None) -> Type:
        found = self.schema.type_named(ALIASES.get(name, name))
        if found is None:
            raise unknown_type(self.schema, name, span)
        self.mentioned.add(found.name)
        return found

    def auxiliary_name(self, purpose: str) -> str:
        return f"{self.owner}#{purpose}{len(self.auxiliaries) + 1}"

    def argument(self, term: Term) -> Argument:
        if isinstance(term, Parameter):
            return self.parameters.argument(term)
        return Argument((term.type,))

    def operate(
        self, name: str, terms: tuple[Term, ...], literals: list[Literal], span: Span | None
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """Apply a built-in operation, widening integers where it takes numbers."""
        types = tuple(term.type for term in terms)
        signature = OPERATIONS[name].resolve(types, self.schema.hierarchy)
        if signature is None:
            raise operation_mismatch(name, types, span)
        literals = list(literals)
        operands = tuple(
            self.coerce(term, wanted, literals, span)
            for term, wanted in zip(terms, signature.arguments, strict=True)
        )
        result = self.fresh(signature.result)
        return [*literals, Computation(result, name, operands, span=span)], (result,)

    def coerce(self, term: Term, wanted: Type, literals: list[Literal], span: Span | None) -> Term:
        """The term as it stands in a column of the wanted type; appends a widening if needed."""
        if isinstance(term, Parameter) and (wanted.surrogate == term.type.surrogate):
            fits = self.parameters.argument(term).may_fit(wanted, self.schema.hierarchy)
            return replace(term, type=wanted) if fits else term
        if term.type != INTEGER or wanted != NUMBER:
            return term
        if isinstance(term, Constant):
            return Constant(float(term.value), NUMBER)  # type: ignore[arg-type]
        widened = self.fresh(NUMBER)
        literals.append(Computation(widened, "widen", (term,), span=span))
        return widened

    def atom(
        self,
        function: Function,
        terms: tuple[Term, ...],
        literals: list[Literal],
        span: Span | None,
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        relation = function.relation
        assert relation is not None
        literals = list(literals)
        given = tuple(
            self.coerce(term, column.type, literals, span)
            for term, column in zip(terms, relation.columns[: relation.inputs], strict=True)
        )
        results = tuple(self.fresh(column.type) for column in relation.columns[relation.inputs :])
        return [*literals, Atom(relation, (*given, *results), span=span)], results

    def outer(self, branches: list[Branch], scope: Scope) -> tuple[Variable, ...]:
        """The variables of the surrounding clauses that a sub-query mentions."""
        visible = scope.variables()
        mentioned: dict[Variable, None] = {}
        for branch in branches:
            for literal in branch.body:
                mentioned.update(dict.fromkeys(literal_variables(literal)))
            mentioned.update({term: None for term in branch.items if isinstance(term, Variable)})
        return tuple(variable for variable in mentioned if variable in visible)

    def query_relation(
        self, name: str, outer: Sequence[Term], branches: list[Branch], bag: bool
    ) -> Relation:
        """The relation of a sub-query: the outer variables it mentions, then what it selects."""
        items = branches[0].items
        columns = tuple(
            Column(f"c{position}", term.type) for position, term in enumerate((*outer, *items))
        )
        semantics = Semantics.BAG if bag else Semantics.SET
        return Relation(name, columns, len(outer), Kind.DERIVED, semantics, role=Role.PART)

    def define(self, relation: Relation, outer: Sequence[Variable], branches: list[Branch]) -> None:
        """Define an auxiliary relation; the outer variables it mentions keep to their types in
        it too, so that its columns are as true as those of any other relation."""
        ranged = [(variable, variable.type) for variable in outer]
        clauses = tuple(
            self.clause(relation, (*outer, *branch.items), branch.body, [*ranged, *branch.declared])
            for branch in branches
        )
        self.auxiliaries[relation.id] = Definition(relation, clauses)

    def clause(
        self,
        relation: Relation,
        head: Sequence[Term],
        body: Sequence[Literal],
        declared: Declared,
    ) -> Clause:
        """Solve the equations, and let each declared variable range over its type if nothing
        else in the body already confines it to that type."""
        literals, solved = unify(body, self.schema.hierarchy)
        for variable, type_ in declared:
            term = substitute_term(variable, solved)
            if type_.surrogate and not self._confined(term, type_, literals):
                literals = (*literals, Atom(self.schema.extent(type_), (term,)))
        terms = tuple(substitute_term(term, solved) for term in head)
        mentioned = {each for literal in literals for each in literal_variables(literal)}
        for variable, _ in declared:
            term = substitute_term(variable, solved)
            if isinstance(term, Variable) and term not in mentioned and term not in terms:
                raise unbound(variable)
        return Clause(Atom(relation, terms), literals)

    def _confined(self, term: Term, type_: Type, body: tuple[Literal, ...]) -> bool:
        hierarchy = self.schema.hierarchy
        if isinstance(term, Parameter):
            return self.parameters.argument(term).fits(type_, hierarchy)
        return any(
            isinstance(literal, Atom)
            and not literal.negated
            and literal.relation.kind is not Kind.FOREIGN
            and not literal.relation.past
            and any(
                other == term and hierarchy.is_subtype(column.type, type_)
                for other, column in zip(literal.terms, literal.relation.columns, strict=True)
            )
            for literal in body
        )
