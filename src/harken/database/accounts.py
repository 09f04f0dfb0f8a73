"""The people and programs that use a service: accounts, and the keys by which they are known.

A key is a random text that is shown once; the file has only its SHA-256. Sessions of browsers, API
tokens, invitations, confirmations of a mail address and password resets are all keys, of different
kinds. Passwords are hashed with Argon2id.

Law: from the file alone nobody can sign in.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from harken.database.permissions import PUBLIC, Permissions, Role, User
from harken.engines.protocol import Field, RecordKind, Records
from harken.errors import IntegrityError, NameFault, ValueFault, nearest
from harken.packages import needs

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ACCOUNTS = RecordKind(
    "harken_accounts",
    (
        Field("name", "text"),
        Field("email", "text"),
        Field("password", "text"),
        Field("role", "text"),
        Field("state", "text"),
        Field("created", "real"),
        Field("until", "real", optional=True),
        Field("zone", "text"),
    ),
    key=("name",),
)
KEYS = RecordKind(
    "harken_keys",
    (
        Field("digest", "text"),
        Field("kind", "text"),
        Field("account", "text"),
        Field("label", "text"),
        Field("scopes", "text"),
        Field("created", "real"),
        Field("used", "real"),
        Field("until", "real", optional=True),
        Field("agent", "text"),
        Field("address", "text"),
    ),
    key=("digest",),
    ordered_by="created",
)
NAME = re.compile(r"[a-z0-9][a-z0-9_.@+-]{0,63}")
RESERVED = frozenset({PUBLIC, "operator", "guest"})
LEAST_PASSWORD, LONGEST_PASSWORD = 10, 1_000
"""Characters. A longer text would let strangers make the service hash megabytes."""
LONGEST_MAIL = 254


class State(StrEnum):
    INVITED = "invited"
    UNCONFIRMED = "unconfirmed"
    ACTIVE = "active"
    DISABLED = "disabled"


class KeyKind(StrEnum):
    SESSION = "session"
    API = "api"
    INVITATION = "invitation"
    CONFIRMATION = "confirmation"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    email: str
    role: Role
    state: State
    created: datetime.datetime
    until: datetime.datetime | None
    """When the subscription ends; None means never."""
    zone: str

    @property
    def user(self) -> User:
        return User(self.name, self.role)

    def is_expired(self, now: datetime.datetime) -> bool:
        return self.until is not None and self.until <= now

    def may_sign_in(self, now: datetime.datetime) -> bool:
        return self.state is State.ACTIVE and not self.is_expired(now)


@dataclass(frozen=True, slots=True)
class Key:
    """`digest` identifies it without giving it away."""

    digest: str
    kind: KeyKind
    account: str
    label: str
    scopes: tuple[str, ...]
    created: datetime.datetime
    used: datetime.datetime
    until: datetime.datetime | None
    agent: str
    address: str


class Accounts:
    """Changes are made in the open transaction."""

    def __init__(self, records: Records, now: Callable[[], datetime.datetime]) -> None:
        self._records = records
        self._now = now

    # --- accounts --------------------------------------------------------------------------

    def all(self) -> list[Account]:
        if not self._records.exist(ACCOUNTS):
            return []
        return [_account(row) for row in self._records.find(ACCOUNTS)]

    def find(self, name: str) -> Account | None:
        if not self._records.exist(ACCOUNTS):
            return None
        rows = self._records.find(ACCOUNTS, {"name": name.lower()})
        return _account(rows[0]) if rows else None

    def named(self, name: str) -> Account:
        found = self.find(name)
        if found is None:
            near = nearest(name.lower(), [each.name for each in self.all()])
            raise NameFault(
                f"there is no user {name}",
                code="unknown-user",
                hint=f"did you mean {near}?" if near else "`harken user list` lists them",
            )
        return found

    def with_mail(self, email: str) -> Account | None:
        return next((each for each in self.all() if each.email == email.lower() != ""), None)

    def add(
        self,
        name: str,
        *,
        role: Role,
        email: str = "",
        password: str | None = None,
        state: State = State.ACTIVE,
        until: datetime.datetime | None = None,
    ) -> Account:
        name, email = check_name(name), check_mail(email)
        self._records.make_room(ACCOUNTS)
        if self.find(name) is not None:
            raise IntegrityError(f"there is already a user {name}", code="exists")
        if email and self.with_mail(email) is not None:
            raise IntegrityError("somebody has this mail address already", code="exists")
        hashed = "" if password is None else hash_password(password)
        created = self._now().timestamp()
        end = None if until is None else until.timestamp()
        self._records.add(
            ACCOUNTS, (name, email, hashed, role.value, state.value, created, end, "")
        )
        return self.named(name)

    def change(self, name: str, **values: Any) -> Account:
        """Set `role`, `state`, `until`, `zone` or `email` of an account."""
        account = self.named(name)
        stored = {
            field: value.timestamp() if isinstance(value, datetime.datetime) else value
            for field, value in values.items()
        }
        stored = {f: v.value if isinstance(v, StrEnum) else v for f, v in stored.items()}
        self._records.change(ACCOUNTS, {"name": account.name}, stored)
        changed = self.named(name)
        if not changed.may_sign_in(self._now()):
            self.end_keys(account.name)
        return changed

    def remove(self, name: str, permissions: Permissions) -> None:
        account = self.named(name)
        self._records.remove(ACCOUNTS, {"name": account.name})
        self.end_keys(account.name)
        permissions.forget_account(account.name)

    def set_password(self, name: str, password: str) -> None:
        """Sessions that began with the old password end."""
        account = self.named(name)
        self._records.change(
            ACCOUNTS, {"name": account.name}, {"password": hash_password(password)}
        )
        self.end_keys(account.name, KeyKind.SESSION)
        self.end_keys(account.name, KeyKind.RESET)

    def password_hash(self, name: str) -> str:
        """Empty for somebody who has none, or does not exist."""
        if not self._records.exist(ACCOUNTS):
            return ""
        rows = self._records.find(ACCOUNTS, {"name": name.lower()})
        return str(rows[0][2]) if rows else ""

    # --- keys ------------------------------------------------------------------------------

    def make_key(
        self,
        kind: KeyKind,
        account: str,
        *,
        seconds: float | None,
        label: str = "",
        scopes: tuple[str, ...] = (),
        agent: str = "",
        address: str = "",
    ) -> str:
        """A new key; its text is known to nobody but the caller."""
        self._records.make_room(KEYS)
        text = f"hk{kind.value[0]}_{secrets.token_urlsafe(32)}"
        now = self._now().timestamp()
        until = None if seconds is None else now + seconds
        self._records.add(
            KEYS,
            (
                digest_of(text),
                kind.value,
                account,
                label[:200],
                " ".join(scopes),
                now,
                now,
                until,
                agent[:300],
                address[:100],
            ),
        )
        return text

    def key(self, kind: KeyKind, text: str) -> Key | None:
        """The key with this text, if it is still good."""
        if not self._records.exist(KEYS):
            return None
        rows = self._records.find(KEYS, {"digest": digest_of(text), "kind": kind.value})
        found = _key(rows[0]) if rows else None
        if found is not None and found.until is not None and found.until <= self._now():
            return None
        return found

    def keys(self, account: str, kind: KeyKind) -> list[Key]:
        if not self._records.exist(KEYS):
            return []
        found = self._records.find(KEYS, {"account": account, "kind": kind.value})
        return [each for each in map(_key, found) if each.until is None or each.until > self._now()]

    def note_use(self, key: Key) -> None:
        self._records.change(KEYS, {"digest": key.digest}, {"used": self._now().timestamp()})

    def end_key(self, digest: str, account: str | None = None) -> None:
        """End one key; of this account only, if it is given."""
        if self._records.exist(KEYS):
            of_account = {} if account is None else {"account": account}
            self._records.remove(KEYS, {"digest": digest, **of_account})

    def end_keys(self, account: str, kind: KeyKind | None = None) -> None:
        if self._records.exist(KEYS):
            of_kind = {} if kind is None else {"kind": kind.value}
            self._records.remove(KEYS, {"account": account, **of_kind})

    def forget_expired(self) -> None:
        if self._records.exist(KEYS):
            for row in self._records.find(KEYS):
                if row[7] is not None and row[7] <= self._now().timestamp():
                    self._records.remove(KEYS, {"digest": row[0]})


# --- texts -----------------------------------------------------------------------------------


def check_name(name: str) -> str:
    found = name.strip().lower()
    if not NAME.fullmatch(found) or found in RESERVED:
        raise ValueFault(
            f"{name!r} cannot be the name of a user",
            code="bad-name",
            hint="a name has letters, digits, and _ . @ + -, at most 64 of them, and is not "
            f"{', '.join(sorted(RESERVED))}",
        )
    return found


def check_mail(email: str) -> str:
    """An address in lower case; the empty text is none."""
    found = email.strip().lower()
    if found and (
        len(found) > LONGEST_MAIL or not re.fullmatch(r"[^\s@<>\"',;]+@[^\s@<>\"',;]+", found)
    ):
        raise ValueFault(
            f"{email!r} is not a mail address", code="bad-value", hint="as ann@example.org"
        )
    return found


def check_password(password: str) -> str:
    if not LEAST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ValueFault(
            f"a password has at least {LEAST_PASSWORD} characters, and at most "
            f"{LONGEST_PASSWORD:,}",
            code="bad-password",
            hint="several words are easier to remember than one odd one",
        )
    if len(set(password)) < 4:
        raise ValueFault(
            "this password has hardly any different characters",
            code="bad-password",
            hint="several words are easier to remember than one odd one",
        )
    return password


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _hasher() -> PasswordHasher:
    with needs("server"):
        from argon2 import PasswordHasher

        return PasswordHasher()


@cache
def _nobodys_hash() -> str:
    return _hasher().hash(secrets.token_urlsafe())


def hash_password(password: str) -> str:
    return _hasher().hash(check_password(password))


def is_password(hashed: str, password: str) -> bool:
    """Takes as long for somebody who does not exist, so that nobody learns who does."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(hashed or _nobodys_hash(), password[:LONGEST_PASSWORD]) and bool(
            hashed
        )
    except (VerificationError, InvalidHashError):
        return False


def _account(row: tuple[Any, ...]) -> Account:
    name, email, _, role, state, created, until, zone = row
    return Account(
        name, email, Role(role), State(state), _moment(created), _moment_or_none(until), zone
    )


def _key(row: tuple[Any, ...]) -> Key:
    digest, kind, account, label, scopes, created, used, until, agent, address = row
    return Key(
        digest,
        KeyKind(kind),
        account,
        label,
        tuple(scopes.split()),
        _moment(created),
        _moment(used),
        _moment_or_none(until),
        agent,
        address,
    )


def _moment(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC)


def _moment_or_none(at: float | None) -> datetime.datetime | None:
    return None if at is None else _moment(at)
