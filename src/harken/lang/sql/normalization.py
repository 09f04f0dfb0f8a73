"""Normalise the syntax tree before translation: equivalent spellings become one."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from harken.lang.sql.aggregate_calls import spelled
from harken.lang.sql.distinct_on import distinct_on, first_of_each

ONE = exp.Literal.number(1)
LONG_CHAIN = 32
LEAST_OR_GREATEST = (exp.First, exp.Last, exp.FirstValue, exp.LastValue)
"""What has no order in a group, where NULLs are left out anyway."""
STRENGTH: dict[type[exp.Expr], int] = {
    exp.BitwiseOr: 1,
    exp.BitwiseXor: 2,
    exp.BitwiseAnd: 3,
    exp.BitwiseLeftShift: 4,
    exp.BitwiseRightShift: 4,
    exp.DPipe: 5,
}
"""Which of the operators on bits binds stronger."""


def replace_columns(
    node: exp.Expr,
    other: Callable[[exp.Expr], exp.Expr],
    apart: tuple[type[exp.Expr], ...] = (exp.AggFunc, exp.Query),
) -> exp.Expr:
    """The expression with its columns replaced, but not those of aggregates and subqueries."""
    if isinstance(node, apart):
        return node.copy()
    if isinstance(node, exp.Column):
        return other(node)
    made = node.copy()
    for key, value in list(made.args.items()):
        if isinstance(value, exp.Expr):
            made.set(key, replace_columns(value, other, apart))
        elif isinstance(value, list):
            made.set(
                key,
                [replace_columns(v, other, apart) if isinstance(v, exp.Expr) else v for v in value],
            )
    return made


def normalized_throughout(node: exp.Expr) -> exp.Expr:
    """The tree with every node normalised, the children first."""
    for each in reversed(list(node.dfs())):
        made = normalized(each)
        if made is each:
            continue
        if each is node:
            return made
        each.replace(made)
    return node


def normalized(node: exp.Expr) -> exp.Expr:
    """One node, as the translation wants it."""
    if isinstance(node, exp.Like | exp.ILike) and _are_patterns(node.expression):
        return _likes(node)
    if node.args.get("negate"):  # NOT by a flag of the predicate, which sqlglot may set
        node.set("negate", None)
        return exp.Not(this=normalized(node.copy()))
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Anonymous):
        node.set("expression", _quantified(node.expression))
    one_call = spelled(node)
    if one_call is not None:
        return one_call
    match node:
        case exp.Select() if node.args.get("hint"):  # it changes no row
            node.set("hint", None)
            return normalized(node)
        case exp.Select() if node.args.get("windows"):
            return normalized(spelled_windows(node))
        case exp.Select() if (on := distinct_on(node)) is not None:
            return first_of_each(node, on) or node
        case exp.Table() | exp.Column() if _is_in_default(node):
            node.set("db", None)
            node.set("catalog", None)
            return node
        case exp.RawString():
            return exp.Literal.string(node.this)
        case _ if type(node) in STRENGTH and type(node.parent) not in STRENGTH:
            return by_strength(node)
        case exp.And() | exp.Or() if type(node.parent) is not type(node):
            return _balanced(node)
        case exp.RespectNulls():  # as a window does unless it is told otherwise
            return without(node)
        case exp.TimestampAdd() if node.args.get("unit") is not None:  # a timestamp, as in Spark
            later = exp.Interval(this=exp.Paren(this=node.expression), unit=node.args["unit"])
            return exp.Add(this=exp.cast(node.this, exp.DType.TIMESTAMP), expression=later)
        case exp.Sum(this=exp.Null()) | exp.Avg(this=exp.Null()):
            return type(node)(this=exp.cast(exp.Null(), exp.DType.DOUBLE))
        case exp.Count(this=exp.Expr()) if node.expressions:
            return _count_of_several(node)
        case exp.Column() if node.name.lower() == "grouping__id" and not node.table:
            return exp.GroupingId()
        case exp.Select() if not node.args.get("order") and not node.args.get("limit"):
            return _without_partitions(node)
        case exp.Between() if node.args.get("symmetric"):
            return _between_either(node)
        case exp.Fetch() if not _has_ties(node):
            return exp.Limit(expression=node.args.get("count") or exp.Literal.number(1))
        case exp.Anonymous(expressions=[exp.Expr() as value]) if _is_of_booleans(node, value):
            kind = exp.LogicalAnd if node.name.lower() == "every" else exp.LogicalOr
            return kind(this=value)
        case exp.Any(this=exp.Paren()) if not isinstance(node.parent, exp.Binary):
            return exp.LogicalOr(this=node.this.this)
        case exp.RegrCount(this=exp.Expr(), expression=exp.Expr()):
            return _count_of_several(exp.Count(this=node.this, expressions=[node.expression]))
        case exp.RegrAvgx() | exp.RegrAvgy():
            return _average_of_pairs(node)
        case exp.Anonymous(expressions=[value]) if node.name.lower() == "try_avg":
            return exp.Avg(this=value)
        case exp.CountIf():
            return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=ONE.copy())]))
        case exp.ApproxDistinct():
            return exp.Count(this=exp.Distinct(expressions=[node.this]))
        case exp.IgnoreNulls(this=exp.AnyValue()):  # as it does anyway
            return without(node)
        case exp.IgnoreNulls() if isinstance(node.this, LEAST_OR_GREATEST) and not _is_over(node):
            return without(node)
        case exp.First() | exp.Last() if _is_over(node):
            made = exp.FirstValue if isinstance(node, exp.First) else exp.LastValue
            return made(this=node.this)
        case exp.Anonymous() if node.name.lower() == "row" and len(node.expressions) > 1:
            return exp.Tuple(expressions=node.expressions)
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if _are_rows([node.this, node.expression]):
            return _rows_ordered(node)
        case exp.EQ(expression=exp.Any()) if isinstance(node.expression.this, exp.Query):
            return exp.In(this=node.this, query=_subquery(node.expression))
        case exp.NEQ(expression=exp.All()) if isinstance(node.expression.this, exp.Query):
            return exp.Not(this=exp.In(this=node.this, query=_subquery(node.expression)))
        case exp.EQ(this=exp.Tuple(), expression=exp.Tuple()):
            return _rows_equal(node.this, node.expression)
        case exp.NEQ(this=exp.Tuple(), expression=exp.Tuple()):
            return exp.Not(this=_rows_equal(node.this, node.expression))
        case exp.EQ(this=exp.Tuple(), expression=exp.Subquery()):
            return _rows_equal(node.this, _row_of(node.expression, len(node.this.expressions)))
        case exp.NEQ(this=exp.Tuple(), expression=exp.Subquery()):
            row = _row_of(node.expression, len(node.this.expressions))
            return exp.Not(this=_rows_equal(node.this, row))
        case exp.In() if isinstance(node.args.get("field"), exp.Placeholder):  # x IN ?
            node.set("expressions", [node.args["field"]])
            node.set("field", None)
            return node
        case exp.In(this=exp.Tuple()) if _are_rows(node.expressions):
            equal = (_rows_equal(node.this, each) for each in node.expressions)
            return exp.Paren(this=exp.or_(*equal))
    return node


def _balanced(node: exp.Expr) -> exp.Expr:
    """A long chain of AND or OR as a tree that is not deep: in whatever order it is the same."""
    kind, terms, waiting = type(node), list[exp.Expr](), [node]
    while waiting:
        each = waiting.pop()
        if type(each) is kind:
            waiting += [each.args["expression"], each.this]
        else:
            terms.append(each)
    if len(terms) < LONG_CHAIN:
        return node
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        rest = terms[-1:] if len(terms) % 2 else []
        terms = [exp.Paren(this=kind(this=a, expression=b)) for a, b in pairs] + rest
    return terms[0]


def _is_in_default(node: exp.Expr) -> bool:
    """Is it in the one schema that there is?"""
    names = [part.name.lower() for key in ("catalog", "db") if (part := node.args.get(key))]
    return names in (["default"], ["spark_catalog", "default"])


def _count_of_several(node: exp.Expr) -> exp.Expr:
    """count(a, b) counts the rows in which neither is NULL."""
    values = [node.this, *node.expressions]
    missing = exp.or_(*(exp.Is(this=each.copy(), expression=exp.Null()) for each in values))
    return exp.Count(this=exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=ONE.copy()))


def _average_of_pairs(node: exp.Expr) -> exp.Expr:
    """regr_avgx(y, x): of the second where the first is there, too; regr_avgy of the first."""
    pair = [node.this, node.expression]
    value, other = reversed(pair) if isinstance(node, exp.RegrAvgx) else pair
    there = exp.Is(this=other, expression=exp.Null()).not_()
    return exp.Avg(this=exp.Case(ifs=[exp.If(this=there, true=value)]))


def _without_partitions(node: exp.Select) -> exp.Select:
    """SORT BY and CLUSTER BY order each partition, of which there is one here."""
    for key in ("sort", "cluster"):
        given = node.args.get(key)
        if given is not None and all(each.this is not None for each in given.expressions):
            node.set(key, None)
            node.set("order", exp.Order(expressions=[_ordered(each) for each in given.expressions]))
    node.set("distribute", None)
    return node


def _ordered(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Ordered) else exp.Ordered(this=node, nulls_first=True)


def by_strength(node: exp.Expr) -> exp.Expr:
    """Operators on bits: the strongest first, as in Spark; sqlglot goes from left to right."""
    terms, operators = [node], list[type[exp.Expr]]()
    while type(terms[0]) in STRENGTH:
        first = terms[0]
        operators.insert(0, type(first))
        terms[:1] = [first.this, first.expression]
    if len(set(operators)) < 2:
        return node
    for strength in sorted(set(STRENGTH.values()), reverse=True):
        place = 0
        while place < len(operators):
            if STRENGTH[operators[place]] == strength:
                made = operators.pop(place)(this=terms[place], expression=terms[place + 1])
                terms[place : place + 2] = [made]
            else:
                place += 1
    return terms[0]


def spelled_windows(node: exp.Select) -> exp.Select:
    """A query with WINDOW: where a window is named it stands instead. A name that cannot be one
    stays, and is refused."""
    names = [each.this.name.lower() for each in node.args["windows"]]
    named = {
        name: each
        for name, each in zip(names, node.args["windows"], strict=True)
        if names.count(name) == 1
    }
    for each in windows_of(node):
        _spell_out(each, named, ())
    node.set("windows", None)
    return node


def _spell_out(window: exp.Expr, named: dict[str, exp.Expr], around: tuple[str, ...]) -> None:
    alias = window.args.get("alias")
    name = None if alias is None else alias.name.lower()
    base = None if name is None or name in around else named.get(name)
    if name is None or base is None:
        return
    _spell_out(base, named, (*around, name))
    given = {key: base.args.get(key) for key in ("partition_by", "order", "spec")}
    if base.args.get("alias") or any(each and window.args.get(key) for key, each in given.items()):
        return
    window.set("alias", None)
    for key, value in given.items():
        if value:
            copied = [e.copy() for e in value] if isinstance(value, list) else value.copy()
            window.set(key, copied)


def windows_of(node: exp.Expr) -> list[exp.Window]:
    """The windows of a query or an expression, not those of the queries in it."""
    own = node.walk(prune=lambda each: isinstance(each, exp.Query) and each is not node)
    return [each for each in own if isinstance(each, exp.Window)]


def without(node: exp.Expr) -> exp.Expr:
    """What a node stands around."""
    inside = node.this
    assert isinstance(inside, exp.Expr)
    return inside


def _is_over(node: exp.Expr) -> bool:
    """Is it the function of a window?"""
    around = node.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        around = around.parent
    return isinstance(around, exp.Window)


def _is_of_booleans(call: exp.Expr, value: exp.Expr) -> bool:
    """An aggregate of conditions, which sqlglot does not know; of a query it is none."""
    return call.name.lower() in ("every", "some") and not isinstance(value, exp.Query)


def _has_ties(node: exp.Expr) -> bool:
    options = node.args.get("limit_options")
    return options is not None and bool(options.args.get("with_ties") or options.args["percent"])


def _between_either(node: exp.Expr) -> exp.Expr:
    low, high = node.args["low"], node.args["high"]
    ways = ((low, high), (high, low))
    return exp.Paren(
        this=exp.or_(
            *(exp.Between(this=node.this.copy(), low=a.copy(), high=b.copy()) for a, b in ways)
        )
    )


def _are_patterns(node: exp.Expr) -> bool:
    return isinstance(node, exp.Any | exp.All) and _are_listed(node.this)


def _are_listed(node: exp.Expr) -> bool:
    return isinstance(node, exp.Tuple) or (
        isinstance(node, exp.Paren) and not isinstance(node.this, exp.Query)
    )


def _likes(node: exp.Expr) -> exp.Expr:
    """LIKE ANY and LIKE ALL of several patterns; NOT LIKE ANY if it is not like one of them."""
    listed = node.expression.this
    patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed.this]
    likes: list[exp.Expr] = [
        type(node)(this=node.this.copy(), expression=each.copy()) for each in patterns
    ]
    if node.args.get("negate"):
        likes = [exp.Not(this=each) for each in likes]
    together = exp.or_ if isinstance(node.expression, exp.Any) else exp.and_
    return exp.Paren(this=together(*likes))


def _rows_ordered(node: exp.Expr) -> exp.Expr:
    """(a, b) < (c, d) is a < c OR (a = c AND b < d)."""
    one, other = node.this.expressions, node.expression.expressions
    if len(one) != len(other) or not one:
        return node
    strict = exp.LT if isinstance(node, exp.LT | exp.LTE) else exp.GT
    last = type(node)(this=one[-1].copy(), expression=other[-1].copy())
    for left, right in zip(reversed(one[:-1]), reversed(other[:-1]), strict=True):
        before = strict(this=left.copy(), expression=right.copy())
        equal = exp.EQ(this=left.copy(), expression=right.copy())
        last = exp.or_(before, exp.and_(equal, last))
    return exp.Paren(this=last)


def _quantified(call: exp.Expr) -> exp.Expr:
    """ALL and SOME of a query that begins with a parenthesis, which sqlglot takes for functions."""
    kind = {"ALL": exp.All, "ANY": exp.Any, "SOME": exp.Any}.get(call.name.upper())
    match call.expressions:
        case [exp.Query() as query] if kind is not None:
            return kind(this=exp.Subquery(this=query))
    return call


def _subquery(node: exp.Expr) -> exp.Subquery:
    return exp.Subquery(this=node.this.unnest())


def _are_rows(nodes: list[exp.Expr]) -> bool:
    return bool(nodes) and all(isinstance(each, exp.Tuple) for each in nodes)


def _row_of(query: exp.Expr, width: int) -> exp.Expr:
    """The only row of a query, each of its columns as a query that stands for a value."""
    names = [f"column {place + 1}" for place in range(width)]
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    source = exp.Subquery(this=query.unnest().copy())
    source.set("alias", exp.TableAlias(this=exp.to_identifier("row"), columns=columns))
    parts = (exp.select(exp.column(each.copy())).from_(source.copy()) for each in columns)
    return exp.Tuple(expressions=[exp.Subquery(this=each) for each in parts])


def _rows_equal(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """(a, b) = (c, d) is a = c AND b = d; of different lengths they stay, and are refused."""
    if len(one.expressions) != len(other.expressions):
        return exp.EQ(this=one.copy(), expression=other.copy())
    pairs = zip(one.expressions, other.expressions, strict=True)
    parts = (exp.EQ(this=left.copy(), expression=right.copy()) for left, right in pairs)
    return exp.Paren(this=exp.and_(*parts))
