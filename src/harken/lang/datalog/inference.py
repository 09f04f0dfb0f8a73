"""Of which kind each expression of a clause is.

The attributes of atoms fix the kinds of their arguments, equal signs and operators hand them on. A
whole number that is written without a suffix is of the kind that its place wants; `number` if
nothing says which. Law: nothing of one kind ever stands where another is wanted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum

from harken.errors import Span, TypeFault, counted, number_given
from harken.lang.datalog import syntax
from harken.lang.datalog.functors import SIGNATURES, Signature
from harken.lang.datalog.kinds import (
    FLOAT,
    NUMBER_KIND,
    NUMERIC,
    SYMBOL,
    UNSIGNED,
    Kind,
    Types,
)
from harken.lang.datalog.known_relations import Relations, relation_of
from harken.lang.datalog.subtypes import Subtypes

_FORMS = {"unsigned": UNSIGNED, "float": FLOAT}


class Use(Enum):
    """How an atom stands in a clause. One that holds gives its variables the declared types, a head
    takes only such values, and one that is denied may be asked about any value of the kind."""

    HOLDS = "holds"
    HEAD = "head"
    DENIED = "denied"


@dataclass(slots=True, eq=False)
class _Node:
    """A class of expressions that are of one kind, and why they are."""

    parent: _Node | None = None
    kind: Kind | None = None
    why: str = ""

    def root(self) -> _Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node


class Inference:
    """Kinds of the expressions in one scope; an aggregate's own variables are in a scope within
    the one around it."""

    def __init__(self, relations: Relations, types: Types, outer: Inference | None = None) -> None:
        self._relations = relations
        self._types = types
        self._outer = outer
        self._variables: dict[str, _Node] = {}
        self._nodes: dict[int, _Node] = {} if outer is None else outer._nodes
        self._limited: list[tuple[syntax.Functor, _Node, frozenset[Kind]]] = (
            [] if outer is None else outer._limited
        )
        self._flexible: list[tuple[syntax.Number, _Node]] = [] if outer is None else outer._flexible
        self._subtypes: Subtypes = Subtypes() if outer is None else outer._subtypes

    # --- what is asked afterwards ----------------------------------------------------------

    def kind(self, expression: syntax.Expression) -> Kind:
        return self._nodes[id(expression)].root().kind or NUMBER_KIND

    def variable(self, name: str) -> Kind:
        return self._variable(name).root().kind or NUMBER_KIND

    def declare(self, names: Iterable[str]) -> None:
        """These variables belong to this scope, whatever is around it."""
        for name in names:
            self._variables.setdefault(name, _Node())

    # --- what is said ----------------------------------------------------------------------

    def atom(self, atom: syntax.Atom, use: Use) -> None:
        known = relation_of(self._relations, atom)
        for argument, name, declared, kind in zip(
            atom.arguments, known.attributes, known.types, known.kinds, strict=True
        ):
            why = f"{atom.name}.{name}"
            self._fix(self.expression(argument), kind, why, argument.span)
            typed = self._typed(argument)
            if typed is not None and use is not Use.DENIED:
                say = self._subtypes.give if use is Use.HOLDS else self._subtypes.want
                say(*typed, declared, argument.span)

    def constraint(self, node: syntax.Constraint) -> None:
        left, right = self.expression(node.left), self.expression(node.right)
        if node.operator in ("match", "contains"):
            self._fix(left, SYMBOL, node.operator, node.left.span)
            self._fix(right, SYMBOL, node.operator, node.right.span)
            return
        self._unite(left, right, node.span)
        self._link(self._typed(node.left), self._typed(node.right), node.span)

    def _typed(self, expression: syntax.Expression) -> tuple[Hashable, str] | None:
        """What declared types are about: a key and a name for it."""
        match expression:
            case syntax.Named():
                return self._variable(expression.name), expression.name
            case syntax.Cast():
                key = id(expression)
                shown = f"as(..., {expression.type})"
                self._subtypes.give(key, shown, expression.type, expression.span)
                return key, shown
            case syntax.Aggregate(name="min" | "max" | "sum"):
                return id(expression), expression.name
        return None

    def _link(
        self, one: tuple[Hashable, str] | None, other: tuple[Hashable, str] | None, span: Span
    ) -> None:
        if one is not None and other is not None:
            self._subtypes.link(one, other, span)

    def expression(self, expression: syntax.Expression) -> _Node:
        node = self._nodes.get(id(expression))
        if node is None:
            node = self._nodes[id(expression)] = self._made(expression)
        return node

    def _made(self, expression: syntax.Expression) -> _Node:
        match expression:
            case syntax.Named():
                return self._variable(expression.name)
            case syntax.Number(form="integer"):
                node = _Node()
                self._flexible.append((expression, node))
                return node
            case syntax.Number():
                return _Node(kind=_FORMS[expression.form], why=f"{expression.value}")
            case syntax.Text():
                return _Node(kind=SYMBOL, why=f'"{expression.value}"')
            case syntax.Functor():
                return self._functor(expression)
            case syntax.Cast():
                node = self.expression(expression.value)
                kind = self._types.kind(expression.type, expression.span)
                self._fix(node, kind, f"as {expression.type}", expression.span)
                return node
            case syntax.Aggregate():
                return self._aggregate(expression)
        return _Node()

    def _functor(self, node: syntax.Functor) -> _Node:
        signature = SIGNATURES[node.name]
        _check_count(node, signature)
        given = [self.expression(each) for each in node.arguments]
        if signature.same:
            for each, argument in zip(given[1:], node.arguments[1:], strict=True):
                self._unite(given[0], each, argument.span)
            self._limited.append((node, given[0], signature.kinds))
            return given[0]
        for each, kind, argument in zip(given, signature.arguments, node.arguments, strict=True):
            if kind is None:
                self._limited.append((node, each, signature.kinds))
            else:
                self._fix(each, kind, node.name, argument.span)
        return _Node(kind=signature.result, why=node.name)

    def _aggregate(self, node: syntax.Aggregate) -> _Node:
        """The value of an aggregate is inside its braces, its own kind outside."""
        if node.name == "count":
            return _Node(kind=NUMBER_KIND, why="count")
        return _Node(kind=FLOAT, why="mean") if node.name == "mean" else _Node()

    def aggregated(self, node: syntax.Aggregate, inner: Inference) -> None:
        """An aggregate's value is known inside; its kind is that of the result."""
        if node.value is None:
            return
        value = inner.expression(node.value)
        if node.name in ("sum", "mean"):
            functor = syntax.Functor(node.name, (node.value,), node.span)
            self._limited.append((functor, value, NUMERIC))
        if node.name != "mean":
            self._unite(self.expression(node), value, node.span)
            self._link(self._typed(node), inner._typed(node.value), node.span)

    # --- classes ---------------------------------------------------------------------------

    def _variable(self, name: str) -> _Node:
        scope = self._scope_of(name)
        return scope._variables.setdefault(name, _Node())

    def _scope_of(self, name: str) -> Inference:
        scope: Inference | None = self
        while scope is not None:
            if name in scope._variables:
                return scope
            scope = scope._outer
        return self

    def _fix(self, node: _Node, kind: Kind, why: str, span: Span) -> None:
        self._unite(node, _Node(kind=kind, why=why), span)

    def _unite(self, one: _Node, other: _Node, span: Span) -> None:
        first, second = one.root(), other.root()
        if first is second:
            return
        if first.kind is not None and second.kind is not None and first.kind != second.kind:
            raise TypeFault(
                f"this is {first.kind} ({first.why}) and {second.kind} ({second.why})",
                code="type-mismatch",
                span=span,
                hint="to_number, to_float, to_unsigned and to_string convert",
            )
        if first.kind is None:
            first, second = second, first
        second.parent = first

    # --- at the end ------------------------------------------------------------------------

    def check(self) -> None:
        """What can only be said when all kinds are known; for the outermost scope."""
        for functor, node, kinds in self._limited:
            kind = node.root().kind or NUMBER_KIND
            if kind not in kinds:
                raise _cannot_take(functor, kind, kinds)
        for number, node in self._flexible:
            kind = node.root().kind or NUMBER_KIND
            if kind not in NUMERIC:
                raise TypeFault(
                    f"{number.value} is a number, and {node.root().why} is {kind}",
                    code="type-mismatch",
                    span=number.span,
                    hint=f'write "{number.value}"' if kind == SYMBOL else None,
                )
            if kind == UNSIGNED and number.value < 0:
                raise TypeFault(
                    f"{number.value} is below zero, and {node.root().why} is unsigned",
                    code="type-mismatch",
                    span=number.span,
                )
        self._subtypes.check(self._types)


def _check_count(node: syntax.Functor, signature: Signature) -> None:
    given = len(node.arguments)
    if given < signature.least or (signature.most is not None and given > signature.most):
        wanted = counted(signature.least, "value")
        if not signature.most:
            wanted = f"{signature.least} or more values"
        raise TypeFault(
            f"{node.name} takes {wanted}, and {number_given(given)}",
            code="arity",
            span=node.span,
        )


def _cannot_take(functor: syntax.Functor, kind: Kind, kinds: frozenset[Kind]) -> TypeFault:
    shown = "-" if functor.name == "negate" else functor.name
    offers = ", ".join(sorted(each.name for each in kinds))
    return TypeFault(
        f"`{shown}` cannot take {kind}",
        code="type-mismatch",
        span=functor.span,
        hint=f"it takes {offers}",
    )
