"""Parameters of a statement, `?` and `:name`, and the values that come for them.

Law: a parameter means what a constant of the same value would mean in its place. A value is put
into the syntax tree, never into text. It is checked as any other: numbers are finite and have 64
bits, texts have no NUL, a timestamp has a time zone.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from sqlglot import exp

from harken.errors import LanguageError, TypeFault, ValueFault, counted, offered
from harken.lang.sql.decimals import MOST_DIGITS
from harken.lang.sql.parser import Statement
from harken.values.encoding import encoder
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_type,
)

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

ALLOWED = (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge)
"""Statements that parameters may stand in: the text of a definition is kept, and has no values."""


class Given(exp.Expression):
    """A value of the type `kind` that no constant of SQL stands for, as a date."""

    arg_types: ClassVar[dict[str, bool]] = {"value": True, "kind": True}


def parameters_of(statement: Statement) -> list[exp.Placeholder]:
    """The parameters in the order of the text."""
    found = list(statement.node.find_all(exp.Placeholder))
    return sorted(found, key=lambda each: int(each.meta.get("start", 0)))


def name_of(parameter: exp.Expr) -> str:
    """Empty for `?`."""
    return str(parameter.args.get("this") or "")


def with_values(parsed: Sequence[Statement], values: Values | None) -> list[Statement]:
    """The statements of a text with values for their parameters. Positions count through the whole
    text; each value must be used."""
    found = [(each, parameters_of(each)) for each in parsed]
    _check_places(found)
    every = [(statement, node) for statement, nodes in found for node in nodes]
    if not every and not values:
        return list(parsed)
    given = _matched(every, () if values is None else values)
    bound = []
    for statement, nodes in found:
        if nodes:
            own, given = given[: len(nodes)], given[len(nodes) :]
            statement = replace(statement, node=_bound(statement, own))
        bound.append(statement)
    return bound


def is_batch(parsed: Sequence[Statement], values: Any) -> bool:
    """Are these several rows of values? Then they are a list of tuples or mappings; a list in a
    list is one value, for IN. For parameters an empty list is a batch without rows."""
    if not isinstance(values, list) or not all(isinstance(e, tuple | Mapping) for e in values):
        return False
    return bool(values) or any(map(parameters_of, parsed))


def refuse_batch(parsed: Sequence[Statement]) -> None:
    """Raise if a text cannot be run for several rows, which are one transaction."""
    for each in parsed:
        if not isinstance(each.node, ALLOWED):
            raise LanguageError(
                f"{each.text.split()[0].upper()} is not run for several rows of values",
                code="unsupported",
                span=each.span,
                hint="the rows are one transaction; run it by itself",
            )


def check_values(values: Any) -> None:
    """Raise if these are no values for parameters."""
    if values is not None and not isinstance(values, list | tuple | Mapping):
        raise ValueFault(
            f"the values are a {type(values).__name__}",
            code="parameters",
            hint="give a list or a mapping, also where there is one: [5]",
        )


def _check_places(found: Sequence[tuple[Statement, Sequence[exp.Expr]]]) -> None:
    for statement, nodes in found:
        if nodes and not isinstance(statement.node, ALLOWED):
            raise LanguageError(
                f"a parameter cannot stand in {statement.text.split()[0].upper()}",
                code="unsupported",
                span=statement.place(nodes[0]),
                hint="write the value itself: what is defined is kept as its text",
            )


def _matched(every: Sequence[tuple[Statement, exp.Placeholder]], values: Values) -> list[Any]:
    """The value of each parameter."""
    names = [name_of(node) for _, node in every]
    if isinstance(values, Mapping):
        unnamed = next((each for each in every if not name_of(each[1])), None)
        if unnamed is not None:
            raise _mixed(*unnamed, "the values have names, and this parameter has none")
        for name, (statement, node) in zip(names, every, strict=True):
            if name not in values:
                raise ValueFault(
                    f"there is no value for the parameter :{name}",
                    code="parameters",
                    span=statement.place(node),
                    hint=offered(name, sorted(map(str, values)), "values"),
                )
        unused = next((name for name in values if name not in names), None)
        if unused is not None:
            raise ValueFault(
                f"there is no parameter :{unused}",
                code="parameters",
                hint=offered(str(unused), sorted(set(names)), "parameters"),
            )
        return [checked(values[name], f":{name}") for name in names]
    named = next((each for each in every if name_of(each[1])), None)
    if named is not None:
        hint = "give a mapping, as {'" + name_of(named[1]) + "': 5}"
        raise _mixed(*named, "this parameter has a name, and the values have none", hint)
    if len(values) != len(every):
        raise ValueFault(
            f"the statement has {counted(len(every), 'parameter')}, and "
            f"{counted(len(values), 'value', 'is')} given",
            code="parameters",
            hint="give one value for each ?",
        )
    return [checked(value, f"parameter {i}") for i, value in enumerate(values, 1)]


def _mixed(
    statement: Statement, node: exp.Expr, message: str, hint: str = "give the values in order"
) -> ValueFault:
    return ValueFault(message, code="parameters", span=statement.place(node), hint=hint)


def checked(value: Any, name: str) -> Any:
    """A value that can stand for a constant. What is a whole number to Python is one here."""
    if isinstance(value, list | tuple | set | frozenset):
        return [checked(each, f"a value of {name}") for each in value]
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int | float | str | decimal.Decimal | datetime.date):
        if hasattr(value, "__index__"):
            value = value.__index__()
        elif not hasattr(value, "oid"):
            raise ValueFault(
                f"{name} is of type {type(value).__name__}, which is not a value of SQL",
                code="bad-value",
                hint="give an int, float, str, bool, Decimal, date, datetime or None; "
                "a list of them for IN",
            )
    try:
        encoder(type_of(value))(value)
    except ValueFault as error:
        raise ValueFault(
            f"{name}: {error.message}", code=error.code, hint=error.hint or _range(value)
        ) from None
    return value


def _range(value: Any) -> str | None:
    return "whole numbers have 64 bits" if isinstance(value, int) else None


def type_of(value: Any) -> Type:
    """The type of a value that is not NULL."""
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
        case decimal.Decimal():
            return _decimal_type(value)
    return Type(str(value.type))  # an object


def _decimal_type(value: decimal.Decimal) -> Type:
    """As many digits as are written."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueFault(f"{value} is not a decimal", code="bad-value", hint="decimals are finite")
    scale = max(0, -exponent)
    digits = max(len(value.as_tuple().digits) + max(0, exponent), scale, 1)
    if digits > MOST_DIGITS:
        raise ValueFault(
            f"{value} has more than {MOST_DIGITS} digits",
            code="overflow",
            hint="round it, or give a float",
        )
    return decimal_type(digits, scale)


