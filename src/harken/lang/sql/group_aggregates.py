"""Aggregates that need a whole group at once: their arguments and their results.

    max_by(x, y)                               max_by(Y, X : members(G, X, Y))
    string_agg(x, ', ' ORDER BY y DESC)        listagg(X, Y : members(G, X, Y))

`values/folds.py` computes the value of a group, the same on all engines. Only the groups that a
change touches are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from harken.errors import LanguageError, TypeFault
from harken.ir.clauses import Aggregation, Atom, Setting
from harken.ir.operations import FOLDED
from harken.ir.relations import Relation
from harken.ir.terms import Term, Variable
from harken.lang.sql import decimals
from harken.lang.sql.aggregate_calls import TWO_VALUES, Fold, called
from harken.lang.sql.conversions import as_text
from harken.lang.sql.ordering import direction
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.type_names import is_numeric, type_name
from harken.values.types import INTEGER, NUMBER, TEXT, decimal_digits, is_decimal

AS_DOUBLE = frozenset(
    {"var_samp", "var_pop", "stddev_samp", "stddev_pop", "covar_samp", "covar_pop", "corr"}
    | {"percentile", "skewness", "kurtosis"}
    | {f"regr_{name}" for name in ("slope", "intercept", "r2", "sxx", "syy", "sxy")}
)
"""They take numbers, whatever kind, as doubles."""
FOR_TYPE = {"listagg": TEXT, "bit_and": INTEGER, "bit_or": INTEGER, "bit_xor": INTEGER}


@dataclass(frozen=True, slots=True)
class FoldCall:
    """An aggregate of a whole group: its values, the first of which must not be NULL, then what it
    is ordered by."""

    node: exp.Expr
    name: str
    values: tuple[exp.Expr, ...]
    constants: tuple[Setting, ...]
    distinct: bool

    def aggregation(
        self, draft: Draft, values: Sequence[Variable], atom: Atom, groups: tuple[Term, ...]
    ) -> Aggregation:
        """Its value for a group; each of `values` is a variable of the atom."""
        first = values[0].type
        if self.name in AS_DOUBLE and not all(is_numeric(each.type) for each in values):
            raise self._fault(
                draft, f"{called(self.node)} of {type_name(first)}", "it takes numbers"
            )
        if self.name == "try_sum" and not is_numeric(first):
            raise self._fault(draft, f"try_sum of {type_name(first)}", "it takes numbers")
        if self.name in FOR_TYPE and first != FOR_TYPE[self.name]:
            raise self._fault(
                draft, f"{called(self.node)} of {type_name(first)}", "convert it with CAST"
            )
        scales = [decimal_digits(v.type)[1] if is_decimal(v.type) else 0 for v in values]
        settings = (self.distinct, tuple(scales) if self.name in AS_DOUBLE else (), *self.constants)
        type_ = values[1].type if self.name in ("max_by", "min_by") else first
        if self.name == "try_sum" and is_decimal(first):
            type_ = decimals.sum_of(first)
        result = draft.fresh((NUMBER if self.name in AS_DOUBLE else type_).or_null())
        name = "percentile_disc" if self.name == "approx_percentile" else self.name
        others = tuple(values[1:])
        return Aggregation(result, name, values[0], atom, groups, None, True, others, settings)

    def shown(self, draft: Draft, found: Term, body: Body) -> Term:
        """The value in the query: percentile_disc of numbers is a double, as in Spark."""
        if self.name == "percentile_disc" and is_numeric(found.type):
            return draft.coerce(found, NUMBER, body, self.node)
        return found

    def _fault(self, draft: Draft, message: str, hint: str) -> TypeFault:
        place = draft.place(self.node)
        return TypeFault(message, code="type-mismatch", span=place, hint=hint)


def read_fold(node: exp.Expr, draft: Draft) -> FoldCall:
    """The parts of a call in the form that `aggregate_calls` gives it."""
    values, width = folded_values(node), _width(node)
    distinct = isinstance(node.expressions[0], exp.Distinct)
    if len(values) != width or (distinct and width > 1 and len(node.expressions) > 1):
        wanted = "two values, and no DISTINCT" if width > 1 else "one value"
        raise _refusal(node, draft, f"{called(node)} takes {wanted}")
    rest = node.expressions[1 if distinct else width :]
    keys = [each for each in rest if isinstance(each, exp.Ordered)]
    constants = [_constant(each, node, draft) for each in rest if each not in keys]
    if node.name == "listagg":
        constants.append(tuple(direction(each) for each in keys))
        if distinct and any(each.this != values[0] for each in keys):
            raise _refusal(node, draft, "DISTINCT is ordered by what it is of")
    if node.name in ("max_by", "min_by"):
        values.reverse()
    ordered = (each.this for each in keys)
    return FoldCall(node, node.name, (*values, *ordered), tuple(constants), distinct)


def folded_values(node: exp.Expr) -> list[exp.Expr]:
    """The values that a call aggregates."""
    first = node.expressions[0]
    distinct = isinstance(first, exp.Distinct)
    return list(first.expressions if distinct else node.expressions[: _width(node)])


def keys_of(node: exp.Expr) -> list[exp.Expr]:
    """The order keys of a call."""
    return [each.this for each in node.expressions if isinstance(each, exp.Ordered)]


def _width(node: exp.Expr) -> int:
    return 2 if node.name in TWO_VALUES.values() else 1


def _constant(node: exp.Expr, call: exp.Expr, draft: Draft) -> Setting:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string == (call.name == "listagg"):
            if node.is_string:
                return str(node.this)
            if 0 <= float(node.this) <= 1:
                return float(node.this)
    wanted = "a text that separates" if call.name == "listagg" else "a number between 0 and 1"
    raise _refusal(node, draft, f"{called(call)} takes {wanted} here, as a constant")


def _refusal(node: exp.Expr, draft: Draft, message: str) -> LanguageError:
    return LanguageError(message, code="unsupported", span=draft.place(node))


def is_fold(node: exp.Expr) -> bool:
    return isinstance(node, Fold) and (node.name in FOLDED or node.name == "approx_percentile")


def fold_values(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> list[Term]:
    fold = read_fold(node, translation.draft)
    values = [translation.value(each, scope, body) for each in fold.values]
    if fold.name == "listagg" and not fold.distinct:  # what is joined is written out
        values[0] = as_text(translation.draft, values[0], body, node)
    return values


def fold_group(
    draft: Draft,
    node: exp.Expr,
    places: Sequence[int],
    members: Relation,
    groups: tuple[Term, ...],
    clause: Body,
) -> Term:
    """For a group of the members; `places` are those of its values behind the group."""
    rest = [draft.fresh(column.type) for column in members.columns[len(groups) :]]
    atom = Atom(members, (*groups, *rest))
    fold = read_fold(node, draft)
    found = fold.aggregation(draft, [rest[each] for each in places], atom, groups)
    clause.add(found)
    return fold.shown(draft, found.result, clause)
