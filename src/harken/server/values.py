"""Rows and changes as JSON; `harken.database.json_values` reads them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.api.views import ViewDescription
from harken.database.changes import Change
from harken.database.results import Result, to_json
from harken.values.rows import Row


def rows_json(rows: Sequence[Row]) -> list[list[Any]]:
    return Result("rows", (), list(rows)).json_rows()


def change_json(change: Change) -> str:
    """A change in the format of `harken run --format json`, with its position."""
    return to_json(
        {
            "kind": "change",
            "view": change.view,
            "plus": rows_json(change.plus),
            "minus": rows_json(change.minus),
            "position": change.position,
            "fresh": change.fresh,
            "at": None if change.at is None else change.at.isoformat(),
        }
    )


def described_json(view: ViewDescription) -> str:
    """The columns of a followed view, and warnings about changes that are not reported."""
    described = {"view": view.name, "where": view.where, "columns": columns_json(view)}
    return to_json({**described, "warnings": view.warnings})


def snapshot_json(view: ViewDescription, change: Change) -> str:
    return to_json(
        {
            "kind": "snapshot",
            "view": change.view,
            "where": view.where,
            "columns": columns_json(view),
            "rows": rows_json(change.plus),
            "position": change.position,
            "warnings": view.warnings,
        }
    )


def columns_json(view: ViewDescription) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "type": each.type.name, "nullable": each.type.nullable}
        for each in view.columns
    ]
