"""What a text of AMOSQL declares: types, functions, rules, and which rules are active.

`create type item properties (name charstring)` declares the type and a stored function for each
property, which come and go one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.errors import Span
from harken.lang.amosql import syntax
from harken.lang.amosql.statement_shapes import Parsed, filled, reparse, statements
from harken.lang.amosql.tree_walk import descendants
from harken.statements.declaration import (
    ACTIVATION,
    FUNCTION,
    RULE,
    SEEDS,
    TYPE,
    Declaration,
    Part,
    not_declared,
)
from harken.values.types import ALIASES

ROWS = (syntax.CreateInstances, syntax.Update, syntax.DeleteObjects)


def declarations(text: str) -> Iterator[Declaration]:
    for parsed in statements(text):
        node = filled(parsed) if parsed.shape is None else reparse(parsed)
        match node:
            case syntax.CreateType():
                yield _type(parsed, node)
                yield from (_property(parsed, node, each) for each in node.properties)
            case syntax.CreateFunction():
                yield _function(parsed, node)
            case syntax.CreateRule():
                yield _rule(parsed, node)
            case syntax.Activate(rule=syntax.Name()):
                yield _activation(parsed, node)
            case _:
                word = parsed.text.split()[0]
                hint = SEEDS if isinstance(node, ROWS) else None
                raise not_declared(f"`{word}`", _span(parsed), hint)


def _span(parsed: Parsed) -> Span:
    return Span(parsed.offset, parsed.offset + len(parsed.text))


def _type(parsed: Parsed, node: syntax.CreateType) -> Declaration:
    under = f" under {', '.join(node.supertypes)}" if node.supertypes else ""
    text = f"create type {node.name}{under}"
    return Declaration(
        kind=TYPE,
        name=node.name,
        span=_span(parsed),
        meaning=text,
        parts=(Part(text),),
        removal=f"delete type {node.name};",
        called=frozenset({node.name.lower()}),
        needs=frozenset(each.lower() for each in node.supertypes),
        has_rows=True,
    )


def _property(parsed: Parsed, owner: syntax.CreateType, node: syntax.Declaration) -> Declaration:
    """As `create type` makes it."""
    name = node.name or node.type
    text = f"create function {name}({owner.name}) -> {node.type} as stored"
    return _stored(name, owner.name, text, node.span, {owner.name, node.type})


def _stored(
    name: str, types: str, text: str, span: Span, needs: set[str], start: int | None = None
) -> Declaration:
    first = types.partition(", ")[0]
    return Declaration(
        kind=FUNCTION,
        name=f"{name}({types})",
        span=span,
        meaning=" ".join(text.split()),
        parts=(Part(text, start),),
        removal=f"delete function {f'{first}.{name}' if first else name};",
        called=frozenset({name.lower(), f"{types.replace(', ', '_')}_{name}".lower()}),
        needs=frozenset(each.lower() for each in needs),
        has_rows=True,
    )


def _function(parsed: Parsed, node: syntax.CreateFunction) -> Declaration:
    types = ", ".join(ALIASES.get(each.type, each.type) for each in node.parameters)
    needs = _mentioned(node)
    if isinstance(node.body, syntax.StoredBody):
        return _stored(node.name, types, parsed.text, _span(parsed), needs, parsed.offset)
    first = types.partition(", ")[0]
    return Declaration(
        kind=FUNCTION,
        name=f"{node.name}({types})",
        span=_span(parsed),
        meaning=repr(node),
        parts=(Part(parsed.text, parsed.offset),),
        removal=f"delete function {f'{first}.{node.name}' if first else node.name};",
        called=frozenset({node.name.lower(), f"{types.replace(', ', '_')}_{node.name}".lower()}),
        needs=frozenset(each.lower() for each in needs) - {node.name.lower()},
        in_place=True,
    )


def _rule(parsed: Parsed, node: syntax.CreateRule) -> Declaration:
    return Declaration(
        kind=RULE,
        name=node.name,
        span=_span(parsed),
        meaning=repr(node),
        parts=(Part(parsed.text, parsed.offset),),
        removal=f"delete rule {node.name};",
        called=frozenset({node.name.lower()}),
        needs=frozenset(each.lower() for each in _mentioned(node)) - {node.name.lower()},
    )


def _activation(parsed: Parsed, node: syntax.Activate) -> Declaration:
    text = " ".join(parsed.text.split())
    called, _, _ = text.partition(" priority ")
    return Declaration(
        kind=ACTIVATION,
        name=called.removeprefix("activate "),
        span=_span(parsed),
        meaning=repr(node),
        parts=(Part(parsed.text, parsed.offset),),
        removal=f"de{called};",
        needs=frozenset(each.lower() for each in _mentioned(node)),
    )


def _mentioned(node: syntax.Node) -> set[str]:
    """The functions, types and rules that a statement names."""
    found = set[str]()
    for each, _ in descendants(node):
        match each:
            case syntax.Call() | syntax.Event():
                found |= {each.function, each.qualifier or each.function}
            case syntax.FunctionReference():
                found.add(each.name)
            case (
                syntax.Activate(rule=syntax.Name(name)) | syntax.Deactivate(rule=syntax.Name(name))
            ):
                found.add(name)
            case syntax.Declaration() | syntax.CreateInstances():
                found.add(each.type)
            case _:
                pass
    return found
