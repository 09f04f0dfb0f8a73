"""AMOSQL queries and derived functions into ObjectLog (section 4.2 of the thesis).

Flatten nested calls into literals with intermediate variables, adorn them with types, resolve
overloads (early) or build a dispatching relation (late), and generate clauses: `and` joins, `or`
makes several clauses, `not` and aggregates make an auxiliary relation.

Law: the clauses mean what the text means, as a set; or as a bag, where one row stands for each
combination of the `for each` variables that passes `where`, times the values selected for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harken.errors import NameFault, SafetyFault, Span, TypeFault, nearest
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Literal,
    literal_variables,
)
from harken.ir.dependencies import determined
from harken.ir.operations import (
    AGGREGATES,
    COMPARISONS,
    NAMED_AGGREGATES,
    OPERATIONS,
    PRIVATE_OPERATIONS,
)
from harken.ir.schema import Function, Schema, example
from harken.ir.terms import Constant, Term, Variable
from harken.lang.amosql import conditions, dispatch, past_values, syntax, transitive_closure
from harken.lang.amosql.conditions import Alternatives
from harken.lang.amosql.overload_resolution import Argument, resolve, unknown_function
from harken.lang.amosql.program_draft import Branch, Declared, Draft
from harken.lang.amosql.scope import Local, ParameterSource, Scope
from harken.lang.amosql.tree_walk import chain
from harken.values.encoding import literal_type
from harken.values.types import BOOLEAN, FUNCTION

ARITHMETIC = frozenset({"+", "-", "*", "/", "||"})

InterfaceTypes = Callable[[syntax.InterfaceVariable], Argument]


def no_interface_variables(variable: syntax.InterfaceVariable) -> Argument:
    raise NameFault(
        f":{variable.name} is a value of the session and cannot be part of a definition",
        code="unknown-variable",
        span=variable.span,
        hint="make it a parameter of the function",
    )


@dataclass(slots=True)
class Translator:
    """Reads the syntax of one statement into a draft of its clauses."""

    draft: Draft
    interface: InterfaceTypes = no_interface_variables

    @classmethod
    def for_schema(
        cls,
        schema: Schema,
        owner: str = "query",
        interface: InterfaceTypes = no_interface_variables,
    ) -> Translator:
        """A translator with an empty draft."""
        return cls(Draft(schema, owner), interface)

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
                return [], (
                    self.draft.parameters.number(
                        ParameterSource("interface", key), self.interface(node)
                    ),
                )
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
            literals, (left,) = self.draft.operate(
                link.operator, (left, right), [*literals, *more], link.span
            )
        return literals, (left,)

    def single(self, node: syntax.Expression, scope: Scope) -> tuple[list[Literal], Term]:
        literals, terms = self.value(node, scope)
        if len(terms) != 1:
            raise TypeFault(
                f"one value is needed here, but this gives {len(terms)}",
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
        return self.draft.parameters.number(
            ParameterSource("literal", node.slot), Argument((type_,), exact=True)
        )

    def _name(self, node: syntax.Name, scope: Scope) -> Term:
        found = scope.find(node.name)
        if isinstance(found, Variable):
            return found
        if isinstance(found, Local):
            return self.draft.parameters.number(
                ParameterSource("local", found.name), Argument((found.type,))
            )
        meant = nearest(node.name, scope.known())
        hint = f"did you mean {meant}?" if meant else "declare it with `for each`"
        if node.name.lower() == "null":
            hint = "there is no NULL: a function may have no value, and some(f(x)) asks whether"
        if node.name.lower() in ("activate", "deactivate"):
            hint = f"write it with the name of a rule, as in {node.name.lower()} r();"
        if self.draft.schema.overloads(node.name):
            hint = f"{node.name} is a function: call it with its arguments, {node.name}(...)"
        raise NameFault(
            f"there is no variable {node.name}", code="unknown-variable", span=node.span, hint=hint
        )

    def _negative(self, node: syntax.Unary, scope: Scope) -> tuple[list[Literal], tuple[Term, ...]]:
        literals, term = self.single(node.operand, scope)
        if isinstance(term, Constant) and isinstance(term.value, int | float):
            return literals, (Constant(-term.value, term.type),)
        return self.draft.operate("negate", (term,), literals, node.span)

    def _truth_value(
        self, node: syntax.Expression, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """A condition used as a value: true or false, never nothing."""
        if isinstance(node, syntax.Binary) and node.operator in COMPARISONS:
            literals, terms = self.values((node.left, node.right), scope)
            if len(terms) == 2 and not any(term.type.surrogate for term in terms):
                return self.draft.operate(f"is {node.operator}", terms, literals, node.span)
        atom, groups = self.condition_relation(self.predicate(node, scope), scope, "some", node)
        result = self.draft.fresh(BOOLEAN)
        return [Aggregation(result, "some", None, atom, groups, span=node.span)], (result,)

    # --- calls -----------------------------------------------------------------------------

    def _call(self, node: syntax.Call, scope: Scope) -> tuple[list[Literal], tuple[Term, ...]]:
        if node.function in NAMED_AGGREGATES and len(node.arguments) == 1:
            return self._aggregate(node, scope)
        if node.function in NAMED_AGGREGATES:
            raise TypeFault(
                f"{node.function} takes one argument, not {len(node.arguments)}",
                code="arity",
                span=node.span,
                hint=f"give it a query or a function: {node.function}(select ...)",
            )
        if node.function == "tclose":
            return transitive_closure.translate(self, node, scope)
        past = past_values.find(self, node)
        if past is not None:
            return past(self, node, scope)
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
            return self.draft.operate(name, terms, literals, span)
        if not self.draft.schema.overloads(name):
            if built_in:
                return self.draft.operate(name, terms, literals, span)
            raise unknown_function(self.draft.schema, name, span)
        self.draft.called.add(name)
        arguments = [self.draft.argument(term) for term in terms]
        candidates = resolve(self.draft.schema, name, arguments, qualifier, span)
        for function in candidates:
            if function.has_effects:
                raise SafetyFault(
                    f"{name} has effects, so a query cannot call it",
                    code="side-effect",
                    span=span,
                    hint="call it as a statement of its own",
                )
        if len(candidates) == 1:
            return self.draft.atom(candidates[0], terms, literals, span)
        return dispatch.late_call(self.draft, candidates, terms, literals, span)

    def _is_operation(self, name: str, terms: tuple[Term, ...]) -> bool:
        types = tuple(term.type for term in terms)
        return OPERATIONS[name].resolve(types, self.draft.schema.hierarchy) is not None

    def function_named(self, node: syntax.FunctionReference) -> Function:
        qualifier, _, name = node.name.rpartition(".")
        overloads = self.draft.schema.overloads(name)
        if qualifier:
            overloads = tuple(
                f for f in overloads if f.parameters and f.parameters[0].type.name == qualifier
            )
        if not overloads:
            raise unknown_function(self.draft.schema, node.name, node.span)
        if len(overloads) > 1:
            raise TypeFault(
                f"{name} means {' or '.join(sorted(f.id for f in overloads))}",
                code="ambiguous",
                span=node.span,
                hint=f"choose one: #'{example(overloads)}'",
            )
        return overloads[0]

    # --- sub-queries -----------------------------------------------------------------------

    def _nested_query(
        self, node: syntax.Query, scope: Scope
    ) -> tuple[list[Literal], tuple[Term, ...]]:
        """A query used as a value is a set of its own, joined to what is around it."""
        branches = self.branches(node, scope, bag=False)
        outer = self.draft.outer(branches, scope)
        relation = self.draft.query_relation(
            self.draft.auxiliary_name("select"), outer, branches, bag=False
        )
        self.draft.define(relation, outer, branches)
        results = tuple(self.draft.fresh(column.type) for column in relation.columns[len(outer) :])
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
                f"{node.function} takes one value, but this gives {width}",
                code="arity",
                span=node.span,
                hint="select one column",
            )
        outer = self.draft.outer(branches, scope)
        relation = self.draft.query_relation(
            self.draft.auxiliary_name(node.function), outer, branches, bag
        )
        self.draft.define(relation, outer, branches)
        private = tuple(self.draft.fresh(column.type) for column in relation.columns[len(outer) :])
        value = private[0] if aggregate.accepts is not None else None
        atom = Atom(relation, (*outer, *private), span=node.span)
        result = self.draft.fresh(aggregate.result_type(private[0].type))
        literal = Aggregation(result, node.function, value, atom, outer, span=node.span)
        return [literal], (result,)

    def condition_relation(
        self, alternatives: Alternatives, scope: Scope, purpose: str, node: syntax.Node
    ) -> tuple[Atom, tuple[Variable, ...]]:
        """An auxiliary relation of the outer bindings for which a condition holds."""
        branches = [Branch(list(body), (), []) for body in alternatives]
        outer = self.draft.outer(branches, scope)
        relation = self.draft.query_relation(
            self.draft.auxiliary_name(purpose), outer, branches, bag=False
        )
        self.draft.define(relation, outer, branches)
        return Atom(relation, outer, span=node.span), outer

    def predicate(self, node: syntax.Expression, scope: Scope) -> Alternatives:
        """The alternatives under which a condition holds, at least one."""
        return conditions.translate(self, node, scope)

    # --- queries ---------------------------------------------------------------------------

    def branches(self, query: syntax.Query, scope: Scope, bag: bool) -> list[Branch]:
        inner = scope.child()
        declared: Declared = []
        for declaration in query.variables:
            type_ = self.draft.type(declaration.type, declaration.span)
            name = declaration.name or declaration.type
            if name in inner.names:
                raise declared_twice(name, declaration.span)
            declared.append((self.draft.declare(inner, name, type_), type_))
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
        given = {each: None for each in self.draft.outer(branches, scope) if each not in ranged}
        outer = (*given, *ranged)
        relation = self.draft.query_relation(
            self.draft.auxiliary_name("where"), outer, branches, bag=False
        )
        self.draft.define(relation, outer, branches)
        return [[Atom(relation, outer)]]


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
