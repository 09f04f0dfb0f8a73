"""Resolves the name of a table, a view, a relation or a function.

`db.monitor`, `db.explain` and the service accept names from any language. An unknown name is
reported in the words of the languages that the database was made with: an SQL user, who has tables
and views, does not read about functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harken.database.catalog import Catalog
from harken.database.language_names import AMOSQL, DATALOG, PYTHON, SQL
from harken.errors import NameFault, nearest
from harken.ir.schema import Function
from harken.lang.amosql.overload_resolution import unknown_function

WORDS = {SQL: "table or view", DATALOG: "relation", AMOSQL: "function"}
"""What each language calls its objects."""
FIRST = {
    SQL: "create it first: CREATE TABLE or CREATE VIEW",
    DATALOG: "declare it first: .decl",
    AMOSQL: "create it first with `create function`",
}


def unknown_name(catalog: Catalog, name: str, rules: Collection[str] = ()) -> NameFault:
    """`rules` are those that the name could have meant as well."""
    known = [each for each in catalog.functions() if _is_shown(each)]
    used = {AMOSQL if each.language == PYTHON else each.language for each in known}
    languages = [each for each in WORDS if each in used] or list(WORDS)
    if languages == [AMOSQL] and not rules and "." not in name:
        return unknown_function(catalog, name, None)
    near = nearest(name, [*rules, *_names(catalog, known)])
    first = FIRST[languages[0]] if len(languages) == 1 else "create it first"
    return NameFault(
        f"there is no {_or([WORDS[each] for each in languages], rules)} {name}",
        code="unknown-function",
        hint=f"did you mean {near}?" if near else first,
    )


def _is_shown(function: Function) -> bool:
    return not function.system and not function.facts_of


def _names(catalog: Catalog, known: list[Function]) -> Iterator[str]:
    for each in known:
        if len(catalog.named(each.name)) == 1:
            yield each.name
        if each.parameters and each.language not in (SQL, DATALOG):
            yield f"{each.parameters[0].type.name}.{each.name}"


def _or(words: list[str], rules: Collection[str]) -> str:
    """
    >>> _or(["table or view"], []), _or(["table or view", "function"], ["order"])
    ('table or view', 'rule, table, view or function')
    """
    *others, last = " or ".join([*(["rule"] if rules else []), *words]).split(" or ")
    return f"{', '.join(others)} or {last}" if others else last
