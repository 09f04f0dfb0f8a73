"""A script of SQL, run in Harken and in DuckDB side by side.

After each transaction every view has the rows that its query has in DuckDB, as a bag; and the
change that a client was told is exactly what makes the rows before it the rows after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import duckdb

import harken
from harken import Change, HarkenError, Subscription
from tests.generators.sql_queries import duckdb_text
from tests.generators.sql_scripts import Script, Table, Transaction, View
from tests.harness.haste import Haste

Row = tuple[Any, ...]
REFUSALS = ("row-exists", "null")
Attempt = tuple[str, bool]
"""A statement, and whether it is refused."""


class Difference(AssertionError):
    """The law does not hold: `kind` is in what way, `view` is where."""

    def __init__(self, kind: str, view: str, detail: str) -> None:
        super().__init__(f"{kind}: {view}: {detail}")
        self.kind = kind
        self.view = view


class Pair:
    def __init__(self, script: Script, haste: Random | None = None) -> None:
        self.script = script
        self.counts: Counter[str] = Counter()
        self.harken = harken.connect()
        self.haste = Haste(self.harken, haste) if haste is not None else None
        self.duck = duckdb.connect()
        self.duck.execute("SET threads = 1")
        self.duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        self._refused: set[str] = set()
        self._views: dict[str, View] = {}
        self._before: dict[str, Counter[Row]] = {}
        """The rows of each view after the last transaction."""
        self._clients: dict[str, Subscription] = {}

    def run(self) -> Counter[str]:
        try:
            self._build()
            for transaction in self.script.transactions:
                self._transact(transaction)
        except duckdb.FatalException:  # there is nothing left to compare with
            self.counts["DuckDB died"] += 1
        finally:
            self.close()
        return self.counts

    def close(self) -> None:
        self.harken.close()
        self.duck.close()

    # --- tables and views ------------------------------------------------------------------

    def _build(self) -> None:
        self.harken.monitoring(self.script.strategy)
        for table in self.script.tables:
            self.harken.sql(table.definition())
            self.duck.execute(table.definition(keys=False))
        self._build_views()

    def _build_views(self) -> None:
        refused = [view for view in self.script.views if not self._define(view)]
        self.counts["views"] += len(self.script.views)
        self.counts["refused views"] += len(refused)

    def _define(self, view: View) -> bool:
        if any(f" {name} " in view.query for name in self._refused):
            self._refused.add(view.name)
            return False
        try:
            self.duck.execute(duckdb_text(f"CREATE VIEW {view.name} AS {view.query}"))
            self.duck.execute(f"SELECT * FROM {view.name}")
        except duckdb.FatalException:
            raise
        except duckdb.Error as error:
            self.counts[f"DuckDB: {str(error)[:60]}"] += 1
            self._refused.add(view.name)  # and with it what is made of it
            return False
        try:
            self.harken.sql(view.definition)
            self._views[view.name] = view
            self._watch(view)
        except HarkenError as error:
            if error.code == "unsupported" and "LATERAL" in str(error):
                self._views.pop(view.name, None)
                self._refused.add(view.name)
                return False
            raise Difference(f"refused: {error.code}", view.name, f"{error}") from error
        self._before[view.name] = self._rows(view.name)
        return True

    def _watch(self, view: View) -> None:
        if view.monitored:
            self._clients[view.name] = self.harken.monitor(view.name)

    # --- transactions ----------------------------------------------------------------------

    def _transact(self, transaction: Transaction) -> None:
        if self.haste is not None:
            self.haste.forget()
        commits = transaction.commits
        self.duck.execute("BEGIN")
        done: list[Attempt] = []
        for statement in transaction.statements:
            if statement.startswith("INSERT") and self._is_full(statement.split()[2]):
                continue
            self.duck.execute(statement)
            done.append((statement, self._is_broken()))
            if done[-1][1]:
                self.counts["violations"] += 1
                if not transaction.goes_on:
                    commits = False
                    break
                self._take_back(done)
        self.duck.execute("COMMIT" if commits else "ROLLBACK")
        self._repeat(done, commits, transaction.whole)
        self.counts["transactions"] += 1
        self._check_all(commits)

    def _take_back(self, done: Sequence[Attempt]) -> None:
        """The last statement did not happen: DuckDB has no savepoints."""
        self.duck.execute("ROLLBACK")
        self.duck.execute("BEGIN")
        for statement, is_refused in done:
            if not is_refused:
                self.duck.execute(statement)

    def _is_full(self, name: str) -> bool:
        (rows,) = self.duck.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,)
        return rows >= self.script.full

    def _is_broken(self) -> bool:
        tests = [test for table in self.script.tables for test in _violations(table)]
        return bool(tests) and bool(self.duck.execute(" UNION ALL ".join(tests)).fetchall())

    def _repeat(self, done: Sequence[Attempt], commits: bool, whole: bool) -> None:
        """The same in Harken, which refuses the statements that break a constraint."""
        end = "COMMIT" if commits else "ROLLBACK"
        attempts = [("BEGIN", False), *done, (end, False)]
        if whole:
            text = "; ".join(statement for statement, _ in attempts)
            attempts = [(text, any(is_refused for _, is_refused in done))]
        for statement, is_refused in attempts:
            try:
                self.harken.sql(statement)
            except HarkenError as error:
                if error.code not in REFUSALS or not is_refused:
                    raise Difference(f"statement: {error.code}", statement, f"{error}") from error
            else:
                if is_refused:
                    raise Difference("no refusal", statement, "a constraint is broken")
        if whole and self.harken.in_transaction:
            self.harken.sql("ROLLBACK")

    # --- the law ---------------------------------------------------------------------------

    def _check_all(self, commits: bool) -> None:
        for view in self._views.values():
            self._before[view.name] = self._check(view, commits)

    def _check(self, view: View, commits: bool) -> Counter[Row]:
        self.counts["pairs"] += 1
        before, after = self._before[view.name], self._rows(view.name)
        if view.name in self._clients:
            self.counts["watched"] += 1
            change = self._told(view)
            if after - before != change[0] or before - after != change[1]:
                detail = f"change {change}, and it is {after - before}, {before - after}"
                raise Difference("change", view.name, detail)
        if commits:
            self._check_meaning(view, after)
        return after

    def _told(self, view: View) -> tuple[Counter[Row], Counter[Row]]:
        changes = self._clients[view.name].changes()
        if not changes:
            return _bag([], [])
        self.counts["changes"] += 1
        return _of_change(view, changes)

    def _check_meaning(self, view: View, rows: Counter[Row]) -> None:
        meant = self._meant(view.name)
        if rows != meant:
            # The optimizer of DuckDB 2.0 takes EXISTS (SELECT (SELECT ... correlated) ...) to be
            # false: what it says is asked again without.
            self.duck.execute("PRAGMA disable_optimizer")
            meant = self._meant(view.name)
            self.duck.execute("PRAGMA enable_optimizer")
            self.counts["DuckDB's optimizer"] += rows == meant
        if rows != meant:
            detail = f"has {rows - meant} too many and lacks {meant - rows}"
            raise Difference("meaning", view.name, detail)
        self.counts["with rows"] += bool(rows)

    def _meant(self, name: str) -> Counter[Row]:
        return Counter(map(_typed, self.duck.execute(f"SELECT * FROM {name}").fetchall()))

    def _rows(self, name: str) -> Counter[Row]:
        return Counter(map(_typed, self.harken.sql(f"SELECT * FROM {name}").rows))


def _violations(table: Table) -> Iterator[str]:
    """Queries that have rows where a constraint of the table is broken."""
    if table.required:
        missing = " OR ".join(f"{name} IS NULL" for name in sorted(table.required))
        yield f"SELECT 1 FROM {table.name} WHERE {missing}"
    if table.key:
        keys = ", ".join(table.key)
        yield f"SELECT 1 FROM {table.name} GROUP BY {keys} HAVING count(*) > 1"


def _typed(row: Row) -> Row:
    """A row in which 1, 1.0 and true differ."""
    return tuple((type(value).__name__, value) for value in row)


def _of_change(view: View, changes: list[Change]) -> tuple[Counter[Row], Counter[Row]]:
    if len(changes) != 1 or not (changes[0].plus or changes[0].minus):
        raise Difference("change", view.name, f"one transaction, and these changes: {changes}")
    return _bag(changes[0].plus, changes[0].minus)


def _bag(plus: Iterable[Row], minus: Iterable[Row]) -> tuple[Counter[Row], Counter[Row]]:
    return Counter(map(_typed, plus)), Counter(map(_typed, minus))
