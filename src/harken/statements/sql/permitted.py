"""Is a statement permitted to the user for whom the session works?

Every table that a statement names anywhere must be readable, and the table that it changes must be
granted for that change. What is not listed here is for operators.

Law: a statement is checked as a whole before any part of it runs. For the operator nothing is
looked up.
"""

from __future__ import annotations

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.permissions import Privilege, Role
from harken.database.runtime import Runtime
from harken.lang.sql.continual_statements import Continual
from harken.lang.sql.domain_statements import DomainStatement, domain_words
from harken.lang.sql.grant_statements import Granting
from harken.lang.sql.parser import Statement
from harken.lang.sql.source_statements import SourceStatement, SourceWords

WORDS = (exp.Transaction, exp.Commit, exp.Rollback, exp.Show, exp.Describe, Granting)
"""Statements whose own code looks at permissions, or that need none. SHOW lists what may be read;
who may grant is the business of GRANT."""


def check_permitted(runtime: Runtime, statement: Statement) -> None:
    permissions, node = runtime.permissions, statement.node
    if permissions.user is None:
        return
    if isinstance(node, exp.Show | exp.Transaction | exp.Commit | exp.Rollback | Granting):
        return
    if isinstance(node, Continual):
        return  # continual/query_permissions.py looks at what it reads and sends, and whose it is
    _check_reading(runtime, statement)
    match node:
        case exp.Query() | exp.Values() | exp.Describe():
            return
        case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge() | exp.TruncateTable():
            permissions.check_role(Role.AUTHOR, "changing rows", statement.span)
            _check_change(runtime, statement)
        case exp.Create() | exp.Drop() if _is_plain_view(node):
            permissions.check_role(Role.AUTHOR, "defining views", statement.span)
            _check_definition(runtime, statement)
        case DomainStatement():
            _check_domain(runtime, statement)
        case SourceStatement(args={"this": SourceWords(verb="show")}):
            return  # it lists what may be read
        case _:
            permissions.check_role(Role.OPERATOR, "this statement", statement.span)


def _check_domain(runtime: Runtime, statement: Statement) -> None:
    """Its owner alters and drops it like a view; what it is then is checked as CREATE DOMAIN."""
    words, permissions = domain_words(statement.node), runtime.permissions
    assert words is not None
    if words.verb == "show":
        return  # it lists what may be read
    function = SqlTables(runtime.catalog).function(words.name)
    if words.verb == "describe":
        if function is not None:
            permissions.check(function, Privilege.SELECT, statement.span)
        return
    permissions.check_role(Role.AUTHOR, "defining domains", statement.span)
    if words.cascade:
        permissions.check_role(Role.OPERATOR, "DROP ... CASCADE", statement.span)
    if function is not None:
        verb = "drop" if words.verb == "drop" else "replace"
        permissions.check_owner(function, verb, statement.span)


def _check_reading(runtime: Runtime, statement: Statement) -> None:
    """The name of a WITH query may hide a table; it is checked all the same, because within the
    query the name still means the table."""
    tables, permissions = SqlTables(runtime.catalog), runtime.permissions
    created = statement.node.this if isinstance(statement.node, exp.Create) else None
    for named in statement.node.find_all(exp.Table):
        function = tables.function(named.name) if named.name else None
        if function is not None and named is not created:
            permissions.check(function, Privilege.SELECT, statement.place(named))


def _check_change(runtime: Runtime, statement: Statement) -> None:
    node = statement.node
    named = node.expressions[0] if isinstance(node, exp.TruncateTable) else node.this
    named = named if isinstance(named, exp.Table) else named.find(exp.Table)
    function = None if named is None else SqlTables(runtime.catalog).function(named.name)
    if function is not None:
        for privilege in _changes(node):
            runtime.permissions.check(function, privilege, statement.place(named))


def _changes(node: exp.Expr) -> tuple[Privilege, ...]:
    match node:
        case exp.Insert() if node.args.get("conflict"):
            return Privilege.INSERT, Privilege.UPDATE
        case exp.Insert() if node.args.get("overwrite"):
            return Privilege.INSERT, Privilege.DELETE
        case exp.Insert():
            return (Privilege.INSERT,)
        case exp.Update():
            return (Privilege.UPDATE,)
        case exp.Merge():
            return Privilege.INSERT, Privilege.UPDATE, Privilege.DELETE
    return (Privilege.DELETE,)


def _is_plain_view(node: exp.Expr) -> bool:
    """A view that stores nothing: it costs others nothing."""
    is_view = str(node.args.get("kind", "")).upper() == "VIEW"
    return is_view and node.find(exp.MaterializedProperty, exp.TemporaryProperty) is None


def _check_definition(runtime: Runtime, statement: Statement) -> None:
    """Only the owner replaces or drops a view, and nobody else's with it."""
    node, permissions = statement.node, runtime.permissions
    if isinstance(node, exp.Drop) and node.args.get("cascade"):
        permissions.check_role(Role.OPERATOR, "DROP ... CASCADE", statement.span)
    named = (node.args.get("tables") or [node.this])[0]
    function = SqlTables(runtime.catalog).function(named.name or named.this.name)
    if function is not None and (isinstance(node, exp.Drop) or node.args.get("replace")):
        what = "drop" if isinstance(node, exp.Drop) else "replace"
        permissions.check_owner(function, what, statement.span)


def object_of(runtime: Runtime, statement: Statement) -> int | None:
    """The number of what a definition is about, if it exists."""
    named = statement.node.find(exp.Table)
    function = None if named is None else SqlTables(runtime.catalog).function(named.name)
    return None if function is None else function.oid


def note_defined(runtime: Runtime, statement: Statement, before: int | None) -> None:
    """What was replaced keeps its grants and its owner; what is new is the session's user's."""
    after, permissions = object_of(runtime, statement), runtime.permissions
    if after is None:
        return
    if before is not None:
        permissions.move(before, after)
    elif permissions.user is not None:
        permissions.give(after, permissions.user.name)
