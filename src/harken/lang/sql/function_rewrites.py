"""Functions that are defined by other functions: each becomes an expression.

right(x, n)            the substring from the n-th character before the end
concat_ws(s, x, y)     each text that is there behind a separator, without the first separator
datediff(x, y)         the days between two dates

The meaning is Spark's; where an argument is NULL the expression is NULL as the function is.
"""

from __future__ import annotations

from itertools import count
from typing import ClassVar

from sqlglot import exp

from harken.errors import ValueFault
from harken.lang.sql.intervals import IN_DAYS, IN_MONTHS, IN_SECONDS
from harken.lang.sql.parser import fragment
from harken.lang.sql.whole_numbers import whole_number
from harken.values.pattern_size import shown

_DAY = "CAST(x AS DATE)"
_MONTH_START = f"({_DAY} - (day({_DAY}) - 1))"
_WEEKDAY = f"({_DAY} - DATE '0001-01-01' + 1) % 7 + 1"
_YEAR_START = f"add_months({_MONTH_START}, 1 - month({_DAY}))"
_QUARTER = "(month(x) + 2) DIV 3"
_MOMENT = "CAST(x AS TIMESTAMP)"
_SECONDS = f"CAST({_MOMENT} - floor_timestamp({_MOMENT}, 60000000) AS DECIMAL(8, 6))"
_PLAIN_FORMAT = "'yyyy-MM-dd HH:mm:ss'"
_YEARDAY = f"{_DAY} - {_YEAR_START} + 1"
_TOWARDS_ZERO = "CASE WHEN x < 0 THEN ceil(x{0}) ELSE floor(x{0}) END"

REWRITES: dict[type[exp.Expr], tuple[tuple[str, ...], str]] = {
    exp.Left: (("this", "expression"), "substring(x, 1, y)"),
    exp.Right: (
        ("this", "expression"),
        "CASE WHEN x IS NULL THEN NULL WHEN y <= 0 THEN '' "
        "ELSE substring(x, -CAST(y AS BIGINT)) END",
    ),
    exp.StartsWith: (("this", "expression"), "substring(x, 1, length(y)) = y"),
    exp.EndsWith: (("this", "expression"), "substring(x, length(x) - length(y) + 1) = y"),
    exp.ILike: (("this", "expression"), "lower(x) LIKE lower(y)"),
    exp.Sign: (("this",), "CASE WHEN x > 0 THEN 1e0 WHEN x < 0 THEN -1e0 WHEN x = 0 THEN 0e0 END"),
    exp.Nvl2: (("this", "true", "false"), "CASE WHEN x IS NOT NULL THEN y ELSE z END"),
    exp.DateDiff: (("this", "expression"), "CAST(x AS DATE) - CAST(y AS DATE)"),
    exp.TsOrDsAdd: (("this", "expression"), "CAST(x AS DATE) + y"),
    exp.Quarter: (("this",), _QUARTER),
    exp.Dayname: (("this",), "date_format(CAST(x AS TIMESTAMP), 'E')"),
    exp.Monthname: (("this",), "date_format(CAST(x AS TIMESTAMP), 'MMM')"),
    exp.DayOfMonth: (("this",), "day(x)"),
    exp.DayOfWeek: (("this",), _WEEKDAY),
    exp.DayOfYear: (("this",), _YEARDAY),
    exp.BitLength: (("this",), "8 * octet_length(x)"),
    exp.Negative: (("this",), "-x"),
    exp.Space: (("this",), "repeat(' ', x)"),
    exp.UnixDate: (("this",), "CAST(x AS DATE) - DATE '1970-01-01'"),
    exp.DateFromUnixDate: (("this",), "DATE '1970-01-01' + x"),
    exp.EqualNull: (("this", "expression"), "x <=> y"),
    exp.IsNan: (("this",), "false"),
    exp.Nanvl: (("this", "expression"), "CAST(x AS DOUBLE)"),
    exp.LastDay: (("this",), f"add_months({_MONTH_START}, 1) - 1"),
}
"""The template for each function, with x, y and z for its arguments."""

