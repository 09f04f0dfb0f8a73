"""The parts of sqlglot's syntax that Harken supports. Everything else is rejected, never ignored.

sqlglot parses the SQL of many systems. For each class of node that we translate, a table lists the
arguments that the translation reads. An argument that is set but not listed would be lost silently.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from harken.lang.sql.expression_text import as_written

_QUERY = "with_ with limit offset order"
_CHANGE = "with_ with"
PARTS: dict[type[exp.Expr], str] = {
    exp.Select: f"{_QUERY} kind expressions from_ from joins where group having distinct laterals"
    " qualify",
    exp.Union: f"{_QUERY} this expression distinct by_name",
    exp.Intersect: f"{_QUERY} this expression distinct",
    exp.Except: f"{_QUERY} this expression distinct",
    exp.Subquery: f"{_QUERY} this alias joins",
    exp.Values: "expressions alias order limit offset joins",
    exp.Table: "this alias joins db catalog",
    exp.TableAlias: "this columns",
    exp.Join: "this on using side kind method global_",
    exp.Lateral: "this alias view",
    exp.Distinct: "expressions on",
    exp.Star: "except_ replace",
    exp.Limit: "this expression",
    exp.Offset: "this expression",
    exp.Group: "expressions all rollup cube grouping_sets",
    exp.Ordered: "this desc nulls_first",
    exp.Order: "expressions",
    exp.With: "expressions recursive",
    exp.CTE: "this alias materialized",  # it changes no row
    exp.Window: "this partition_by order spec over",
    exp.RowNumber: "",
    exp.Rank: "",
    exp.DenseRank: "",
    exp.PercentRank: "",
    exp.CumeDist: "",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.Insert: f"{_CHANGE} this expression overwrite default conflict returning by_name",
    exp.OnConflict: "expressions action conflict_keys where",
    exp.Returning: "expressions",
    exp.Update: f"{_CHANGE} this expressions where from_ returning",
    exp.Delete: f"{_CHANGE} this where using returning",
    exp.Merge: "this using on whens",
    exp.When: "matched source condition then",
    exp.TruncateTable: "expressions",
    exp.Create: "this kind expression exists replace properties",
    exp.Drop: "this tables kind exists cascade materialized restrict",
    exp.Count: "this big_int",
    exp.Min: "this",
    exp.Max: "this",
    exp.Sum: "this",
    exp.Avg: "this",
    exp.Cast: "this to",
    exp.TryCast: "this to safe",  # what sqlglot calls CAST, too, in the dialect of Spark
    exp.Like: "this expression negate",
    exp.ILike: "this expression negate",
    exp.Between: "this low high symmetric negate",
    exp.Trim: "this expression position",
    exp.Floor: "this decimals",
    exp.Ceil: "this decimals",
    exp.Round: "this decimals",
    exp.Length: "this",
    exp.AddMonths: "this expression",
    exp.Contains: "this expression",
    exp.Substring: "this start length",
    exp.StrPosition: "this substr position",
    exp.Overlay: "this expression from_ for_",
    exp.RegexpCount: "this expression",
    exp.RegexpInstr: "this expression",
    exp.RegexpSubstr: "this expression",
    exp.MonthsBetween: "this expression",
    exp.TsOrDsToDate: "this safe",
    exp.Replace: "this expression replacement",
    exp.RegexpLike: "this expression negate",
    exp.RegexpReplace: "this expression replacement position",
    exp.RegexpExtract: "this expression group null_if_pos_overflow",
    exp.Pad: "this expression fill_pattern is_left",
    exp.Initcap: "this expression",
    exp.Repeat: "this times",
    exp.Chr: "expressions",
    exp.SplitPart: "this delimiter part_index",
    exp.Ln: "this",
    exp.Log: "this expression",
    exp.BitwiseAnd: "this expression",
    exp.BitwiseOr: "this expression",
    exp.BitwiseXor: "this expression",
    exp.BitwiseLeftShift: "this expression",
    exp.BitwiseRightShift: "this expression",
    exp.Exists: "this",
    exp.CurrentDate: "",
    exp.CurrentTimestamp: "",
    exp.In: "this expressions query negate",
    exp.Transaction: "modes",
    exp.Commit: "",
    exp.Rollback: "",
}
PART_NAMES: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Rollback, "savepoint"): "a savepoint",
    (exp.Delete, "tables"): "DELETE that does not say FROM",
    (exp.Create, "unique"): "a UNIQUE INDEX",
    (exp.Select, "locks"): "FOR UPDATE or FOR SHARE",
    (exp.Table, "pivots"): "PIVOT",
    (exp.Table, "sample"): "TABLESAMPLE",
    (exp.Max, "expressions"): "max of several values, which greatest is,",
    (exp.Min, "expressions"): "min of several values, which least is,",
    (exp.Window, "alias"): "a window of this name, or one that says again what that one says,",
    (exp.RowNumber, "this"): "row_number of a value",
    (exp.Rank, "expressions"): "rank of a value",
    (exp.DenseRank, "expressions"): "dense_rank of a value",
    (exp.PercentRank, "expressions"): "percent_rank of a value",
    (exp.CumeDist, "expressions"): "cume_dist of a value",
}
"""Parts by the words that stand for them in a statement."""
MODES = ("ISOLATION LEVEL SERIALIZABLE", "READ WRITE")
"""The modes that BEGIN may state: those that hold anyway."""
_ALLOWED = {kind: frozenset(names.split()) for kind, names in PARTS.items()}
_REFUSED = (exp.Pivot, exp.TableSample, exp.Into, exp.Lock, exp.Version)
ORDERED_FUNCTIONS = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
    *(exp.Lag, exp.Lead, exp.NthValue),
)
"""Window functions that need an order."""


def unknown_parts(node: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """The nodes with an unsupported part, and a name for that part."""
    for each in node.walk():
        if isinstance(each, _REFUSED):
            yield each, type(each).__name__.upper()
        allowed = _ALLOWED.get(type(each))
        if allowed is not None:
            for name, value in each.args.items():
                if name not in allowed and value not in (None, False, [], ""):
                    yield (
                        each,
                        PART_NAMES.get(
                            (type(each), name), name.strip("_").replace("_", " ").upper()
                        ),
                    )
        if isinstance(each, exp.Star):
            whole = each.parent if isinstance(each.parent, exp.Column) else each
            if not isinstance(whole.parent, exp.Select) and _has_changes(each):  # count(* EXCEPT a)
                yield each, "EXCEPT or REPLACE behind a * that is not selected"
            if not _may_be_star(whole):
                yield each, "a * that stands for a value"
        if isinstance(each, exp.Table | exp.Column) and (each.args.get("db") or each.catalog):
            yield each, "the name of a schema, other than default,"
        if isinstance(each, exp.Column) and not isinstance(each.this, exp.Identifier | exp.Star):
            yield each, "a column that is not named"  # t.{x}
        if isinstance(each, exp.Alias) and not _may_be_named(each):
            yield each, "a name for a part of an expression"
        if isinstance(each, exp.Transaction):
            for mode in each.args.get("modes") or []:
                if mode.upper() not in MODES:
                    yield each, f"BEGIN {mode}"
        if isinstance(each, exp.Select) and not each.expressions:
            yield each, "SELECT of nothing"


def _may_be_named(alias: exp.Alias) -> bool:
    around = alias.parent
    if isinstance(alias.args.get("alias"), exp.Placeholder):  # a:b
        return False
    if isinstance(around, exp.Tuple):
        return isinstance(around.parent, exp.Values)
    return not isinstance(around, exp.Paren | exp.Anonymous | exp.Insert)


def _may_be_star(star: exp.Expr) -> bool:
    """Is it selected or returned, or in count(*) or a MERGE?"""
    around = star.parent
    if isinstance(around, exp.Distinct):
        return isinstance(around.parent, exp.Count)
    if isinstance(around, exp.Select | exp.Returning | exp.Update):
        return star.arg_key == "expressions"
    return around is None or isinstance(around, exp.Count | exp.Insert)


def _has_changes(star: exp.Expr) -> bool:
    return bool(star.args.get("except_") or star.args.get("replace"))


def unsupported_reason(node: exp.Expr) -> str:
    """Why an aggregate is not supported."""
    if isinstance(node, exp.PercentileCont | exp.PercentileDisc):
        name = node.sql_name().lower()
        return f"{name} takes an order: {name}(0.5) WITHIN GROUP (ORDER BY x)"
    if isinstance(node, ORDERED_FUNCTIONS):
        return f"{node.sql_name().lower()} is a window function: say OVER (ORDER BY ...)"
    return f"the aggregate {as_written(node)} is not supported yet"
