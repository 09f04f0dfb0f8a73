"""What a random program of Datalog means, by trying everything: no indexes, no deltas, no SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.generators.datalog_programs import (
    Apply,
    Argument,
    Const,
    Expr,
    Lit,
    RandomProgram,
    RandomRule,
    Var,
    Wild,
)

Row = tuple[Any, ...]
World = dict[str, set[Row]]
Binding = dict[Any, Any]


def meaning(program: RandomProgram) -> World:
    """The rows of every relation: each group of relations is run until it adds nothing."""
    world: World = {name: set(program.facts.get(name, ())) for name in program.columns}
    for group in program.groups:
        rules = [rule for rule in program.rules if any(name in group for name, _ in rule.heads)]
        grown = True
        while grown:
            found = [row for rule in rules for row in derived(rule, world)]
            grown = False
            for name, row in found:
                if row not in world[name]:
                    world[name].add(row)
                    grown = True
    return world


def derived(rule: RandomRule, world: World) -> Iterator[tuple[str, Row]]:
    for alternative in rule.alternatives or ((),):
        for binding in solutions([*rule.body, *alternative], {}, world):
            for name, given in rule.heads:
                yield name, tuple(value(each, binding) for each in given)


def solutions(literals: Sequence[Lit], binding: Binding, world: World) -> Iterator[Binding]:
    if not literals:
        yield binding
        return
    first, *rest = literals
    for extended in satisfied(first, binding, world):
        yield from solutions(rest, extended, world)


def satisfied(literal: Lit, binding: Binding, world: World) -> Iterator[Binding]:
    match literal.kind:
        case "atom":
            for row in world[literal.relation]:
                extended = matched(literal.arguments, row, binding)
                if extended is not None:
                    yield extended
        case "not":
            rows = world[literal.relation]
            if all(matched(literal.arguments, row, binding) is None for row in rows):
                yield binding
        case "compare":
            yield from compared(literal, binding)
        case "aggregate":
            yield from aggregated(literal, binding, world)


def matched(arguments: Sequence[Argument], row: Row, binding: Binding) -> Binding | None:
    extended = dict(binding)
    for argument, given in zip(arguments, row, strict=True):
        known = argument.value if isinstance(argument, Const) else extended.get(argument)
        if known is None:
            extended[argument] = given
        elif known != given:
            return None
    return extended


def compared(literal: Lit, binding: Binding) -> Iterator[Binding]:
    assert literal.left is not None
    assert literal.right is not None
    right = value(literal.right, binding)
    if isinstance(literal.left, Var) and literal.left not in binding:
        yield {**binding, literal.left: right}
    elif holds(literal.operator, value(literal.left, binding), right):
        yield binding


def holds(operator: str, left: Any, right: Any) -> bool:
    order = (left > right) - (left < right)
    return bool(
        {
            "=": order == 0,
            "!=": order != 0,
            "<": order < 0,
            "<=": order <= 0,
            ">": order > 0,
            ">=": order >= 0,
        }[operator]
    )


def aggregated(literal: Lit, binding: Binding, world: World) -> Iterator[Binding]:
    """A `_` outside has no value inside: each is a variable of its own. So is the variable that is
    aggregated, even if one of the same name is bound outside."""
    outer = {
        name: given
        for name, given in binding.items()
        if not isinstance(name, Wild) and name != literal.right
    }
    found = list(solutions(literal.inner, outer, world))
    values = [] if literal.right is None else [value(literal.right, each) for each in found]
    match literal.operator:
        case "count":
            result = len(found)
        case "sum":
            result = sum(values)
        case "min" | "max":
            if not values:
                return
            result = min(values) if literal.operator == "min" else max(values)
    yield {**binding, literal.left: result}


def value(given: Expr, binding: Binding) -> Any:
    match given:
        case Const():
            return given.value
        case Var():
            return binding[given]
        case Apply(operator, left, right):
            return computed(operator, value(left, binding), value(right, binding))
    raise ValueError(given)


def computed(operator: str, a: Any, b: Any) -> Any:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return abs(a) // b * (1 if a >= 0 else -1)
        case "%":
            return abs(a) % b * (1 if a >= 0 else -1)
        case "band":
            return a & b
        case "bor":
            return a | b
        case "bxor":
            return a ^ b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "cat":
            return a + b
        case "strlen":
            return len(a)
    raise ValueError(operator)
