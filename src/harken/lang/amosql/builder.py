"""The parser's reductions: each rule of the grammar becomes a node of the syntax tree.

Every node's span covers exactly the tokens it was built from, parentheses around a part included;
the part itself keeps the span without them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

from lark import Token

from harken.errors import Span, SyntaxFault
from harken.ir.event_trees import Length
from harken.lang.amosql import event_syntax, syntax
from harken.lang.amosql.literals import (
    integer_value,
    real_value,
    shown,
    string_value,
    time_value,
)
from harken.lang.amosql.syntax import Node, Statement
from harken.lang.amosql.tree_walk import descendants

HIGHEST_PRIORITY = 5

# The phases after this one walk the tree by recursion, within Python's limit of 1000 frames; along
# a chain of operators they go by iteration, so that it counts as one level.
DEEPEST = 200


def too_deep(span: Span) -> SyntaxFault:
    return SyntaxFault(
        "this is nested too deeply",
        span=span,
        hint=f"a statement may be {DEEPEST} levels deep; give parts of it names as functions",
    )


class _Parenthesised(NamedTuple):
    """Outer spans include the parentheses; the node inside keeps its own."""

    node: Node
    span: Span


class _Where(NamedTuple):
    condition: Any
    span: Span


class _Duration(NamedTuple):
    length: Length
    span: Span


class _Priority(NamedTuple):
    level: int
    span: Span


_Build: TypeAlias = Callable[["Builder", Span, list[Any]], Any]


def _spanned(build: _Build) -> Callable[[Builder, list[Any]], Any]:
    """A callback of the parser that knows the span of what it builds."""

    @functools.wraps(build)
    def reduce(self: Builder, parts: list[Any]) -> Any:
        span = Span(_span(parts[0]).start, _span(parts[-1]).end)
        return build(self, span, [p.node if isinstance(p, _Parenthesised) else p for p in parts])

    return reduce


def _span(part: Any) -> Span:
    if isinstance(part, Token):
        return Span(part.start_pos or 0, part.end_pos or 0)
    return cast(Span, part.span)


def _nodes(parts: list[Any], kind: Any = Node) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, kind))


def _names(parts: list[Any]) -> list[str]:
    kinds = ("NAME", "FREE_NAME")
    return [str(part) for part in parts if isinstance(part, Token) and part.type in kinds]


def _has(parts: list[Any], kind: str) -> bool:
    return any(isinstance(part, Token) and part.type == kind for part in parts)


def _condition(parts: list[Any]) -> Any:
    return next((part.condition for part in parts if isinstance(part, _Where)), None)


_SCHEMA = (
    syntax.CreateType,
    syntax.CreateFunction,
    syntax.CreateRule,
    syntax.DeleteType,
    syntax.DeleteFunction,
    syntax.DeleteRule,
)


def _inner(statements: tuple[Any, ...]) -> tuple[Any, ...]:
    """Statements inside another one: they may change data, not the schema."""
    for statement in statements:
        if isinstance(statement, _SCHEMA):
            raise SyntaxFault(
                "types, functions and rules cannot be created or deleted inside another statement",
                span=statement.span,
                hint="move this statement to the top level of the script",
            )
    return statements


_OPTIONS = (
    ("STRICT", "NERVOUS", "PATIENT"),
    ("DEFERRED", "IMMEDIATE", "BEFORE", "DETACHED", "DECOUPLED"),
    ("ON",),
)


def _option(parts: list[Any], kinds: tuple[str, ...]) -> Token | None:
    """The one option of these kinds, of which at most one may stand among the parts."""
    found = [part for part in parts if isinstance(part, Token) and part.type in kinds]
    if len(found) > 1:
        first, second = (token.lower() for token in found[:2])
        again = f"`{first}` and `{second}` contradict each other"
        raise SyntaxFault(
            f"`{first}` stands here twice" if first == second else again,
            span=_span(found[1]),
            hint="join all events by `or` after one `on`"
            if kinds == ("ON",)
            else f"keep one of {', '.join(kind.lower() for kind in kinds)}",
        )
    return found[0] if found else None


def _at(parts: list[Any], kind: str) -> int:
    return next(i for i, p in enumerate(parts) if isinstance(p, Token) and p.type == kind)


class Builder:
    """One method for each rule of the grammar, called as soon as the rule is complete."""

    def script(self, parts: list[Any]) -> tuple[Statement, ...]:
        return _nodes(parts)

    def top(self, parts: list[Any]) -> Statement:
        for _, depth in descendants(parts[0]):
            if depth > DEEPEST:
                raise too_deep(parts[0].span)
        return cast(Statement, parts[0])

    @_spanned
    def create_type(self, span: Span, parts: list[Any]) -> Node:
        name, *supertypes = _names(parts)
        return syntax.CreateType(name, tuple(supertypes), _nodes(parts), span=span)

    @_spanned
    def typed_property(self, span: Span, parts: list[Any]) -> Node:
        name, type_ = _names(parts)
        return syntax.Declaration(type_, name, span=span)

    @_spanned
    def declaration(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Declaration(*_names(parts), span=span)

    @_spanned
    def create_function(self, span: Span, parts: list[Any]) -> Node:
        arrow = _at(parts, "ARROW")
        has_body = _has(parts, "AS") or isinstance(parts[-1], syntax.StoredBody)
        body = _inner((parts[-1],))[0] if has_body else syntax.StoredBody(span=span)
        if isinstance(body, syntax.ExpressionStatement):
            query = body.expression
            body = query if isinstance(query, syntax.Query) else body
        return syntax.CreateFunction(
            _names(parts)[0],
            _nodes(parts[:arrow], syntax.Declaration),
            _nodes(parts[arrow:], syntax.Declaration),
            _has(parts, "BAG"),
            body,
            _has(parts[arrow:], "SET"),
            span=span,
        )

    @_spanned
    def stored(self, span: Span, parts: list[Any]) -> Node:
        return syntax.StoredBody(span=span)

    @_spanned
    def stored_in_lake(self, span: Span, parts: list[Any]) -> Node:
        return syntax.StoredBody(in_lake=True, span=span)

    @_spanned
    def foreign(self, span: Span, parts: list[Any]) -> Node:
        target = string_value(parts[1], _span(parts[1]).start) if len(parts) > 1 else None
        return syntax.ForeignBody(target, span=span)

    @_spanned
    def create_rule(self, span: Span, parts: list[Any]) -> Node:
        sensitivity, coupling, _ = (_option(parts, kinds) for kinds in _OPTIONS)
        body = _at(parts, "AS")
        joined = _nodes(parts, syntax.Event | syntax.EventTree)
        events, tree = event_syntax.flatten(joined[0] if joined else None)
        variables = _nodes(parts[body:], syntax.Declaration)
        condition = _condition(parts)
        (action,) = _inner((parts[-1],))
        if not events and not variables and condition is None:
            raise SyntaxFault(
                "this rule has neither a condition nor an event",
                span=_span(parts[-2]),
                hint="write `when` and a condition before `do`, or an event, as in on updated(f)",
            )
        return syntax.CreateRule(
            _names(parts)[0],
            _nodes(parts[:body], syntax.Declaration),
            variables,
            condition,
            action,
            events,
            tree,
            sensitivity.lower() if sensitivity else None,
            coupling.lower() if coupling else "deferred",
            span=span,
        )

    @_spanned
    def event(self, span: Span, parts: list[Any]) -> Node:
        *qualifier, name = _names(parts)
        return syntax.Event(parts[0].lower(), name, "".join(qualifier) or None, span=span)

    @_spanned
    def event_signal(self, span: Span, parts: list[Any]) -> Node:
        name = parts[2]
        text = string_value(name, _span(name).start) if name.type == "STRING" else str(name)
        return syntax.Event("signal", text, span=span)

    @_spanned
    def event_every(self, span: Span, parts: list[Any]) -> Node:
        every, at = parts[1], None
        if isinstance(every, Token):
            every = event_syntax.length_of(1, every, _span(every))
        else:
            every = every.length
        if _has(parts, "AT"):
            text = string_value(parts[-1], _span(parts[-1]).start)
            at = event_syntax.time_of(text, every, _span(parts[-1]))
        return syntax.Event("every", length=every, time=at, span=span)

    @_spanned
    def event_at(self, span: Span, parts: list[Any]) -> Node:
        token = parts[1]
        read = string_value if token.type == "STRING" else time_value
        moment = event_syntax.moment_of(read(token, _span(token).start), _span(token))
        return syntax.Event("at", moment=moment, span=span)

    @_spanned
    def event_since(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Event("after", length=parts[1].length, span=span)

    @_spanned
    def duration(self, span: Span, parts: list[Any]) -> _Duration:
        amount = int(integer_value(parts[0], _span(parts[0]).start))
        return _Duration(event_syntax.length_of(amount, parts[1], span), span)

    @_spanned
    def event_after(self, span: Span, parts: list[Any]) -> Node:
        return syntax.EventTree("after", (parts[2],), parts[0].length, span=span)

    @_spanned
    def event_not(self, span: Span, parts: list[Any]) -> Node:
        return syntax.EventTree("not", (parts[1],), span=span)

    @_spanned
    def event_group(self, span: Span, parts: list[Any]) -> Node:
        return syntax.EventTree("or", (parts[1],), span=span)

    @_spanned
    def event_and(self, span: Span, parts: list[Any]) -> Node:
        operator = "or" if parts[1] == "," else parts[1].lower()
        return event_syntax.joined(operator, parts, span)

    event_then = event_or = event_and

    @_spanned
    def event_within(self, span: Span, parts: list[Any]) -> Node:
        tree, length = parts[0], parts[2].length
        if isinstance(tree, syntax.EventTree) and tree.operator in ("and", "then"):
            return replace(tree, within=length, span=span)
        raise SyntaxFault(
            "`within` belongs to several events that are joined by `and` or `then`",
            span=span,
            hint="write it as in added(f) then removed(f) within 5 minutes",
        )

    @_spanned
    def create_instances(self, span: Span, parts: list[Any]) -> Node:
        type_, *properties = _names(parts)
        return syntax.CreateInstances(type_, tuple(properties), _nodes(parts), span=span)

    @_spanned
    def instance(self, span: Span, parts: list[Any]) -> Node:
        if _has(parts[:1], "VARIABLE"):
            return syntax.Instance(str(parts[0])[1:], _nodes(parts), span=span)
        local = _has(parts[:1], "NAME")
        variable = str(parts[0]) if local else None
        return syntax.Instance(variable, _nodes(parts), local, span=span)

    @_spanned
    def delete_type(self, span: Span, parts: list[Any]) -> Node:
        return syntax.DeleteType(_names(parts)[0], span=span)

    @_spanned
    def delete_function(self, span: Span, parts: list[Any]) -> Node:
        *qualifier, name = _names(parts)
        return syntax.DeleteFunction(name, *qualifier, span=span)

    @_spanned
    def delete_rule(self, span: Span, parts: list[Any]) -> Node:
        return syntax.DeleteRule(_names(parts)[0], span=span)

    @_spanned
    def delete_objects(self, span: Span, parts: list[Any]) -> Node:
        return syntax.DeleteObjects(_nodes(parts), span=span)

    @_spanned
    def add_type(self, span: Span, parts: list[Any]) -> Node:
        return syntax.AddType(_names(parts)[0], _nodes(parts), span=span)

    @_spanned
    def remove_type(self, span: Span, parts: list[Any]) -> Node:
        return syntax.RemoveType(_names(parts)[0], _nodes(parts), span=span)

    @_spanned
    def update(self, span: Span, parts: list[Any]) -> Node:
        verb, target, _, value = parts
        return syntax.Update(verb.lower(), target, value, span=span)

    @_spanned
    def assign(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Assign(parts[1], parts[3], span=span)

    @_spanned
    def expression_statement(self, span: Span, parts: list[Any]) -> Node:
        return syntax.ExpressionStatement(parts[0], span=span)

    @_spanned
    def call_statement(self, span: Span, parts: list[Any]) -> Node:
        return syntax.ExpressionStatement(parts[1], called=True, span=span)

    @_spanned
    def print_values(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Print(_nodes(parts), span=span)

    @_spanned
    def activate(self, span: Span, parts: list[Any]) -> Node:
        level = parts[-1].level if isinstance(parts[-1], _Priority) else 0
        return syntax.Activate(parts[1], _nodes(parts[2:]), level, span=span)

    @_spanned
    def deactivate(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Deactivate(parts[1], _nodes(parts[2:]), span=span)

    @_spanned
    def priority(self, span: Span, parts: list[Any]) -> _Priority:
        level = parts[1].value if isinstance(parts[1], syntax.Literal) else None
        if type(level) is not int or not 0 <= level <= HIGHEST_PRIORITY:
            raise SyntaxFault(
                "this is not a priority",
                code="bad-value",
                span=parts[1].span,
                hint=f"write a whole number from 0 to {HIGHEST_PRIORITY}, as in priority 3",
            )
        return _Priority(level, span)

    @_spanned
    def block(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Block(_inner(_nodes(parts)), span=span)

    @_spanned
    def declare_locals(self, span: Span, parts: list[Any]) -> Node:
        return syntax.DeclareLocals(_nodes(parts), span=span)

    @_spanned
    def if_then(self, span: Span, parts: list[Any]) -> Node:
        condition, *branches = _nodes(parts)
        return syntax.If(condition, *_inner(tuple(branches)), span=span)

    @_spanned
    def for_each(self, span: Span, parts: list[Any]) -> Node:
        variables = _nodes(parts[:-1], syntax.Declaration)
        (body,) = _inner((parts[-1],))
        return syntax.ForEach(variables, _condition(parts), body, span=span)

    @_spanned
    def return_value(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Return(parts[1], span=span)

    @_spanned
    def commit(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Commit(span=span)

    @_spanned
    def rollback(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Rollback(span=span)

    @_spanned
    def check(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Check(span=span)

    @_spanned
    def query(self, span: Span, parts: list[Any]) -> Node:
        variables = _nodes(parts, syntax.Declaration)
        items = tuple(n for n in _nodes(parts) if not isinstance(n, syntax.Declaration))
        distinct = _has(parts, "DISTINCT")
        return syntax.Query(items, variables, _condition(parts), distinct, span=span)

    @_spanned
    def where(self, span: Span, parts: list[Any]) -> _Where:
        return _Where(parts[1], span)

    when = where

    @_spanned
    def binary(self, span: Span, parts: list[Any]) -> Node:
        left, operator, right = parts
        spelled = {"==": "=", "<>": "!="}.get(operator, operator.lower())
        return syntax.Binary(spelled, left, right, span=span)

    @_spanned
    def unary(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Unary(parts[0].lower(), parts[1], span=span)

    @_spanned
    def number(self, span: Span, parts: list[Any]) -> Node:
        convert = integer_value if parts[0].type == "INTEGER" else real_value
        return syntax.Literal(convert(parts[0], span.start), span=span)

    @_spanned
    def negative_number(self, span: Span, parts: list[Any]) -> Node:
        convert = integer_value if parts[1].type == "INTEGER" else real_value
        return syntax.Literal(convert(parts[1], _span(parts[1]).start, -1), span=span)

    @_spanned
    def string(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Literal(string_value(parts[0], span.start), span=span)

    @_spanned
    def time(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Literal(time_value(parts[0], span.start), span=span)

    @_spanned
    def boolean(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Literal(parts[0].type == "TRUE", span=span)

    @_spanned
    def variable(self, span: Span, parts: list[Any]) -> Node:
        return syntax.InterfaceVariable(str(parts[0])[1:], span=span)

    @_spanned
    def name(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Name(str(parts[0]), span=span)

    @_spanned
    def call(self, span: Span, parts: list[Any]) -> Node:
        *qualifier, name = _names(parts)
        return syntax.Call(name, _nodes(parts), *qualifier, span=span)

    @_spanned
    def function_reference(self, span: Span, parts: list[Any]) -> Node:
        name = str(parts[0])[2:-1]
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)?", name):
            raise SyntaxFault(
                f"{shown(parts[0])} does not name a function",
                span=span,
                hint="write #'name', or #'type.name' for one overload",
            )
        return syntax.FunctionReference(name, span=span)

    @_spanned
    def tuple_value(self, span: Span, parts: list[Any]) -> Node:
        return syntax.Tuple(_nodes(parts), span=span)

    @_spanned
    def parenthesised(self, span: Span, parts: list[Any]) -> _Parenthesised:
        return _Parenthesised(parts[1], span)
