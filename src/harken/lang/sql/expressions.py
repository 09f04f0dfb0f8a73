"""Scalar expressions into computations: each gives the term that holds its value.

NULL is a value here, and each operation defines its result for it. A table maps the class of a node
to the function that translates it. Other nodes are rewritten, or are calls of one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache

from sqlglot import exp

from harken.errors import LanguageError, ValueFault, nearest
from harken.ir.terms import Constant, Parameter, Term
from harken.lang.sql.aggregate_nodes import AGGREGATED
from harken.lang.sql.arithmetic import SYMBOLS, arithmetic
from harken.lang.sql.case_expressions import case, coalesce, greatest_or_least, if_, nullif
from harken.lang.sql.comparisons import (
    COMPARED,
    and_or,
    between,
    comparison,
    in_,
    is_,
    like,
    not_,
    null_safe_equal,
)
from harken.lang.sql.conversions import (
    NULL_TYPE,
    apply,
    as_numeric,
    as_text,
    cast_to,
    constant_as,
    literal_term,
)
from harken.lang.sql.expression_text import as_written
from harken.lang.sql.function_rewrites import Once, rewrite_call
from harken.lang.sql.lifting import Lifted
from harken.lang.sql.operation_calls import CALLS, PATTERNS, Call, constant, operation_call
from harken.lang.sql.operation_calls import NAMED as CALLED
from harken.lang.sql.other_dialects import replacement
from harken.lang.sql.parameters import Given, name_of
from harken.lang.sql.program_draft import FALSE, TRUE, Body, Draft
from harken.lang.sql.random_calls import normal_distribution, random_value
from harken.lang.sql.rounding import floor_or_ceil, round_value
from harken.lang.sql.scope import Scope
from harken.lang.sql.subqueries import exists, scalar
from harken.lang.sql.supported_syntax import ORDERED_FUNCTIONS, unsupported_reason
from harken.lang.sql.text_functions import concatenate, replace, substring, trim
from harken.lang.sql.translation import Translation
from harken.lang.sql.try_functions import TRY_OPERATORS, try_arithmetic, try_cast_to
from harken.lang.sql.type_names import type_of
from harken.lang.sql.typed_calls import call_by_type
from harken.values.java_patterns import compiled
from harken.values.types import DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, is_decimal

Translate = Callable[[Translation, exp.Expr, Scope, Body], Term]

NAMED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Abs: ("abs", ("this",)),
    exp.AddMonths: ("add_months", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
    exp.Contains: ("contains", ("this", "expression")),
    exp.StrPosition: ("position", ("substr", "this")),
}


def translate_value(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The term that holds the value; what computes it goes into the body."""
    if node is None:  # type: ignore[redundant-expr, unused-ignore]
        span = translation.draft.statement.span
        raise LanguageError("an argument is missing", code="syntax", span=span)
    translate = _found(FIRST, node)
    if translate is not None:
        return translate(translation, node, scope, body)
    if (rewritten := rewrite_call(node)) is not None:
        return translation.value(rewritten, scope, body)
    if (call := operation_call(node)) is not None:
        return _call(translation, call, node, scope, body)
    if (term := call_by_type(translation, node, scope, body)) is not None:
        return term
    if (number := constant(node)) is not None:
        return Constant(number, NUMBER)
    translate = _found(THEN, node)
    if translate is not None:
        return translate(translation, node, scope, body)
    raise _refusal(translation.draft, node)


def _found(table: dict[type[exp.Expr], Translate], node: exp.Expr) -> Translate | None:
    """The function for the class of a node, or for the nearest class above it."""
    for each in type(node).__mro__:
        if each in table:
            return table[each]
    return None


def _refusal(draft: Draft, node: exp.Expr) -> LanguageError:
    if isinstance(node, exp.Window):
        return draft.unsupported(
            node, "a window function is not allowed here: use QUALIFY, or an outer query"
        )
    if isinstance(node, ORDERED_FUNCTIONS):
        return draft.unsupported(node, unsupported_reason(node))
    written = as_written(node)
    hint = replacement(written)
    if hint is None and isinstance(node, exp.Anonymous) and node.name.lower() not in CALLED:
        near = nearest(node.name.lower(), _function_names())
        hint = f"did you mean {near}?" if near else _FUNCTIONS_ARE
        return draft.unsupported(node, f"there is no function {node.name} in Harken's SQL", hint)
    return draft.unsupported(node, f"{written} is not supported in Harken's SQL yet", hint)


_FUNCTIONS_ARE = (
    "docs/reference/functions.md has them all; db.foreign(name, function) adds one of Python"
)


@cache
def _function_names() -> tuple[str, ...]:
    """The functions that are translated by their class, and those that are known by name."""
    classes = {*FIRST, *THEN, *CALLS, *AGGREGATED, *NAMED}
    known = {name.lower() for name, each in exp.FUNCTION_BY_NAME.items() if each in classes}
    return (*sorted(known | {*CALLED}),)


