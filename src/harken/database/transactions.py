"""Transactions: what a session has changed and not yet committed.

A transaction begins with the first change and ends with `commit` or `rollback`. It covers data,
schema and objects alike; within it each statement happens as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harken.database.runtime import Runtime
from harken.errors import IntegrityError


class Transactions:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._connection = runtime.engine.connection
        self._first_oid = 0
        self._begun = False
        self._statements = 0
        self._blocks = 0
        self._block_undone = False
        self._text_open = False
        self._data_version = -1

    @property
    def active(self) -> bool:
        return self._connection.in_transaction

    @property
    def in_block(self) -> bool:
        return self._blocks > 0

    def begin(self) -> None:
        if self._connection.in_transaction:
            return
        self._connection.begin()
        try:
            self.refresh()
            self._runtime.catalog.refresh_counter()
        except BaseException:
            self._connection.rollback()
            raise
        self._first_oid = self._runtime.catalog.allocate(0)
        self._begun = True

    def refresh(self) -> None:
        """See what other processes committed: their objects, and their schema if it changed."""
        version = self._connection.data_version()
        if version == self._data_version:
            return
        self._runtime.objects.forget()
        # The catalog is many relations: read all of them in the same state.
        with self._connection.snapshot():
            if self._runtime.catalog.is_stale():
                self._reread()
        self._data_version = version

    def commit(self) -> None:
        self._refuse_in_statement("commit")
        if self._blocks:
            raise IntegrityError(
                "inside `with db.transaction()` the end of the block commits",
                code="transaction",
                hint="leave `commit` out",
            )
        self._commit()

    def _commit(self) -> None:
        if not self._connection.in_transaction:
            return
        try:
            self._runtime.catalog.save_counter()
            self._connection.commit()
        except BaseException:
            self._rollback()
            raise
        self._runtime.catalog.changed = False
        self._begun = False

    def rollback(self) -> None:
        """Undo the open transaction. A block cannot go on after that: it ends with an error."""
        self._refuse_in_statement("rollback")
        if self._blocks:
            self._block_undone = True
            raise _rolled_back()
        self._rollback()

    def _rollback(self) -> None:
        """Also after SQLite did it by itself, as it does when the disk is full."""
        if not self._begun:
            return
        self._begun = False
        self._connection.rollback()
        self._runtime.drop_variables_from(self._first_oid)
        self._undo(self._runtime.catalog.changed)
        self._keep_counter()

    def _keep_counter(self) -> None:
        """A number given in what was undone is not given again: someone may still hold it."""
        if self._runtime.catalog.allocate(0) == self._first_oid:
            return
        try:
            with self._connection.without_waiting():
                self._connection.begin()
                self._runtime.catalog.save_counter()
                self._connection.commit()
        except StorageError:
            self._connection.rollback()

    def _refuse_in_statement(self, what: str) -> None:
        if self._statements:
            raise IntegrityError(
                f"{what} is not possible while a statement is running",
                code="transaction",
                hint="leave it to the text that calls this function",
            )

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one changing statement: all of it or, if it fails, none."""
        self.begin()
        catalog = self._runtime.catalog
        epoch, changed, first_oid = catalog.epoch, catalog.changed, catalog.allocate(0)
        self._statements += 1
        try:
            with self._connection.savepoint():
                yield
        except BaseException:
            if not self._connection.in_transaction:
                self._rollback()
            else:
                self._runtime.drop_variables_from(first_oid)
                self._undo(catalog.epoch != epoch)
                catalog.changed = changed
            raise
        finally:
            self._statements -= 1

    @contextmanager
    def block(self) -> Iterator[None]:
        """`with db.transaction()`: commits at the end, undoes the block if it raises."""
        if self._blocks:
            raise IntegrityError(
                "transactions do not nest",
                code="transaction",
                hint="one `with db.transaction()` block is enough for all of it",
            )
        self._blocks = 1
        joined = self.active
        try:
            if joined:
                with self.statement():
                    yield
            else:
                self.begin()
                yield
            self.commit()
        except BaseException:
            if not joined:
                self.rollback()
            raise
        finally:
            self._blocks = 0

    @contextmanager
    def text(self) -> Iterator[None]:
        """Run a whole text: if it fails, everything since its start, or since the last commit in
        it, is undone."""
        if not self.active:
            try:
                yield
            except BaseException:
                if self.active and not self.in_block:
                    self.rollback()
                raise
            return
        name = "whole_text"
        catalog = self._runtime.catalog
        epoch, changed, first_oid = catalog.epoch, catalog.changed, catalog.allocate(0)
        self._connection.run(f"SAVEPOINT {name}")
        self._text_open = True
        try:
            yield
        except BaseException:
            if not self._text_open:
                if self.active and not self.in_block:
                    self.rollback()
            elif self.active:
                self._connection.run(f"ROLLBACK TO {name}")
                self._connection.run(f"RELEASE {name}")
                self._runtime.drop_variables_from(first_oid)
                self._undo(catalog.epoch != epoch)
                catalog.changed = changed
            raise
        else:
            if self._text_open and self.active:
                self._connection.run(f"RELEASE {name}")
        finally:
            self._text_open = False

    _text_open = False

    def end_text(self) -> None:
        """A commit or rollback inside the text ends what it was to be undone with."""
        self._text_open = False

    def _undo(self, schema_changed: bool) -> None:
        self._runtime.objects.forget()
        self._runtime.engine.indexes.reload()
        if schema_changed:
            self._reread()

    def _reread(self) -> None:
        self._runtime.catalog.reload()
        self._runtime.engine.indexes.reload()
