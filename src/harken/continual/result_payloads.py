"""What a message says about an execution: the part of the difference that DELIVER asks for.

Law: inserted, deleted and both sides of changed, put together, are rows of the difference; nothing
is in two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harken.continual.query_clauses import Deliver, Delivery, Shown
from harken.database.changes import Change, RowShape
from harken.database.results import Result
from harken.ir.relations import Column
from harken.values.rows import Row

PARTS = ("inserted", "deleted", "changed", "rows")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values of an execution that a message is made of."""

    columns: tuple[Column, ...]
    key: tuple[int, ...] | None
    inserted: list[Row]
    deleted: list[Row]
    size: int
    """How many rows the answer has."""
    answer: list[Row] | None = None
    """All of them, where they are asked for."""
    is_first: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def payload_of(outcome: Outcome, delivery: Delivery, most: int) -> dict[str, Any] | None:
    """The content of a message; None if there is nothing to say."""
    parts = _parts(outcome, delivery)
    is_asked = outcome.is_first or delivery.always or delivery.part is Deliver.COMPLETE
    has_changed = bool(outcome.inserted or outcome.deleted)
    counts = delivery.part is Deliver.COUNT
    if not (is_asked or any(parts.values()) or (counts and has_changed)):
        return None
    found: dict[str, Any] = {"columns": list(outcome.names)}
    limit = 0 if delivery.shown is Shown.LINK else most
    left_out = {}
    for name in PARTS:
        rows = parts.get(name)
        if rows is None:
            continue
        found[name] = _objects(outcome.names, rows[:limit], is_pair=name == "changed")
        if len(rows) > limit:
            left_out[name] = len(rows) - limit
    if left_out:
        found["left_out"] = left_out
    if counts:
        found["count"] = outcome.size
    text = _text(parts, outcome, delivery)
    if text:
        found["text"] = text
    return found


def result_of(outcome: Outcome, most: int) -> dict[str, Any]:
    """What is recorded of an execution, for its page."""
    found: dict[str, Any] = {"columns": list(outcome.names)}
    parts = {"inserted": outcome.inserted, "deleted": outcome.deleted}
    if outcome.answer is not None and not outcome.is_first:
        parts["rows"] = outcome.answer
    for name, rows in parts.items():
        found[name] = _objects(outcome.names, rows[:most])
        if len(rows) > most:
            found.setdefault("left_out", {})[name] = len(rows) - most
    return found


def _parts(outcome: Outcome, delivery: Delivery) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"inserted": [], "deleted": [], "changed": []}
    match delivery.part:
        case Deliver.COUNT:
            return found
        case _ if outcome.is_first:
            found["inserted"] = outcome.inserted
        case Deliver.INSERTED:
            found["inserted"] = outcome.inserted
        case Deliver.DELETED:
            found["deleted"] = outcome.deleted
        case Deliver.COMPLETE:
            found |= {"inserted": outcome.inserted, "deleted": outcome.deleted}
        case Deliver.CHANGED:
            pairs = _paired(outcome, delivery.key)
            found |= {
                "inserted": pairs.inserted,
                "deleted": pairs.deleted,
                "changed": pairs.updated,
            }
    if delivery.part is Deliver.COMPLETE:
        found["rows"] = outcome.answer or []
    return found


def _paired(outcome: Outcome, key: tuple[str, ...]) -> Any:
    shape = RowShape(outcome.columns, outcome.key)
    change = Change("", outcome.inserted, outcome.deleted, 0, shape=shape)
    if key or outcome.key is not None:
        return change.pairs(key or None)
    return change.pairs(outcome.names[:1])


def _objects(names: Sequence[str], rows: list[Any], is_pair: bool = False) -> list[Any]:
    if is_pair:
        old = _objects(names, [before for before, _ in rows])
        new = _objects(names, [after for _, after in rows])
        return [{"old": o, "new": n} for o, n in zip(old, new, strict=True)]
    shown = Result("rows", tuple(names), rows).json_rows()
    return [dict(zip(names, row, strict=True)) for row in shown]


def _text(parts: dict[str, list[Any]], outcome: Outcome, delivery: Delivery) -> str:
    if delivery.part is Deliver.COUNT:
        return f"The answer has {outcome.size:,} row{'' if outcome.size == 1 else 's'}."
    if delivery.shown is not Shown.LINK:
        return ""
    words = {"inserted": "new", "deleted": "gone", "changed": "changed", "rows": "in all"}
    said = [f"{len(parts[name]):,} {word}" for name, word in words.items() if parts.get(name)]
    return f"{', '.join(said) or 'No row has changed'}."