def _inner(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return translation.value(node.this, scope, body)


def _once(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """A value that several places of a body share."""
    known = translation.computed.get(node.args["key"])
    if known is None or known[0] is not body:
        known = body, translation.value(node.this, scope, body)
        translation.computed[node.args["key"]] = known
    return known[1]


def _column(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    assert isinstance(node, exp.Column)
    place = translation.draft.place(node)
    return scope.column(node.table.lower() or None, node.name.lower(), place)


def _literal(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    assert isinstance(node, exp.Literal)
    return literal_term(translation.draft, node)


def _given(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    value = node.args["value"]
    return Constant(getattr(value, "oid", value), node.args["kind"])


def _lifted(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return Parameter(node.args["slot"], node.args["kind"])


def _parameter(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    name = name_of(node)
    raise ValueFault(
        f"there is no value for the parameter {':' + name if name else '?'}",
        code="parameters",
        span=translation.draft.place(node),
        hint='values come beside the text: db.sql("... WHERE id = ?", [5])',
    )


def _boolean(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return TRUE if node.this else FALSE


def _null(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return Constant(None, NULL_TYPE)


def _scalar_query(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return scalar(translation, node.unnest(), scope, body)


def _exists(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return exists(translation, node.this, scope, body)


def _as_date(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return cast_to(translation.draft, translation.value(node.this, scope, body), DATE, body, node)


def _cast(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    wanted = type_of(node.args["to"], translation.draft.place(node))
    if node.args.get("safe"):
        return try_cast_to(
            translation.draft, translation.value(node.this, scope, body), wanted, body, node
        )
    return cast_to(translation.draft, translation.value(node.this, scope, body), wanted, body, node)


def _normal(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return translation.value(normal_distribution(node), scope, body)


def _aggregate(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    raise translation.draft.unsupported(node, "an aggregate is not allowed here")


def _negative(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    draft, inner = translation.draft, node.this
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.name == str(2**63):
        return Constant(-(2**63), INTEGER)
    given = as_numeric(draft, translation.value(inner, scope, body), body, node)
    if isinstance(given, Constant) and isinstance(given.value, int | float | Decimal):
        return Constant(-given.value, given.type)
    if is_decimal(given.type):
        return draft.compute("negate", (given,), given.type, body)
    return apply(draft, "negate", [given], body, node)


def _tried(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    left, right = (translation.value(each, scope, body) for each in (node.this, node.expression))
    return try_arithmetic(translation.draft, node, left, right, body)


def _extract(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    given = translation.value(node.expression, scope, body)
    return apply(translation.draft, node.this.name.lower(), [given], body, node)


def _today(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return translation.draft.compute("today", (), DATE, body)


def _now(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return translation.draft.compute("now", (), TIMESTAMP, body)


def _anonymous(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """A function that sqlglot does not know."""
    if node.name.lower() == "now" and not node.expressions:
        return _now(translation, node, scope, body)
    raise _refusal(translation.draft, node)


def _named(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    name, keys = NAMED[type(node)]
    given = [node.args[key] for key in keys if node.args.get(key)]
    values = [translation.value(each, scope, body) for each in given]
    if name == "abs":
        values = [as_numeric(translation.draft, each, body, node) for each in values]
    if name == "abs" and is_decimal(values[0].type):
        return translation.draft.compute("abs", values, values[0].type, body)
    return apply(translation.draft, name, values, body, node)


def _call(translation: Translation, call: Call, node: exp.Expr, scope: Scope, body: Body) -> Term:
    name, given, types = call
    terms = []
    for each, wanted in zip(given, types, strict=True):
        term = translation.value(each, scope, body)
        if wanted == TEXT:
            term = as_text(translation.draft, term, body, each)
        converted = (
            constant_as(translation.draft, term, wanted, each) if term.type != wanted else None
        )
        terms.append(_widened(translation.draft, converted or term, wanted, body, each))
    if name in PATTERNS and isinstance(terms[1], Constant) and terms[1].value is not None:
        _check_pattern(translation.draft, str(terms[1].value), node)
    return apply(translation.draft, name, terms, body, node)


def _widened(draft: Draft, term: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
    is_wider = wanted == NUMBER and (term.type == INTEGER or is_decimal(term.type))
    return draft.coerce(term, NUMBER, body, node) if is_wider else term


def _check_pattern(draft: Draft, pattern: str, node: exp.Expr) -> None:
    """Reject an invalid pattern at translation, before any row is read."""
    try:
        compiled(pattern)
    except ValueFault as error:
        raise ValueFault(
            error.message, code=error.code, span=draft.place(node), hint=error.hint
        ) from None


FIRST: dict[type[exp.Expr], Translate] = {
    **dict.fromkeys((exp.Paren, exp.Alias), _inner),
    Once: _once,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    Given: _given,
    Lifted: _lifted,
    exp.Placeholder: _parameter,
    exp.Null: _null,
    **dict.fromkeys((exp.Subquery, exp.Select, exp.SetOperation), _scalar_query),
    exp.Exists: _exists,
    exp.In: in_,
    exp.TsOrDsToDate: _as_date,  # what sqlglot puts around the argument of year()
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    exp.Case: case,
    exp.If: if_,
    exp.Coalesce: coalesce,
    exp.Nullif: nullif,
    exp.Randn: _normal,
    **dict.fromkeys((exp.Rand, exp.Uuid), random_value),
    exp.AggFunc: _aggregate,
    **dict.fromkeys((exp.And, exp.Or), and_or),
    exp.Not: not_,
    exp.Is: is_,
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), null_safe_equal),
    exp.Between: between,
    exp.Like: like,
    exp.Neg: _negative,
    **dict.fromkeys(SYMBOLS, arithmetic),
    exp.Trim: trim,
    **dict.fromkeys((exp.Floor, exp.Ceil), floor_or_ceil),
    **dict.fromkeys((exp.Greatest, exp.Least), greatest_or_least),
    exp.Replace: replace,
}
"""These are looked up before a node is rewritten."""
THEN: dict[type[exp.Expr], Translate] = {
    **dict.fromkeys(TRY_OPERATORS, _tried),
    **dict.fromkeys((exp.DPipe, exp.Concat), concatenate),
    exp.Substring: substring,
    exp.Extract: _extract,
    exp.Round: round_value,
    exp.CurrentDate: _today,
    exp.CurrentTimestamp: _now,
    exp.Anonymous: _anonymous,
    **dict.fromkeys(COMPARED, comparison),
    **dict.fromkeys(NAMED, _named),
}
"""These may have special cases that are rewritten first."""
