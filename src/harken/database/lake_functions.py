"""Existing tables registered as functions.

`db.lake("quantity", path, key=["item"])` makes the columns of a table a function from its key to
the other columns. Harken reads such a table at a version; a step moves it to the next one
(`intake`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.database.arguments import check_path
from harken.database.runtime import Runtime
from harken.engines.data_frames import as_arrow
from harken.errors import NameFault, TypeFault
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.sources.registry import kind_named

if TYPE_CHECKING:
    from harken.engines.protocol import LakeRelation
    from harken.sources.registry import Described

NAME = re.compile(r"[^\W\d]\w*")
Declare = Callable[[Runtime, Function], Function]
"""Stores the definition of a function whose rows exist already."""


def register(
    runtime: Runtime,
    name: str,
    source: Any,
    key: Sequence[str],
    *,
    unique: bool = True,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    schema: Any = None,
    version: int | None = None,
    declare: Declare,
) -> str | None:
    """Register a table, a directory or a DataFrame as a function; returns a note about rows that
    the function does not have, if any."""
    from harken.engines.arrow_rows import type_of_column

    _check_name(name)
    _check_key(key)
    known = [f for f in runtime.catalog.overloads(name) if not f.system]
    if known:
        _register_again(runtime, known[0], source, list(key), columns, unique)
        return None
    found = _described(runtime, source, key, format, schema, version)
    chosen = _chosen(found.schema.names, key, columns)
    typed = [Column(_plain(c), type_of_column(c, found.schema.field(c).type)) for c in chosen]
    made = _keep(
        runtime, _function(name, typed, len(key), unique), found, chosen, list(key), declare
    )
    given = None if found.rows is None else found.rows.select(chosen)
    missing = runtime.engine.left_out(made, given)
    return None if missing is None else f"{name}: {missing}"


def attach(
    runtime: Runtime,
    function: Function,
    source: str,
    columns: list[str],
    *,
    format: str | None,
    schema: Any,
    declare: Declare,
) -> None:
    """Back a function with the rows of a table; `columns` are the table's names for its columns."""
    key = columns[: len(function.parameters)] or columns
    found = _described(runtime, source, key, format, schema)
    _keep(runtime, function, found, columns, key, declare)


def _keep(
    runtime: Runtime,
    function: Function,
    found: Described,
    chosen: list[str],
    key: list[str],
    declare: Declare,
) -> LakeRelation:
    unique = not function.bag
    free = partial(runtime.engine.new_path_named, function.name)
    path, version = found.kind.make(found, free, chosen, len(key), unique)
    made = declare(runtime, function)
    assert made.relation is not None
    options = {**found.options, "columns": chosen, "key": key, "unique": unique}
    runtime.engine.create_in_lake(made.relation, path, found.kind.name, version=version, **options)
    lake_relation = runtime.engine.lake_relations[made.relation.id]
    lake_relation.reopen(found.frame)
    if not lake_relation.place.is_own:
        runtime.engine.move_on(
            lake_relation, lake_relation.newest() if found.version is None else found.version
        )
    runtime.engine.check_keys(lake_relation)
    return lake_relation


def _chosen(given: Sequence[str], key: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The key, then the other requested columns."""
    _check_distinct(given, "in the table, if capitals do not count")
    _check_distinct(columns or (), "among the columns")
    wanted = list(columns) if columns is not None else list(given)
    missing = [c for c in (*key, *wanted) if c not in given]
    if missing:
        raise TypeFault(
            f"there is no column {missing[0]}",
            code="arity",
            hint="there are " + ", ".join(given),
        )
    return [*key, *(c for c in wanted if c not in key)]


def _described(
    runtime: Runtime,
    source: Any,
    key: Sequence[str],
    format: str | None,
    schema: Any,
    version: int | None = None,
) -> Described:
    from harken.sources.registry import Request, describe

    if isinstance(source, str | Path):
        check_path(source, "the path of a table")
    source = as_arrow(source)
    return describe(Request(source, key, format, schema, version, lambda: runtime.engine.reader))


def _register_again(
    runtime: Runtime,
    known: Function,
    source: Any,
    key: list[str],
    columns: Sequence[str] | None,
    unique: bool,
) -> None:
    """After reopening, a DataFrame must be passed again; other sources are found by their path."""
    lake_relation = (
        runtime.engine.lake_relations.get(known.relation.id) if known.relation is not None else None
    )
    if lake_relation is None or not kind_named(lake_relation.place.kind).is_at(
        lake_relation.place, source
    ):
        raise NameFault(
            f"there is already a function {known.id}",
            code="exists",
            hint="choose another name, or delete it first",
        )
    options = lake_relation.place.options
    wanted = options["columns"] if columns is None else [*key, *columns]
    if (key, unique) != (options["key"], options["unique"]) or set(wanted) != set(
        options["columns"]
    ):
        raise NameFault(
            f"{known.name} was registered with other columns or another key",
            code="exists",
            hint="delete the function first, or call db.lake as it was registered: "
            f"key={options['key']}, columns={options['columns']}, "
            f"unique={options['unique']}",
        )
    if not isinstance(source, str | Path):
        lake_relation.reopen(source)


def _function(name: str, columns: list[Column], inputs: int, unique: bool) -> Function:
    arguments, results = tuple(columns[:inputs]), tuple(columns[inputs:])
    if not results:
        arguments, results, unique = (), arguments, False
    shown = ", ".join(f"{c.type} {c.name}" for c in arguments)
    given = ", ".join(f"{c.type} {c.name}" for c in results)
    bag = "" if unique else "bag of "
    result = f"<{given}>" if len(results) > 1 else given
    return Function(
        name=name,
        parameters=arguments,
        results=results,
        kind=FunctionKind.STORED,
        bag=not unique,
        text=f"create function {name}({shown}) -> {bag}{result} stored in lake",
    )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise NameFault(
            f"{name!r} cannot be the name of a function",
            code="bad-name",
            hint="use a single word",
        )


def _check_distinct(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise TypeFault(
                f"{name} is twice {where}", code="arity", hint="give them different names"
            )
        seen.add(name.lower())


def _check_key(key: Sequence[str]) -> None:
    if isinstance(key, str) or not key:
        raise TypeFault("the key must be a list of columns", code="arity", hint='key=["item"]')
    twice = [name for i, name in enumerate(key) if name in key[:i]]
    if twice:
        raise TypeFault(f"{twice[0]} is twice in the key", code="arity", hint="name it once")


def _plain(column: str) -> str:
    """The name of a column spelled as AMOSQL allows it."""
    word = re.sub(r"\W", "_", column).lower()
    return word if NAME.fullmatch(word) else f"c_{word}"
