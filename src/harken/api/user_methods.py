"""What a session may be asked to do while it works for a user who is no operator.

Law: everything that is not listed here is refused. Each of these checks what the user may read and
write: statements in `statements/sql/permitted.py`, views in `Internals.function`, continual queries
in `continual/query_permissions.py`.
"""

from __future__ import annotations

from harken.database.permissions import User
from harken.errors import TypeFault

QUERY_LIST = ("install", "get", "list", "install_all", "check", "preview", "prepare", "replay")
QUERY = (
    *("status", "history", "execution", "describe", "deliveries", "resend", "run", "_change"),
    "drop",
)
"""A user's own continual queries (`continual/query_permissions.py`)."""
DOMAINS = ("list", "describe", "create", "add", "remove", "skip_unavailable", "drop")
"""Each is a statement, which looks at what the user may."""
FOR_USERS = frozenset(
    {
        "Database.sql",
        "Database.signal",
        "Database.run_program",
        "Database.definitions",
        "Database.describe_table",
        "Database.readers_of",
        "Database.views",
        "Database.describe",
        "Database.snapshot",
        "Database.monitor",
        "Database.changes_after",
        "Database.history",
        *(f"ContinualQueryList.{name}" for name in QUERY_LIST),
        *(f"ContinualQuery.{name}" for name in QUERY),
        "Sources.list",
        *(f"Domains.{name}" for name in DOMAINS),
        "Subscription.changes",
        "Subscription.snapshot",
        "Subscription.close",
        "Subscription.__enter__",
        "Subscription.__exit__",
    }
)


def methods_for(user: User | None) -> frozenset[str] | None:
    """The methods, as `Class.method`; None for all."""
    if user is not None and not isinstance(user, User):
        raise TypeFault(
            "a session works for a user or, with None, for the operator",
            code="type-mismatch",
            hint='User("ann", Role.READER)',
        )
    return None if user is None or user.is_operator else FOR_USERS