NAMED: dict[tuple[str, int], str] = {
    **{(name, 1): _TOWARDS_ZERO.format("") for name in ("trunc", "truncate")},
    ("isnull", 1): "x IS NULL",
    ("isnotnull", 1): "x IS NOT NULL",
    ("nullifzero", 1): "nullif(x, 0)",
    ("zeroifnull", 1): "coalesce(x, 0)",
    ("positive", 1): "x",
    ("sgn", 1): "sign(x)",
    ("pmod", 2): "CASE WHEN x % y < 0 THEN (x % y + y) % y ELSE x % y END",
    ("btrim", 1): "trim(x)",
    ("btrim", 2): "trim(BOTH y FROM x)",
    ("weekday", 1): f"({_WEEKDAY} + 5) % 7",
    ("to_date", 1): "CAST(x AS DATE)",
    ("to_date", 2): "CAST(to_timestamp(x, y) AS DATE)",
    ("to_timestamp", 1): _MOMENT,
    ("try_to_timestamp", 1): "TRY_CAST(x AS TIMESTAMP)",
    ("try_to_date", 1): "TRY_CAST(x AS DATE)",
    ("try_to_date", 2): "CAST(try_to_timestamp(x, y) AS DATE)",
    ("try_mod", 2): "x % nullif(y, 0)",
    ("date_sub", 2): f"{_DAY} + y * -1",
    ("sec", 1): "1e0 / cos(x)",
    ("csc", 1): "1e0 / sin(x)",
    **{(name, 0): "'default'" for name in ("current_database", "current_schema")},
    ("unix_timestamp", 0): "unix_seconds(now())",
    **{
        (name, n): f"unix_micros(to_timestamp(x, {pattern})) DIV 1000000"  # towards zero
        for name in ("unix_timestamp", "to_unix_timestamp")
        for n, pattern in ((1, _PLAIN_FORMAT), (2, "y"))
    },
    ("unix_seconds", 1): "CAST(CAST(x AS TIMESTAMP) AS BIGINT)",
    ("unix_millis", 1): "unix_micros(floor_timestamp(x, 1000)) DIV 1000",
    ("from_unixtime", 1): f"date_format(CAST(CAST(x AS BIGINT) AS TIMESTAMP), {_PLAIN_FORMAT})",
    ("from_unixtime", 2): "date_format(CAST(CAST(x AS BIGINT) AS TIMESTAMP), y)",
    ("timestamp_millis", 1): "timestamp_micros(x * 1000)",
    **{(name, 1): f"CAST(x AS {name})" for name in ("bigint", "smallint", "tinyint", "decimal")},
}
"""Those that sqlglot has no node for, by their name and how many arguments they take."""

EXTRACTED = {
    **dict.fromkeys(("quarter", "qtr"), _QUARTER),
    **dict.fromkeys(("dow", "dayofweek"), _WEEKDAY),
    **dict.fromkeys(("dow_iso", "dayofweek_iso"), f"({_WEEKDAY} + 5) % 7 + 1"),
    "doy": _YEARDAY,
    **dict.fromkeys(("week", "weeks", "w"), "iso_week(x)"),
    "yearofweek": "iso_year(x)",
    **dict.fromkeys(("years", "yr", "yrs", "y"), "year(x)"),
    **dict.fromkeys(("months", "mon", "mons"), "month(x)"),
    **dict.fromkeys(("days", "d"), "day(x)"),
    **dict.fromkeys(("hours", "hr", "hrs", "h"), "hour(x)"),
    **dict.fromkeys(("minutes", "min", "mins", "m"), "minute(x)"),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), _SECONDS),
}
"""What EXTRACT takes out of a date, beside its year, month, day, hour and minute."""

TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), _YEAR_START),
    "QUARTER": f"add_months({_MONTH_START}, -((month({_DAY}) - 1) % 3))",
    **dict.fromkeys(("MONTH", "MON", "MM"), _MONTH_START),
    "WEEK": f"{_DAY} - ({_WEEKDAY} + 5) % 7",
}


