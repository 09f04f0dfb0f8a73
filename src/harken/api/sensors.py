"""Sensors: foreign functions that are active (thesis, 3.2 and 3.3).

A passive foreign function is asked when a query needs its value, and nobody learns when the value
changes. Of an active one the database stores what was last seen. `changed` reports a value, or the
function is polled; either is a change of data like any other. Conditions, views and old values read
what is stored.

Law: the rows of an active function are the values last seen, each for its arguments.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from harken.api.handles import FunctionHandle
from harken.errors import ForeignFault, HarkenError, ValueFault
from harken.ir.schema import Function, FunctionKind
from harken.statements.amosql.foreign import signature_of

if TYPE_CHECKING:
    from harken.api.database import Database

MOST_ARGUMENTS = 100_000
"""The most arguments that a sensor is polled for."""
SENSORS = "sensors"


class Sensor:
    """An active function of a session: `sensor.changed(room, 21.5)` reports what it sees."""

    def __init__(
        self,
        db: Database,
        name: str,
        read: Callable[..., Any],
        every: datetime.timedelta | None,
    ) -> None:
        self._db = db
        self.name = name
        self.read = read
        self.every = every
        self.due: datetime.datetime | None = None
        """When it is polled next."""

    def changed(self, arguments: Any, value: Any) -> None:
        """The value for these arguments, one or a tuple of them, is another now; None is no value.
        In the open transaction, or in one of its own."""
        handle = self._handle
        if value is not None:
            handle[arguments] = value
        elif arguments in handle:
            del handle[arguments]

    def poll(self) -> int:
        """Read the values for all known arguments, and report those that have changed, together;
        returns how many. Arguments are known if they are objects, or have been reported."""
        known, failures = dict(self._handle.items()), list[HarkenError]()
        seen = {}
        for arguments in self._arguments(known):
            try:
                seen[arguments] = self._read(arguments)
            except HarkenError as error:
                failures.append(error)
        changes = {each: value for each, value in seen.items() if known.get(each) != value}
        if changes:
            with _one_transaction(self._db):
                for arguments, value in changes.items():
                    self.changed(arguments, value)
        if failures:
            raise failures[0]
        return len(changes)

    def _read(self, arguments: Any) -> Any:
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        try:
            return self.read(*given)
        except HarkenError:
            raise
        except Exception as error:
            raise ForeignFault(
                f"the sensor {self.name} failed: {type(error).__name__}: {error}",
                code="foreign",
                hint="its other values were taken in; this one stays what it was",
            ) from error

    def _arguments(self, known: dict[Any, Any]) -> Iterator[Any]:
        parameters = self._function.parameters
        if not parameters:
            yield ()
        elif all(column.type.surrogate for column in parameters):
            names = [f"x{i}" for i in range(len(parameters))]
            declared = ", ".join(f"{c.type} {n}" for c, n in zip(parameters, names, strict=True))
            found = self._db.amosql(f"select {', '.join(names)} for each {declared};").rows
            if len(found) > MOST_ARGUMENTS:
                raise ValueFault(
                    f"{self.name} would be polled for {len(found):,} arguments, and the limit is "
                    f"{MOST_ARGUMENTS:,}",
                    code="too-complex",
                    hint="report its changes with changed(arguments, value)",
                )
            for row in found:
                yield row if len(row) > 1 else row[0]
        else:
            yield from known

    @property
    def _function(self) -> Function:
        (function,) = self._db.internals.runtime.catalog.overloads(self.name)
        return function

    @property
    def _handle(self) -> FunctionHandle:
        return self._db.function(self.name)

    def __repr__(self) -> str:
        often = "" if self.every is None else f", polled every {self.every}"
        return f"<sensor {self.name}{often}>"


class DueSensors:
    """The sensors of a session that are polled, as due work."""

    name = SENSORS

    def __init__(self, now: Callable[[], datetime.datetime]) -> None:
        self._now = now
        self.sensors: dict[str, Sensor] = {}

    def next_due(self) -> datetime.datetime | None:
        dues = (each.due for each in self.sensors.values() if each.due is not None)
        return min(dues, default=None)

    def run(self, now: datetime.datetime) -> Iterator[str]:
        failures = []
        for each in list(self.sensors.values()):
            if each.due is None or each.every is None or each.due > now:
                continue
            each.due += each.every * ((now - each.due) // each.every + 1)
            try:
                each.poll()
            except HarkenError as error:
                failures.append(error)
            yield each.name
        if failures:
            raise failures[0]


def activate(
    db: Database, name: str, read: Callable[..., Any], every: datetime.timedelta | None
) -> Sensor:
    """Make a function active: it is declared as stored, unless it is."""
    if every is not None and not (
        isinstance(every, datetime.timedelta) and every > datetime.timedelta()
    ):
        raise ValueFault(
            f"{every!r} is not an interval",
            code="bad-value",
            hint="give a datetime.timedelta, as in every=timedelta(minutes=5)",
        )
    _declare(db, name, read)
    runtime = db.internals.runtime
    work = next((w for w in runtime.due_work.works() if isinstance(w, DueSensors)), None)
    if work is None:
        work = DueSensors(db.internals.connection.now)
        runtime.due_work.register(work)
    sensor = work.sensors[name] = Sensor(db, name, read, every)
    if every is not None:
        sensor.poll()
        sensor.due = db.internals.connection.now() + every
    return sensor


def _declare(db: Database, name: str, read: Callable[..., Any]) -> None:
    known = [f for f in db.internals.runtime.catalog.overloads(name) if not f.system]
    if len(known) > 1:
        raise ForeignFault(
            f"{name} means {' or '.join(sorted(f.id for f in known))}; a sensor is one",
            code="ambiguous",
            hint="give the sensor a name of its own",
        )
    if known and known[0].kind is FunctionKind.STORED:
        return
    if known and known[0].kind is not FunctionKind.FOREIGN:
        raise ForeignFault(
            f"{name} is a {known[0].kind.value} function, and a sensor stores what it sees",
            code="exists",
            hint=f"declare it as foreign, or as stored: create function {name}(...) -> ...;",
        )
    declared = known[0] if known else signature_of(name, read)
    if declared is None or declared.relation is None or declared.bag:
        raise ForeignFault(
            f"what {name} takes and gives is not known, or is not one row",
            code="foreign",
            hint=f"declare it: create function {name}(room r) -> number as foreign;",
        )
    parameters = ", ".join(f"{c.type} {c.name}" for c in declared.parameters)
    results = ", ".join(f"{c.type} {c.name}" for c in declared.results)
    if len(declared.results) > 1:
        results = f"<{results}>"
    with _one_transaction(db):
        db.amosql(f"create function {name}({parameters}) -> {results} as stored;")


def _one_transaction(db: Database) -> AbstractContextManager[Any]:
    """The open transaction, or one of its own."""
    return nullcontext() if db.internals.transactions.active else db.transaction()
