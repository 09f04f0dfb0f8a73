"""Rows and changes as JSON; `harken.database.json_values` reads them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.api.database import Database
from harken.consumers.monitors.view import Watched
from harken.database.changes import Change
from harken.database.results import Result, to_json
from harken.ir.relations import Column
from harken.statements.sql.restricted import row_columns

Row = tuple[Any, ...]


def rows_json(rows: Sequence[Row]) -> list[list[Any]]:
    return Result("rows", (), list(rows)).json_rows()


def change_json(change: Change) -> str:
    """A change as `harken run --format json` prints it, with its position."""
    return to_json(
        {
            "kind": "change",
            "view": change.view,
            "plus": rows_json(change.plus),
            "minus": rows_json(change.minus),
            "position": change.position,
            "fresh": change.fresh,
        }
    )


def described_json(db: Database, view: str, watched: Watched, warnings: Sequence[str]) -> str:
    """What is followed: the columns of its rows, and what nobody is told of."""
    db._transactions.refresh()
    described = {"view": view, "where": watched.where, "columns": columns_json(db, watched)}
    return to_json({**described, "warnings": warnings})


def snapshot_json(db: Database, watched: Watched, change: Change, warnings: Sequence[str]) -> str:
    return to_json(
        {
            "kind": "snapshot",
            "view": change.view,
            "where": watched.where,
            "columns": columns_json(db, watched),
            "rows": rows_json(change.plus),
            "position": change.position,
            "warnings": warnings,
        }
    )


def columns_json(db: Database, watched: Watched) -> list[dict[str, Any]]:
    return list(map(column_json, row_columns(db._runtime.catalog.function(watched.function))))


def column_json(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": column.type.name, "nullable": column.type.nullable}
