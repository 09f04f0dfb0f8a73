"""CREATE and DROP of tables and views: functions of the catalog like any other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqlglot import exp

from harken.database.functions import store
from harken.database.language import SQL
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.system import relation_of
from harken.database.tables import SqlTables, declared_order
from harken.errors import IntegrityError, LanguageError, NameFault, TypeFault, nearest
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.lang.sql.parser import Statement, statements, text_after
from harken.lang.sql.program_draft import unknown_table
from harken.lang.sql.recursive_with import mentions
from harken.lang.sql.types import type_name, type_of
from harken.statements.dependents import recheck, refuse_circle
from harken.statements.sql.constraints import compile_constraints, constraints_of
from harken.statements.sql.located import create_located
from harken.statements.sql.materialized_views import compile_kept, put_rows, rows_of
from harken.statements.sql.reading import Reading
from harken.statements.sql.row_changes import defaults
from harken.statements.sql.views import check_view, read_view, refuse_equal_names
from harken.values.rows import Row

LONGEST_NAME = 200
PROPERTIES = (
    exp.FileFormatProperty,
    exp.MaterializedProperty,
    exp.LocationProperty,
    exp.SchemaCommentProperty,
    exp.TemporaryProperty,
)
FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "avro", "text", "hive", "delta"})
"""What Spark would keep the rows as; Harken keeps them in its own file, and says the same."""
CONSTRAINTS = (
    exp.UniqueColumnConstraint,
    exp.CheckColumnConstraint,
    exp.ForeignKey,
    exp.Reference,
)
"""Those that are watched: see `constraints`."""


def create(runtime: Runtime, statement: Statement) -> Function | None:
    """Create a table or a view; a materialized view is returned, for it has no rows yet."""
    node = statement.node
    assert isinstance(node, exp.Create)
    kind = str(node.args.get("kind", "")).upper()
    if kind not in ("TABLE", "VIEW"):
        raise LanguageError(f"CREATE {kind} is not there", code="unsupported", span=statement.span)
    name = created_name(node)
    known = SqlTables(runtime.catalog).function(name)
    if known is not None:
        if node.args.get("exists"):
            return None
        if not _may_replace(node, known):
            raise NameFault(
                f"there is already a {kind_of(known)} {name}",
                code="exists",
                span=statement.place(node.this),
                hint=f"drop it first: DROP {kind_of(known).upper()} {name}"
                if node.args.get("replace")
                else f"drop it first, or CREATE {kind} IF NOT EXISTS",
            )
    if len(name) > LONGEST_NAME:
        raise NameFault(
            f"a name has at most {LONGEST_NAME} characters",
            code="bad-name",
            span=statement.place(node.this),
        )
    _check_properties(node, statement)
    runtime.reactions.before_schema_change({name})
    if kind == "VIEW":
        return _create_view(runtime, statement, known)
    _create_table(runtime, statement, node, name, known)
    return None


def make_room(runtime: Runtime, statement: Statement) -> bool:
    """Drop what CREATE OR REPLACE TABLE replaces, if its rows are in the lake or are going there:
    then nothing may read it. Everything else is replaced in its place, see `create`."""
    node = statement.node
    assert isinstance(node, exp.Create)
    known = SqlTables(runtime.catalog).function(created_name(node))
    if known is None or known.relation is None or not _may_replace(node, known) or is_view(known):
        return False
    located = node.find(exp.LocationProperty) is not None or runtime.all_in_lake
    if not (located or _in_lake(node, statement) or runtime.engine.is_in_lake(known.relation)):
        return False
    _refuse_self(node, known.name, statement)
    readers = runtime.catalog.dependents(known.name)
    if readers:
        raise IntegrityError(
            f"{known.name} cannot be replaced: {', '.join(sorted(f.name for f in readers))} "
            f"{'reads' if len(readers) == 1 else 'read'} it",
            code="in-use",
            span=statement.span,
            hint="a table in the lake is replaced when nothing reads it: drop what does first",
        )
    _drop(runtime, known, False, statement)
    return True


def _may_replace(node: exp.Create, known: Function) -> bool:
    """Tables replace tables, and views, materialized or not, views. What has arguments, or a name
    that differs in upper and lower case, is something else."""
    if not node.args.get("replace") or known.name != created_name(node):
        return False
    if str(node.args.get("kind", "")).upper() == "TABLE":
        return not is_view(known)
    return is_view(known) and not known.parameters


def _refuse_self(node: exp.Create, name: str, statement: Statement) -> None:
    if node.expression is not None and mentions(node.expression, name):
        raise LanguageError(
            f"{name} is made of itself, and would be gone",
            code="unsupported",
            span=statement.span,
            hint="INSERT OVERWRITE a table, or call the new one differently",
        )


def created_name(node: exp.Create) -> str:
    named = node.find(exp.Table)
    assert named is not None
    return named.name.lower()


def is_view(function: Function) -> bool:
    return function.kind is FunctionKind.DERIVED or function.materialized


def kind_of(function: Function) -> str:
    return "view" if is_view(function) else "table"


# --- tables --------------------------------------------------------------------------------


def _create_table(
    runtime: Runtime, statement: Statement, node: exp.Create, name: str, known: Function | None
) -> None:
    if node.expression is not None:
        _create_as(runtime, statement, node, name, known)
        return
    if node.find(exp.LocationProperty) is not None:
        declared, key = (
            _columns(node.this, statement) if isinstance(node.this, exp.Schema) else ((), [])
        )
        if constraints_of(statement, runtime.catalog):
            raise LanguageError(
                "a table that others write is not constrained",
                code="unsupported",
                span=statement.span,
                hint="say KEY (...), or watch a view of what is wrong",
            )
        create_located(runtime, statement, name, declared, key or list(statement.key))
        return
    function = table_function(runtime, statement)
    put_table(runtime, function, known, [], in_lake=_in_lake(node, statement))
    recheck(runtime, name, skip=function.id)


def table_function(runtime: Runtime, statement: Statement) -> Function:
    """The function that CREATE TABLE (...) makes."""
    node = statement.node
    assert isinstance(node, exp.Create)
    if not isinstance(node.this, exp.Schema):
        raise LanguageError("a table needs columns", code="syntax", span=statement.place(node.this))
    _in_lake(node, statement)
    columns, key = _columns(node.this, statement)
    if statement.key:
        columns, key = _with_key(columns, key, statement)
    arguments = tuple(column for column in columns if column.name in key)
    results = tuple(column for column in columns if column.name not in key)
    function = Function(
        name=created_name(node),
        parameters=tuple(sorted(arguments, key=lambda column: key.index(column.name))),
        results=results,
        kind=FunctionKind.STORED,
        bag=not key,
        text=f"CREATE TABLE {text_after('TABLE', statement)}",
        language=SQL,
    )
    defaults(Reading(runtime), statement, columns, 1)
    function = declared_order(function, [column.name for column in columns])
    return replace(function, relation=relation_of(function))


def put_table(
    runtime: Runtime,
    function: Function,
    known: Function | None,
    rows: list[Row],
    *,
    in_lake: bool = False,
) -> None:
    """Make a table with these rows, perhaps in the place of one that is known. If that has the same
    columns its rows are changed as by DELETE and INSERT, which whoever watches it is told of."""
    catalog, engine = runtime.catalog, runtime.engine
    constraints = constraints_of(statements(function.text)[0], catalog)
    parents = {each.parent for each in constraints if each.parent}
    dependencies = Dependencies(frozenset(parents - {function.name}))
    if known is not None and known.relation == function.relation:
        made = catalog.add_function(function, dependencies)
        assert made.relation is not None
        before = Counter(engine.matching(made.relation, {}))
        after = Counter(rows)
        engine.remove_many(made.relation, (before - after).elements())
        engine.insert_many(made.relation, (after - before).elements())
    else:
        if known is not None:
            _remove(runtime, known)
        made = store(runtime, function, in_lake=in_lake, dependencies=dependencies)
        assert made.relation is not None
        engine.expect(made.relation, rows)
        engine.insert_many(made.relation, rows)
    compile_constraints(made, catalog)


def _create_as(
    runtime: Runtime, statement: Statement, node: exp.Create, name: str, known: Function | None
) -> None:
    """A table with the columns and the rows that a query has now."""
    if isinstance(node.this, exp.Schema) or node.find(exp.LocationProperty) is not None:
        raise LanguageError(
            "the columns of CREATE TABLE AS are those of its query",
            code="unsupported",
            span=statement.span,
            hint="name them there, with AS",
        )
    _refuse_self(node, name, statement)
    found = Reading(runtime).rows(statement, node.expression)
    columns = tuple(
        Column(each.lower(), type_.or_null())
        for each, type_ in zip(found.names, found.types, strict=True)
    )
    refuse_equal_names([column.name for column in columns], "table", statement)
    in_lake = _in_lake(node, statement)
    declared = ", ".join(f"`{column.name}` {type_name(column.type)}" for column in columns)
    function = Function(
        name=name,
        parameters=(),
        results=columns,
        kind=FunctionKind.STORED,
        bag=True,
        text=f"CREATE TABLE `{name}` ({declared}){' USING lake' if in_lake else ''}",
        language=SQL,
    )
    function = replace(function, relation=relation_of(function))
    put_table(runtime, function, known, found.rows, in_lake=in_lake)
    recheck(runtime, name, skip=function.id)


def _with_key(
    columns: tuple[Column, ...], key: list[str], statement: Statement
) -> tuple[tuple[Column, ...], list[str]]:
    """KEY (...) at the end of the statement says the same as PRIMARY KEY among the columns."""
    names = [column.name for column in columns]
    unknown = next((each for each in statement.key if each not in names), None)
    if key or unknown is not None:
        raise TypeFault(
            "a table has one key" if key else f"there is no column {unknown} to be the key",
            code="exists" if key else "unknown-column",
            span=statement.span,
        )
    found = [
        replace(each, type=each.type.or_null(False)) if each.name in statement.key else each
        for each in columns
    ]
    return tuple(found), list(dict.fromkeys(statement.key))


def _in_lake(node: exp.Create, statement: Statement) -> bool:
    for each in node.find_all(exp.FileFormatProperty):
        if each.name.lower() == "lake":
            return True
        if each.name.lower() in FILE_FORMATS:
            continue
        raise LanguageError(
            f"a table is not kept as {each.name}",
            code="unsupported",
            span=statement.place(each),
            hint="say USING lake, or nothing",
        )
    return False


def _check_properties(node: exp.Create, statement: Statement) -> None:
    properties = node.args.get("properties")
    for each in properties.expressions if properties is not None else ():
        if not isinstance(each, PROPERTIES):
            raise LanguageError(
                f"{each.sql('spark')} is not there yet",
                code="unsupported",
                span=statement.span,
            )


def _columns(schema: exp.Schema, statement: Statement) -> tuple[tuple[Column, ...], list[str]]:
    """The columns, and the names of those that are the key."""
    columns: list[Column] = []
    key: list[str] = []
    keys = 0
    for each in schema.expressions:
        match each:
            case exp.ColumnDef():
                column, is_key = _column(each, statement)
                if column.name in [known.name for known in columns]:
                    raise TypeFault(
                        f"two columns are called {column.name}",
                        code="exists",
                        span=statement.place(each),
                    )
                columns.append(column)
                key += [column.name] if is_key else []
                keys += is_key
            case exp.PrimaryKey():
                key += [one.name.lower() for one in each.expressions]
                keys += 1
            case exp.Constraint(expressions=[exp.PrimaryKey() as named]):
                key += [one.name.lower() for one in named.expressions]
                keys += 1
            case exp.UniqueColumnConstraint() | exp.CheckColumnConstraint() | exp.ForeignKey():
                pass
            case exp.Constraint(expressions=[one]) if isinstance(one, CONSTRAINTS):
                pass
            case exp.Identifier():
                raise _without_type(each, statement)
            case _:
                raise LanguageError(
                    f"the constraint {each.sql('spark')} is not there yet",
                    code="unsupported",
                    span=statement.place(each),
                    hint="PRIMARY KEY, NOT NULL, DEFAULT, UNIQUE, CHECK and FOREIGN KEY are",
                )
    if keys > 1:
        raise TypeFault(
            "a table has one PRIMARY KEY",
            code="exists",
            span=statement.place(schema),
            hint="for a key of several columns: PRIMARY KEY (a, b)",
        )
    names = [column.name for column in columns]
    unknown = next((name for name in key if name not in names), None)
    if unknown is not None:
        near = nearest(unknown, names)
        raise NameFault(
            f"there is no column {unknown} to be the key",
            code="unknown-column",
            span=statement.place(schema),
            hint=f"did you mean {near}?" if near else None,
        )
    if not columns:
        raise LanguageError("a table needs columns", code="syntax", span=statement.span)
    return tuple(
        replace(column, type=column.type.or_null(False)) if column.name in key else column
        for column in columns
    ), list(dict.fromkeys(key))


def _without_type(node: exp.Expr, statement: Statement) -> TypeFault:
    return TypeFault(
        f"the column {node.name} has no type", code="syntax", span=statement.place(node)
    )


def _column(node: exp.ColumnDef, statement: Statement) -> tuple[Column, bool]:
    kind = node.args.get("kind")
    if kind is None:
        raise _without_type(node, statement)
    type_ = type_of(kind, statement.place(node))
    nullable, is_key = True, False
    for each in node.constraints:
        match each.args.get("kind"):
            case exp.NotNullColumnConstraint() as constraint:
                nullable = bool(constraint.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint():
                is_key = True
            case exp.DefaultColumnConstraint() | exp.CommentColumnConstraint():
                pass
            case constraint if isinstance(constraint, CONSTRAINTS):
                pass
            case _:
                raise LanguageError(
                    f"the constraint {each.sql('spark')} is not there yet",
                    code="unsupported",
                    span=statement.place(node),
                    hint="PRIMARY KEY, NOT NULL, DEFAULT, UNIQUE, CHECK and FOREIGN KEY are",
                )
    return Column(node.name.lower(), type_.or_null(nullable)), is_key


# --- views ---------------------------------------------------------------------------------


def _create_view(runtime: Runtime, statement: Statement, known: Function | None) -> Function | None:
    """Make a view, perhaps in the place of one that is known. A materialized view that replaces
    nothing is returned: it has no rows yet."""
    catalog = runtime.catalog
    function, mentioned = read_view(statement, catalog)
    if function.name in mentioned:
        raise LanguageError(
            f"the view {function.name} mentions itself",
            code="unsupported",
            span=statement.span,
            hint="a query mentions itself in WITH RECURSIVE",
        )
    refuse_circle(catalog, function.name, mentioned)
    function = replace(function, relation=relation_of(function))
    made = None
    if not function.materialized:
        _create_plain(runtime, function, known)
    elif known is not None and known.relation == function.relation:
        catalog.add_function(function, Dependencies(mentioned))
    else:
        if known is not None:
            _remove(runtime, known)
        made = store(runtime, function, dependencies=Dependencies(mentioned), resident=True)
        if known is not None:  # what reads it wants its rows
            kept = compile_kept(made, catalog)
            put_rows(runtime, kept, rows_of(runtime, kept))
    recheck(runtime, function.name, skip=function.id)
    return made if known is None else None


def _create_plain(runtime: Runtime, function: Function, known: Function | None) -> None:
    catalog = runtime.catalog
    if known is not None and known.materialized:
        _remove(runtime, known)
    catalog.provisional(function, Dependencies())
    mentioned = check_view(function, catalog)
    catalog.add_function(function, Dependencies(mentioned), single_valued=False)


def _remove(runtime: Runtime, known: Function) -> None:
    """Let go of what something else takes the place of."""
    runtime.rules.before_remaking(known)
    runtime.catalog.remove_function(known)


# --- DROP ----------------------------------------------------------------------------------


def drop(runtime: Runtime, statement: Statement) -> None:
    node = statement.node
    assert isinstance(node, exp.Drop)
    kind = str(node.args.get("kind", "")).upper()
    tables = node.args.get("tables") or [node.this]
    for each in tables:
        name = each.name
        known = SqlTables(runtime.catalog).function(name)
        if known is None or kind not in ("TABLE", "VIEW"):
            if node.args.get("exists"):
                continue
            there = SqlTables(runtime.catalog)
            raise unknown_table(there, name, statement.place(each), kind.lower())
        if is_view(known) != (kind == "VIEW"):
            raise NameFault(
                f"{name} is a {kind_of(known)}",
                code="type-mismatch",
                span=statement.place(each),
                hint=f"DROP {kind_of(known).upper()} {name}",
            )
        _drop(runtime, known, bool(node.args.get("cascade")), statement)


def drop_named(runtime: Runtime, name: str) -> None:
    known = SqlTables(runtime.catalog).function(name)
    if known is not None:
        _drop(runtime, known, False, None)


def drop_with_readers(runtime: Runtime, function: Function, statement: Statement) -> None:
    """DROP ... CASCADE."""
    _drop(runtime, function, True, statement)


def _staying(runtime: Runtime, function: Function, others: list[Function]) -> dict[str, str]:
    """What depends on a table and does not go with it, and how each can be ended."""
    found = {
        f.name: f"DROP TABLE {f.name}"
        if f.language == SQL
        else f"`delete function {f.name};` in AMOSQL"
        for f in others
    }
    rules = runtime.catalog.rules_that_call(function.name)
    found |= {f"rule {rule}": f"`delete rule {rule};` in AMOSQL" for rule in rules}
    watchers = runtime.monitors.users_of(function)
    return found | {each.title: each.ending for each in watchers}


def _drop(
    runtime: Runtime,
    function: Function,
    cascade: bool,
    statement: Statement | None,
    doomed: frozenset[str] = frozenset(),
) -> None:
    """`doomed` are those that are being dropped already: relations may depend on each other."""
    catalog = runtime.catalog
    runtime.reactions.before_schema_change({function.name})
    doomed |= {function.id}
    dependents = [f for f in catalog.dependents(function.name) if f.id not in doomed]
    views = [f for f in dependents if is_view(f)]
    staying = _staying(runtime, function, [f for f in dependents if not is_view(f)])
    users = ([] if cascade else sorted(f.name for f in views)) + list(staying)
    if users:
        ways = [f"first {', '.join(staying.values())}"] if staying else []
        ways += ["say CASCADE, or drop the views first"] if views and not cascade else []
        raise IntegrityError(
            f"{function.name} cannot be dropped: {', '.join(users)} would no longer work",
            code="in-use",
            span=statement.span if statement is not None else None,
            hint="; then ".join(ways),
        )
    for view in views:
        if catalog.has_function(view.id):
            _drop(runtime, view, cascade, statement, doomed)
    catalog.remove_function(function)
