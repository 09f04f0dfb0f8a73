"""Scalar expressions into computations: each gives the term that holds its value.

NULL is a value here, and every operation says itself what it makes of it. A condition as a value is
true, false or NULL; `conditions` turns those of WHERE into literals where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from harken.errors import LanguageError, ValueFault
from harken.ir.operations import NEGATED_COMPARISON
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.arithmetic import SYMBOLS
from harken.lang.sql.chance import normal, seed_of
from harken.lang.sql.conversions import NULL_TYPE, is_null
from harken.lang.sql.draft import FALSE, TRUE, Body, Draft
from harken.lang.sql.functions import Once, said
from harken.lang.sql.known import PLACED, why_not
from harken.lang.sql.scalars import PATTERNS, Call, called, constant
from harken.lang.sql.scope import Scope
from harken.lang.sql.spelling import as_written
from harken.lang.sql.trying import TRIED
from harken.lang.sql.typed_calls import TypedCalls
from harken.lang.sql.types import type_of
from harken.values.java_patterns import compiled
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, is_decimal

if TYPE_CHECKING:
    from harken.lang.sql.queries import Queries

COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
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
LISTED = 3
"""So many values of IN are one operation, and not a comparison each."""
TRIMMED = {"LEADING": "trim_start", "TRAILING": "trim_end"}


class Expressions(TypedCalls):
    def __init__(self, draft: Draft, queries: Queries) -> None:
        super().__init__(draft)
        self._queries = queries
        self._once: dict[int, tuple[Body, Term]] = {}

    def value(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """The term that holds the value; what computes it goes into the body."""
        if node is None:  # type: ignore[redundant-expr, unused-ignore]
            span = self._draft.statement.span
            raise LanguageError("an argument is missing", code="syntax", span=span)
        match node:
            case exp.Paren() | exp.Alias():
                return self.value(node.this, scope, body)
            case Once():
                known = self._once.get(node.args["key"])
                if known is None or known[0] is not body:
                    known = body, self.value(node.this, scope, body)
                    self._once[node.args["key"]] = known
                return known[1]
            case exp.Column():
                return scope.column(
                    node.table.lower() or None, node.name.lower(), self._draft.place(node)
                )
            case exp.Literal():
                return self._literal(node)
            case exp.Boolean():
                return TRUE if node.this else FALSE
            case exp.Null():
                return Constant(None, NULL_TYPE)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._queries.scalar(node.unnest(), scope, body)
            case exp.Exists():
                return self._queries.exists(node.this, scope, body)
            case exp.In():
                return self._in(node, scope, body)
            case exp.TsOrDsToDate():  # what sqlglot puts around the argument of year()
                return self._as_date(node, scope, body)
            case exp.Cast() | exp.TryCast():
                return self._cast(node, scope, body)
            case exp.Case():
                return self._case(node, scope, body)
            case exp.If():
                return self._choose(node, [node], node.args.get("false"), scope, body)
            case exp.Coalesce():
                return self._coalesce(node, scope, body)
            case exp.Nullif():
                left = self.value(node.this, scope, body)  # of its own type, whatever the other is
                right = self.value(node.expression, scope, body)
                sides = self.alike(left, right, body, node)
                same = self._draft.compute("is =", sides, BOOLEAN, body)
                nothing = Constant(None, left.type.or_null())
                return self._draft.compute("choose", (same, nothing, left), left.type, body)
            case exp.Randn():
                return self.value(normal(node), scope, body)
            case exp.Rand() | exp.Uuid():
                return self._draw(node, scope, body)
            case exp.AggFunc():
                raise self._unsupported(node, "an aggregate cannot stand here")
        return self._operation(node, scope, body)

    def _draw(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """What the moment, the place in the text and the row say; or a seed and the row."""
        draft = self._draft
        seed = seed_of(node, draft)
        terms = [each.term for source in scope.sources for each in source.fields]
        drawn_from = seed or f"{draft.lot} {draft.owner} {node.args['place']}"
        text: Term = Constant(drawn_from, TEXT)
        for term in dict.fromkeys([*terms, *scope.captured, *scope.apart]):
            if isinstance(term, Variable):
                shown = (
                    draft.compute("object_text", (term,), TEXT, body)
                    if term.type.surrogate
                    else self.as_text(term, body, node)
                )
                part = draft.compute("concat", (Constant("\n", TEXT), shown), TEXT, body)
                if term.type.nullable:
                    part = draft.compute("coalesce", (part, Constant("\t", TEXT)), TEXT, body)
                text = draft.compute("concat", (text, part), TEXT, body)
        name = "uuid" if isinstance(node, exp.Uuid) else "fraction" if seed else "rand"
        return draft.compute(name, (text,), TEXT if name == "uuid" else NUMBER, body)

    # --- operations ------------------------------------------------------------------------

    def _operation(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        compute = self._draft.compute
        match node:
            case exp.And() | exp.Or():
                sides = [self.boolean(each, scope, body) for each in (node.left, node.right)]
                return compute("and" if isinstance(node, exp.And) else "or", sides, BOOLEAN, body)
            case exp.Not():
                return compute("not", (self.boolean(node.this, scope, body),), BOOLEAN, body)
            case exp.Is():
                return self._is(node, scope, body)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._same(node, scope, body)
            case exp.Between():
                given = self.value(node.this, scope, body)
                low = self._compared(">=", given, node.args["low"], scope, body, node)
                high = self._compared("<=", given, node.args["high"], scope, body, node)
                return compute("and", (low, high), BOOLEAN, body)
            case exp.Like():
                sides = [self._text(each, scope, body) for each in (node.this, node.expression)]
                like = compute("like", sides, BOOLEAN, body)
                return compute("not", (like,), BOOLEAN, body) if node.args.get("negate") else like
            case exp.Neg(this=exp.Literal(is_string=False)) if node.this.name == str(2**63):
                return Constant(-(2**63), INTEGER)
            case exp.Neg():
                given = self.numeric(self.value(node.this, scope, body), body, node)
                if isinstance(given, Constant) and isinstance(given.value, int | float | Decimal):
                    return Constant(-given.value, given.type)
                if is_decimal(given.type):
                    return compute("negate", (given,), given.type, body)
                return self._apply("negate", [given], body, node)
            case _ if type(node) in SYMBOLS:
                return self._arithmetic(node, scope, body)
            case exp.Trim():
                return self._trimmed(node, scope, body)
            case exp.Floor() | exp.Ceil():
                return self._whole(node, scope, body)
            case exp.Greatest() | exp.Least():
                return self._extreme(node, scope, body)
            case exp.Replace():
                new = node.args.get("replacement") or exp.Literal.string("")
                texts = [self._text(e, scope, body) for e in (node.this, node.expression, new)]
                return self._apply("replace", texts, body, node)
            case _ if (words := said(node)) is not None:
                return self.value(words, scope, body)
            case _ if (call := called(node)) is not None:
                return self._called(call, node, scope, body)
            case _ if (term := self._by_type(node, scope, body)) is not None:
                return term
            case _ if (number := constant(node)) is not None:
                return Constant(number, NUMBER)
            case _ if type(node) in TRIED:
                sides = [self.value(each, scope, body) for each in (node.this, node.expression)]
                return self._tried(node, sides[0], sides[1], body)
            case exp.DPipe() | exp.Concat():
                parts = node.expressions or [node.this, node.args["expression"]]
                return self._concatenated(parts, scope, body)
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                values = [self.value(each, scope, body) for each in parts if each is not None]
                return self._apply("substring", values, body, node)
            case exp.Extract():
                part = node.this.name.lower()
                return self._apply(part, [self.value(node.expression, scope, body)], body, node)
            case exp.Round():
                return self._rounded(node, scope, body)
            case exp.CurrentDate():
                return compute("today", (), DATE, body)
            case exp.CurrentTimestamp():
                return compute("now", (), TIMESTAMP, body)
            case exp.Anonymous(expressions=[]) if node.name.lower() == "now":
                return compute("now", (), TIMESTAMP, body)
        operator = COMPARED.get(type(node))
        if operator is not None and isinstance(node.expression, exp.Any | exp.All):
            return self._quantified(operator, node, scope, body)
        if operator is not None:
            left = self.value(node.this, scope, body)
            return self._compared(operator, left, node.expression, scope, body, node)
        named = NAMED.get(type(node))
        if named is not None:
            name, keys = named
            values = [self.value(node.args[key], scope, body) for key in keys if node.args.get(key)]
            if name == "abs":
                values = [self.numeric(each, body, node) for each in values]
            if name == "abs" and is_decimal(values[0].type):
                return compute("abs", values, values[0].type, body)
            return self._apply(name, values, body, node)
        if isinstance(node, exp.Window):
            raise self._unsupported(
                node, "a window function cannot stand here: say QUALIFY, or put a query around it"
            )
        if isinstance(node, PLACED):
            raise self._unsupported(node, why_not(node))
        raise self._unsupported(node, f"there is no {as_written(node)} in Harken's SQL yet")

    def _called(self, call: Call, node: exp.Expr, scope: Scope, body: Body) -> Term:
        name, given, types = call
        terms = []
        for each, wanted in zip(given, types, strict=True):
            term = self.value(each, scope, body)
            if wanted == TEXT:
                term = self.as_text(term, body, each)
            converted = self._literal_as(term, wanted, each) if term.type != wanted else None
            terms.append(self._widened(converted or term, wanted, body, each))
        if name in PATTERNS and isinstance(terms[1], Constant) and terms[1].value is not None:
            self._check_pattern(str(terms[1].value), node)
        return self._apply(name, terms, body, node)

    def _widened(self, term: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
        is_wider = wanted == NUMBER and (term.type == INTEGER or is_decimal(term.type))
        return self._draft.coerce(term, NUMBER, body, node) if is_wider else term

    def _check_pattern(self, pattern: str, node: exp.Expr) -> None:
        """What cannot be used is refused before there are rows."""
        try:
            compiled(pattern)
        except ValueFault as error:
            raise ValueFault(
                error.message, code=error.code, span=self._draft.place(node), hint=error.hint
            ) from None

    def _quantified(self, operator: str, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """A comparison with ANY or ALL rows: with all of them, if not the opposite with any."""
        among = node.expression
        query = among.this.unnest()
        if not isinstance(query, exp.Query):
            raise self._unsupported(node, "ANY and ALL take a query")
        if isinstance(among, exp.Any):
            return self._queries.compares_to_any(operator, node.this, query, scope, body)
        opposite = NEGATED_COMPARISON[operator]
        fails = self._queries.compares_to_any(opposite, node.this, query, scope, body)
        return self._draft.compute("not", (fails,), BOOLEAN, body)

    def boolean(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        return self._draft.coerce(self.value(node, scope, body), BOOLEAN, body, node)

    def _text(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        given = self.value(node, scope, body)
        converted = self._literal_as(given, TEXT, node)
        return self.as_text(given if converted is None else converted, body, node)

    def _pair(self, node: exp.Expr, scope: Scope, body: Body) -> tuple[Term, Term]:
        left = self.value(node.this, scope, body)
        right = self.value(node.expression, scope, body)
        return self.alike(left, right, body, node)

    def _compared(
        self,
        operator: str,
        left: Term,
        right_node: exp.Expr,
        scope: Scope,
        body: Body,
        node: exp.Expr,
    ) -> Term:
        right = self.value(right_node, scope, body)
        if TEXT in (left.type, right.type) and (is_null(left) or is_null(right)):
            return Constant(None, BOOLEAN.or_null())  # whatever the text says
        sides = self.alike(left, right, body, node)
        return self._draft.compute(f"is {operator}", sides, BOOLEAN, body)

    def _extreme(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """The greatest or the least of several values that are there."""
        values = [self.value(each, scope, body) for each in (node.this, *node.expressions)]
        result, *rest = self._of_one_type(values, body, node)
        operator = "is >=" if isinstance(node, exp.Greatest) else "is <="
        compute = self._draft.compute
        for each in rest:
            stays = compute(operator, (result, each), BOOLEAN, body)
            missing = compute("is null", (each,), BOOLEAN, body)
            stays = compute("or", (missing, stays), BOOLEAN, body)
            result = compute("choose", (stays, result, each), result.type, body)
        return result

    def _trimmed(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        text = self._text(node.this, scope, body)
        position = str(node.args.get("position") or "BOTH").upper()
        taken = node.args.get("expression")
        if taken is None and position == "BOTH":
            return self._apply("trim", [text], body, node)
        characters = Constant(" ", TEXT) if taken is None else self._text(taken, scope, body)
        name = TRIMMED.get(position, "trim_both")
        return self._apply(name, [text, characters], body, node)

    def _concatenated(self, parts: Sequence[exp.Expr], scope: Scope, body: Body) -> Term:
        terms = [self.as_text(self.value(each, scope, body), body, each) for each in parts]
        result = terms[0]
        for term in terms[1:]:
            result = self._draft.compute("||", (result, term), TEXT, body)
        return result

    def _as_date(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        return self._converted(self.value(node.this, scope, body), DATE, body, node)

    def tested(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """What IS NULL or IS UNKNOWN asks about: for UNKNOWN it is a condition."""
        of_condition = node.meta.get("of_condition")
        return (self.boolean if of_condition else self.value)(node.this, scope, body)

    def _is(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        given = self.tested(node, scope, body)
        right = node.expression
        if isinstance(right, exp.Null):
            return self._draft.compute("is null", (given,), BOOLEAN, body)
        if isinstance(right, exp.Boolean):  # x IS TRUE
            given = self._literal_as(given, BOOLEAN, node) or given
            same = self._draft.compute(
                "is =", (given, TRUE if right.this else FALSE), BOOLEAN, body
            )
            return self._draft.compute("coalesce", (same, FALSE), BOOLEAN, body)
        return self._same(node, scope, body)

    def _same(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """IS NOT DISTINCT FROM: NULL is the same as NULL."""
        left, right = self._pair(node, scope, body)
        compute = self._draft.compute
        equal = compute("is =", (left, right), BOOLEAN, body)
        if equal.type.nullable:
            nulls = [compute("is null", (each,), BOOLEAN, body) for each in (left, right)]
            both = compute("and", nulls, BOOLEAN, body)
            equal = compute("coalesce", (equal, both), BOOLEAN, body)
        if isinstance(node, exp.NullSafeNEQ):
            return compute("not", (equal,), BOOLEAN, body)
        return equal

    def _in(self, node: exp.In, scope: Scope, body: Body) -> Term:
        query = node.args.get("query")
        if query is not None:
            return self._queries.is_in(node.this, query.unnest(), scope, body)
        given = self.value(node.this, scope, body)
        values = [self.value(each, scope, body) for each in node.expressions]
        pairs = [self.alike(given, each, body, node) for each in values]
        sides = {one for one, _ in pairs}
        if len(pairs) >= LISTED and len(sides) == 1:
            others = [other for _, other in pairs]
            return self._draft.compute("is among", (*sides, *others), BOOLEAN, body)
        found: Term = FALSE
        for one, other in pairs:
            equal = self._draft.compute("is =", (one, other), BOOLEAN, body)
            alone = found is FALSE
            found = equal if alone else self._draft.compute("or", (found, equal), BOOLEAN, body)
        return found

    # --- choices ---------------------------------------------------------------------------

    def _case(self, node: exp.Case, scope: Scope, body: Body) -> Term:
        branches = node.args["ifs"]
        if node.this is not None:
            branches = [
                exp.If(
                    this=exp.EQ(this=node.this.copy(), expression=each.this), true=each.args["true"]
                )
                for each in branches
            ]
        return self._choose(node, branches, node.args.get("default"), scope, body)

    def _choose(
        self,
        node: exp.Expr,
        branches: Sequence[exp.Expr],
        default: exp.Expr | None,
        scope: Scope,
        body: Body,
    ) -> Term:
        tests = [self.boolean(each.this, scope, body) for each in branches]
        values = [self.value(each.args["true"], scope, body) for each in branches]
        last = Constant(None, NULL_TYPE) if default is None else self.value(default, scope, body)
        *values, last = self._of_one_type([*values, last], body, node)
        for test, value in zip(reversed(tests), reversed(values), strict=True):
            last = self._draft.compute("choose", (test, value, last), value.type, body)
        return last

    def _coalesce(self, node: exp.Coalesce, scope: Scope, body: Body) -> Term:
        given = [node.this, *node.expressions]
        values = self._of_one_type([self.value(each, scope, body) for each in given], body, node)
        result = values[-1]
        for value in reversed(values[:-1]):
            result = self._draft.compute("coalesce", (value, result), value.type, body)
        return result

    # --- literals and casts ----------------------------------------------------------------

    def _cast(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        wanted = type_of(node.args["to"], self._draft.place(node))
        if node.args.get("safe"):
            return self._try_converted(self.value(node.this, scope, body), wanted, body, node)
        return self._converted(self.value(node.this, scope, body), wanted, body, node)
