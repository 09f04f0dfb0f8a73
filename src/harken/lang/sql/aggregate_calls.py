"""The many spellings of aggregates of a whole group, as one call: first the values, then constants,
then the order.

string_agg(x, ', ' ORDER BY y DESC)               listagg(x, ', ', y DESC)
median(x)                                         percentile(x, 0.5, false)
percentile_cont(0.9) WITHIN GROUP (ORDER BY x)    percentile(x, 0.9, false)
"""

from __future__ import annotations

from sqlglot import exp

from harken.lang.sql.expression_text import as_written

Fold = exp.AnonymousAggFunc

ONE_VALUE: dict[type[exp.Expr], str] = {
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}
TWO_VALUES: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
}
WRITTEN: dict[type[exp.Expr], str] = {
    exp.GroupConcat: "string_agg",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.Quantile: "percentile",
    exp.ApproxQuantile: "approx_percentile",
}
"""Those that sqlglot has other names for than Spark."""
SAME = {"std": "stddev_samp", "try_sum": "try_sum"}
HALF = exp.Literal.number("0.5")


def spelled(node: exp.Expr) -> exp.Expr | None:
    """The one call that an aggregate of a whole group becomes; None if it is another expression."""
    call = _spelled(node)
    if call is None:
        return None
    call.meta["written"] = as_written(node).lower()
    return _said(call, node)


def _spelled(node: exp.Expr) -> exp.Expr | None:
    kind = type(node)
    match node:
        case _ if kind in ONE_VALUE and not _more(node, "this"):
            return _call(ONE_VALUE[kind], node.this)
        case _ if kind in TWO_VALUES and node.this and not _more(node, "this", "expression"):
            return _call(TWO_VALUES[kind], node.this, node.expression)
        case exp.Anonymous(expressions=[value]) if node.name.lower() in SAME:
            return _call(SAME[node.name.lower()], value)
        case exp.Median() if not _more(node, "this"):
            return _call("percentile", node.this, HALF.copy(), exp.false())
        case exp.Quantile() if node.args.get("quantile") is None:
            return None
        case exp.ApproxQuantile() if not _more(node, "this", "quantile", "accuracy"):
            return _call("approx_percentile", node.this, node.args["quantile"], exp.false())
        case exp.Quantile() if kind is exp.Quantile and not _more(node, "this", "quantile"):
            return _call("percentile", node.this, node.args["quantile"], exp.false())
        case exp.Mode() if node.this is not None and _is_plain_mode(node):
            return _call("mode", node.this, exp.false())
        case exp.GroupConcat() if not _more(node, "this", "separator"):
            return _joined(node)
        case exp.WithinGroup():
            return _within(node)
    return None


def _more(node: exp.Expr, *known: str) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _is_plain_mode(node: exp.Expr) -> bool:
    """mode(x, true) has the least of the most frequent values, as mode(x) does here anyway."""
    least = node.args.get("deterministic")
    return least is None or isinstance(least, exp.Boolean)


def _call(name: str, *given: exp.Expr | None) -> exp.Expr:
    return Fold(this=name, expressions=[each for each in given if each is not None])


def _said(call: exp.Expr, node: exp.Expr) -> exp.Expr:
    """A call that keeps its original name for messages."""
    named = node.this if isinstance(node, exp.WithinGroup) else node
    if isinstance(named, Fold | exp.Anonymous):
        call.meta["said"] = called(named)
    elif isinstance(named, exp.Func):
        call.meta["said"] = WRITTEN.get(type(named)) or named.sql_name().lower()
    return call


def written(node: exp.Expr) -> str | None:
    """How an aggregate was written, before it became one call."""
    return node.meta.get("written") if isinstance(node, Fold) else None


def called(node: exp.Expr) -> str:
    """The name of an aggregate in the text."""
    return str(node.meta.get("said") or node.name)


def _joined(node: exp.Expr) -> exp.Expr:
    value, keys = node.this, []
    if isinstance(value, exp.Order):
        value, keys = value.this, value.expressions
    return _call("listagg", value, node.args.get("separator") or exp.Literal.string(""), *keys)


def _within(node: exp.Expr) -> exp.Expr | None:
    keys = node.expression.expressions
    match node.this:
        case exp.PercentileCont() | exp.PercentileDisc() | exp.Mode() if len(keys) == 1:
            (key,) = keys
            given = [] if isinstance(node.this, exp.Mode) else [node.this.this]
            named = {exp.PercentileCont: "percentile", exp.PercentileDisc: "percentile_disc"}
            descending = exp.Boolean(this=bool(key.args.get("desc")))
            return _call(named.get(type(node.this), "mode"), key.this, *given, descending)
        case exp.AnonymousAggFunc() if node.this.name == "listagg":
            return _call("listagg", *node.this.expressions, *keys)
    return None
