"""The users of a service, as `db.users`: accounts, passwords, invitations, sessions, API tokens.

Every change is recorded in the audit log, in the same transaction.
"""

from __future__ import annotations

import builtins
import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harken.api.internals import Internals
from harken.database.accounts import (
    Account,
    Accounts,
    Key,
    KeyKind,
    State,
    check_password,
    is_password,
)
from harken.database.arguments import check_text, check_whole
from harken.database.audit_log import AuditLog, Entry
from harken.database.exclusive import SessionLock, exclusive
from harken.database.permissions import Role
from harken.errors import IntegrityError, NameFault, ValueFault, offered

DAY = 86_400.0
INVITATION_DAYS = 14
RESET_SECONDS = 3_600.0
MOST_KEYS = 100
"""Sessions, and API tokens, that an account has at most; the oldest session ends for a new one."""
SCOPES = ("read", "write", "admin")
"""What an API token is good for; none given is everything that its account may do."""


class UserAccounts:
    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock
        runtime = internals.runtime
        records, now = runtime.engine.connection.records, runtime.engine.connection.now
        self._accounts = Accounts(records, now)
        self._permissions = runtime.permissions
        self._audit = AuditLog(records, now, lambda: int(runtime.settings["audit_entries"]))
        self._now: Callable[[], datetime.datetime] = now

    @contextmanager
    def _changing(self) -> Iterator[Accounts]:
        self._internals.check_open()
        with self._internals.alone():
            yield self._accounts

    # --- accounts --------------------------------------------------------------------------

    @exclusive
    def list(self) -> builtins.list[Account]:
        """All accounts, by name."""
        self._internals.look()
        return self._accounts.all()

    @exclusive
    def find(self, name: str) -> Account:
        self._internals.look()
        check_text(name, "the name of a user")
        return self._accounts.named(name)

    @exclusive
    def add(
        self,
        name: str,
        *,
        role: str = "reader",
        email: str = "",
        password: str | None = None,
        days: int | None = None,
        by: str = "",
    ) -> Account:
        """Create an account. Without a password nobody can sign in to it before one is set by an
        invitation. `days` is how long its subscription lasts."""
        self._check_texts(name, email)
        found = role_named(role)
        with self._changing() as accounts:
            until = None if days is None else self._now() + datetime.timedelta(days=_days(days))
            state = State.INVITED if password is None else State.ACTIVE
            account = accounts.add(
                name, role=found, email=email, password=password, state=state, until=until
            )
            self._audit.add(by, "add user", account.name, f"{account.role}")
        return account

    @exclusive
    def register(self, name: str, email: str, password: str, *, confirmed: bool) -> str:
        """Let somebody register as a reader; returns the key that confirms the mail address."""
        self._check_texts(name, email)
        check_text(password, "the password")
        days = int(self._internals.runtime.settings["subscription_days"])
        with self._changing() as accounts:
            until = self._now() + datetime.timedelta(days=days) if days else None
            state = State.ACTIVE if confirmed else State.UNCONFIRMED
            account = accounts.add(
                name, role=Role.READER, email=email, password=password, state=state, until=until
            )
            self._audit.add(account.name, "register", account.name)
            return accounts.make_key(
                KeyKind.CONFIRMATION, account.name, seconds=INVITATION_DAYS * DAY
            )

    @exclusive
    def remove(self, name: str, *, by: str = "") -> None:
        """Remove an account, its keys and its grants; what it owned is the operator's."""
        check_text(name, "the name of a user")
        with self._changing() as accounts:
            self._check_last_operator(name)
            accounts.remove(name, self._permissions)
            self._audit.add(by, "remove user", name)

    @exclusive
    def set_role(self, name: str, role: str, *, by: str = "") -> Account:
        check_text(name, "the name of a user")
        found = role_named(role)
        with self._changing() as accounts:
            if found is not Role.OPERATOR:
                self._check_last_operator(name)
            self._audit.add(by, "set role", name, found.value)
            return accounts.change(name, role=found)

    @exclusive
    def set_active(self, name: str, active: bool, *, by: str = "") -> Account:
        """Let somebody sign in, or not; the sessions of somebody who may not end at once."""
        check_text(name, "the name of a user")
        with self._changing() as accounts:
            if not active:
                self._check_last_operator(name)
            self._audit.add(by, "enable user" if active else "disable user", name)
            return accounts.change(name, state=State.ACTIVE if active else State.DISABLED)

    @exclusive
    def renew(self, name: str, days: int | None, *, by: str = "") -> Account:
        """Let a subscription last so many days from now; for ever with None."""
        check_text(name, "the name of a user")
        with self._changing() as accounts:
            until = None if days is None else self._now() + datetime.timedelta(days=_days(days))
            self._audit.add(by, "renew subscription", name, "" if days is None else f"{days} days")
            return accounts.change(name, until=until)

    def _check_last_operator(self, name: str) -> None:
        """Somebody must be able to let others in again."""
        now, others = self._now(), self._accounts.all()
        operators = [each.name for each in others if each.role is Role.OPERATOR]
        able = [each.name for each in others if each.name in operators and each.may_sign_in(now)]
        if able == [name.lower()] and len(others) > 1:
            raise IntegrityError(
                f"{name} is the last operator",
                code="in-use",
                hint="make somebody else an operator first",
            )

    # --- passwords -------------------------------------------------------------------------

    @exclusive
    def set_password(self, name: str, password: str, *, by: str = "") -> None:
        """Sessions that began with the old password end."""
        check_text(name, "the name of a user")
        check_text(password, "the password")
        check_password(password)
        with self._changing() as accounts:
            accounts.set_password(name, password)
            account = accounts.named(name)
            if account.state is State.INVITED:
                accounts.change(name, state=State.ACTIVE)
            self._audit.add(by or account.name, "set password", account.name)

    @exclusive
    def is_password(self, name: str, password: str) -> bool:
        """Takes as long for somebody who does not exist."""
        self._internals.look()
        check_text(name, "the name of a user")
        check_text(password, "the password")
        found = self._accounts.find(name) or self._accounts.with_mail(name)
        hashed = "" if found is None else self._accounts.password_hash(found.name)
        return is_password(hashed, password)

    @exclusive
    def sign_in(self, name: str, *, agent: str = "", address: str = "", days: float = 30) -> str:
        """Begin a session for somebody whose password was checked; returns its key."""
        with self._changing() as accounts:
            found = accounts.find(name) or accounts.with_mail(name)
            if found is None or not found.may_sign_in(self._now()):
                raise self._not_active(found)
            accounts.forget_expired()
            open_sessions = sorted(
                accounts.keys(found.name, KeyKind.SESSION), key=lambda each: each.created
            )
            for old in open_sessions[: max(0, len(open_sessions) - MOST_KEYS + 1)]:
                accounts.end_key(old.digest)
            self._audit.add(found.name, "sign in", found.name, address)
            return accounts.make_key(
                KeyKind.SESSION, found.name, seconds=days * DAY, agent=agent, address=address
            )

    def _not_active(self, account: Account | None) -> IntegrityError:
        if account is not None and account.state is State.UNCONFIRMED:
            said, hint = "the mail address is not confirmed", "follow the link in the mail"
        elif account is not None and account.is_expired(self._now()):
            said, hint = "the subscription has ended", "an operator can renew it"
        else:
            said, hint = "this account is not active", "an operator can enable it"
        return IntegrityError(said, code="not-allowed", hint=hint)

    # --- keys ------------------------------------------------------------------------------

    @exclusive
    def holder(self, kind: KeyKind, text: str) -> tuple[Account, Key] | None:
        """Whose key this is, if it is good, and its account may sign in."""
        self._internals.look()
        key = self._accounts.key(kind, text)
        account = None if key is None else self._accounts.find(key.account)
        if key is None or account is None or not account.may_sign_in(self._now()):
            return None
        return account, key

    @exclusive
    def make_token(
        self,
        name: str,
        label: str,
        *,
        scopes: tuple[str, ...] = (),
        days: int | None = None,
        by: str = "",
    ) -> str:
        """A new API token; its text is shown this once."""
        self._check_texts(name, label)
        for scope in scopes:
            if scope not in SCOPES:
                raise ValueFault(
                    f"there is no scope {scope}",
                    code="bad-value",
                    hint=offered(scope, SCOPES, "scopes"),
                )
        with self._changing() as accounts:
            account = accounts.named(name)
            if len(accounts.keys(account.name, KeyKind.API)) >= MOST_KEYS:
                raise IntegrityError(
                    f"{account.name} has {MOST_KEYS} API tokens already",
                    code="too-many",
                    hint="end one first",
                )
            self._audit.add(by or account.name, "make token", account.name, label)
            seconds = None if days is None else _days(days) * DAY
            return accounts.make_key(
                KeyKind.API, account.name, seconds=seconds, label=label, scopes=scopes
            )

    @exclusive
    def keys(self, name: str, kind: KeyKind) -> builtins.list[Key]:
        self._internals.look()
        check_text(name, "the name of a user")
        return self._accounts.keys(self._accounts.named(name).name, kind)

    @exclusive
    def end_key(self, digest: str, *, name: str | None = None, by: str = "") -> None:
        """End a session or a token; with a name only if it is that user's."""
        with self._changing() as accounts:
            accounts.end_key(digest, name)
            self._audit.add(by or name or "", "end key", digest[:12])

    @exclusive
    def invite(self, name: str, *, by: str = "") -> str:
        """A key by which somebody sets the first password."""
        with self._changing() as accounts:
            account = accounts.named(name)
            accounts.end_keys(account.name, KeyKind.INVITATION)
            self._audit.add(by, "invite", account.name)
            return accounts.make_key(
                KeyKind.INVITATION, account.name, seconds=INVITATION_DAYS * DAY
            )

    @exclusive
    def begin_reset(self, name: str) -> tuple[Account, str] | None:
        """A key by which somebody who has forgotten the password sets a new one; None if there is
        nobody of that name or address who has a mail address."""
        with self._changing() as accounts:
            found = accounts.find(name) or accounts.with_mail(name)
            if found is None or not found.email or not found.may_sign_in(self._now()):
                return None
            accounts.end_keys(found.name, KeyKind.RESET)
            self._audit.add(found.name, "ask for a new password", found.name)
            return found, accounts.make_key(KeyKind.RESET, found.name, seconds=RESET_SECONDS)

    @exclusive
    def redeem(self, kind: KeyKind, text: str, password: str | None = None) -> Account:
        """Use an invitation, a reset or a confirmation; it is good once."""
        with self._changing() as accounts:
            key = accounts.key(kind, text)
            account = None if key is None else accounts.find(key.account)
            if key is None or account is None or account.state is State.DISABLED:
                raise IntegrityError(
                    "this link is no longer good", code="not-allowed", hint="ask for a new one"
                )
            if password is not None:
                accounts.set_password(account.name, password)
            accounts.end_key(key.digest)
            self._audit.add(account.name, f"use {kind}", account.name)
            if account.state in (State.INVITED, State.UNCONFIRMED):
                return accounts.change(account.name, state=State.ACTIVE)
            return accounts.named(account.name)

    @exclusive
    def audit(self, limit: int = 100) -> builtins.list[Entry]:
        """The newest entries of the audit log, newest first."""
        self._internals.look()
        check_whole(limit, "the limit", least=1)
        return self._audit.newest(limit)

    @exclusive
    def note(self, by: str, action: str, object: str = "", detail: str = "") -> None:
        """Record something in the audit log."""
        with self._changing():
            self._audit.add(by, action, object, detail)

    def _check_texts(self, name: str, other: str) -> None:
        check_text(name, "the name of a user")
        check_text(other, "the text")


def role_named(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise NameFault(
            f"there is no role {role}", code="bad-value", hint=f"use one of {', '.join(Role)}"
        ) from None


def _days(days: int) -> int:
    check_whole(days, "the number of days", least=1)
    if days > 36_500:
        raise ValueFault("a subscription lasts at most 36,500 days", code="bad-value")
    return days
