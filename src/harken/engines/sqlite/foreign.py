"""Foreign functions in queries: a Python function as a table-valued function of SQLite.

The function is called once for each combination of its arguments that the query meets. It gives
one value, or None for no value; a bag or several columns give an iterable of values or tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apsw.ext

from harken.engines.sqlite import faults
from harken.engines.sqlite.compile import foreign_module
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.values import encoder
from harken.errors import ForeignFault, HarkenError
from harken.ir.relations import Relation

Decode = Callable[[Any], Any]


def register(
    connection: Connection,
    relation: Relation,
    function: Callable[..., Any],
    decode: Sequence[Decode],
) -> None:
    results = relation.columns[relation.inputs :]
    encoders = [encoder(column.type) for column in results]

    def rows(*arguments: Any) -> Iterator[tuple[Any, ...]]:
        given = [turn(value) for turn, value in zip(decode, arguments, strict=True)]
        produced = call(relation.name, function, given)
        for row in shape(relation, produced):
            yield tuple(
                _encode(relation.name, turn, value)
                for turn, value in zip(encoders, row, strict=True)
            )

    # apsw reads the arguments' names from the signature; ours are the columns c0, c1, ...
    adapter = _with_parameters(rows, relation.inputs)
    adapter.columns = tuple(f"c{i}" for i in range(relation.inputs, relation.arity))  # type: ignore[attr-defined]
    adapter.column_access = apsw.ext.VTColumnAccess.By_Index  # type: ignore[attr-defined]
    with faults.translated():
        apsw.ext.make_virtual_module(connection.raw, foreign_module(relation), adapter)


def _with_parameters(rows: Callable[..., Any], inputs: int) -> Callable[..., Any]:
    names = [f"a{i}" for i in range(inputs)]
    scope: dict[str, Any] = {"rows": rows}
    text = ", ".join(names)
    defaults = ", ".join(f"{name}=None" for name in names)
    exec(f"def adapter({defaults}):\n    return rows({text})", scope)
    adapter: Callable[..., Any] = scope["adapter"]
    return adapter


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
        hint="see the Python function; the transaction was undone",
    )


def shape(relation: Relation, produced: Any) -> Iterable[tuple[Any, ...]]:
    """What a foreign function returned, as rows of result columns."""
    width = relation.arity - relation.inputs
    if relation.is_set and not _is_rows(produced):
        produced = () if produced is None else (produced,)
    elif produced is None:
        produced = ()
    try:
        rows = [row if width > 1 else (row,) for row in produced]
    except Exception as error:
        raise failed(relation.name, error) from error
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != width:
            raise ForeignFault(
                f"the foreign function {relation.name} gave {row!r} where {width} values were due",
                code="foreign",
            )
    return [tuple(row) for row in rows]


def _is_rows(produced: Any) -> bool:
    """A set function gives one value or tuple; a list, set or generator gives several."""
    return isinstance(produced, list | set | frozenset | Iterator)


def _encode(name: str, turn: Callable[[Any], Any], value: Any) -> Any:
    try:
        return turn(value)
    except HarkenError as error:
        raise ForeignFault(
            f"the foreign function {name} gave a wrong value: {error.message}", code="foreign"
        ) from error
