"""Calls a user's Python function: its results become rows of stored values, its exceptions a
ForeignFault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harken.errors import ForeignFault, HarkenError, counted
from harken.ir.relations import Relation
from harken.limits import watched
from harken.values.encoding import encoder


def call(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a user's Python function; whatever it raises becomes a ForeignFault."""
    try:
        return function(*arguments)
    except HarkenError:
        raise
    except Exception as error:
        raise failed(name, error) from error


def failed(name: str, error: BaseException) -> ForeignFault:
    return ForeignFault(
        f"the foreign function {name} failed: {type(error).__name__}: {error}",
        code="foreign",
        hint="look into the Python function; nothing of this statement was done",
    )


def stored_rows(relation: Relation, produced: Any) -> list[tuple[Any, ...]]:
    """The result of a foreign function as rows of stored values; ForeignFault if it does not fit
    the declaration."""
    width = relation.arity - relation.inputs
    if relation.is_set and not _is_rows(produced):
        produced = () if produced is None else (produced,)
    elif produced is None:
        produced = ()
    if isinstance(produced, str | bytes):
        raise ForeignFault(
            f"the foreign function {relation.name} gave a text where several values were due",
            code="foreign",
            hint="return a list, or yield the values",
        )
    try:
        given = [row if width > 1 else (row,) for row in watched(produced)]
    except HarkenError:
        raise
    except Exception as error:
        raise failed(relation.name, error) from error
    rows = [_stored_row(relation, row) for row in given]
    return list(dict.fromkeys(rows)) if relation.is_set else rows


def _stored_row(relation: Relation, row: Any) -> tuple[Any, ...]:
    columns = relation.columns[relation.inputs :]
    if not isinstance(row, tuple | list) or len(row) != len(columns):
        raise ForeignFault(
            f"the foreign function {relation.name} gave {row!r} where "
            f"{counted(len(columns), 'value', 'was')} due",
            code="foreign",
            hint="return a tuple with one value for each result column",
        )
    try:
        return tuple(
            encoder(column.type)(value) for column, value in zip(columns, row, strict=True)
        )
    except HarkenError as error:
        raise ForeignFault(
            f"the foreign function {relation.name} gave a wrong value: {error.message}",
            code="foreign",
            hint="return what the declaration says, or change the declaration",
        ) from error


def _is_rows(produced: Any) -> bool:
    """A set function returns one value or tuple; a list, set or generator stands for several."""
    return isinstance(produced, list | set | frozenset | Iterator)
