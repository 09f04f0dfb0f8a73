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
        self._blocks = 0
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

    def refresh(self) -> None:
        """See what other processes committed: their objects, and their schema if it changed."""
        version = self._connection.data_version()
        if version == self._data_version:
            return
        self._data_version = version
        self._runtime.objects.forget()
        if self._runtime.catalog.is_stale():
            self._reread()

    def commit(self) -> None:
        if not self._connection.in_transaction:
            return
        self._runtime.catalog.save_counter()
        self._connection.commit()
        self._runtime.catalog.changed = False

    def rollback(self) -> None:
        self._connection.rollback()
        self._runtime.drop_variables_from(self._first_oid)
        self._undo(self._runtime.catalog.changed)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one changing statement: all of it or, if it fails, none."""
        self.begin()
        catalog = self._runtime.catalog
        epoch, changed, first_oid = catalog.epoch, catalog.changed, catalog.allocate(0)
        try:
            with self._connection.savepoint():
                yield
        except BaseException:
            self._runtime.drop_variables_from(first_oid)
            if not self._connection.in_transaction:
                self._undo(True)
            else:
                self._undo(catalog.epoch != epoch)
                catalog.changed = changed
            raise

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
