"""For whom a session works, and what is granted, as functions of queries, rules and views.

    user()                        the account; no value in a session that works for its operator
    granted(account, privilege)   the tables and views that an account may use so

They are looked up when they are called. A grant is no event: a rule that calls them acts on what
the tables say.
"""

from __future__ import annotations

from harken.database.permissions import Permissions, privilege_named
from harken.database.runtime import Runtime
from harken.statements.amosql.foreign import offer_in_session


def offer(runtime: Runtime) -> None:
    permissions: Permissions = runtime.permissions

    def user() -> str | None:
        return permissions.account

    def granted(account: str, privilege: str) -> list[str]:
        wanted = privilege_named(privilege)
        return sorted(
            each.name
            for each in runtime.catalog.functions()
            if not each.system and permissions.may(account, each, wanted)
        )

    offer_in_session(runtime, "user", user)
    offer_in_session(runtime, "granted", granted)
