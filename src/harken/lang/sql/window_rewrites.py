"""Window functions that are defined by other window functions: each becomes an expression.

lag(x, k, d)      CASE WHEN row_number() > k THEN lag(x, k) ELSE d END
ntile(n)          of count(*) rows the first count(*) % n tiles have one more than the others
percent_rank()    (rank() - 1) / (count(*) - 1)
cume_dist()       the rows up to this one and its peers / all rows
"""

from __future__ import annotations

from sqlglot import exp

from harken.lang.sql.parser import fragment


def rewrite_window(node: exp.Window) -> exp.Expr | None:
    """The expression that replaces a window function; None if it is translated directly."""
    match node.this:
        case exp.Lag() | exp.Lead() if node.this.args.get("default") is not None:
            return _or_default(node)
        case exp.IgnoreNulls(this=exp.Lag() | exp.Lead() as function) if function.args.get(
            "default"
        ):
            plain = node.copy()
            default = plain.this.this.args.pop("default")
            return exp.Coalesce(this=plain, expressions=[exp.Paren(this=default)])
        case exp.Ntile():
            tiles = node.this.this
            if isinstance(tiles, exp.Literal) and tiles.name.isdigit() and int(tiles.name) > 0:
                return _filled(NTILE, node, tiles=tiles)
        case exp.PercentRank():
            return _filled(PERCENT_RANK, node)
        case exp.CumeDist():
            return _filled("upto / NULLIF(whole, 0)", node)
    return None


NTILE = (
    "CASE WHEN place <= whole % tiles * (whole DIV tiles + 1) "
    "THEN (place - 1) DIV (whole DIV tiles + 1) + 1 "
    "ELSE whole % tiles + 1 + (place - 1 - whole % tiles * (whole DIV tiles + 1)) "
    "DIV NULLIF(whole DIV tiles, 0) END"
)
PERCENT_RANK = "COALESCE((ranked - 1) / NULLIF(whole - 1, 0), 0e0)"


def _or_default(node: exp.Window) -> exp.Expr:
    plain = node.copy()
    default, distance = plain.this.args.pop("default"), plain.this.args.get("offset")
    distance = exp.Literal.number(1) if distance is None else distance
    there = "place - k BETWEEN 1 AND whole"
    if isinstance(node.this, exp.Lead):
        there = "place + k BETWEEN 1 AND whole"
    return _filled(
        f"CASE WHEN {there} THEN found ELSE other END",
        node,
        k=exp.Paren(this=distance.copy()),
        found=plain,
        other=exp.Paren(this=default),
    )


def _filled(text: str, node: exp.Window, **given: exp.Expr) -> exp.Expr:
    """A template with its names replaced by the given expressions, or by windows like this one."""
    parts = {
        "place": _like(node, exp.RowNumber()),
        "ranked": _like(node, exp.Rank()),
        "whole": _like(node, exp.Count(this=exp.Star()), order=False),
        "upto": _like(node, exp.Count(this=exp.Star())),
        **given,
    }

    def replaced(each: exp.Expr) -> exp.Expr:
        return parts[each.name].copy() if isinstance(each, exp.Column) else each

    return exp.Paren(this=fragment(text).transform(replaced))


def _like(node: exp.Window, function: exp.Expr, *, order: bool = True) -> exp.Window:
    made = node.copy()
    made.set("this", function)
    made.set("spec", None)
    if not order:
        made.set("order", None)
    return made
