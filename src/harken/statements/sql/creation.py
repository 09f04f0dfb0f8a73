"""CREATE of tables and views, and replacing existing ones."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from harken.database.function_tables import SqlTables, asked_below
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.database.system import relation_of
from harken.errors import IntegrityError, LanguageError, NameFault
from harken.ir.schema import Function
from harken.lang.sql.domain_statements import DomainDefinition
from harken.lang.sql.parser import Statement
from harken.statements.dependents import recheck, refuse_circle
from harken.statements.records import is_domain, refuse_redefinition
from harken.statements.sql.dropping import drop_function
from harken.statements.sql.materialized_views import compile_kept, put_rows, rows_of
from harken.statements.sql.table_creation import (
    create_table,
    created_name,
    make_way,
    refuse_self,
    wants_lake,
)
from harken.statements.sql.view_clauses import (
    check_view,
    is_view,
    kind_of,
    read_view,
)

LONGEST_NAME = 200
PROPERTIES = (
    exp.FileFormatProperty,
    exp.MaterializedProperty,
    exp.LocationProperty,
    exp.SchemaCommentProperty,
    exp.TemporaryProperty,
)


def create(runtime: Runtime, statement: Statement) -> Function | None:
    """Create a table or a view; a materialized view is returned, because it has no rows yet."""
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
        if not (isinstance(node, DomainDefinition) and is_domain(known)):
            refuse_redefinition(known)
        if not _may_replace(node, known):
            raise NameFault(
                f"there is already a {kind_of(known)} {name}",
                code="exists",
                span=statement.place(node.this),
                hint=f"drop it first: DROP {kind_of(known).upper()} {name}"
                if node.args.get("replace")
                else f"drop it first, or CREATE {_word(node)} IF NOT EXISTS",
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
    create_table(runtime, statement, node, name, known)
    return None


def _word(node: exp.Create) -> str:
    return "DOMAIN" if isinstance(node, DomainDefinition) else str(node.args["kind"]).upper()


def make_room(runtime: Runtime, statement: Statement) -> bool:
    """Drop what CREATE OR REPLACE TABLE replaces, if its rows are in the lake or go there: then
    nothing may read it. Everything else is replaced in place, see `create`."""
    node = statement.node
    assert isinstance(node, exp.Create)
    known = SqlTables(runtime.catalog).function(created_name(node))
    if known is None or known.relation is None or not _may_replace(node, known) or is_view(known):
        return False
    refuse_redefinition(known)
    located = node.find(exp.LocationProperty) is not None or runtime.all_in_lake
    if not (located or wants_lake(node, statement) or runtime.engine.is_in_lake(known.relation)):
        return False
    refuse_self(node, known.name, statement)
    readers = runtime.catalog.dependents(known.name)
    if readers:
        raise IntegrityError(
            f"{known.name} cannot be replaced: {', '.join(sorted(f.name for f in readers))} "
            f"{'reads' if len(readers) == 1 else 'read'} it",
            code="in-use",
            span=statement.span,
            hint=(
                "drop those first: a table in the lake can be replaced only when nothing reads it"
            ),
        )
    drop_function(runtime, known, False, statement)
    return True


def _may_replace(node: exp.Create, known: Function) -> bool:
    """A table can replace a table, and a view a view, materialized or not; but nothing replaces
    something with arguments, or a name that differs in case."""
    if not node.args.get("replace") or known.name != created_name(node):
        return False
    if str(node.args.get("kind", "")).upper() == "TABLE":
        return not is_view(known)
    is_same_kind = is_domain(known) == isinstance(node, DomainDefinition)
    return is_view(known) and is_same_kind and not known.parameters


def _check_properties(node: exp.Create, statement: Statement) -> None:
    properties = node.args.get("properties")
    for each in properties.expressions if properties is not None else ():
        if not isinstance(each, PROPERTIES):
            raise LanguageError(
                f"{each.sql('spark')} is not supported",
                code="unsupported",
                span=statement.span,
            )


def _create_view(runtime: Runtime, statement: Statement, known: Function | None) -> Function | None:
    """Create a view, perhaps in place of an existing one. A materialized view that replaces nothing
    is returned: it has no rows yet."""
    catalog = runtime.catalog
    function, mentioned = read_view(statement, catalog)
    if function.name in mentioned:
        raise LanguageError(
            f"the view {function.name} mentions itself",
            code="unsupported",
            span=statement.span,
            hint="only WITH RECURSIVE allows a query to mention itself",
        )
    refuse_circle(catalog, function.name, mentioned)
    asked = asked_below(catalog, mentioned) if function.materialized else None
    if asked is not None:
        raise LanguageError(
            f"{asked} has no mirror, so nobody learns when it changes",
            code="unsupported",
            span=statement.span,
            hint="create a view that is not materialized, or the source without MIRROR none",
        )
    function = replace(function, relation=relation_of(function))
    made = None
    if not function.materialized:
        _create_plain(runtime, function, known)
    elif known is not None and known.relation == function.relation:
        catalog.add_function(function, Dependencies(mentioned))
    else:
        if known is not None:
            make_way(runtime, known)
        made = store(runtime, function, dependencies=Dependencies(mentioned), resident=True)
        if known is not None:  # its readers need its rows
            kept = compile_kept(made, catalog)
            put_rows(runtime, kept, rows_of(runtime, kept))
    recheck(runtime, function.name, skip=function.id)
    return made if known is None else None


def _create_plain(runtime: Runtime, function: Function, known: Function | None) -> None:
    catalog = runtime.catalog
    if known is not None and known.materialized:
        make_way(runtime, known)
    catalog.provisional(function, Dependencies())
    mentioned = check_view(function, catalog)
    catalog.add_function(function, Dependencies(mentioned), single_valued=False)