MICROSECONDS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def rewrite_call(node: exp.Expr) -> exp.Expr | None:
    """The expression that replaces a call; None if the call is translated directly."""
    match node:
        case exp.ConcatWs():
            return _joined(node)
        case exp.Extract() if node.this.name.lower() in EXTRACTED:
            return fill_template(EXTRACTED[node.this.name.lower()], node.expression)
        case exp.Anonymous(expressions=[_, exp.Literal(is_string=False) | exp.Neg()]) if (
            node.name.lower() in ("trunc", "truncate")
        ):
            return fill_template(_TOWARDS_ZERO.format(", y"), *node.expressions)
        case exp.Anonymous(expressions=[value, unit]) if node.name.lower() == "trunc":
            return _truncated(value, unit, None)
        case exp.Anonymous(expressions=[unit, value]) if node.name.lower() == "date_trunc":
            return _truncated(value, unit, "CAST(x AS TIMESTAMP)")
        case exp.Escape():
            return _escaped(node)
        case exp.TimestampDiff() | exp.DateDiff() if node.args.get("unit") is not None:
            return _between(node)
        case exp.Anonymous(expressions=[exp.Literal(is_string=True) as part, value]) if (
            node.name.lower() in ("date_part", "datepart")
        ):
            return exp.Extract(this=exp.var(part.this), expression=value.copy())
        case exp.Anonymous() if (node.name.lower(), len(node.expressions)) in NAMED:
            return fill_template(NAMED[node.name.lower(), len(node.expressions)], *node.expressions)
        case exp.StrPosition() if (place := node.args.get("position")) is not None:
            given = (node.args["substr"], node.this, place)
            return fill_template("CASE WHEN z IS NULL THEN 0 ELSE locate_from(x, y, z) END", *given)
        case exp.Levenshtein() if (most := node.args.get("ins_cost")) is not None:
            if node.args.get("del_cost") is not None:
                return None
            far = "CASE WHEN levenshtein(x, y) > z THEN -1 ELSE levenshtein(x, y) + 0 * z END"
            return fill_template(far, node.this, node.expression, most)
        case exp.RegexpReplace() if node.args.get("position") is not None:
            return _replaced_from(node)
        case exp.Anonymous(expressions=[place, *values]) if node.name.lower() == "elt" and values:
            return _listed(place, values)
        case exp.DecodeCase(expressions=[value, first, *rest]) if rest:
            return _decoded(value, [first, *rest])
    if type(node) not in REWRITES:
        return None
    keys, text = REWRITES[type(node)]
    unit = node.args.get("unit")
    known = {*keys, "unit"} if unit is None or unit.name.upper() == "DAY" else keys
    if any(value and key not in known for key, value in node.args.items()):
        return None
    if any(node.args.get(key) is None for key in keys):
        return None
    return fill_template(text, *(node.args[key] for key in keys))


