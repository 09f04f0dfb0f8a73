"""Tables that exist as functions.

`db.lake("quantity", path, key=["item"])` makes the columns of a table a function from its key to
the rest. Harken reads such a table at a version; steps take its changes in (`intake`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.database.arguments import check_path
from harken.database.runtime import Runtime
from harken.engines.lake.catalog import DELTA, DIRECTORY, FRAME, OWN, Place
from harken.errors import EngineError, NameFault, TypeFault
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.statements.amosql.schema_changes import declare_stored
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, decimal_type

if TYPE_CHECKING:
    from harken.engines.lake.far import FarRelation

NAME = re.compile(r"[^\W\d]\w*")


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
) -> str | None:
    """Make a table, a directory or a DataFrame a function; says which of its rows the function
    does not have, if there are any."""
    from harken.engines.lake import left_out

    _check_name(name)
    _check_key(key)
    known = [f for f in runtime.catalog.overloads(name) if not f.system]
    if known:
        _register_again(runtime, known[0], source, list(key), columns, unique)
        return None
    seen = _look_at(runtime, source, key, format, schema, version)
    chosen = _chosen(seen.schema.names, key, columns)
    typed = [Column(_plain(c), type_of_column(c, seen.schema.field(c).type)) for c in chosen]
    made = _keep(runtime, _function(name, typed, len(key), unique), seen, chosen, list(key))
    missing = (
        left_out.of_rows(seen.rows.select(chosen))
        if seen.kind == OWN
        else left_out.of_table(made, runtime.engine.spark_reader)
    )
    return None if missing is None else f"{name}: {missing}"


def attach(
    runtime: Runtime,
    function: Function,
    source: str,
    columns: list[str],
    *,
    format: str | None,
    schema: Any,
) -> None:
    """Let a function have the rows of a table; `columns` are those of the table that are its."""
    key = columns[: len(function.parameters)] or columns
    seen = _look_at(runtime, source, key, format, schema)
    _keep(runtime, function, seen, columns, key)


def _keep(
    runtime: Runtime, function: Function, seen: _Seen, chosen: list[str], key: list[str]
) -> FarRelation:
    from harken.engines.lake import keys

    placed = _place(runtime, function.name, seen, chosen, len(key), not function.bag)
    made = declare_stored(runtime, function)
    assert made.relation is not None
    options = {**placed.options, "columns": chosen, "key": key, "unique": not function.bag}
    runtime.engine.create_far(
        made.relation, placed.path, seen.kind, version=placed.version, **options
    )
    far = runtime.engine.far[made.relation.id]
    far.reopen(seen.rows if seen.kind == FRAME else None)
    if seen.kind != OWN:
        runtime.engine.move_on(far, seen.version if seen.kind == DELTA else far.newest())
    keys.check_all(far, runtime.engine.spark_reader)
    return far


def _is_frame(source: Any) -> bool:
    return hasattr(source, "toArrow")


def _is_arrow(source: Any) -> bool:
    """A DataFrame of Spark Connect has every attribute: each could be a column."""
    return hasattr(source, "to_batches") and not _is_frame(source)


def _chosen(given: Sequence[str], key: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The key, then the other columns that are wanted."""
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a source is, before anything is made of it."""

    kind: str
    schema: Any
    path: str = ""
    rows: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    version: int = 0


def _look_at(
    runtime: Runtime,
    source: Any,
    key: Sequence[str],
    format: str | None,
    schema: Any,
    version: int | None = None,
) -> _Seen:
    from harken.sources import registry
    from harken.sources.delta_table import DeltaInput

    is_path = isinstance(source, str | Path)
    if is_path:
        check_path(source, "the path of a table")
    if version is not None and not (is_path and _is_delta(str(source))):
        raise TypeFault(
            "only a Delta table has versions to begin with",
            code="bad-value",
            hint="leave out version=",
        )
    if _is_frame(source):
        return _Seen(FRAME, runtime.engine.reader.collect(source.limit(0)).schema, rows=source)
    if _is_arrow(source):
        return _Seen(OWN, source.schema, rows=source)
    if not is_path:
        raise TypeFault(
            f"{type(source).__name__} is no table",
            code="bad-value",
            hint="give the path of a Delta table or a directory, a DataFrame or an Arrow table",
        )
    _check_format(format, schema)
    place = str(source)
    if _is_delta(place):
        if format is not None or schema is not None:
            raise TypeFault(
                "a Delta table says itself what format and columns it has",
                code="bad-value",
                hint="leave out format= and schema=",
            )
        path = place if "://" in place else str(Path(place).resolve())
        given = DeltaInput(path, key=tuple(key), version=version)
        options = {"identity": given.identity}
        begin = given.version if version is None else version
        return _Seen(DELTA, given.schema, path=path, options=options, version=begin)
    directory = Path(place).resolve()
    if not directory.is_dir():
        raise EngineError(
            f"there is no Delta table or directory at {place}",
            code="no-lake-table",
            hint="check the path",
        )
    format, found = registry.look_at_directory(directory, format, schema)
    return _Seen(DIRECTORY, found, options={"directory": str(directory), "format": format})


def _is_delta(place: str) -> bool:
    return "://" in place or (Path(place) / "_delta_log").is_dir()


def _check_format(format: str | None, schema: Any) -> None:
    from harken.sources.directory import check_format

    if format is not None:
        check_format(format)
    if schema is not None and not hasattr(schema, "names"):
        raise TypeFault(
            f"{type(schema).__name__} is no schema",
            code="bad-value",
            hint='schema=pyarrow.schema([("item", pyarrow.string()), ...])',
        )


@dataclass(frozen=True, slots=True)
class _Placed:
    path: str
    version: int
    options: dict[str, Any]


def _place(
    runtime: Runtime, name: str, seen: _Seen, chosen: list[str], keys: int, unique: bool
) -> _Placed:
    """Where the rows are found from now on: where they are, or in a table of our own."""
    from harken.engines.delta.tables import LakeTable
    from harken.engines.lake import rows
    from harken.sources.directory import DirectoryInput

    if seen.kind == DELTA:
        return _Placed(seen.path, seen.version, seen.options)
    path = runtime.engine.new_path_named(name)
    key = chosen[:keys]
    if seen.kind == OWN:
        given = _own_rows(seen.rows, chosen)
        table = LakeTable.create(path, given.schema, key=key, bag=not unique)
        version = table.commit(given, given.slice(0, 0), expected_version=0)
        return _Placed(path, version, seen.options)
    schema = rows.storable([seen.schema.field(column) for column in chosen])
    if seen.kind == FRAME:
        LakeTable.create(path, schema, key=key, bag=True)
    else:
        where, format = seen.options["directory"], seen.options["format"]
        DirectoryInput.create(where, path, schema, key=key, format=format)
    return _Placed(path, 0, seen.options)


def _own_rows(source: Any, chosen: list[str]) -> Any:
    """An Arrow table as Harken would have written it: those columns, in our types, and no row that
    says nothing."""
    from harken.engines.lake import rows

    types = [type_of_column(name, source.schema.field(name).type) for name in chosen]
    fields = zip(chosen, map(rows.arrow_type, types), strict=True)
    return rows.own_rows(source.select(chosen), rows.schema_of(fields))


def _register_again(
    runtime: Runtime,
    known: Function,
    source: Any,
    key: list[str],
    columns: Sequence[str] | None,
    unique: bool,
) -> None:
    """After reopening, a DataFrame is given again; everything else is found by its path."""
    far = runtime.engine.far.get(known.relation.id) if known.relation is not None else None
    if far is None or far.place.is_own or not _is_source_of(far.place, source):
        raise NameFault(
            f"there is already a function {known.id}",
            code="exists",
            hint="choose another name, or delete it first",
        )
    options = far.place.options
    wanted = options["columns"] if columns is None else [*key, *columns]
    if (key, unique) != (options["key"], options["unique"]) or set(wanted) != set(
        options["columns"]
    ):
        raise NameFault(
            f"{known.name} was registered with other columns, or another key",
            code="exists",
            hint="delete the function first, or call db.lake with what it was registered with: "
            f"key={options['key']}, columns={options['columns']}, unique={options['unique']}",
        )
    if far.place.kind == FRAME:
        far.reopen(source)


def _is_source_of(place: Place, source: Any) -> bool:
    if place.kind == FRAME:
        return _is_frame(source)
    if not isinstance(source, str | Path):
        return False
    given = str(source) if "://" in str(source) else str(Path(source).resolve())
    return given in (place.path, place.options.get("directory"))


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
        raise NameFault(f"{name!r} cannot name a function", code="bad-name", hint="use a word")


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
        raise TypeFault("the key is a list of columns", code="arity", hint='key=["item"]')
    twice = [name for i, name in enumerate(key) if name in key[:i]]
    if twice:
        raise TypeFault(f"{twice[0]} is twice in the key", code="arity", hint="name it once")


def _plain(column: str) -> str:
    """A column's name as AMOSQL can write it."""
    word = re.sub(r"\W", "_", column).lower()
    return word if NAME.fullmatch(word) else f"c_{word}"


def type_of_column(name: str, arrow: Any) -> Type:
    import pyarrow.types as t

    tests: tuple[tuple[Callable[[Any], bool], Type], ...] = (
        (t.is_boolean, BOOLEAN),
        (lambda a: t.is_integer(a) and not t.is_uint64(a), INTEGER),
        (t.is_floating, NUMBER),
        (lambda a: t.is_string(a) or t.is_large_string(a) or t.is_string_view(a), TEXT),
        (t.is_date, DATE),
        (t.is_timestamp, TIMESTAMP),
    )
    for test, type_ in tests:
        if test(arrow):
            return type_
    if t.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= 38:
        return decimal_type(arrow.precision, arrow.scale)
    raise TypeFault(
        f"the column {name} has the type {arrow}, which no AMOSQL type holds",
        code="type-mismatch",
        hint="leave it out: db.lake(..., columns=[...]), or cast it where it comes from; of files "
        "that do not say it, give the type: schema=pyarrow.schema([...])",
    )
