"""The ORDER BY and LIMIT of a statement that reads one source and nothing else.

Where an order leaves ties, the columns of the answer break them, so these are a part of it.

Law: the first rows of the source in this order have all rows that the statement shows.
"""

from __future__ import annotations

from sqlglot import exp

from harken.lang.sql.ordering import direction
from harken.sources.outside import Order
from harken.statements.sql.asked_conditions import ColumnNames

KNOWN = frozenset({"expressions", "from_", "where", "order", "limit", "offset"})
"""The parts of a statement whose first rows may be asked for."""
NOTHING: tuple[int | None, tuple[Order, ...]] = (None, ())


def first_rows(select: exp.Select, names: ColumnNames) -> tuple[int | None, tuple[Order, ...]]:
    """How many rows are needed, and in which order; nothing if that is not certain."""
    count, offset = _number(select.args.get("limit")), _number(select.args.get("offset"))
    if count is None or (offset is None and select.args.get("offset") is not None):
        return NOTHING
    if any(value for key, value in select.args.items() if key not in KNOWN):
        return NOTHING
    shown = _shown(select, names)
    order = None if shown is None else _order(select, names, shown)
    if order is None or shown is None:
        return NOTHING
    ties = [Order(column) for column in shown.values()]
    return count + (offset or 0), (*order, *ties)


def _number(node: exp.Expr | None) -> int | None:
    if node is None or any(value for key, value in node.args.items() if key != "expression"):
        return None
    given = node.args.get("expression")
    return int(given.this) if isinstance(given, exp.Literal) and given.is_int else None


def _shown(select: exp.Select, names: ColumnNames) -> dict[str, str] | None:
    """The columns of the answer, by their names there; None if one of them is computed."""
    if len(select.selects) == 1 and isinstance(select.selects[0], exp.Star):
        is_bare = not any(select.selects[0].args.values())
        return {name: name for name in names.types} if is_bare else None
    found: dict[str, str] = {}
    for each in select.selects:
        column = names.find(each.this if isinstance(each, exp.Alias) else each)
        name = each.alias_or_name.lower()
        if column is None or name in found:
            return None
        found[name] = column
    return found


def _order(select: exp.Select, names: ColumnNames, shown: dict[str, str]) -> list[Order] | None:
    given = select.args.get("order")
    found = []
    for each in [] if given is None else given.expressions:
        node = each.this
        is_bare = isinstance(node, exp.Column) and not node.table
        column = shown.get(node.name.lower()) if is_bare else None
        column = column or names.find(node)
        if column is None:
            return None
        descending, nulls_first = direction(each)
        found.append(Order(column, descending, nulls_first))
    return found
