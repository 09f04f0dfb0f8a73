"""Functions of texts that take several forms: trim, concat, replace, substring."""

from __future__ import annotations

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql.conversions import apply, as_text, constant_as
from harken.lang.sql.program_draft import Body
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.values.types import TEXT

SIDES = {"LEADING": "trim_start", "TRAILING": "trim_end"}


def text_value(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The value of an expression where a text is wanted."""
    given = translation.value(node, scope, body)
    converted = constant_as(translation.draft, given, TEXT, node)
    return as_text(translation.draft, given if converted is None else converted, body, node)


def trim(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    text = text_value(translation, node.this, scope, body)
    position = str(node.args.get("position") or "BOTH").upper()
    taken = node.args.get("expression")
    if taken is None and position == "BOTH":
        return apply(translation.draft, "trim", [text], body, node)
    characters = (
        Constant(" ", TEXT) if taken is None else text_value(translation, taken, scope, body)
    )
    name = SIDES.get(position, "trim_both")
    return apply(translation.draft, name, [text, characters], body, node)


def concatenate(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """|| and concat."""
    parts = node.expressions or [node.this, node.args["expression"]]
    terms = [
        as_text(translation.draft, translation.value(each, scope, body), body, each)
        for each in parts
    ]
    result = terms[0]
    for term in terms[1:]:
        result = translation.draft.compute("||", (result, term), TEXT, body)
    return result


def replace(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    new = node.args.get("replacement") or exp.Literal.string("")
    parts = (node.this, node.expression, new)
    texts = [text_value(translation, each, scope, body) for each in parts]
    return apply(translation.draft, "replace", texts, body, node)


def substring(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    values = [translation.value(each, scope, body) for each in parts if each is not None]
    return apply(translation.draft, "substring", values, body, node)
