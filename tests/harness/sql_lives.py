"""The life of a database file: a script of SQL that several sessions run in turn.

Some views are materialized, some monitored; statements are refused on the way, sessions are closed
and opened again. After each transaction every session has the rows of DuckDB; the clients of the
session that committed are told its change, and those of the others nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import harken
from harken import Database, Subscription
from harken.maintenance import tuning
from tests.generators.sql_scripts import Script, Transaction
from tests.harness.sql_pairs import Difference, Pair


class Life(Pair):
    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.harken.close()
        self._directory = TemporaryDirectory()
        self._path = Path(self._directory.name) / "life.db"
        count = 1 + max((each.session for each in script.transactions), default=0)
        self._sessions = [self._open() for _ in range(count)]
        self._clients_of: list[dict[str, Subscription]] = [{} for _ in range(count)]
        self._run_in(0)

    def run(self) -> Counter[str]:
        with pytest.MonkeyPatch.context() as patch:
            if self.script.keeps_totals:
                patch.setattr(tuning, "LEAST_GROUP_MEMBERS", 0.0)
            return super().run()

    def close(self) -> None:
        for each in self._sessions:
            each.close()
        self.duck.close()
        self._directory.cleanup()

    def _open(self) -> Database:
        session = harken.connect(self._path)
        session.monitoring(self.script.strategy)
        return session

    def _run_in(self, number: int) -> None:
        self.harken, self._clients = self._sessions[number], self._clients_of[number]

    def _build_views(self) -> None:
        """Views are materialized when there are rows."""
        for transaction in self.script.transactions[:1]:
            self._transact(transaction)
        super()._build_views()
        for number in range(1, len(self._sessions)):
            self._watch_in(number)

    def _watch_in(self, number: int) -> None:
        self._run_in(number)
        for view in self._views.values():
            self._watch(view)

    def _transact(self, transaction: Transaction) -> None:
        if transaction.reopens:
            self._reopen(transaction.session)
        self._run_in(transaction.session)
        super()._transact(transaction)

    def _reopen(self, number: int) -> None:
        self.counts["reopened"] += 1
        self._sessions[number].close()
        self._sessions[number] = self._open()
        self._clients_of[number].clear()
        self._watch_in(number)

    def _check_all(self, commits: bool) -> None:
        super()._check_all(commits)
        current = self.harken
        for number, session in enumerate(self._sessions):
            if session is not current:
                self._run_in(number)
                self._check_other()

    def _check_other(self) -> None:
        for name in self._views:
            rows = self._rows(name)
            if rows != self._before[name]:
                raise Difference("another session", name, f"{rows} is not {self._before[name]}")
            changes = self._clients[name].changes() if name in self._clients else []
            if changes:
                raise Difference("another session", name, f"was told {changes}")
