"""Secrets: passwords and tokens that options name as `secret:name`.

The value comes from the environment (`HARKEN_SECRET_NAME`), from the file that the setting
`secrets_file` names, or from an encrypted record of the database. The key of the records is the
operator's, in `HARKEN_SECRETS_KEY`; or, where somebody stores a secret on a page of the console and
there is none, one that is made for that and lies in a file of its own beside the database
(`shop.db.key`). It is never part of the database or of a backup.

Law: a value is never part of a definition, and `redacted` keeps it out of every text for people.
"""

from __future__ import annotations

import base64
import os
import re
import secrets as random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harken.engines.protocol import Field, RecordKind
from harken.errors import SourceFault, nearest
from harken.packages import needs

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from harken.engines.protocol import Records
    from harken.settings import Settings

PREFIX = "secret:"
KEY_VARIABLE = "HARKEN_SECRETS_KEY"
"""The environment variable with the operator's key: any text, which is stretched by scrypt."""
SECRETS = RecordKind(
    "harken_secrets",
    (Field("name", "text"), Field("salt", "text"), Field("value", "text")),
    ("name",),
)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
HIDDEN = "***"
_PASSWORD = re.compile(r"(?P<before>[A-Za-z][\w+.-]*://[^\s:/@?#]*):(?P<hidden>[^\s/?#]*)@")
_QUERY = re.compile(
    r"(?P<before>[?&;\s](?:password|passwd|pwd|token|api_?key|secret|access_token)=)[^&;\s'\"]+",
    re.IGNORECASE,
)
SHORTEST = 4
"""The least length of a value that is searched for in texts: a shorter one may be any word."""
SCRYPT_COST = 2**14


class Secrets:
    """The secrets that a session can read, and those that its texts must not show."""

    def __init__(
        self, records: Records, settings: Settings, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._records = records
        self._settings = settings
        self._environment = environment
        self._seen: set[str] = set()
        self.key_file: Path | None = None
        """Where a key lies that was made here; None for a database in memory."""

    # --- reading ---------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        """The value of `secret:name`; any other text unchanged."""
        if not is_reference(text):
            return text
        name = text[len(PREFIX) :].strip()
        value = self._find(name)
        if value is None:
            raise self._missing(name)
        self._seen.add(value)
        return value

    def redacted(self, text: str) -> str:
        """A text for people, without the secrets that were read and without passwords in
        addresses."""
        for value in sorted(self._seen, key=len, reverse=True):
            if len(value) >= SHORTEST:
                text = text.replace(value, HIDDEN)
        return redacted(text)

    def _find(self, name: str) -> str | None:
        found = self._environment.get(variable(name))
        if found is None:
            found = self._from_file().get(name)
        return self._stored(name) if found is None else found

    def _from_file(self) -> dict[str, str]:
        path = self._settings["secrets_file"]
        return read_secrets(Path(path)) if path else {}

    def _stored(self, name: str) -> str | None:
        if not self._records.exist(SECRETS):
            return None
        found = self._records.find(SECRETS, {"name": name})
        if not found:
            return None
        _, salt, value = found[0]
        return _decrypted(self._key(), name, salt, value)

    def _missing(self, name: str) -> SourceFault:
        near = nearest(name, self.names())
        return SourceFault(
            f"there is no secret {name}",
            code="missing-secret",
            hint=f"did you mean {near}?"
            if near
            else f"set {variable(name)} in the environment, or run `harken secret set {name}`",
        )

    def names(self) -> list[str]:
        """The names of the secrets in the database and in the file, which are no secrets."""
        stored = self._records.find(SECRETS) if self._records.exist(SECRETS) else []
        return sorted({*(row[0] for row in stored), *self._from_file()})

    # --- the records, in a transaction -----------------------------------------------------

    def store(self, name: str, value: str, *, make_key: bool = False) -> None:
        """Store a secret; with `make_key`, a database without a key and secrets gets a key."""
        check_name(name)
        if make_key:
            self._make_key()
        salt, encrypted = _encrypted(self._key(), name, value)
        self._records.make_room(SECRETS)
        self._records.add(SECRETS, (name, salt, encrypted), replace=True)
        self._seen.add(value)

    def drop(self, name: str) -> None:
        known = self._records.exist(SECRETS) and self._records.find(SECRETS, {"name": name})
        if not known:
            raise SourceFault(f"there is no secret {name} in the database", code="missing-secret")
        self._records.remove(SECRETS, {"name": name})

    def _make_key(self) -> None:
        if self._environment.get(KEY_VARIABLE) or self.key_file is None or self.key_file.exists():
            return
        if self._records.exist(SECRETS) and self._records.find(SECRETS, limit=1):
            return  # they have a key, which somebody did not give
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(self.key_file, mode, 0o600), "w") as file:
            file.write(random.token_urlsafe(32))

    def _key(self) -> str:
        key = self._environment.get(KEY_VARIABLE, "")
        if not key and self.key_file is not None and self.key_file.is_file():
            key = self.key_file.read_text("utf-8").strip()
        if not key:
            raise SourceFault(
                "secrets in the database are encrypted, and there is no key",
                code="missing-secret",
                hint=f"set {KEY_VARIABLE} in the environment to the key that the operator keeps",
            )
        return key