class Once(exp.Expression):
    """An expression that stands in several places and is translated once: all have its key."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "key": True}


_SIMPLE = (exp.Literal, exp.Column, exp.Null, exp.Boolean, exp.Neg, Once)
_once = count()


def _is_long(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Expression) and not isinstance(node.unnest(), _SIMPLE)


def fill_template(text: str, *given: exp.Expr) -> exp.Expr:
    """A template with x, y and z replaced by the arguments."""
    shared = [Once(this=each.copy(), key=next(_once)) if _is_long(each) else each for each in given]
    parts = dict(zip("xyz", shared, strict=False))

    def replaced(each: exp.Expr) -> exp.Expr:
        named = isinstance(each, exp.Column) and each.name in parts
        return exp.Paren(this=parts[each.name].copy()) if named else each

    return exp.Paren(this=fragment(text).transform(replaced))


def _joined(node: exp.Expr) -> exp.Expr:
    separator, *texts = node.expressions
    parts = [fill_template("coalesce(x || y, '')", separator, each) for each in texts]
    whole = exp.Concat(expressions=[exp.Literal.string(""), *parts])
    return fill_template("substring(x, length(y) + 1)", whole, separator)


def _decoded(value: exp.Expr, given: list[exp.Expr]) -> exp.Expr:
    """decode(x, a, b, c, d, e): b where x is a, d where it is c, else e; NULL is NULL."""
    pairs = list(zip(given[::2], given[1::2], strict=False))
    ifs = [
        exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=a.copy()), true=b.copy())
        for a, b in pairs
    ]
    return exp.Case(ifs=ifs, default=given[-1].copy() if len(given) % 2 else None)


def _listed(place: exp.Expr, values: list[exp.Expr]) -> exp.Expr:
    """elt(n, a, b): the n-th of several texts; an n out of range is an error."""
    checked = fill_template(f"elt_place(x, {len(values)})", place)
    ifs = [
        exp.If(this=exp.Literal.number(number), true=exp.cast(value.copy(), exp.DType.TEXT))
        for number, value in enumerate(values, 1)
    ]
    return exp.Case(this=Once(this=checked, key=next(_once)), ifs=ifs)


def _replaced_from(node: exp.Expr) -> exp.Expr | None:
    """regexp_replace from a place on, which is written out."""
    place = whole_number(node.args["position"])
    if place is None or place < 1:
        return None
    plain = node.copy()
    plain.set("position", None)
    if place == 1:
        return plain
    plain.set("this", fill_template(f"substring(x, {place})", node.this))
    text = f"CASE WHEN length(x) < {place} THEN x ELSE substring(x, 1, {place - 1}) || y END"
    return fill_template(text, node.this, plain)


def _truncated(value: exp.Expr, given: exp.Expr, moment: str | None) -> exp.Expr | None:
    """trunc gives a date, and date_trunc a timestamp. A unit that there is not is refused, where
    Spark gives NULL."""
    unit = given.name.upper() if isinstance(given, exp.Literal) and given.is_string else ""
    if isinstance(given, exp.Null):
        return fill_template(f"CAST(NULL AS {'TIMESTAMP' if moment else 'DATE'})")
    if moment and unit in MICROSECONDS:
        return fill_template(f"floor_timestamp({moment}, {MICROSECONDS[unit]})", value)
    text = TRUNCATED.get(unit, _DAY if moment and unit in ("DAY", "DD") else None)
    if text is None:
        return None
    date = fill_template(text, value)
    return fill_template(moment, date) if moment else date


def _between(node: exp.Expr) -> exp.Expr | None:
    """The whole units from the second moment to the first: datediff(MONTH, y, x)."""
    unit = node.args["unit"].name.upper()
    given = [
        fill_template(
            "CAST(x AS TIMESTAMP)", each.this if isinstance(each, exp.TsOrDsToDate) else each
        )
        for each in (node.this, node.expression)
    ]
    if unit in IN_MONTHS:
        return fill_template(f"whole_months(x, y) DIV {IN_MONTHS[unit]}", *given)
    seconds = {name: 86_400 * days for name, days in IN_DAYS.items()} | IN_SECONDS
    if unit not in seconds:
        return None
    return fill_template(f"CAST((x - y) / CAST({seconds[unit]} AS DOUBLE) AS BIGINT)", *given)


def _escaped(node: exp.Expr) -> exp.Expr | None:
    """LIKE with a character of its own before those that are meant as they are: the pattern is
    written with a backslash, which needs no ESCAPE."""
    like, escape = node.this, node.expression
    if isinstance(like, exp.Not):
        found = _escaped(exp.Escape(this=like.this, expression=escape))
        return None if found is None else exp.Not(this=found)
    literals = (like.expression, escape)
    if not all(isinstance(each, exp.Literal) and each.is_string for each in literals):
        return None
    if len(escape.this) != 1:
        raise ValueFault(
            f"ESCAPE takes one character, and '{shown(escape.this)}' has {len(escape.this)}",
            code="bad-value",
            hint="as in LIKE '10!%' ESCAPE '!'",
        )
    pattern = _with_backslashes(like.expression.this, escape.this)
    if pattern is None:
        return None
    kind = exp.ILike if isinstance(like, exp.ILike) else exp.Like
    return kind(this=like.this.copy(), expression=exp.Literal.string(pattern))


def _with_backslashes(pattern: str, escape: str) -> str | None:
    if len(escape) != 1:
        return None
    found, characters = [], iter(pattern)
    for each in characters:
        if each == escape:
            each = next(characters, "")
            if each not in ("%", "_", escape):
                return None
            found.append("\\" + each if each in "%_\\" else each)
        else:
            found.append("\\\\" if each == "\\" else each)
    return "".join(found)