# --- values in the tree --------------------------------------------------------------------


def _bound(statement: Statement, values: list[Any]) -> exp.Expr:
    root = statement.node.copy()
    nodes = parameters_of(replace(statement, node=root))
    for node, value in zip(nodes, values, strict=True):
        if isinstance(value, list):
            _spread(statement, node, value)
            continue
        made = constant(value)
        made.meta.update(node.meta)
        node.replace(made)
    return root


def _spread(statement: Statement, node: exp.Placeholder, values: list[Any]) -> None:
    """x IN (?), where the value is a list."""
    around = node.parent
    if not isinstance(around, exp.In) or node.arg_key != "expressions":
        raise TypeFault(
            "a list can stand only behind IN",
            code="type-mismatch",
            span=statement.place(node),
            hint="give one value, or write IN (?)",
        )
    listed = around.expressions
    place = next(i for i, each in enumerate(listed) if each is node)
    items = [constant(each) for each in values]
    around.set("expressions", [*listed[:place], *items, *listed[place + 1 :]])


def constant(value: Any) -> exp.Expr:
    """A checked value as the syntax has it, or as `Given` where SQL has no constant for it."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) and value > -(2**63):
        number = exp.Literal.number(str(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(str(value))
    return Given(value=value, kind=type_of(value))
