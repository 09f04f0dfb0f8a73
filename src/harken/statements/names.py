"""What a person may mean by a name of a table, a view, a relation or a function.

`db.monitor`, `db.explain` and the service take names whichever language made what is named. A name
that is not there is answered in the words of the languages that the database was made with: an SQL
user, who has tables and views, is not told of functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harken.database.catalog import Catalog
from harken.errors import NameFault, nearest
from harken.ir.schema import Function
from harken.lang.amosql.overload_resolution import unknown_function
from harken.statements.datalog.text import FACTS, is_datalog
from harken.statements.sql.tables import is_sql

SQL, DATALOG, AMOSQL = "table or view", "relation", "function"
FIRST = {
    SQL: "create it first: CREATE TABLE or CREATE VIEW",
    DATALOG: "declare it first: .decl",
    AMOSQL: "create it first with `create function`",
}


def unknown_name(catalog: Catalog, name: str, rules: Collection[str] = ()) -> NameFault:
    """`rules` are those that the name could have meant as well."""
    known = [each for each in catalog.functions() if _is_shown(each)]
    spoken = {_language(each) for each in known}
    words = [word for word in (SQL, DATALOG, AMOSQL) if word in spoken] or [SQL, DATALOG, AMOSQL]
    if words == [AMOSQL] and not rules and "." not in name:
        return unknown_function(catalog, name, None)
    near = nearest(name, [*rules, *_names(catalog, known)])
    first = FIRST[words[0]] if len(words) == 1 else "create it first"
    return NameFault(
        f"there is no {_or(words, rules)} {name}",
        code="unknown-function",
        hint=f"did you mean {near}?" if near else first,
    )


def _is_shown(function: Function) -> bool:
    return not function.system and not function.name.endswith(FACTS)


def _language(function: Function) -> str:
    if is_sql(function):
        return SQL
    return DATALOG if is_datalog(function) else AMOSQL


def _names(catalog: Catalog, known: list[Function]) -> Iterator[str]:
    for each in known:
        if len(catalog.named(each.name)) == 1:
            yield each.name
        if each.parameters and _language(each) == AMOSQL:
            yield f"{each.parameters[0].type.name}.{each.name}"


def _or(words: list[str], rules: Collection[str]) -> str:
    """
    >>> _or(["table or view"], []), _or(["table or view", "function"], ["order"])
    ('table or view', 'rule, table, view or function')
    """
    *others, last = " or ".join([*(["rule"] if rules else []), *words]).split(" or ")
    return f"{', '.join(others)} or {last}" if others else last
