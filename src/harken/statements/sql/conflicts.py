"""ON CONFLICT and RETURNING: statements that look at the rows they change.

A row conflicts with one that has the same values in the key or in a UNIQUE constraint; NULL equals
nothing. RETURNING is computed from the rows as they are after the statement, or from the deleted
ones.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from harken.database.evaluation import decode_rows
from harken.errors import IntegrityError, LanguageError, NameFault, nearest
from harken.lang.sql.lifting import Lifted
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import Table
from harken.lang.sql.type_names import type_name
from harken.statements.sql.constraint_queries import keys_of
from harken.statements.sql.lifted_queries import Found
from harken.statements.sql.row_changes import RowChanges
from harken.values.rows import Row

CHUNK = 200
"""Rows written as literals into one query."""
MOST_LIFTED = 4
"""Rows whose query is planned once, whatever is in them: more are seldom as many again."""


class Conflicts(RowChanges):
    def _conflicts(
        self, table: Table, node: exp.Expr, rows: Sequence[Row], statement: Statement
    ) -> tuple[list[Row], list[Row]]:
        """Split the rows into those without a conflict and the others."""
        targets = self._conflict_columns(table, node, statement)
        places = [self._positions(table, names) for names in targets]
        seen: list[set[Row]] = [set() for _ in places]
        free, met = [], []
        for row in rows:
            values = [tuple(row[i] for i in each) for each in places]
            before = any(value in known for value, known in zip(values, seen, strict=True))
            if before and node.expressions:
                raise IntegrityError(
                    f"two of the rows have the same {', '.join(targets[0])}",
                    code="not-unique",
                    span=statement.span,
                    hint="ON CONFLICT DO UPDATE changes a row only once",
                )
            if before or any(map(self._is_there(table), places, values)):
                met.append(row)
                continue
            free.append(row)
            for value, known in zip(values, seen, strict=True):
                if None not in value:
                    known.add(value)
        return free, met

    def _is_there(self, table: Table) -> Any:
        engine = self._runtime.engine

        def found(places: Sequence[int], values: Row) -> bool:
            known = dict(zip(places, values, strict=True))
            return None not in values and bool(engine.matching(table.relation, known))

        return found

    def _conflict_columns(
        self, table: Table, node: exp.Expr, statement: Statement
    ) -> list[list[str]]:
        """The columns whose values must be unique: the given ones, or all that must be."""
        keys = keys_of(table.name, self._runtime.catalog, statement)
        named = [each.this.name.lower() for each in node.args.get("conflict_keys") or []]
        if node.args.get("constraint") or node.args.get("index_where"):
            raise LanguageError(
                "ON CONFLICT names columns", code="unsupported", span=statement.place(node)
            )
        known = [column.name for column in table.columns]
        for name in named:
            if name not in known:
                near = nearest(name, known)
                raise NameFault(
                    f"there is no column {name} in {table.name}",
                    code="unknown-column",
                    span=statement.place(node),
                    hint=f"did you mean {near}?" if near else None,
                )
        if not named and not node.expressions:
            return keys
        found = [key for key in keys if sorted(key) == sorted(named or key)]
        if not found:
            raise IntegrityError(
                f"{table.name} may have several rows with the same {', '.join(named)}"
                if named
                else f"{table.name} has no PRIMARY KEY and nothing that is UNIQUE",
                code="not-unique",
                span=statement.span,
                hint="ON CONFLICT must name the PRIMARY KEY, or UNIQUE columns",
            )
        return found[:1]

    def _positions(self, table: Table, names: Sequence[str]) -> list[int]:
        places = {c.name: p for c, p in zip(table.columns, table.positions, strict=True)}
        return [places[name] for name in names]

    # --- RETURNING -------------------------------------------------------------------------

    def _returned(
        self, table: Table, node: exp.Expr, rows: Sequence[Row], statement: Statement
    ) -> Found | None:
        returning = node.args.get("returning")
        if returning is None:
            return None
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        names, types, found = None, None, list[Row]()
        for start in range(0, max(len(rows), 1), CHUNK):
            part_of_rows = rows[start : start + CHUNK]
            source, own = written(table, part_of_rows, target.alias_or_name, statement)
            query = exp.select(*(each.copy() for each in returning.expressions)).from_(source)
            part = self._reading.rows(own, query)
            names, types = part.names, part.types
            found += part.rows
        assert names is not None
        assert types is not None
        return Found(names, types, found)


def written(
    table: Table, rows: Sequence[Row], alias: str, statement: Statement
) -> tuple[exp.Expr, Statement]:
    """Rows of a table as VALUES, with its columns; without any rows, a query that returns none.
    And the statement, which has their values, too, if it is one whose values were lifted."""
    types = [column.type for column in table.columns]
    if any(each.surrogate for each in types):
        raise LanguageError(
            f"{table.name} contains objects, which cannot be written as literals here",
            code="unsupported",
            span=statement.span,
        )
    shown_rows = [tuple(row[i] for i in table.positions) for row in rows]
    if not rows:
        shown_rows = [(None,) * len(types)]
    added = list(statement.values)
    lifts = statement.queries is not None and len(rows) <= MOST_LIFTED
    values = []
    for row in decode_rows(shown_rows, types):
        cells: list[exp.Expr] = []
        for value, type_ in zip(row, types, strict=True):
            if lifts and value is not None:
                cells.append(Lifted(slot=len(added), kind=type_.or_null(False)))
                added.append(value)
            else:
                given = exp.null() if value is None else exp.Literal.string(_text(value))
                to = exp.DataType.build(type_name(type_), dialect="spark")
                cells.append(exp.Cast(this=given, to=to))
        values.append(exp.Tuple(expressions=cells))
    own = statement.with_values(tuple(added)) if lifts else statement
    columns = [exp.to_identifier(column.name, quoted=True) for column in table.columns]
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=columns)
    if rows:
        return exp.Values(expressions=values, alias=named), own
    inner = exp.select("*").from_(exp.Values(expressions=values, alias=named.copy()))
    return exp.Subquery(this=inner.where(exp.false()), alias=named), own


def _text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, decimal.Decimal) else str(value)
