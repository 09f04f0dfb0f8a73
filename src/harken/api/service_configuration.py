"""What an operator sets for all processes on a database file: `db.configuration`.

Law: a secret can be stored and never read here, and every change is in the audit log with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.api.internals import Internals
from harken.database.arguments import check_text
from harken.database.audit_log import AuditLog
from harken.database.exclusive import SessionLock, exclusive
from harken.database.kept_settings import KeptSettings
from harken.database.secrets import PREFIX
from harken.errors import TypeFault


class Configuration:
    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock
        runtime = internals.runtime
        connection = runtime.engine.connection
        self._kept = KeptSettings(connection.records)
        self._settings = runtime.settings
        self._audit = AuditLog(
            connection.records, connection.now, lambda: int(runtime.settings["audit_entries"])
        )

    @exclusive
    def kept(self) -> Mapping[str, Any]:
        """The settings that are kept in the file."""
        self._internals.look()
        return self._kept.all()

    @exclusive
    def keep(self, settings: Mapping[str, Any], *, by: str = "") -> None:
        """Keep settings in the file, and use them from now on in this process; None forgets one.
        Other processes use them when they open the file again."""
        self._internals.check_open()
        if not isinstance(settings, Mapping):
            raise TypeFault(
                "the settings are a mapping of names to values",
                code="type-mismatch",
                hint='as {"smtp_host": "mail.example.org"}',
            )
        check_text(by, "by")
        with self._internals.alone():
            for name, value in settings.items():
                check_text(name, "the name of a setting")
                self._kept.put(name, value)
                self._audit.add(by, "set", name, "" if value is None else str(value))
        self._settings.take_kept(self._kept.all())

    @exclusive
    def store_secret(self, name: str, value: str, *, by: str = "") -> str:
        """Store a secret in the database, encrypted, and return how options name it. Where there is
        no key yet, one is made, in a file beside the database."""
        self._internals.check_open()
        for text, what in ((name, "the name of a secret"), (value, "the value"), (by, "by")):
            check_text(text, what)
        with self._internals.alone():
            self._internals.runtime.secrets.store(name, value, make_key=True)
            self._audit.add(by, "store secret", name)
        return f"{PREFIX}{name}"
