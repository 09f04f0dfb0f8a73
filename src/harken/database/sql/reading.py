"""Queries that stand by themselves: evaluated, ordered, shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.database.sql.views import translate_query
from harken.engines.lake.reach import described, reaches
from harken.errors import LanguageError, TypeFault
from harken.ir.assemble import assemble
from harken.ir.printer import print_program
from harken.ir.types import Type
from harken.lang.sql.parser import Statement
from harken.planner.prepare import prepare

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a query as they are stored, with the names and types of their columns."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: list[Row]


class Reading:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def show(self, statement: Statement) -> None:
        found = self.ordered(statement)
        rows = decode_rows(found.rows, found.types, self._runtime.catalog.home)
        self._runtime.emit("rows", found.names, rows)

    def rows(self, statement: Statement, node: exp.Expr) -> Found:
        """The rows of a query, in no order."""
        catalog, engine = self._runtime.catalog, self._runtime.engine
        rows, draft, _ = translate_query(statement, node, catalog, "query")
        program = assemble(rows.relation, draft.definitions.values(), catalog)
        query = engine.compile(prepare(program, catalog.hierarchy))
        types = tuple(column.type for column in rows.columns)
        return Found(rows.names, types, query.rows(()))

    def ordered(self, statement: Statement) -> Found:
        """The rows of a statement, as its ORDER BY, LIMIT and OFFSET say."""
        node = statement.node.copy()
        order, limit, offset = (node.args.pop(key, None) for key in ("order", "limit", "offset"))
        for each in (order, limit, offset):
            if each is not None:
                each.parent = None
        keys = list(order.expressions) if order is not None else []
        added, places = self._key_columns(node, keys, statement)
        found = self.rows(statement, node)
        rows = found.rows
        for key, place in reversed(list(zip(keys, places, strict=True))):
            _sort(rows, place if place >= 0 else len(found.names) - added - place - 1, key)
        start = self._count(offset, statement) or 0
        count = self._count(limit, statement)
        rows = rows[start : None if count is None else start + count]
        shown = len(found.names) - added
        if added:
            rows = [row[:shown] for row in rows]
        return Found(found.names[:shown], found.types[:shown], rows)

    def _key_columns(
        self, node: exp.Expr, keys: Sequence[exp.Expr], statement: Statement
    ) -> tuple[int, list[int]]:
        """How many columns were added to sort by, and which ones to sort by: -1 is the first of
        those added, -2 the second."""
        places: list[int] = []
        if not keys:
            return 0, places
        assert isinstance(node, exp.Query)
        names = [each.alias_or_name.lower() for each in node.selects]
        texts = [each.unalias().sql("spark", normalize=True) for each in node.selects]
        has_star = any(each.is_star for each in node.selects)
        added: list[exp.Expr] = []
        for key in keys:
            wanted = key.this
            if isinstance(wanted, exp.Literal) and not wanted.is_string:
                position = int(wanted.this) - 1
                if not has_star and not 0 <= position < len(names):
                    raise TypeFault(
                        f"there is no column {wanted.this} to order by",
                        code="arity",
                        span=statement.place(key),
                    )
                places.append(position)
                continue
            text = wanted.sql("spark", normalize=True)
            plain = isinstance(wanted, exp.Column) and not wanted.table
            if not has_star and plain and wanted.name.lower() in names:
                places.append(names.index(wanted.name.lower()))
            elif not has_star and text in texts:
                places.append(texts.index(text))
            elif isinstance(node, exp.Select) and node.args.get("distinct") is None:
                added.append(wanted)
                places.append(-len(added))
            else:
                raise LanguageError(
                    "what is ordered by must be one of the selected columns",
                    code="unsupported",
                    span=statement.place(key),
                )
        if added:
            node.set("expressions", [*node.expressions, *(each.copy() for each in added)])
        return len(added), places

    def _count(self, node: exp.Expr | None, statement: Statement) -> int | None:
        if node is None:
            return None
        wanted = node.expression
        if not (isinstance(wanted, exp.Literal) and wanted.this.isdigit()):
            raise LanguageError(
                "LIMIT and OFFSET take a whole number",
                code="unsupported",
                span=statement.place(node),
            )
        return int(wanted.this)

    def explain(self, statement: Statement) -> None:
        catalog, engine = self._runtime.catalog, self._runtime.engine
        rows, draft, _ = translate_query(statement, statement.node, catalog, "query")
        program = assemble(rows.relation, draft.definitions.values(), catalog)
        plan = prepare(program, catalog.hierarchy)
        parts = ["As ObjectLog:", print_program(program), "Expanded:", print_program(plan.program)]
        parts += ["As SQL:", engine.explain_sql(plan), *described(reaches(engine, plan))]
        lines = [(line,) for part in parts for line in part.splitlines()]
        self._runtime.emit("rows", ("plan",), lines)


def _sort(rows: list[Row], position: int, key: exp.Expr) -> None:
    """By one column; NULLs come first upwards and last downwards, unless the key says otherwise."""
    descending = bool(key.args.get("desc"))
    first = key.args.get("nulls_first")
    nulls_first = (not descending) if first is None else bool(first)
    present = [row for row in rows if row[position] is not None]
    missing = [row for row in rows if row[position] is None]
    present.sort(key=lambda row: row[position], reverse=descending)
    rows[:] = [*missing, *present] if nulls_first else [*present, *missing]
