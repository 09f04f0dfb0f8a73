"""What must hold of every database file, whatever happened to it."""

from __future__ import annotations

from harken import Database
from harken.engines.sqlite.layout import table_name
from harken.ir.relations import extent_relation
from harken.ir.schema import FunctionKind
from harken.values.types import Type


def check(db: Database) -> None:
    """Assert that file, tables and catalog agree with each other."""
    check_file(db)
    check_tables(db)
    check_extents(db)
    check_definitions(db)


def rows(db: Database, sql: str) -> list[tuple]:  # type: ignore[type-arg]
    return db.internals.connection.raw.execute(sql).fetchall()


def check_file(db: Database) -> None:
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    assert rows(db, "PRAGMA foreign_key_check") == []


def check_tables(db: Database) -> None:
    """Every stored function and type has its table, and every table its function or type."""
    catalog = db.internals.catalog
    lake_relations = db.internals.engine.lake_relations
    stored = {
        lake_relations[relation.id].pending.name
        if relation.id in lake_relations
        else table_name(relation)
        for relation in catalog.stored_relations()
        if relation.id not in lake_relations or lake_relations[relation.id].place.is_own
    }
    extents = {table_name(extent_relation(Type(name))) for name in catalog.hierarchy}
    found = {name for (name,) in rows(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    rules = {name for name in found if name.startswith("activations of ")}
    assert len(rules) == len(catalog.rules)
    own = {name for name in found if name.startswith("harken_")}
    assert found - own - rules == stored | extents


def check_extents(db: Database) -> None:
    """An object of a type is one of its supertypes; its number counts as given."""
    hierarchy = db.internals.catalog.hierarchy
    members = {
        name: {
            oid
            for (oid,) in rows(db, f'SELECT c0 FROM "{table_name(extent_relation(Type(name)))}"')
        }
        for name in hierarchy
    }
    for name, above in hierarchy.supertypes.items():
        for supertype in above:
            assert members[name] <= members[supertype]
    if not db.in_transaction:  # the counter is written when a transaction ends
        ((next_oid,),) = rows(db, "SELECT value FROM harken_meta WHERE key = 'next_oid'")
        assert max(members["object"]) < next_oid


def check_definitions(db: Database) -> None:
    """Every function in the catalog can be used as what it says it is."""
    catalog = db.internals.catalog
    for function in catalog.functions():
        if function.kind is FunctionKind.DERIVED:
            assert function.relation is not None
            assert catalog.definitions(function.relation)
        if function.name.removesuffix("_activations") in catalog.rules or not function.oid:
            continue  # it comes with the rule or the session, and is no object of its own
        ((name,),) = db.amosql(
            f"select name(f) for each function f where f = #'{spelled(function)}';"
        ).rows
        assert name == function.name


def spelled(function) -> str:  # type: ignore[no-untyped-def]
    if not function.parameters:
        return str(function.name)
    return f"{function.parameters[0].type}.{function.name}"