def is_reference(text: object) -> bool:
    return isinstance(text, str) and text.startswith(PREFIX)


def variable(name: str) -> str:
    """The environment variable of a secret.

    >>> variable("shop-db")
    'HARKEN_SECRET_SHOP_DB'
    """
    return "HARKEN_SECRET_" + re.sub(r"\W", "_", name).upper()


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise SourceFault(
            f"{name!r} cannot be the name of a secret",
            code="bad-option",
            hint="use letters, digits, _, - and ., and begin with a letter",
        )


def redacted(text: str) -> str:
    """A text without the passwords of the addresses in it.

    >>> redacted("cannot reach postgresql://ann:pa55@shop:5432/db?password=pa55")
    'cannot reach postgresql://ann:***@shop:5432/db?password=***'
    """
    return _QUERY.sub(rf"\g<before>{HIDDEN}", _PASSWORD.sub(rf"\g<before>:{HIDDEN}@", text))


def has_password(text: str) -> bool:
    """Whether an address holds a password, which must not be stored.

    >>> has_password("postgresql://ann:pa55@shop/db"), has_password("postgresql://ann@shop/db")
    (True, False)
    """
    return redacted(text) != text


def read_secrets(path: Path) -> dict[str, str]:
    """A file of lines `name = value`; empty lines and those that begin with # count nothing."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise SourceFault(
            f"the file of secrets {path} cannot be read: {error.strerror}",
            code="missing-secret",
            hint="the setting secrets_file names it",
        ) from error
    except UnicodeDecodeError as error:
        raise SourceFault(
            f"the file of secrets {path} is not UTF-8", code="missing-secret"
        ) from error
    found = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not NAME.fullmatch(name.strip()):
            raise SourceFault(
                f"line {number} of the file of secrets {path} is not `name = value`",
                code="missing-secret",
            )
        found[name.strip()] = value.strip()
    return found


# --- encryption ----------------------------------------------------------------------------


def _cipher(key: str, salt: bytes) -> AESGCM:
    with needs("sources"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return AESGCM(Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(key.encode()))


def _encrypted(key: str, name: str, value: str) -> tuple[str, str]:
    """Salt and ciphertext. The name is authenticated, so that no value can be moved to another
    name."""
    salt, nonce = os.urandom(16), os.urandom(12)
    made = _cipher(key, salt).encrypt(nonce, value.encode(), name.encode())
    return base64.b64encode(salt).decode(), base64.b64encode(nonce + made).decode()


def _decrypted(key: str, name: str, salt: str, value: str) -> str:
    cipher, made = _cipher(key, base64.b64decode(salt)), base64.b64decode(value)
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(made[:12], made[12:], name.encode()).decode()
    except InvalidTag as error:
        raise SourceFault(
            f"the secret {name} cannot be decrypted with this key",
            code="missing-secret",
            hint=f"{KEY_VARIABLE} must hold the key that it was stored with",
        ) from error
