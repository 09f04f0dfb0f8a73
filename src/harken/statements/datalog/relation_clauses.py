"""Derived relations: from the text kept in the catalog to clauses."""

from __future__ import annotations

from collections.abc import Iterable

from harken.database.catalog import Catalog
from harken.ir.clauses import Definition
from harken.ir.relations import Relation
from harken.ir.schema import Function, Schema
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.translate import Translator
from harken.statements.datalog.function_relations import CatalogRelations, types_of
from harken.statements.datalog.text import facts_name, kept


def translate_relation(
    function: Function, schema: Schema
) -> tuple[tuple[Definition, ...], frozenset[str]]:
    """The clauses of a relation, and the names that its rules mention."""
    assert isinstance(schema, Catalog)
    return translate_rules(function, kept(function.text).rules, schema, types_of(schema))


def translate_rules(
    function: Function, rules: Iterable[syntax.Rule], catalog: Catalog, types: Types
) -> tuple[tuple[Definition, ...], frozenset[str]]:
    relations = CatalogRelations(catalog, types)
    translator = Translator(relations, types, owner=function.name)
    known = relations.find(function.name)
    assert known is not None
    base = facts_relation(function.name, catalog)
    main = translator.definition(known, rules, base=base, limit=kept(function.text).limit)
    mentioned = set(translator.mentioned)
    if base is not None:
        mentioned.add(base.name)
    return (main, *translator.auxiliaries.values()), frozenset(mentioned)


def facts_relation(name: str, catalog: Catalog) -> Relation | None:
    """The relation that holds the facts of a relation with rules, if it has any."""
    found = catalog.overloads(facts_name(name))
    return found[0].relation if found else None
