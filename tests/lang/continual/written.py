"""A condition of a trigger in one line, to compare with what it should be."""

from sqlglot import exp

from harken.lang.continual.syntax import (
    SHOWN,
    AnyChange,
    Condition,
    Group,
    Lasting,
    Negation,
    RowEvent,
    Signal,
    Trend,
)


def written(condition: Condition) -> str:
    match condition:
        case Group(test, _, where, by):
            said = [_sql(test)]
            said += [f"WHERE {_sql(where)}"] if where is not None else []
            said += [f"GROUP BY {', '.join(map(_sql, by))}"] if by else []
            return f"[{' '.join(said)}]"
        case Lasting(part, length, longer):
            return f"{written(part)} for {'> ' if longer else '>= '}{length.amount} {length.unit}"
        case Trend(value, rising, length):
            return f"{_sql(value)} {'up' if rising else 'down'} {length.amount} {length.unit}"
        case Negation(part):
            return f"not {written(part)}"
        case Signal(name):
            return f"signal {name}"
        case RowEvent(kinds, table, columns, where):
            what = f"{'/'.join(sorted(kinds))} {table}{list(columns) or ''}"
            return what if where is None else f"{what} WHERE {_sql(where)}"
        case AnyChange(tables, where):
            found = f"any {', '.join(tables)}"
            return found if where is None else f"{found} WHERE {_sql(where)}"
    said = f"{type(condition).__name__}({', '.join(map(written, condition.parts))})"
    within = getattr(condition, "within", None)
    return said if within is None else f"{said} in {within.amount} {within.unit}"


def _sql(node: exp.Expr) -> str:
    found: str = node.sql("spark")
    for name, shown in SHOWN.items():
        found = found.replace(f"{name.upper()}(", f"{shown}(")
    return found
