"""A role that one process at a time has, by a lease in the file: that of the scheduler, say.

Whoever has the role renews the lease while it runs. If it ends, it gives the role back; if it dies,
another process takes over when the lease has run out, or at once if it can see that the process is
gone. The lease spares work, it guards nothing: two at a time, in the moment before one of them
notices, do everything in transactions of the file.

Law: of the processes that ask at one moment, at most one is told that it has the role.
"""

from __future__ import annotations

import datetime
import os
import secrets
import socket
from dataclasses import dataclass

from harken.database.transactions import Transactions
from harken.engines.protocol import Connection, Field, RecordKind
from harken.errors import HarkenError
from harken.values.encoding import decode_timestamp, encode_timestamp

ROLES = RecordKind(
    "harken_roles",
    (
        Field("role", "text"),
        Field("holder", "text"),
        Field("host", "text"),
        Field("process", "integer"),
        Field("until", "integer"),
    ),
    key=("role",),
)
RENEWED_AFTER = 0.5
"""The part of its time after which a lease is renewed."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a role: the process that took it, and until when without being renewed."""

    holder: str
    host: str
    process: int
    until: datetime.datetime

    def is_gone(self) -> bool:
        """Whether the process is known to have ended: only that of the same machine is."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


class RoleLease:
    def __init__(
        self, connection: Connection, transactions: Transactions, role: str, seconds: float
    ) -> None:
        self._connection, self._transactions = connection, transactions
        self._role = role
        self._length = datetime.timedelta(seconds=seconds)
        self._own = secrets.token_hex(8)

    def hold(self) -> bool:
        """Whether this session has the role now; takes or renews it where it may. The session must
        be in no transaction."""
        now, found = self._connection.now(), self.holder()
        if self._is_mine(found) and found is not None:
            left = found.until - now
            if left > self._length * (1 - RENEWED_AFTER) and left <= self._length:
                return True
        elif not self._is_free(found, now):
            return False
        if self._connection.read_only:
            return False
        try:
            return self._take()
        except HarkenError as error:
            if error.code != "locked":
                raise
            return self._is_mine(found) and found is not None and found.until > now

    def release(self) -> None:
        """Give the role back, if this session has it."""
        if self._is_mine(self.holder()):
            with self._transactions.block():
                if self._is_mine(self.holder()):
                    self._connection.records.remove(ROLES, {"role": self._role})

    def holder(self) -> Holder | None:
        """Who has the role, or had it last."""
        records = self._connection.records
        if not records.exist(ROLES):
            return None
        found = records.find(ROLES, {"role": self._role})
        if not found:
            return None
        _, holder, host, process, until = found[0]
        return Holder(holder, host, process, decode_timestamp(until))

    def _take(self) -> bool:
        with self._transactions.block():
            now, found = self._connection.now(), self.holder()
            if not self._is_mine(found) and not self._is_free(found, now):
                return False
            until = encode_timestamp(now + self._length)
            records = self._connection.records
            records.make_room(ROLES)
            record = (self._role, self._own, socket.gethostname(), os.getpid(), until)
            records.add(ROLES, record, replace=True)
        return True

    def _is_mine(self, found: Holder | None) -> bool:
        return found is not None and found.holder == self._own

    def _is_free(self, found: Holder | None, now: datetime.datetime) -> bool:
        """Nobody has it, or it has run out, or who had it is gone. A lease that ends too far ahead
        is that of a clock which was set back since."""
        if found is None or found.until <= now or found.until > now + 2 * self._length:
            return True
        return found.is_gone()
