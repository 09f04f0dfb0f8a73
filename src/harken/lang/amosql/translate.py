"""AMOSQL queries and derived functions into ObjectLog (section 4.2 of the thesis).

Flatten nested calls into literals with intermediate variables, adorn them with types, resolve
overloads (early) or build a dispatching relation (late), and generate clauses: `and` joins, `or`
makes several clauses, `not` and aggregates make an auxiliary relation.

Law: the clauses mean what the text means, as a set; or as a bag, where one row stands for each
combination of the `for each` variables that passes `where`, times the values selected for it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from harken.errors import NameFault, SafetyFault, Span, TypeFault, ValueFault, nearest
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Computation,
    Definition,
    Literal,
    literal_variables,
    substitute_term,
)
from harken.ir.dependencies import determined
from harken.ir.operations import (
    AGGREGATES,
    COMPARISONS,
    OPERATIONS,
    PRIVATE_OPERATIONS,
)
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.safety import unbound
from harken.ir.schema import Function, Schema
from harken.ir.terms import Constant, Parameter, Term, Value, Variable
from harken.ir.types import (
    ALIASES,
    BOOLEAN,
    DATE,
    FUNCTION,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
)
from harken.ir.typing import operation_mismatch
from harken.ir.unify import unify
from harken.lang.amosql import closure, conditions, dispatch, syntax
from harken.lang.amosql.conditions import Alternatives
from harken.lang.amosql.resolve import Argument, resolve, unknown_function, unknown_type
from harken.lang.amosql.scope import Local, Parameters, Scope, Source
from harken.lang.amosql.tree import chain

ARITHMETIC = frozenset({"+", "-", "*", "/", "||"})

Declared = list[tuple[Variable, Type]]
InterfaceTypes = Callable[[syntax.InterfaceVariable], Argument]


@dataclass(slots=True)
class Branch:
    """One alternative of a query: its body, what it selects, and the variables it ranges over."""

    body: list[Literal]
    items: tuple[Term, ...]
    declared: Declared


def no_interface_variables(variable: syntax.InterfaceVariable) -> Argument:
    raise NameFault(
        f":{variable.name} is a value of the session and cannot be part of a definition",
        code="unknown-variable",
        span=variable.span,
        hint="make it a parameter of the function",
    )


@dataclass(slots=True)
class Translator:
    """Builds the clauses of one statement; auxiliary relations collect in `auxiliaries`."""

    schema: Schema
    owner: str = "query"
    interface: InterfaceTypes = no_interface_variables
    parameters: Parameters = field(default_factory=Parameters)
    auxiliaries: dict[str, Definition] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    _fresh: int = 0
    _taken: dict[str, int] = field(default_factory=dict)

    # --- names -----------------------------------------------------------------------------

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

    # --- values ----------------------------------------------------------------------------

    def value(
        self, node: syntax.Expression, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """The literals that compute an expression, and the terms that hold its value."""
        match node:
            case syntax.Literal():
                return [], (self._literal(node),)
            case syntax.Name():
                return [], (self._name(node, scope),)
            case syntax.InterfaceVariable():
                key = node.name if node.slot is None else node.slot
                return [], (self.parameters.number(Source("interface", key), self.interface(node)),)
            case syntax.FunctionReference():
                return [], (Constant(self.function_named(node).oid, FUNCTION),)
            case syntax.Tuple():
                return self.values(node.items, scope)
            case syntax.Query():
                return self._nested_query(node, scope)
            case syntax.Call():
                return self._call(node, scope)
            case syntax.Unary(operator="-"):
                return self._negative(node, scope)
            case syntax.Binary() if node.operator in ARITHMETIC:
                return self._arithmetic(node, scope)
            case _:
                return self._truth_value(node, scope)

    def _arithmetic(
        self, node: syntax.Binary, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        first, links = chain(node, ARITHMETIC)
        literals, left = self.single(first, scope)
        for link in links:
            more, right = self.single(link.right, scope)
            literals, (left,) = self.operate(
                link.operator, (left, right), [*literals, *more], link.span
            )
        return literals, (left,)

    def single(self, node: syntax.Expression, scope: Scope) -> tuple[list[Literal], Term]:
        literals, terms = self.value(node, scope)
        if len(terms) != 1:
            raise TypeFault(
                f"one value is needed here, and this gives {len(terms)}",
                code="arity",
                span=node.span,
                hint="take the columns apart: `where f(x) = <a, b>`",
            )
        return literals, terms[0]

    def values(
        self, nodes: Sequence[syntax.Expression], scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        literals: list[Literal] = []
        terms: list[Term] = []
        for node in nodes:
            more, values = self.value(node, scope)
            literals += more
            terms += values
        return literals, tuple(terms)

    def _literal(self, node: syntax.Literal) -> Term:
        type_ = literal_type(node.value)
        if node.slot is None:
            return Constant(node.value, type_)
        return self.parameters.number(Source("literal", node.slot), Argument((type_,), exact=True))

    def _name(self, node: syntax.Name, scope: Scope) -> Term:
        found = scope.find(node.name)
        if isinstance(found, Variable):
            return found
        if isinstance(found, Local):
            return self.parameters.number(Source("local", found.name), Argument((found.type,)))
        meant = nearest(node.name, scope.known())
        hint = f"did you mean {meant}?" if meant else "declare it with `for each`"
        if node.name.lower() == "null":
            hint = "there is no NULL: a function may have no value, and some(f(x)) asks whether"
        if self.schema.overloads(node.name):
            hint = f"{node.name} is a function: call it with its arguments, {node.name}(...)"
        raise NameFault(
            f"there is no variable {node.name}", code="unknown-variable", span=node.span, hint=hint
        )

    def _negative(self, node: syntax.Unary, scope: Scope) -> tuple[list[Literal], tuple[Term, ...]]:
        literals, term = self.single(node.operand, scope)
        if isinstance(term, Constant) and isinstance(term.value, int | float):
            return literals, (Constant(-term.value, term.type),)
        return self.operate("negate", (term,), literals, node.span)

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

    def _truth_value(
        self, node: syntax.Expression, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """A condition used as a value: true or false, never nothing."""
        if isinstance(node, syntax.Binary) and node.operator in COMPARISONS:
            literals, terms = self.values((node.left, node.right), scope)
            if len(terms) == 2 and not any(term.type.surrogate for term in terms):
                return self.operate(f"is {node.operator}", terms, literals, node.span)
        atom, groups = self.condition_relation(self.predicate(node, scope), scope, "some", node)
        result = self.fresh(BOOLEAN)
        return [Aggregation(result, "some", None, atom, groups, span=node.span)], (result,)

    # --- calls -----------------------------------------------------------------------------

    def _call(self, node: syntax.Call, scope: Scope) -> tuple[list[Literal], tuple[Term, ...]]:
        if node.function in AGGREGATES and len(node.arguments) == 1:
            return self._aggregate(node, scope)
        if node.function in AGGREGATES:
            raise TypeFault(
                f"{node.function} takes one argument, not {len(node.arguments)}",
                code="arity",
                span=node.span,
                hint=f"give it a query or a function: {node.function}(select ...)",
            )
        if node.function == "tclose":
            return closure.translate(self, node, scope)
        literals, terms = self.values(node.arguments, scope)
        return self.apply(node.function, terms, literals, node.span, node.qualifier)

    def apply(
        self,
        name: str,
        terms: tuple[Term, ...],
        literals: list[Literal],
        span: Span | None,
        qualifier: str | None = None,
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """Call a function by name: one atom if the types decide, else a dispatching relation."""
        built_in = name in OPERATIONS and name not in PRIVATE_OPERATIONS and qualifier is None
        if built_in and self._is_operation(name, terms):
            return self.operate(name, terms, literals, span)
        if not self.schema.overloads(name):
            if built_in:
                return self.operate(name, terms, literals, span)
            raise unknown_function(self.schema, name, span)
        self.called.add(name)
        arguments = [self.argument(term) for term in terms]
        candidates = resolve(self.schema, name, arguments, qualifier, span)
        for function in candidates:
            if function.has_effects:
                raise SafetyFault(
                    f"{name} has effects, so a query cannot call it",
                    code="side-effect",
                    span=span,
                    hint="call it as a statement of its own",
                )
        if len(candidates) == 1:
            return self.atom(candidates[0], terms, literals, span)
        return dispatch.late_call(self, candidates, terms, literals, span)

    def _is_operation(self, name: str, terms: tuple[Term, ...]) -> bool:
        types = tuple(term.type for term in terms)
        return OPERATIONS[name].resolve(types, self.schema.hierarchy) is not None

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

    def function_named(self, node: syntax.FunctionReference) -> Function:
        qualifier, _, name = node.name.rpartition(".")
        overloads = self.schema.overloads(name)
        if qualifier:
            overloads = tuple(
                f for f in overloads if f.parameters and f.parameters[0].type.name == qualifier
            )
        if not overloads:
            raise unknown_function(self.schema, node.name, node.span)
        if len(overloads) > 1:
            raise TypeFault(
                f"{name} means {' or '.join(sorted(f.id for f in overloads))}",
                code="ambiguous",
                span=node.span,
                hint=f"choose one: #'{overloads[0].parameters[0].type}.{name}'",
            )
        return overloads[0]

    # --- sub-queries -----------------------------------------------------------------------

    def _nested_query(
        self, node: syntax.Query, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """A query in the place of a value is a set of its own, joined to what is around it."""
        branches = self.branches(node, scope, bag=False)
        outer = self._outer(branches, scope)
        relation = self.query_relation(self.auxiliary_name("select"), outer, branches, bag=False)
        self.define(relation, outer, branches)
        results = tuple(self.fresh(column.type) for column in relation.columns[len(outer) :])
        return [Atom(relation, (*outer, *results), span=node.span)], results

    def _aggregate(self, node: syntax.Call, scope: Scope) -> tuple[list[Literal], tuple[Term, ...]]:
        aggregate = AGGREGATES[node.function]
        argument = node.arguments[0]
        query = argument if isinstance(argument, syntax.Query) else as_query(argument)
        bag = not query.distinct
        branches = self.branches(query, scope, bag)
        width = len(branches[0].items)
        if width != 1 and aggregate.accepts is not None:
            raise TypeFault(
                f"{node.function} takes one value, and this gives {width}",
                code="arity",
                span=node.span,
                hint="select one column",
            )
        outer = self._outer(branches, scope)
        relation = self.query_relation(self.auxiliary_name(node.function), outer, branches, bag)
        self.define(relation, outer, branches)
        private = tuple(self.fresh(column.type) for column in relation.columns[len(outer) :])
        value = private[0] if aggregate.accepts is not None else None
        atom = Atom(relation, (*outer, *private), span=node.span)
        result = self.fresh(aggregate.result_type(private[0].type))
        literal = Aggregation(result, node.function, value, atom, outer, span=node.span)
        return [literal], (result,)

    def condition_relation(
        self, alternatives: Alternatives, scope: Scope, purpose: str, node: syntax.Node
    ) -> tuple[Atom, tuple[Variable, ...]]:
        """An auxiliary relation of the outer bindings for which a condition holds."""
        branches = [Branch(list(body), (), []) for body in alternatives]
        outer = self._outer(branches, scope)
        relation = self.query_relation(self.auxiliary_name(purpose), outer, branches, bag=False)
        self.define(relation, outer, branches)
        return Atom(relation, outer, span=node.span), outer

    def _outer(self, branches: list[Branch], scope: Scope) -> tuple[Variable, ...]:
        """The variables of the surrounding clauses that a sub-query mentions."""
        visible = scope.variables()
        mentioned: dict[Variable, None] = {}
        for branch in branches:
            for literal in branch.body:
                mentioned.update(dict.fromkeys(literal_variables(literal)))
            mentioned.update({term: None for term in branch.items if isinstance(term, Variable)})
        return tuple(variable for variable in mentioned if variable in visible)

    def predicate(self, node: syntax.Expression, scope: Scope) -> Alternatives:
        """The alternatives under which a condition holds, at least one."""
        return conditions.translate(self, node, scope)

    # --- queries ---------------------------------------------------------------------------

    def branches(self, query: syntax.Query, scope: Scope, bag: bool) -> list[Branch]:
        inner = scope.child()
        declared: Declared = []
        for declaration in query.variables:
            type_ = self.type(declaration.type, declaration.span)
            name = declaration.name or declaration.type
            if name in inner.names:
                raise declared_twice(name, declaration.span)
            declared.append((self.declare(inner, name, type_), type_))
        where = self.predicate(query.where, inner) if query.where is not None else [[]]
        item_literals, items = self.values(query.items, inner)
        if bag:
            where = self._as_test(where, declared, inner)
        return [Branch([*body, *item_literals], items, declared) for body in where]

    def _as_test(self, where: Alternatives, declared: Declared, scope: Scope) -> Alternatives:
        """In a bag the condition only tests: it must not multiply the rows it lets through."""
        visible = scope.variables()
        if len(where) == 1 and _is_test(where[0], visible):
            return where
        branches = [Branch(list(body), (), declared) for body in where]
        ranged = {variable: None for variable, _ in declared}
        given = {each: None for each in self._outer(branches, scope) if each not in ranged}
        outer = (*given, *ranged)
        relation = self.query_relation(self.auxiliary_name("where"), outer, branches, bag=False)
        self.define(relation, outer, branches)
        return [[Atom(relation, outer)]]

    def query_relation(
        self, name: str, outer: Sequence[Term], branches: list[Branch], bag: bool
    ) -> Relation:
        """The relation of a sub-query: the outer variables it mentions, then what it selects."""
        items = branches[0].items
        columns = tuple(
            Column(f"c{position}", term.type) for position, term in enumerate((*outer, *items))
        )
        semantics = Semantics.BAG if bag else Semantics.SET
        return Relation(name, columns, len(outer), Kind.DERIVED, semantics)

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
            and any(
                other == term and hierarchy.is_subtype(column.type, type_)
                for other, column in zip(literal.terms, literal.relation.columns, strict=True)
            )
            for literal in body
        )


def _is_test(body: list[Literal], visible: frozenset[Variable]) -> bool:
    """Is a body decided by the visible variables, each solution of it being the only one?"""
    mentioned = {variable for literal in body for variable in literal_variables(literal)}
    counts = any(
        isinstance(lit, Atom) and not lit.negated and not lit.relation.is_set for lit in body
    )
    return not counts and mentioned <= determined(body, visible)


def declared_twice(name: str, span: Span | None) -> NameFault:
    return NameFault(
        f"{name} is declared twice", code="exists", span=span, hint="give each its own name"
    )


def as_query(node: syntax.Expression) -> syntax.Query:
    """`sum(f(x))` is short for `sum(select f(x))`."""
    return syntax.Query((node,), span=node.span)


def literal_type(value: Value) -> Type:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return NUMBER
        case str():
            return TEXT
        case datetime.datetime():
            return TIMESTAMP
        case datetime.date():
            return DATE
    raise ValueFault(
        f"{value!r} is not a value of the language",
        code="bad-value",
        hint="it has integers, numbers, texts, booleans, dates, timestamps and objects",
    )
