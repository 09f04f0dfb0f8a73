"""Carries out GRANT and REVOKE, and answers SHOW GRANTS.

An operator grants everything, an owner what is the owner's own. Grants take effect with the commit,
for statements that begin after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from harken.database.audit_log import note_change
from harken.database.function_tables import SqlTables
from harken.database.permissions import (
    PUBLIC,
    TABLE_PRIVILEGES,
    Grant,
    Privilege,
    Role,
    privilege_named,
)
from harken.database.runtime import Runtime
from harken.errors import NameFault
from harken.ir.schema import Function
from harken.lang.sql.grant_statements import Granting
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import unknown_table
from harken.values.types import TEXT


def carry_out(runtime: Runtime, statement: Statement) -> None:
    """In a transaction: GRANT or REVOKE."""
    node, permissions = statement.node, runtime.permissions
    assert isinstance(node, Granting)
    store: Callable[[Grant], None] = (
        permissions.grant if node.verb == "GRANT" else permissions.revoke
    )
    for grant in list(_grants(runtime, statement, node)):
        store(grant)
    what = ", ".join(each.name for each in node.objects)
    people = f"{', '.join(node.privileges)} {', '.join(node.accounts)}"
    note_change(runtime, node.verb.lower(), what, people)


def _grants(runtime: Runtime, statement: Statement, node: Granting) -> Iterator[Grant]:
    on_channel = bool(node.args.get("on_channel"))
    privileges = _privileges(statement, node, on_channel)
    for named in node.objects:
        if on_channel:
            runtime.permissions.check_role(
                Role.OPERATOR, "granting channels", statement.place(named)
            )
            channel = named.name.lower()
            yield from (Grant(to, Privilege.NOTIFY, channel=channel) for to in node.accounts)
            continue
        function = _function(runtime, statement, named)
        runtime.permissions.check_owner(function, "grant rights to", statement.place(named))
        for to in node.accounts:
            yield from (Grant(to, each, function.oid) for each in privileges)


def _privileges(statement: Statement, node: Granting, on_channel: bool) -> tuple[Privilege, ...]:
    if node.privileges == ["ALL"]:
        return TABLE_PRIVILEGES
    named = tuple(privilege_named(each, statement.span) for each in node.privileges)
    if on_channel != (Privilege.NOTIFY in named) or (on_channel and len(named) > 1):
        raise NameFault(
            "NOTIFY is granted on a channel, and every other privilege on a table or view",
            code="bad-value",
            span=statement.span,
            hint="GRANT NOTIFY ON CHANNEL email TO ann; GRANT SELECT ON sale TO ann",
        )
    return named


def _function(runtime: Runtime, statement: Statement, named: exp.Table) -> Function:
    tables = SqlTables(runtime.catalog)
    function = tables.function(named.name)
    if function is None:
        raise unknown_table(tables, named.name, statement.place(named))
    return function


def show_grants(runtime: Runtime, statement: Statement) -> None:
    """Operators see all grants; others what is granted to them, and on what is theirs."""
    node, permissions = statement.node, runtime.permissions
    assert isinstance(node, Granting)
    names = {each.oid: each for each in runtime.catalog.functions() if each.oid}
    wanted = {_function(runtime, statement, each).oid for each in node.objects}
    user, rows = permissions.user, []
    for grant in permissions.grants():
        function = names.get(grant.object)
        if function is None and not grant.channel:
            continue  # it was dropped
        owner = None if function is None else permissions.owner(function)
        is_ours = user is None or grant.grantee in (user.name, PUBLIC) or owner == user.name
        is_asked = not wanted or grant.object in wanted
        if is_ours and is_asked and (not node.accounts or grant.grantee in node.accounts):
            name = f"channel {grant.channel}" if function is None else function.name
            rows.append((name, grant.grantee, grant.privilege.value))
    runtime.emit("rows", ("object", "grantee", "privilege"), sorted(rows), (TEXT,) * 3)
