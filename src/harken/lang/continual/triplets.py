"""The events that a trigger waits for, as the triplets of the thesis (4.2.3.2).

    Stock.price(IBM) INCBYP 5 OR Stock.price(Intel) DECBYP 5

    (Stock.price, Stock.price INCBYP 5, WHERE)
    (Stock.symbol, Stock.symbol = IBM, OR)
    (Stock.price, Stock.price DECBYP 5, WHERE)
    (Stock.symbol, Stock.symbol = Intel, END)

Each is a column whose updates matter, what is tested of it, and what joins it to the next one. A
test of several columns has a triplet for each, joined by its operators. After WHERE comes what
restricts an event, and is none itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from harken.lang.continual.syntax import (
    CACHED,
    SHOWN,
    SINCE,
    All,
    Alternative,
    AnyChange,
    Condition,
    Either,
    Group,
    Lasting,
    Negation,
    Parallel,
    RowEvent,
    Signal,
    Trend,
)
from harken.lang.continual.syntax import (
    Sequence as Chain,
)

END, WHERE = "END", "WHERE"
KeyOf = Callable[[str], Sequence[str]]
"""The key columns of a table."""
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.And: "AND",
    exp.Or: "OR",
}


@dataclass(frozen=True, slots=True)
class Triplet:
    event: str
    test: str
    connector: str

    def __str__(self) -> str:
        return f"({self.event}, {self.test}, {self.connector})"


def triplets(condition: Condition, key_of: KeyOf = lambda table: ()) -> list[Triplet]:
    return _joined(_Writer(key_of).condition(condition), END)


def _joined(found: Iterable[Triplet], connector: str) -> list[Triplet]:
    """With the connector of the last."""
    made = list(found)
    if made:
        made[-1] = replace(made[-1], connector=connector)
    return made


class _Writer:
    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of

    def condition(self, condition: Condition) -> list[Triplet]:
        match condition:
            case Group(test, _, where, by):
                found = self._with_where(list(self._test(test)), where)
                if by:
                    said = f"each {', '.join(map(_column, by))}"
                    found[-1] = replace(found[-1], test=f"{found[-1].test} for {said}")
                return found
            case AnyChange(tables, where):
                rows = [Triplet(each, "CHANGES", "OR") for each in tables]
                return self._with_where(rows, where)
            case RowEvent(kinds, table, columns, where):
                verbs = " OR ".join(sorted(kinds))
                event = f"{table}.{columns[0]}" if len(columns) == 1 else table
                return self._with_where([Triplet(event, verbs, END)], where)
            case Signal(name):
                return [Triplet(f"SIGNAL {name}", "true", END)]
            case Trend(value, rising, length):
                way = "INCREASED" if rising else "DECREASED"
                said = f"{way} MONOTONICALLY FOR {length.amount} {length.unit}"
                return [Triplet(each.event, said, END) for each in self._test(value)]
            case Lasting(part, length, longer):
                found = self.condition(part)
                least = "MORE THAN" if longer else "AT LEAST"
                said = f"{found[-1].test} FOR {least} {length.amount} {length.unit}"
                return [*found[:-1], replace(found[-1], test=said)]
            case Negation(part):
                return [replace(each, test=f"NOT {each.test}") for each in self.condition(part)]
            case All(parts):
                return self._several(parts, "AND")
            case Either(parts):
                return self._several(parts, "OR")
            case Chain(parts):
                return self._several(parts, "THEN")
            case Parallel(parts):
                return self._several(parts, "ALL OF")
            case Alternative(parts):
                return self._several(parts, "ELSE")

    def _several(self, parts: Sequence[Condition], connector: str) -> list[Triplet]:
        return [each for part in parts for each in _joined(self.condition(part), connector)]

    def _with_where(self, found: list[Triplet], where: exp.Expr | None) -> list[Triplet]:
        if where is None:
            return found
        return [*_joined(found, WHERE), *self._test(where)]

    # --- tests -----------------------------------------------------------------------------

    def _test(self, node: exp.Expr) -> Iterator[Triplet]:
        node = node.unnest() if isinstance(node, exp.Paren) else node
        if isinstance(node, exp.And | exp.Or):
            yield from _joined(self._test(node.left), _SIGNS[type(node)])
            yield from self._test(node.right)
            return
        columns = list(_columns(node))
        if len(columns) == 1 or (type(node) not in _SIGNS and columns):
            first = columns[0]
            yield Triplet(_column(first), _said(node), WHERE if _keys(first) else END)
            yield from self._restrictions(first)
        elif not columns:
            tables = [each.name for each in node.find_all(exp.Table)]
            yield Triplet(", ".join(dict.fromkeys(tables)) or "true", _said(node), END)
        else:
            yield from _joined(self._test(node.this), _SIGNS[type(node)])
            yield from (replace(each, test="true") for each in self._operand(node.expression))

    def _operand(self, node: exp.Expr) -> Iterator[Triplet]:
        if list(_columns(node)):
            yield from self._test(node)

    def _restrictions(self, node: exp.Expr) -> Iterator[Triplet]:
        """The key in Stock.price(IBM)."""
        if not isinstance(node, exp.Dot):
            return
        table = node.this.name
        names = self._key_of(table) or [f"key {i}" for i, _ in enumerate(_keys(node), 1)]
        for name, value in zip(names, _keys(node), strict=False):
            event = f"{table}.{name}"
            yield Triplet(event, f"{event} = {_plain(value)}", END)


def _columns(node: exp.Expr) -> Iterator[exp.Expr]:
    """The columns of a test, as they are written; those of subqueries are no events."""
    if isinstance(node, exp.Query):
        return
    is_column = isinstance(node, exp.Column)
    is_by_key = isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous)
    if is_column or is_by_key or _is_of_object(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from _columns(child)


def _is_of_object(node: exp.Expr) -> bool:
    """qty_on_hand(item)."""
    return (
        isinstance(node, exp.Anonymous)
        and node.this not in (*CACHED, SINCE)
        and len(node.expressions) == 1
        and isinstance(node.expressions[0], exp.Column)
    )


def _keys(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expression.expressions) if isinstance(node, exp.Dot) else []


def _column(node: exp.Expr) -> str:
    match node:
        case exp.Dot(this=table, expression=call):
            return f"{table.name}.{call.name}"
        case exp.Anonymous():
            return str(node.this)
        case exp.Column(table=str() as table) if table:
            return f"{table}.{node.name}"
    return str(node.name)


def _said(node: exp.Expr) -> str:
    """A test as its author would write it."""
    if isinstance(node, exp.Column | exp.Dot) or _is_of_object(node):
        return "true"
    match node:
        case exp.Anonymous(this=name, expressions=[value, *rest]) if name in SHOWN:
            return " ".join([_plain(value), SHOWN[str(name)], *map(_plain, rest)])
        case exp.Contains(this=value, expression=part):
            return f"{_plain(value)} CONTAINS {_plain(part)}"
    if type(node) in _SIGNS:
        return f"{_plain(node.this)} {_SIGNS[type(node)]} {_plain(node.expression)}"
    return _plain(node)


def _plain(node: exp.Expr) -> str:
    if isinstance(node, exp.Column | exp.Dot) or _is_of_object(node):
        return _column(node)
    text: str = node.sql("spark")
    return text.replace(f"{SINCE.upper()}(", "SINCE LAST EXECUTION (")
