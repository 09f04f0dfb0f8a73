"""Whose continual queries are, and what a user's may read and say.

A session that works for its operator may do everything. One that works for a user sees and changes
the user's own, and installs those that read only what the user may read and send only by channels
that are granted with NOTIFY.

Law: nothing reaches a user by a continual query that the user may not read.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from harken.continual.installed_queries import InstalledQuery
from harken.continual.words import words_of
from harken.database.accounts import Account, Accounts, State
from harken.database.permissions import NotPermitted, Privilege, Role
from harken.database.runtime import Runtime
from harken.errors import Span


class QueryPermissions:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def user_name(self) -> str | None:
        user = self._runtime.permissions.user
        return None if user is None else user.name

    def sees(self, query: InstalledQuery) -> bool:
        return self.user_name in (None, query.owner)

    @contextmanager
    def of_owner(self, query: InstalledQuery) -> Iterator[bool]:
        """In the block, work for the owner, if that is a user with an account and no operator: then
        True. An owner who may not sign in any more gets nothing."""
        connection = self._runtime.engine.connection
        account = Accounts(connection.records, connection.now).find(query.owner)
        if account is None or account.user.is_operator:
            yield False
            return
        if not account.may_sign_in(connection.now()):
            raise NotPermitted(
                f"the account of {query.owner} is {self._why_not(account)}",
                "an operator can renew or enable it; the query then goes on by itself",
            )
        with self._runtime.permissions.acting_as(account.user):
            yield True

    def _why_not(self, account: Account) -> str:
        return "over" if account.state is State.ACTIVE else f"{account.state}"

    def check_own(self, query: InstalledQuery | None) -> None:
        """Refuse, unless it is the session's user's own."""
        if query is not None and not self.sees(query):
            raise NotPermitted(
                f"{query.title} is not {self.user_name}'s", "its owner or an operator can do that"
            )

    def check_installs(
        self, query: InstalledQuery, names: Iterable[str], span: Span | None = None
    ) -> None:
        """Refuse clauses that read, send or do more than the user may; `names` are the tables and
        views that the query and its trigger read."""
        permissions, clauses = self._runtime.permissions, query.clauses
        if permissions.user is None:
            return
        permissions.check_role(Role.AUTHOR, "a continual query", span)
        self.check_own(query)
        if clauses.deadline is not None and clauses.deadline.contingency is not None:
            raise _for_operators("DEADLINE ... ELSE runs any statement", span)
        if clauses.stop.condition is not None:
            raise _for_operators("STOP WHEN may read any table", span)
        if any(each.upper == "SELECT" for each in words_of(str(clauses.trigger))):
            raise _for_operators("a SELECT in TRIGGER may read any table", span)
        for recipient in clauses.notify:
            permissions.check_channel(recipient.channel, span)
        for name in sorted(set(names)):
            for function in self._runtime.catalog.named(name):
                permissions.check(function, Privilege.SELECT, span)


def _for_operators(what: str, span: Span | None) -> NotPermitted:
    return NotPermitted(f"{what}, so it is for operators", "leave it out, or ask an operator", span)


def user_of_process() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
