"""Detached actions: the pending actions of detached rules, kept in the file until they are done.

An action is recorded in the transaction that triggers it, and deleted in the transaction that
carries it out. So it is done once, or it is still recorded: with the error after a failure, without
one if the process died. It can be retried or discarded.

The record is a stored function like any other, `detached_actions`: a table of SQL that can be
queried, monitored, or used in rules.

Law: an action is recorded exactly if the transaction that triggered it was committed, its own
transaction was not, and it was not discarded.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from dataclasses import dataclass

from harken.consumers.rules.conflict_set import Activation
from harken.consumers.rules.failure_news import tell_failure
from harken.database.changes import StoredRows, read_rows
from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import HarkenError, IntegrityError, NameFault, ValueFault
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row
from harken.values.types import INTEGER, TEXT, TIMESTAMP

NAME = "detached_actions"
NUMBER = Column("number", INTEGER)
RESULTS = (
    Column("rule", TEXT),
    Column("about", TEXT),
    Column("attempts", INTEGER),
    Column("error", TEXT),
    Column("recorded", TIMESTAMP),
    Column("tried", TIMESTAMP),
    Column("tuples", TEXT),
)
TEXT_OF_FUNCTION = (
    f"create function {NAME}(integer number) -> <charstring rule, charstring about, "
    "integer attempts, charstring error, timestamp recorded, timestamp tried, charstring tuples>"
)
SHOWN = 10
"""The most tuples that `about` spells out; `tuples` has all of them."""


@dataclass(frozen=True, slots=True)
class DetachedAction:
    """An action of a detached rule that has not been carried out.

    `error` has the code and message of the last failed attempt. If there was none, the process died
    before the first attempt, or is about to make it.
    """

    number: int
    rule: str
    tuples: list[Row]
    attempts: int
    error: str | None
    recorded: datetime.datetime
    tried: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stored action: the arguments of the activation and the tuples to act on."""

    number: int
    rule: str
    arguments: Row
    rows: StoredRows
    attempts: int = 0


class DetachedActions:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def is_declared(self) -> bool:
        return self._runtime.catalog.has_function(f"{NAME}(integer)")

    def declare(self) -> None:
        """Create the stored function, in a transaction, if it does not exist."""
        catalog = self._runtime.catalog
        if self.is_declared:
            return
        if catalog.named(NAME):
            raise NameFault(
                f"detached rules keep pending actions in {NAME}, and there is another "
                "function of that name",
                code="exists",
                hint=f"delete the function {NAME}, or give it another name",
            )
        stored = FunctionKind.STORED
        function = Function(NAME, (NUMBER,), RESULTS, stored, text=TEXT_OF_FUNCTION)
        store(self._runtime, function, resident=True)

    def record(self, activation: Activation, rows: list[Row]) -> int:
        """Record an action in the transaction that triggers it; returns its number."""
        number = self._runtime.catalog.allocate(1)
        rule = activation.rule.rule
        types = tuple(column.type for column in (*rule.parameters, *rule.variables))
        now = encode_timestamp(self._runtime.engine.connection.now())
        kept = {"arguments": activation.arguments, **StoredRows(types, rows).as_json()}
        text = json.dumps(kept, ensure_ascii=False)
        about = self._shown(decode_rows(rows[:SHOWN], types), len(rows))
        row = (number, rule.name, about, 0, "", now, now, text)
        self._runtime.engine.set_row(self._relation(), row)
        return number

    def cross_out(self, number: int) -> Recorded | None:
        """Delete a recorded action in the transaction that carries it out; None if another session
        has done that."""
        found = self._find(number)
        if found is None:
            return None
        self._runtime.engine.clear(self._relation(), (number,))
        return _read(number, found)

    def note_failure(self, number: int, error: HarkenError) -> None:
        """Note a failed attempt, after its transaction was rolled back, and tell the operator."""
        found = self._find(number)
        if found is None:
            return
        rule, about, attempts, _, recorded, _, text = found
        now = encode_timestamp(self._runtime.engine.connection.now())
        told = f"[{error.code}] {error.message}"
        row = (number, rule, about, attempts + 1, told, recorded, now, text)
        self._runtime.engine.set_row(self._relation(), row)
        tell_failure(self._runtime, number, rule, attempts + 1, error)

    def discard(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._check(number)
            self._runtime.engine.clear(self._relation(), (number,))

    def numbers(self, wanted: Iterable[int] | None = None) -> list[int]:
        """The numbers of all recorded actions, oldest first; or the given ones, which must
        exist."""
        if wanted is None:
            return sorted(row[0] for row in self._rows())
        found = list(dict.fromkeys(wanted))
        for number in found:
            self._check(number)
        return found

    def listed(self) -> list[DetachedAction]:
        home = self._runtime.catalog.home
        return [
            DetachedAction(
                number,
                rule,
                _read(number, (rule, about, attempts, error, recorded, tried, text)).rows.values(
                    home
                ),
                attempts,
                error or None,
                decode_timestamp(recorded),
                decode_timestamp(tried) if attempts else None,
            )
            for number, rule, about, attempts, error, recorded, tried, text in sorted(self._rows())
        ]

    def _rows(self) -> list[Row]:
        return self._runtime.engine.matching(self._relation(), {}) if self.is_declared else []

    def _find(self, number: int) -> Row | None:
        rows = self._runtime.engine.results(self._relation(), (number,)) if self.is_declared else []
        return rows[0] if rows else None

    def _check(self, number: int) -> None:
        if self._find(number) is None:
            raise IntegrityError(
                f"there is no detached action {number}",
                code="no-such-row",
                hint=f"db.{NAME}() lists them; it may have been carried out meanwhile",
            )

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{NAME}(integer)").relation
        assert relation is not None
        return relation

    def _shown(self, rows: list[Row], size: int) -> str:
        more = [f"and {size - SHOWN} more"] if size > SHOWN else []
        return ", ".join([*(self._runtime.show_row(row) for row in rows), *more])


def _read(number: int, found: Row) -> Recorded:
    try:
        kept = json.loads(found[-1])
        return Recorded(number, found[0], tuple(kept["arguments"]), read_rows(kept), found[2])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueFault(
            f"the tuples of the detached action {number} cannot be read",
            code="bad-value",
            hint=f"the column tuples of {NAME} must not be changed; discard the action",
        ) from error


def not_done(number: int, error: HarkenError, prefix: str) -> HarkenError:
    """The error of a detached action, as reported to whoever ran it."""
    error.message = f"{prefix}detached action {number} failed: {error.message}"
    error.hint = (
        "it is recorded in detached_actions: fix the cause and retry it with "
        f"db.retry_actions([{number}]) or `harken actions retry {number}`, or discard it "
        f"with db.discard_actions([{number}])"
    )
    return error
