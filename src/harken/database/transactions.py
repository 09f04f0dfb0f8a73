"""Transactions: the changes of a session that are not committed yet.

A transaction starts with the first change and ends with `commit` or `rollback`. It covers data,
schema and objects; within it each statement is all or nothing.

One that starts with a read (`BEGIN; SELECT`) takes no lock: all its reads see one snapshot of the
file, that of the first read, and its first change takes the write lock. If another process has
committed in between, that change is refused with `stale-snapshot`.

Law: whenever a statement begins, the schema and the watchers in memory agree with the file. No time
limit interrupts the code that sees to that. If something else does, such as Ctrl-C, the next
statement repeats it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from harken.database.actions import TransactionUndone
from harken.database.reactions import Reactions
from harken.database.runtime import Runtime
from harken.database.shared_errors import block_rolled_back, statement_interrupted
from harken.engines.protocol import SchemaVersions
from harken.errors import HarkenError, IntegrityError, StorageError
from harken.propagation.check_phase import CheckState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint, and the state of memory when it was set."""

    name: str
    epoch: int
    catalog_changed: bool
    next_oid: int
    waiting: CheckState


class Transactions:
    def __init__(self, runtime: Runtime, reactions: Reactions) -> None:
        self._runtime = runtime
        self._reactions = reactions
        self._connection = runtime.engine.connection
        self._first_oid = 0
        self._first_epoch = -1
        self._begun = False
        self._statements = 0
        self._blocks = 0
        self._block_undone = False
        self._nesting = 0
        """How many savepoints of texts and statements are open."""
        self._text_open = False
        self._verify: Callable[[], None] | None = None
        """Looks at what the open block would commit, and refuses it by an error."""
        self._data_version = -1
        self._state = -1
        self._has_looked = True
        """Whether the open transaction, if any, knows which state of the file it reads."""
        self._is_settled = True
        """Whether memory was successfully brought in line with the file."""

    @property
    def active(self) -> bool:
        return self._connection.in_transaction

    @property
    def in_block(self) -> bool:
        return self._blocks > 0

    def begin(self, *, write: bool = True) -> None:
        """Begin a transaction, unless one is open; with `write`, allow it to change data."""
        self._notice_loss()
        if self._connection.in_transaction:
            if write and self._connection.only_reads:
                self._lock()
            return
        self._connection.begin(write=write)
        self._has_looked = False
        if write:
            try:
                self.refresh()
            except BaseException:
                self._connection.rollback()
                raise
        self._first_oid = self._runtime.catalog.allocate(0)
        self._first_epoch = self._runtime.catalog.epoch
        self._begun = True

    def _lock(self) -> None:
        """Take the write lock at the first change of a transaction that began with a read."""
        self._connection.lock()
        if not self._has_looked:
            self.refresh()
            self._first_oid = self._runtime.catalog.allocate(0)

    def look(self) -> None:
        """Before a read: see what others committed, unless the open transaction has looked already.
        From then on it sees that snapshot only."""
        if not (self._connection.in_transaction and self._has_looked and self._is_settled):
            self.refresh()

    @property
    def saw_known_state(self) -> bool:
        """Whether the read just made saw a state of the file that `refresh` knows.

        The read itself already asked the file, so this costs no query.
        """
        if not self._is_settled:
            return False
        if self._connection.in_transaction and self._has_looked:
            return True
        was_lost = self._begun and not self._connection.in_transaction
        return not was_lost and self._connection.seen_version() == self._state

    def refresh(self) -> None:
        """See what other processes committed: objects, object numbers, and the schema if it
        changed."""
        self._notice_loss()
        self._has_looked = True
        version = self._connection.data_version()
        self._state = self._connection.seen_version()
        if version == self._data_version:
            return
        # The catalog is many relations: read all of them in one snapshot.
        with self._settling(), self._connection.snapshot():
            self._runtime.objects.forget()
            self._runtime.engine.forget()
            self._runtime.catalog.refresh_counter()
            if self._runtime.catalog.is_stale():
                self._reread()
            else:
                self._reactions.refresh()
        self._data_version = version

    def commit(self) -> None:
        self._refuse_in_statement("commit")
        if self._blocks:
            raise IntegrityError(
                "the end of a `with db.transaction()` block commits",
                code="transaction",
                hint="leave out `commit`",
            )
        self._commit()

    def _commit(self) -> None:
        if not self._connection.in_transaction:
            return
        self._notice_loss()
        self._check_and_commit(lambda: None)
        self._end()

    def _end(self) -> None:
        """After a commit: consumers run their own transactions and notify their listeners."""
        failures = list(self._reactions.act_later(self._in_own_transaction))
        self._reactions.forget()
        failures += self._tell()
        if failures:
            raise failures[0]

    def _in_own_transaction(self, act: Callable[[], None]) -> None:
        self.begin()
        self._check_and_commit(act)

    def run_later(self, queue: Callable[[], int]) -> int:
        """Let consumers run transactions of their own for the actions that `queue` sets up, and
        return how many there were. All are tried even if some fail; the first error is raised."""
        self._refuse_in_statement("to retry an action")
        if self.active or self._blocks:
            raise IntegrityError(
                "detached actions run in transactions of their own",
                code="transaction",
                hint="commit first",
            )
        self.refresh()
        tried = queue()
        self._end()
        return tried

    def _tell(self) -> list[HarkenError]:
        """Listeners are notified last, because they may begin a transaction of their own."""
        blocks, self._blocks = self._blocks, 0
        try:
            return self._reactions.tell()
        finally:
            self._blocks = blocks

    def _check_and_commit(self, first: Callable[[], None]) -> None:
        """The check phase and the commit, all or nothing."""
        self._statements += 1
        only_read = self._connection.only_reads
        try:
            if not only_read:
                first()
                self._reactions.check()
                if self._verify is not None:
                    self._verify()
                self._reactions.before_commit()
            if not only_read and not self._connection.read_only:
                self._runtime.catalog.save_counter()
                self._runtime.engine.before_commit()
            self._connection.commit()
        except BaseException:
            self._rollback()
            raise
        finally:
            self._statements -= 1
        with self._connection.watch.shielded():
            self._follow_commit(only_read)
        if not only_read:
            self._write_to_lake()

    def _follow_commit(self, only_read: bool) -> None:
        """Listeners must hear of a commit even if the time limit has passed."""
        self._runtime.catalog.changed = False
        self._begun = False
        self._has_looked = True
        self._text_open = False
        self._runtime.engine.indexes.make_postponed()
        if not only_read:
            self._reactions.after_commit()

    def _write_to_lake(self) -> None:
        try:
            self._runtime.engine.after_commit()
        except HarkenError as error:
            error.message = f"committed, but not yet in the lake: {error.message}"
            raise

    def rollback(self) -> None:
        """Roll back the open transaction. A `with` block cannot continue after that, and ends with
        an error."""
        self._refuse_in_statement("rollback")
        if self._blocks:
            self._block_undone = True
            raise block_rolled_back()
        if self._begun:
            self._rollback()

    def _rollback(self) -> None:
        """Also after SQLite rolled back by itself, as it does when the disk is full."""
        if not self._begun and self._is_settled:
            return
        decoupled = self._reactions.before_rollback() if self._runtime.decoupled_rules else []
        with self._settling() as must_rebuild:
            was_open = self._connection.in_transaction
            tables = self._connection.schema_versions() if was_open else None
            self._connection.rollback()
            if self._begun:
                self._runtime.drop_variables_from(self._first_oid)
            self._begun = False
            self._has_looked = True
            self._text_open = False
            self._reactions.forget()
            self._undo(self._runtime.catalog.changed, tables, must_rebuild)
            self._reactions.after_transaction()
            self._keep_counter()
        if decoupled:
            self._act_decoupled(decoupled)

    def _act_decoupled(self, triggered: list[Any]) -> None:
        """Rules that act whatever becomes of the transaction do so after its rollback. Their errors
        are recorded with their actions: the error that led to the rollback must be told."""
        with suppress(HarkenError):
            record = self._runtime.rules.record_decoupled
            self._in_own_transaction(lambda: record(triggered))
            for _ in self._reactions.act_later(self._in_own_transaction):
                pass

    def _notice_loss(self) -> None:
        """SQLite rolled back the transaction in a statement of the fast path, which does not check;
        or a rollback was interrupted."""
        if not self._is_settled:
            was_open = self._connection.in_transaction
            self._rollback()
            if was_open:
                raise statement_interrupted()
        elif self._begun and not self._connection.in_transaction:
            self._rollback()

    @contextmanager
    def _settling(self) -> Iterator[bool]:
        """Bring memory in line with the file; yields whether the network must be rebuilt. An
        interrupt (Ctrl-C), now or in the statement being rolled back, may have left memory in any
        state."""
        error = sys.exception()
        must_rebuild = not self._is_settled or not (error is None or isinstance(error, Exception))
        self._is_settled = False
        with self._connection.watch.shielded():
            yield must_rebuild
        self._is_settled = True

    def _keep_counter(self) -> None:
        """A number used in a transaction that was rolled back is never used again: someone may
        still hold it."""
        self._runtime.catalog.refresh_counter()
        unchanged = self._runtime.catalog.allocate(0) == self._first_oid
        if unchanged or self._connection.in_memory:
            return
        try:
            with self._connection.without_waiting():
                self._connection.begin()
                self._runtime.catalog.save_counter()
                self._connection.commit()
        except StorageError:
            self._connection.rollback()

    def _refuse_in_statement(self, what: str) -> None:
        if self._statements or self._connection.asking:
            raise IntegrityError(
                f"{what} is not possible while a statement is running",
                code="transaction",
                hint="leave it to the text that calls this function",
            )

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one changing statement, all or nothing."""
        self.begin()
        self._statements += 1
        try:
            with self.all_or_nothing():
                yield
                if self._statements == 1:
                    self._reactions.after_statement()
        except TransactionUndone:
            self._rollback()
            raise
        finally:
            self._statements -= 1

    def alone(self, work: Callable[[], T]) -> T:
        """Run one changing statement as a transaction of its own, unless a block is open: `work`
        needs no savepoint, for if it fails the whole transaction is undone."""
        if self._blocks or self._statements:
            with self.statement():
                return work()
        # Before the transaction: a rollback would undo what a new schema makes of temporary tables.
        self.refresh()
        self.begin()
        self._statements += 1
        try:
            made = work()
            self._reactions.after_statement()
        except BaseException:
            self._rollback()
            raise
        finally:
            self._statements -= 1
        self._commit()
        return made

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        savepoint = self._set_savepoint("step")
        nesting, self._nesting = self._nesting, self._nesting + 1
        try:
            yield
        except BaseException:
            if not self._connection.in_transaction:
                self._rollback()
            else:
                self._undo_to(savepoint)
            raise
        finally:
            self._nesting = nesting
        self._connection.release(savepoint.name)

    def _set_savepoint(self, kind: str) -> Savepoint:
        """Nested ones have names of their own: if an interrupt keeps an inner one from being
        undone, the outer one is not taken for it."""
        name = f"{kind}_{self._nesting}"
        catalog = self._runtime.catalog
        held = catalog.epoch, catalog.changed, catalog.allocate(0)
        savepoint = Savepoint(name, *held, self._reactions.snapshot())
        self._connection.set_savepoint(name)
        return savepoint

    def _undo_to(self, savepoint: Savepoint) -> None:
        catalog = self._runtime.catalog
        with self._settling() as must_rebuild:
            tables = self._connection.schema_versions()
            self._connection.undo_to(savepoint.name)
            self._runtime.drop_variables_from(savepoint.next_oid)
            self._reactions.restore(savepoint.waiting)
            self._undo(catalog.epoch != savepoint.epoch, tables, must_rebuild)
            catalog.changed = savepoint.catalog_changed

    @contextmanager
    def block(
        self, *, write: bool = True, verify: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """`with db.transaction()`: commits at the end, and rolls back if the block raises. `verify`
        is called when all is done that the commit does, and can still refuse it."""
        if self._blocks:
            raise IntegrityError(
                "transactions do not nest",
                code="transaction",
                hint="one `with db.transaction()` block is enough for everything",
            )
        self._refuse_in_statement("a transaction of its own")
        self._blocks = 1
        self._block_undone = False
        joined = self.active
        try:
            self.begin(write=write)
            if joined:
                with self.all_or_nothing():
                    yield
                    self._check_block()
            else:
                yield
                self._check_block()
            self._verify = verify
            self._commit()
        except BaseException:
            if not joined:
                self._rollback()
            raise
        finally:
            self._blocks = 0
            self._verify = None

    def _check_block(self) -> None:
        """A block whose transaction is gone must not end as if it had been committed."""
        if self._block_undone or not self.active:
            raise block_rolled_back()

    @contextmanager
    def text(self) -> Iterator[None]:
        """Run a whole text. If it fails, everything since its start, or since its last commit, is
        rolled back."""
        if not self.active:
            try:
                yield
            except BaseException:
                if not self.in_block:
                    self._rollback()
                raise
            return
        savepoint = self._set_savepoint("whole_text")
        nesting, self._nesting = self._nesting, self._nesting + 1
        outer, self._text_open = self._text_open, True
        try:
            yield
        except BaseException:
            if not self._text_open or not self.active:
                if not self.in_block:
                    self._rollback()
            else:
                self._undo_to(savepoint)
            raise
        else:
            if self._text_open and self.active:
                self._connection.release(savepoint.name)
        finally:
            self._nesting = nesting
            # A foreign procedure may run a text within a text.
            self._text_open = outer and self._text_open

    def _undo(
        self, schema_changed: bool, tables: SchemaVersions | None, must_rebuild: bool
    ) -> None:
        """Bring memory in line with what SQLite has rolled back. `tables` are the versions of
        SQLite's schema just before: if they are unchanged, no table, index or trigger was created
        or dropped, and what is cached about them stays valid. Only what the transaction changed is
        looked at."""
        catalog, engine = self._runtime.catalog, self._runtime.engine
        same_tables = tables is not None and tables == self._connection.schema_versions()
        self._runtime.objects.forget()
        if not same_tables:
            engine.indexes.reload()
        engine.after_undo()
        if must_rebuild:
            self._reactions.clear_network()
        # What was watched before gets its tables back before anything new is watched.
        self._reactions.restore_tables()
        if schema_changed or must_rebuild:
            self._reread()
        same_schema = not (schema_changed or catalog.changed or catalog.epoch != self._first_epoch)
        if must_rebuild or not (same_schema and same_tables):
            self._reactions.after_undo()

    def _reread(self) -> None:
        self._runtime.catalog.reload()
        self._runtime.engine.indexes.reload()
        self._reactions.synchronise()
