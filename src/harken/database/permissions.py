"""Who may read and write what: grants, owners, and the user for whom a session works.

A session works for its operator (`user` is None), who may do everything, or for a user, who may do
what is granted to that user or to everybody (PUBLIC), and everything with what is the user's own.

A view reads with the rights of its owner: whoever may read the view need not be allowed to read
what it is made of, but its owner must be.

Law: nothing that a user did not own and was not granted is read or written for that user, whatever
text asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from harken.database.catalog import Catalog
from harken.engines.protocol import Field, RecordKind, Records
from harken.errors import IntegrityError, NameFault, Span
from harken.ir.schema import Function

PUBLIC = "public"
"""The grantee that stands for everybody."""


class Role(StrEnum):
    """What somebody may do with the service, from the least to the most."""

    GUEST = "guest"
    """Ad-hoc queries over what is granted to PUBLIC."""
    READER = "reader"
    """Follow and query what is granted."""
    AUTHOR = "author"
    """Also write what is granted, and create views and continual queries."""
    OPERATOR = "operator"
    """Everything."""


class Privilege(StrEnum):
    SELECT = "SELECT"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOTIFY = "NOTIFY"
    """Send messages by a channel."""


TABLE_PRIVILEGES = (Privilege.SELECT, Privilege.INSERT, Privilege.UPDATE, Privilege.DELETE)
GRANTS = RecordKind(
    "harken_grants",
    (
        Field("object", "integer"),
        Field("channel", "text"),
        Field("grantee", "text"),
        Field("privilege", "text"),
    ),
    key=("object", "channel", "grantee", "privilege"),
)
"""An object is named by its number, which a table that is created again does not get back."""
OWNERS = RecordKind(
    "harken_owners", (Field("object", "integer"), Field("account", "text")), key=("object",)
)


@dataclass(frozen=True, slots=True)
class User:
    """For whom a session works."""

    name: str
    role: Role

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR


@dataclass(frozen=True, slots=True)
class Grant:
    """A right to a table or view, by its number, or to a channel."""

    grantee: str
    privilege: Privilege
    object: int = 0
    channel: str = ""

    @property
    def record(self) -> tuple[int, str, str, str]:
        return self.object, self.channel, self.grantee, self.privilege.value


class NotPermitted(IntegrityError):
    """not-permitted."""

    def __init__(self, message: str, hint: str, span: Span | None = None) -> None:
        super().__init__(message, code="not-permitted", hint=hint, span=span)


class Permissions:
    """The grants of a database, and the user for whom this session works now."""

    def __init__(self, records: Records, catalog: Catalog) -> None:
        self._records = records
        self._catalog = catalog
        self.user: User | None = None
        self.account: str | None = None
        """The name of the user, an operator's as well; None if nobody signed in."""

    @contextmanager
    def acting_as(self, user: User | None) -> Iterator[None]:
        """In the block, work for this user; an operator may do everything."""
        before = self.user, self.account
        self.user = None if user is None or user.is_operator else user
        self.account = None if user is None else user.name
        try:
            yield
        finally:
            self.user, self.account = before

    # --- checks ----------------------------------------------------------------------------

    def check(self, function: Function, privilege: Privilege, span: Span | None = None) -> None:
        """Refuse, unless the session's user has this right to a table or view."""
        user = self.user
        if user is None or self.may(user.name, function, privilege):
            return
        if not self.may(user.name, function, Privilege.SELECT):
            raise NotPermitted(
                f"{user.name} may not read {function.name}",
                f"an operator can allow it: GRANT SELECT ON {function.name} TO {user.name}",
                span,
            )
        raise NotPermitted(
            f"{user.name} may read {function.name}, but not change it by {privilege}",
            f"an operator can allow it: GRANT {privilege} ON {function.name} TO {user.name}",
            span,
        )

    def check_role(self, role: Role, what: str, span: Span | None = None) -> None:
        """Refuse, unless the session's user has at least this role; `what` is what it takes."""
        user, order = self.user, list(Role)
        if user is not None and order.index(user.role) < order.index(role):
            raise NotPermitted(
                f"{user.name} is {_article(user.role)} {user.role}, and {what} takes "
                f"{_article(role)} {role}",
                "an operator can do it, or give you that role",
                span,
            )

    def may_see(self, function: Function) -> bool:
        """May the session's user read it?"""
        return self.user is None or self.may(self.user.name, function, Privilege.SELECT)

    def may(self, account: str, function: Function, privilege: Privilege) -> bool:
        return self._may(account, function, privilege, frozenset())

    def _may(
        self, account: str, function: Function, privilege: Privilege, above: frozenset[str]
    ) -> bool:
        if function.system or not function.oid or function.id in above:
            return False
        owner = self.owner(function)
        if owner != account and not self._is_granted(account, privilege, object=function.oid):
            return False
        if owner is None or function.relation is None:
            return True
        below = [each for name in self._mentioned(function) for each in self._catalog.named(name)]
        return all(
            self._may(owner, each, Privilege.SELECT, above | {function.id}) for each in below
        )

    def _mentioned(self, function: Function) -> frozenset[str]:
        return frozenset(self._catalog.dependencies(function.id).functions) - {function.name}

    def _is_granted(
        self, account: str, privilege: Privilege, *, object: int = 0, channel: str = ""
    ) -> bool:
        if not self._records.exist(GRANTS):
            return False
        wanted = {"object": object, "channel": channel, "privilege": privilege.value}
        return any(
            self._records.find(GRANTS, {**wanted, "grantee": each}) for each in (account, PUBLIC)
        )

    def check_channel(self, channel: str, span: Span | None = None) -> None:
        """Refuse, unless the session's user may send by this channel."""
        user = self.user
        channel = channel.lower()
        if user is not None and not self._is_granted(user.name, Privilege.NOTIFY, channel=channel):
            raise NotPermitted(
                f"{user.name} may not send messages by {channel}",
                f"an operator can allow it: GRANT NOTIFY ON CHANNEL {channel} TO {user.name}",
                span,
            )

    # --- grants and owners, in a transaction -----------------------------------------------

    def grant(self, grant: Grant) -> None:
        self._records.make_room(GRANTS)
        self._records.add(GRANTS, grant.record, replace=True)

    def revoke(self, grant: Grant) -> None:
        if self._records.exist(GRANTS):
            names = [field.name for field in GRANTS.fields]
            self._records.remove(GRANTS, dict(zip(names, grant.record, strict=True)))

    def grants(self) -> list[Grant]:
        if not self._records.exist(GRANTS):
            return []
        return [
            Grant(grantee, Privilege(given), object, channel)
            for object, channel, grantee, given in self._records.find(GRANTS)
        ]

    def owner(self, function: Function) -> str | None:
        """Whose it is; None if it is the operator's."""
        if not self._records.exist(OWNERS):
            return None
        found = self._records.find(OWNERS, {"object": function.oid})
        return str(found[0][1]) if found else None

    def give(self, object: int, account: str | None) -> None:
        """Make something another's; the operator's with None."""
        if account is not None:
            self._records.make_room(OWNERS)
            self._records.add(OWNERS, (object, account), replace=True)
        elif self._records.exist(OWNERS):
            self._records.remove(OWNERS, {"object": object})

    def move(self, before: int, after: int) -> None:
        """Something was replaced by another of its name: what was granted stays granted."""
        for kind in (GRANTS, OWNERS):
            if before != after and self._records.exist(kind):
                self._records.change(kind, {"object": before}, {"object": after})

    def check_owner(self, function: Function, what: str, span: Span | None = None) -> None:
        """Refuse, unless it is the session's user's own."""
        user = self.user
        if user is not None and self.owner(function) != user.name:
            raise NotPermitted(
                f"{function.name} is not {user.name}'s, so {user.name} cannot {what} it",
                "its owner or an operator can",
                span,
            )

    def forget_account(self, account: str) -> None:
        """An account is gone: what it owned is the operator's, what it was granted is not."""
        if self._records.exist(GRANTS):
            self._records.remove(GRANTS, {"grantee": account})
        if self._records.exist(OWNERS):
            self._records.remove(OWNERS, {"account": account})


def privilege_named(word: str, span: Span | None = None) -> Privilege:
    try:
        return Privilege(word.upper())
    except ValueError:
        raise NameFault(
            f"there is no privilege {word}",
            code="bad-value",
            span=span,
            hint=f"use {', '.join(Privilege)} or ALL",
        ) from None


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
