"""`harken watch`: a program, and the changes of its views under a file of transactions.

Each line of the file is a transaction as JSON: for each table, rows to delete and rows to insert.
The answer is the change of every view that it changes, and then its number.

Law: a transaction that was answered is committed; a line that fails is rolled back as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harken.api.database import Database
from harken.api.json_changes import delete_facts, delete_rows, insert_facts, insert_rows
from harken.database.changes import Change
from harken.database.json_values import read_json, reader
from harken.database.language_names import AMOSQL, DATALOG
from harken.database.results import Result
from harken.errors import HarkenError, SafetyFault, Span, TypeFault
from harken.statements.language_registry import Language

Rows = Mapping[str, list[list[Any]]]
SIDES = ("delete", "insert")
"""In this order: a row that is deleted and inserted stays."""


class BadLine(HarkenError):
    """bad-change: a line that is not a transaction."""


class Watch:
    """A watched program. `tell` receives the lines of JSON that say what changed."""

    def __init__(
        self,
        db: Database,
        language: Language,
        tell: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._db = db
        self._language = language
        self._tell = tell
        self._warn = warn

    def begin(self, text: str, source: str, facts: str, strategy: str) -> int:
        """Run the program, and watch its views: those that Datalog monitors or outputs, all SQL
        views, and all derived AMOSQL functions whose rows can be listed. Returns how many there
        are."""
        db, language = self._db, self._language
        db.run_program(
            language.name, text, _nothing, source, facts=facts, warn=_nothing, strategy=strategy
        )
        db.commit()
        asked = language.monitoring(text)
        if asked is not None:
            count, program = asked
            db.run_program(language.name, program, _nothing, strategy=strategy)
            return count
        count = 0
        for view in db.views():
            if not view.is_view:
                continue
            try:
                db.monitor(view.name, self._change, strategy=strategy, warn=self._warn)
            except (SafetyFault, TypeFault):
                continue  # it needs arguments
            count += 1
        return count

    def apply(self, line: str, number: int) -> None:
        """Run the transaction on a line with this number."""
        try:
            sides = _read(line)
            with self._db.listening(self._result), self._db.transaction():
                for side in SIDES:
                    for name, rows in sides.get(side, {}).items():
                        self._apply(side, name, rows, line)
        except HarkenError as error:
            bad = error if isinstance(error, BadLine) else _bad(line, line.strip(), error)
            assert bad.span is not None
            before = "\n" * (number - 1)
            bad.span = Span(bad.span.start + len(before), bad.span.end + len(before))
            bad.text = before + line.rstrip("\n")
            raise bad from error

    def _apply(self, side: str, name: str, rows: list[list[Any]], line: str) -> None:
        try:
            CHANGES.get(self._language.name, _by_table)(self._db, side, name, rows)
        except HarkenError as error:
            raise _bad(line, json.dumps(name), error) from error

    def _result(self, result: Result) -> None:
        for line in result.json_lines():
            self._tell(line)

    def _change(self, change: Change) -> None:
        self._tell(change.json_line())


def _read(line: str) -> Mapping[str, Rows]:
    try:
        found = read_json(line, object_pairs_hook=_once_each)
    except RecursionError:
        raise _bad(line, "", "this is nested too deeply for a transaction") from None
    except KeyError as error:
        (name,) = error.args
        raise _bad(line, json.dumps(name), f"{name} appears twice") from None
    except json.JSONDecodeError as error:
        bad = _bad(line, "", f"this is not JSON: {error.msg}")
        bad.span = Span(error.pos, error.pos + 1)
        raise bad from None
    except ValueError:  # Python converts no more than 4,300 digits
        raise _bad(line, "", "a number in this line has too many digits") from None
    if not isinstance(found, dict):
        raise _bad(line, line.strip(), "a transaction is an object with `insert` and `delete`")
    for side, tables in found.items():
        shown = json.dumps(side)
        if side not in SIDES:
            raise _bad(line, shown, f"a transaction has `insert` and `delete`, not `{side}`")
        if not isinstance(tables, dict):
            raise _bad(line, shown, f"`{side}` must be an object: names of tables with their rows")
        for name, rows in tables.items():
            whole = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
            if not whole or any(isinstance(v, list | dict) for row in rows for v in row):
                shown = json.dumps(name)
                raise _bad(line, shown, f"the rows of {name} must be a list of lists of values")
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise KeyError(name)
        found[name] = value
    return found


def _bad(line: str, part: str, error: HarkenError | str) -> BadLine:
    """The error in a part of the line."""
    start = max(0, line.find(part))
    span = Span(start, start + max(1, len(part)))
    if isinstance(error, str):
        return BadLine(error, code="bad-change", span=span)
    return BadLine(error.message, code=error.code, span=span, hint=error.hint)


# --- in each language ----------------------------------------------------------------------


def _by_datalog(db: Database, side: str, name: str, rows: list[list[Any]]) -> None:
    (insert_facts if side == "insert" else delete_facts)(db, name, rows)


def _by_table(db: Database, side: str, name: str, rows: list[list[Any]]) -> None:
    (insert_rows if side == "insert" else delete_rows)(db, name, rows)


def _by_function(db: Database, side: str, name: str, rows: list[list[Any]]) -> None:
    handle = db.function(name)
    readers = [reader(type_) for type_ in handle.types]
    for row in rows:
        if len(row) == len(readers):  # otherwise the handle says what is wrong
            row = [read(value) for read, value in zip(readers, row, strict=True)]
        if side == "delete":
            handle.remove(*row)
        else:
            handle.put(*row)


CHANGES = {DATALOG: _by_datalog, AMOSQL: _by_function}
"""How rows are inserted and deleted, for languages of programs where it is not done as in
tables."""


def _nothing(_: object) -> None:
    """Ignores the report."""
