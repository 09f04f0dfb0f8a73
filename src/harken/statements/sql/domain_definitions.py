"""CREATE, ALTER, DROP, DESCRIBE and SHOW of domains.

A domain is a view whose text is CREATE DOMAIN, with every member's columns written out. So whatever
reads, watches, exports or grants views does the same with domains, and what changes a member is
checked against the domains over it.

Law: altering a domain is creating it anew with other members; its readers follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harken.database.function_tables import SqlTables, is_asked, table_of
from harken.database.runtime import Runtime
from harken.errors import HarkenError, NameFault, TypeFault, nearest
from harken.intake.source_records import SourceRecords
from harken.ir.schema import Function, Table
from harken.lang.sql.domain_statements import (
    MEMBER,
    DomainWords,
    Member,
    domain_text,
    domain_words,
)
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import unknown_table
from harken.lang.sql.type_names import type_name
from harken.statements.records import is_domain
from harken.statements.sql.dropping import drop_function
from harken.values.types import TEXT

if TYPE_CHECKING:
    from harken.database.catalog import Catalog


def words_of_domain(function: Function) -> DomainWords:
    """What CREATE DOMAIN said."""
    (statement,) = statements(function.text)
    found = domain_words(statement.node)
    assert found is not None
    return found


def domain_named(catalog: Catalog, name: str) -> Function:
    found = SqlTables(catalog).function(name)
    if found is not None and is_domain(found):
        return found
    known = [each.name for each in all_domains(catalog)]
    near = nearest(name, known)
    raise NameFault(
        f"{name} is no domain" if found is not None else f"there is no domain {name}",
        code="unknown-table",
        hint=f"did you mean {near}?"
        if near
        else f"the domains are {', '.join(known[:8])}"
        if known
        else "CREATE DOMAIN makes one",
    )


def all_domains(catalog: Catalog) -> list[Function]:
    return sorted(filter(is_domain, catalog.functions()), key=lambda each: each.name)


def defining(runtime: Runtime, words: DomainWords, given: Statement | None = None) -> Statement:
    """CREATE [OR REPLACE] DOMAIN with all that it leaves to the tables: which columns there are,
    and of which member. For ALTER DOMAIN, the domain that is there then."""
    catalog = runtime.catalog
    if words.verb != "create":
        words = _altered(words_of_domain(domain_named(catalog, words.name)), words)
    full = _explicit(catalog, words, given)
    (statement,) = statements(domain_text(full))
    statement.node.set("replace", words.replaces)
    statement.node.set("exists", words.if_exists)
    return statement


def _altered(known: DomainWords, change: DomainWords) -> DomainWords:
    known = replace(known, replaces=True)
    match change.verb:
        case "availability":
            return replace(known, skips=change.skips)
        case "remove":
            (gone,) = change.members
            kept = tuple(each for each in known.members if each.name != gone.name)
            if len(kept) == len(known.members):
                names = [each.name for each in known.members]
                near = nearest(gone.name, names)
                raise NameFault(
                    f"{gone.name} is no member of the domain {known.name}",
                    code="unknown-table",
                    hint=f"did you mean {near}?" if near else f"its members: {', '.join(names)}",
                )
            if not kept:
                raise TypeFault(
                    f"{gone.name} is the only member of the domain {known.name}",
                    code="in-use",
                    hint=f"DROP DOMAIN {known.name}",
                )
            return replace(known, members=kept)
        case _:
            return replace(known, members=(*known.members, *change.members))


# --- what the tables say ---------------------------------------------------------------------


def _explicit(catalog: Catalog, words: DomainWords, given: Statement | None) -> DomainWords:
    span = given.span if given is not None else None
    tables = SqlTables(catalog)
    found: dict[str, Table] = {}
    for each in words.members:
        table = tables.table(each.name)
        if table is None:
            raise unknown_table(tables, each.name, span)
        if each.name in found:
            raise NameFault(f"{each.name} is a member twice", code="exists", span=span)
        if each.name == words.name:
            raise TypeFault(f"{words.name} cannot be its own member", code="cycle", span=span)
        found[each.name] = table
    columns = words.columns or _all_columns(words, found)
    members = tuple(_with_columns(each, columns, found[each.name]) for each in words.members)
    for each in members:
        _check_member(each, columns, found[each.name], words.name)
    for name in columns:
        _check_texts(name, members, found)
    return replace(words, columns=columns, members=members)


def _all_columns(words: DomainWords, found: Mapping[str, Table]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for each in words.members:
        if each.columns is not None:
            names |= dict.fromkeys(called for _, called in each.columns)
        else:
            names |= dict.fromkeys(c.name for c in found[each.name].columns if c.name != MEMBER)
    return tuple(names)


def _with_columns(member: Member, columns: Sequence[str], table: Table) -> Member:
    if member.columns is not None:
        return member
    there = {each.name for each in table.columns}
    return replace(member, columns=tuple((each, each) for each in columns if each in there))


def _check_member(member: Member, columns: Sequence[str], table: Table, domain: str) -> None:
    types = {each.name: each.type for each in table.columns}
    if not member.columns:
        raise NameFault(
            f"{member.name} has none of the columns of the domain {domain}",
            code="unknown-column",
            hint=f"say which are meant: {member.name} (column AS {columns[0]}, ...)",
        )
    for column, called in member.columns:
        if column not in types:
            raise _no_column(column, list(types), member.name)
        if called not in columns:
            raise _no_column(called, columns, f"the domain {domain}")
        others = member.columns_of(called)
        if len(others) > 1 and any(types.get(each, TEXT) != TEXT for each in others):
            raise TypeFault(
                f"{', '.join(others)} of {member.name} are all called {called}, and only texts can "
                "be",
                code="type-mismatch",
                hint=f"give one of them the name {called}, and another name to the others",
            )


def _check_texts(name: str, members: Sequence[Member], tables: Mapping[str, Table]) -> None:
    """A name is of texts in all members or in none: nothing is read as a number here that is a
    text there."""
    first: tuple[str, str] | None = None
    for each in members:
        types = {column.name: column.type for column in tables[each.name].columns}
        for column in each.columns_of(name)[:1]:
            shown = type_name(types[column])
            first = first or (each.name, shown)
            if (shown == "STRING") != (first[1] == "STRING"):
                raise TypeFault(
                    f"{name} is {first[1]} in {first[0]} and {shown} in {each.name}",
                    code="type-mismatch",
                    hint=f"give the column of {each.name} another name, or make a view over "
                    f"{each.name} in which it has the type",
                )


def _no_column(name: str, known: Sequence[str], where: str) -> HarkenError:
    near = nearest(name, known)
    return NameFault(
        f"there is no column {name} in {where}",
        code="unknown-column",
        hint=f"did you mean {near}?" if near else f"its columns are {', '.join(known[:20])}",
    )


# --- answers ---------------------------------------------------------------------------------

LISTED = (("name", TEXT), ("members", TEXT), ("columns", TEXT), ("unavailable", TEXT))


def listed(runtime: Runtime) -> list[tuple[str, str, str, str]]:
    """What SHOW DOMAINS shows."""
    found = []
    for each in all_domains(runtime.catalog):
        if runtime.permissions.may_see(each):
            words = words_of_domain(each)
            members = ", ".join(member.name for member in words.members)
            columns = ", ".join(words.columns or ())
            found.append((each.name, members, columns, "skip" if words.skips else "fail"))
    return found


def details(runtime: Runtime, function: Function, failures: Mapping[str, str]) -> Mapping[str, str]:
    """What DESCRIBE DOMAIN shows. `failures` are those of members that were asked."""
    words = words_of_domain(function)
    found = {
        "name": function.name,
        "statement": function.text,
        "columns": ", ".join(f"{c.name} {type_name(c.type)}" for c in table_of(function).columns),
        "unavailable": "members that cannot be read have no rows"
        if words.skips
        else "a member that cannot be read is an error",
    }
    return found | dict(_of_members(runtime, words, failures))


def _of_members(
    runtime: Runtime, words: DomainWords, failures: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    tables = SqlTables(runtime.catalog)
    records = SourceRecords(runtime.engine.connection.records)
    for each in words.members:
        function, record = tables.function(each.name), records.find(each.name)
        parts = []
        for name in words.columns or ():
            columns = each.columns_of(name)
            parts.append(f"{name} from {' and '.join(columns)}" if columns else f"no {name}")
        if record is not None:
            parts.append(f"a source, {record.progress.state}")
        if function is not None and is_asked(function):
            parts.append("asked by each query")
        if each.name in failures:
            parts.append(f"could not be read at {failures[each.name]}")
        yield f"member {each.name}", "; ".join(parts)


def is_there(runtime: Runtime, name: str) -> bool:
    found = SqlTables(runtime.catalog).function(name)
    return found is not None and is_domain(found)


def listed_domains(runtime: Runtime) -> tuple[Any, Any, Any]:
    names, types = zip(*LISTED, strict=True)
    return names, listed(runtime), types


def describe_domain(runtime: Runtime, name: str, failures: Mapping[str, str]) -> None:
    rows = list(details(runtime, domain_named(runtime.catalog, name), failures).items())
    runtime.emit("rows", ("property", "value"), rows, (TEXT, TEXT))


# --- drop ------------------------------------------------------------------------------------


def drop_domain(runtime: Runtime, words: DomainWords, statement: Statement) -> None:
    if words.if_exists and SqlTables(runtime.catalog).function(words.name) is None:
        return
    function = domain_named(runtime.catalog, words.name)
    drop_function(runtime, function, words.cascade, statement)
