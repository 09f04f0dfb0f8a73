"""Everything a user can tune, in one tuple: name, type, unit, default, and the service's default.

A value comes from, in this order: `harken.connect(settings={...})` or `--set NAME=VALUE`, the
environment (`HARKEN_STATEMENT_TIMEOUT`), the default. The service (`harken serve`) has defaults of
its own where strangers send the work. An unknown name or a value that does not fit is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harken.errors import HarkenError, ValueFault, nearest
from harken.setting import LONGEST, Setting

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "allow_commands",
        False,
        "Whether NOTIFY COMMAND may run programs of this machine.",
        fixed=True,
    ),
    Setting(
        "allow_private_addresses",
        False,
        "Whether sources and webhooks may reach loopback, private and other special addresses.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "apprise_schemes",
        "",
        "Schemes of apprise that name a host or a file, and are allowed, separated by commas.",
        fixed=True,
    ),
    Setting(
        "audit_entries",
        10_000,
        "How many entries the audit log keeps.",
        least=1,
    ),
    Setting(
        "body_timeout",
        30.0,
        "How long the body of a request may take to arrive.",
        "seconds",
        most=LONGEST,
    ),
    Setting(
        "channel_modules",
        "",
        "Modules that register channels of messages, separated by commas; imported at first use.",
        fixed=True,
    ),
    Setting(
        "compiled_waves",
        True,
        "Whether what a commit does for its views is compiled when it comes again.",
    ),
    Setting(
        "continual_executions",
        1_000,
        "How many executions of each continual query stay recorded.",
        least=1,
    ),
    Setting(
        "continual_rows",
        10_000,
        "Rows of each kind that a message and the record of an execution have at most.",
        unit="rows",
        least=1,
    ),
    Setting(
        "delivered_messages",
        10_000,
        "How many messages that need nothing more stay recorded, with the attempts to deliver "
        "them, about.",
        least=1,
    ),
    Setting(
        "guests",
        False,
        "Whether `harken serve` lets people who did not sign in read what is granted to PUBLIC.",
        fixed=True,
    ),
    Setting(
        "header_timeout", 10.0, "How long the head of a request may take.", "seconds", most=LONGEST
    ),
    Setting(
        "idempotency_keys",
        10_000,
        "How many requests with an idempotency key are remembered, each for a day.",
        least=1,
    ),
    Setting(
        "kept_bytes",
        2**30,
        "What may be kept of views so that their changes cost less; 0 is no limit.",
        unit="bytes",
    ),
    Setting(
        "lake_roots",
        ("/",),
        "The directories, and addresses such as s3://bucket/sales, that LOCATION may name in SQL.",
        served=(),
        fixed=True,
    ),
    Setting(
        "max_body_bytes", 4 * 2**20, "The largest body of a request.", "bytes", least=1, most=10**9
    ),
    Setting(
        "max_connections", 1_200, "How many clients may be connected at once.", least=1, most=10**6
    ),
    Setting(
        "max_header_bytes",
        64 * 2**10,
        "The largest head of a request.",
        "bytes",
        least=1,
        most=10**9,
    ),
    Setting(
        "max_streams", 1_000, "How many streams of events may be open at once.", least=1, most=10**6
    ),
    Setting(
        "memory_limit",
        0,
        "Memory for SQLite in this process, and for the rows of one query; 0 is no limit.",
        unit="bytes",
        served=2**30,
    ),
    Setting(
        "notification_attempts",
        12,
        "How often a message is offered to its channel before it is given up.",
        least=1,
        most=1_000,
    ),
    Setting(
        "notification_lease",
        300.0,
        "After how long another run takes over the messages of one that died while sending.",
        "seconds",
        least=1,
        most=LONGEST,
    ),
    Setting(
        "notification_workers",
        8,
        "How many messages are sent at the same time, each to another receiver.",
        least=1,
        most=256,
    ),
    Setting(
        "operator_address",
        "",
        "Where messages for the operator go: a channel and an address, `email ops@example.org`.",
        fixed=True,
    ),
    Setting(
        "operator_limit",
        0,
        "Operators in a row that an expression may have in SQL; 0 is no limit.",
        served=500,
    ),
    Setting(
        "outbox_alarm",
        0.8,
        "The part of a limit from which on an outbox counts as nearly full.",
        most=1,
    ),
    Setting(
        "outbox_bytes",
        256 * 2**20,
        (
            "How many bytes a durable monitor keeps for a subscriber that does not "
            "acknowledge; 0 is no limit."
        ),
        "bytes",
    ),
    Setting(
        "outbox_changes",
        1_000_000,
        "How many changes a durable monitor keeps for such a subscriber; 0 is no limit.",
    ),
    Setting(
        "outbox_seconds",
        30 * 24 * 3600.0,
        "How long a durable monitor keeps changes while nothing is acknowledged; 0 is no limit.",
        "seconds",
        most=LONGEST,
    ),
    Setting(
        "public_address",
        "",
        "Where people reach this service, as https://harken.example.org, for links in messages.",
        fixed=True,
    ),
    Setting(
        "redefinition_triggers",
        True,
        "Whether rules act on what becomes true because a function is defined again.",
    ),
    Setting(
        "registration",
        "off",
        "Who may register with `harken serve`: off, invitation or open.",
        fixed=True,
    ),
    Setting(
        "row_limit",
        0,
        "Rows that one query may give, before LIMIT; 0 is no limit.",
        unit="rows",
        served=5_000_000,
    ),
    Setting(
        "scheduler_lease",
        10.0,
        "After how long another process takes over what is due from one that died.",
        "seconds",
        least=0.1,
        most=LONGEST,
    ),
    Setting(
        "secrets_file",
        "",
        "A file of lines `name = value`, for options that say `secret:name`; empty is none.",
        fixed=True,
    ),
    Setting(
        "session_days",
        30.0,
        "How long somebody stays signed in.",
        "days",
        least=0.01,
        most=3_650,
        fixed=True,
    ),
    Setting(
        "smtp_from",
        "",
        "The sender of mails.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "smtp_host",
        "",
        "The server that takes mails; empty is none.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "smtp_password",
        "",
        "The password at that server, as `secret:name`.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "smtp_port",
        587,
        "The port of that server.",
        least=1,
        most=65_535,
        fixed=True,
        kept=True,
    ),
    Setting(
        "smtp_security",
        "starttls",
        "How the connection to that server is encrypted: starttls, tls or none.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "smtp_user",
        "",
        "The user at that server; empty is none.",
        fixed=True,
        kept=True,
    ),
    Setting(
        "source_kinds",
        "",
        "Modules that register kinds of sources, separated by commas; imported at first use.",
        fixed=True,
    ),
    Setting(
        "source_lake_rows",
        5_000_000,
        "A source with more rows at its first reading is kept in the lake; 0 keeps all here.",
        unit="rows",
    ),
    Setting(
        "source_roots",
        ("/",),
        "The directories that sources may read files from.",
        served=(),
        fixed=True,
    ),
    Setting(
        "source_workers",
        8,
        "How many sources are read at the same time.",
        least=1,
        most=256,
    ),
    Setting(
        "statement_cache",
        1_000,
        "How many planned statements a session keeps; 0 keeps none.",
        unit="statements",
    ),
    Setting(
        "statement_timeout",
        0.0,
        "How long a statement may run, over HTTP a request; 0 is no limit.",
        unit="seconds",
        served=30.0,
        most=LONGEST,
    ),
    Setting(
        "subscription_days",
        0,
        "How long the subscription of somebody who registers lasts; 0 is for ever.",
        "days",
        most=36_500,
        fixed=True,
    ),
    Setting(
        "text_limit",
        1_000_000_000,
        "Size of the longest text that a statement may make or store.",
        unit="bytes",
        served=16 * 2**20,
        least=1_000_000,
        most=1_000_000_000,
    ),
    Setting(
        "time_zone",
        "UTC",
        "The time zone of continual queries that name none, as in the tz database.",
    ),
)
"""Sorted by name."""


class Settings(Mapping[str, Any]):
    """The values in force for one session."""

    version: int = 0
    """Rises when one of them changes."""

    def __init__(self, given: Mapping[str, Any] | None = None, *, serving: bool = False) -> None:
        known = {setting.name: setting for setting in SETTINGS}
        if given is not None and not isinstance(given, Mapping):
            raise ValueFault(
                "the settings are a mapping of names to values",
                code="bad-value",
                hint='as settings={"name": value}',
            )
        for name in given or {}:
            if name not in known:
                raise unknown_setting(name)
        self._is_fixed = serving
        """In the service all clients share the settings, so none may change them."""
        self._values = {
            name: self._value(setting, given or {}, serving) for name, setting in known.items()
        }
        self._first = dict(self._values)
        self._given = {
            name for name, each in known.items() if name in (given or {}) or _in_environment(each)
        }
        """What was given when the database was opened, which what is kept in the file never
        replaces."""
        self._when_changed: Callable[[Settings], None] = lambda settings: None

    @staticmethod
    def _value(setting: Setting, given: Mapping[str, Any], serving: bool) -> Any:
        if setting.name in given:
            return setting.read(given[setting.name])
        if _in_environment(setting):
            return setting.read(os.environ[setting.variable])
        return setting.served if serving and setting.served is not None else setting.default

    def use(self, when_changed: Callable[[Settings], None]) -> None:
        """Apply the settings to the session, now and after each change."""
        self._when_changed = when_changed
        when_changed(self)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise unknown_setting(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, name: str, value: Any) -> None:
        """Change one value for the rest of the session."""
        self.set(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no setting {name}", name=name, obj=self)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.set(name, value)

    def reset(self, name: str) -> None:
        """Reset a setting to the value that the session started with."""
        if name not in self._first:
            raise unknown_setting(name)
        self.set(name, self._first[name])

    def is_given(self, name: str) -> bool:
        """Whether it was given when the database was opened: by an option or the environment."""
        return name in self._given

    def take_kept(self, kept: Mapping[str, Any]) -> None:
        """Use the values that are kept in the database file, where no others were given."""
        for setting in SETTINGS:
            if setting.kept and setting.name not in self._given:
                value = kept.get(setting.name, setting.default)
                self._values[setting.name] = self._first[setting.name] = value

    def set(self, name: str, value: Any) -> None:
        """Change one value for the rest of the session."""
        setting = next((each for each in SETTINGS if each.name == name), None)
        if setting is None:
            raise unknown_setting(name)
        if setting.fixed:
            raise ValueFault(
                f"the setting {name} cannot be changed in a session",
                code="bad-value",
                hint=f"set it when the database is opened: --set {name}=VALUE",
            )
        if self._is_fixed:
            raise HarkenError(
                f"{name} cannot be changed here: all clients of the service share it",
                code="not-allowed",
                hint=f"start the service with --set {name}=VALUE",
            )
        self._values[name] = setting.read(value)
        object.__setattr__(self, "version", self.version + 1)
        self._when_changed(self)


def _in_environment(setting: Setting) -> bool:
    return setting.variable in os.environ


def unknown_setting(name: str) -> ValueFault:
    names = [setting.name for setting in SETTINGS]
    meant = nearest(str(name), names)
    return ValueFault(
        f"there is no setting {name}",
        code="bad-value",
        hint=f"did you mean {meant}?" if meant else f"there are: {', '.join(names)}",
    )
