"""Reading sources again: those that are due, each in a transaction of its own, or all in one.

Readings run at the same time in threads and touch nothing of the session; what they found is
applied in the session's thread, as soon as it is there.

Law: no source waits for another one's reading, and the order in which they end changes no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, SourceFault, StorageError
from harken.intake.followed_servers import LogReading, is_active, is_followed, server_key
from harken.intake.log_intake import LogIntake, Misfit, Overtaken
from harken.intake.open_sources import Reading
from harken.intake.source_failures import SourceFailures
from harken.intake.source_records import SourceRecord
from harken.intake.taking_in import Intake, Taken
from harken.sources.outside import OutsideTransaction, Position

MOST_READINGS = 1_000
"""Of one log in one transaction; then it is taken to be endless, and the rest comes next time."""
TRIES = 3


@dataclass(slots=True)
class Job:
    """Something to read, and what to do with it then; `take` returns what is to be read next."""

    names: tuple[str, ...]
    read: Callable[[], Any]
    take: Callable[[Any], Job | None]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read before the transaction that takes it in."""

    readings: tuple[tuple[str, Reading], ...] = ()
    faults: tuple[tuple[str, HarkenError], ...] = ()


@dataclass(slots=True)
class SourceRounds:
    runtime: Runtime
    transactions: Transactions
    intake: Intake
    log: LogIntake
    failures: SourceFailures
    read_polled: Callable[[str], Callable[[], Reading]]
    take_polled: Callable[[str, Reading], Taken]
    _found: list[Taken] = field(default_factory=list)

    # --- each in a transaction of its own ---

    def run(self, polled: Sequence[str], servers: Sequence[str]) -> list[Taken]:
        """Read these sources and servers, and apply what they have."""
        self._found = []
        jobs = [job for each in polled if (job := self._job(partial(self._polled, each), each))]
        groups = self.log.groups()
        for key in servers:
            records = groups.get(key, [])
            new = [each for each in records if each.position is None]
            for each in new:
                made = self._job(partial(self._restart, each), each.name)
                jobs += [made] if made is not None else []
            known = [each for each in records if each.position is not None]
            if known:
                name = known[0].name
                made = self._job(partial(self._follow, key), name)
                jobs += [made] if made is not None else []
        self._work(jobs)
        return self._found

    def _job(self, make: Callable[[], Job | None], name: str) -> Job | None:
        """Opening a source can fail, too: a secret that is gone, a kind that is not there."""
        try:
            return make()
        except HarkenError as error:
            self._fail((name,), error)
            return None

    def _work(self, jobs: Sequence[Job]) -> None:
        workers = min(len(jobs), self.runtime.settings["source_workers"])
        if not workers:
            return
        with ThreadPoolExecutor(workers, "harken-source") as pool:
            pending: dict[Future[Any], Job] = {pool.submit(each.read): each for each in jobs}
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for each in done:
                    job = pending.pop(each)
                    following = self._finish(job, each)
                    if following is not None:
                        pending[pool.submit(following.read)] = following

    def _finish(self, job: Job, done: Future[Any]) -> Job | None:
        try:
            return job.take(done.result())
        except Overtaken:
            return None
        except StorageError:
            raise
        except HarkenError as error:
            self._fail(job.names, error)
            return None

    def _fail(self, names: Sequence[str], error: HarkenError) -> None:
        with self.transactions.block():
            for name in names:
                taken = self.failures.note(name, error)
                self._found += [taken] if taken is not None else []

    def _polled(self, name: str) -> Job:
        def take(reading: Reading) -> None:
            with self.transactions.block():
                taken = self.take_polled(name, reading)
            self._found.append(taken)

        return Job((name,), self.read_polled(name), take)

    def _restart(self, record: SourceRecord) -> Job:
        """All rows of a followed table again, against the mirror."""

        def take(reading: Reading) -> None:
            with self.transactions.block():
                taken = self.take_polled(record.name, reading)
            self._found.append(taken)

        return Job((record.name,), self._starter(record), take)

    def _starter(self, record: SourceRecord) -> Callable[[], Reading]:
        self.log.name_there(record)
        server = self.log.server([*self.log.groups().get(server_key(record), []), record])
        layout, revision = record.layout, record.revision
        return lambda: server.start(layout.table, layout.outside, revision)

    def _follow(self, key: str) -> Job | None:
        """None if no table of the server goes on."""
        records = [e for e in self.log.groups().get(key, []) if e.position is not None]
        if not records:
            return None
        server = self.log.server(records)
        release = self.log.to_release(key, records)

        def take(reading: LogReading) -> Job | None:
            moved = self._apply_each(reading)
            offered = self.log.newly_offered(reading)
            if offered:
                with self.transactions.block():
                    self.log.note_offered(offered)
            return self._follow(key) if moved else None

        names = tuple(each.name for each in records)
        return Job(names, lambda: server.read(records, release), take)

    def _apply_each(self, reading: LogReading) -> bool:
        """One transaction there is one transaction here. Returns whether any table got further."""
        positions = dict(reading.positions)
        found: dict[str, Taken] = {}
        if not reading.transactions:
            self._recover(reading)
            return False
        with self._durable_together(reading.server):
            for transaction in reading.transactions:
                taken, positions = self._apply_alone(reading, transaction, positions)
                self.log.note_done(reading.server, transaction, taken)
                for each in taken:
                    _add(found, each)
        self._found += found.values()
        return positions != reading.positions

    def _apply_alone(
        self, reading: LogReading, transaction: OutsideTransaction, positions: dict[str, Position]
    ) -> tuple[list[Taken], dict[str, Position]]:
        """In a transaction of its own. A table whose changes do not fit is left out."""
        misfits: list[Taken] = []
        while True:
            try:
                with self.transactions.block():
                    taken, positions = self.log.apply(reading, transaction, positions)
                return [*misfits, *taken], positions
            except Misfit as misfit:
                with self.transactions.block():
                    misfits.append(self.log.note_misfit(misfit.name, misfit.error))
                positions = {t: p for t, p in positions.items() if reading.names[t] != misfit.name}

    @contextmanager
    def _durable_together(self, server: str) -> Iterator[None]:
        """The server keeps its log until all of these commits are on the disk. The lake is written
        after each commit and must not be ahead of it, so with a lake each is waited for."""
        engine = self.runtime.engine
        if engine.has_lake:
            yield
            return
        try:
            with engine.connection.commits_together():
                yield
        except StorageError:
            self.log.forget_done(server)
            raise

    def _recover(self, reading: LogReading) -> None:
        failing = self.failures.failing(reading.names.values())
        if failing:
            with self.transactions.block():
                self._found += self.log.recover(failing)

    # --- all in one transaction ---

    def gather_all(self) -> Gathered:
        """Read all sources that are not paused, those that are followed only where they begin
        again with all rows."""
        records = self.intake.records.all()
        names = [e.name for e in records if not e.is_paused and not e.definition.alone]
        stopped = {e.name for e in records if is_followed(e) and not is_active(e)}
        return self.gather([each for each in names if each not in stopped])

    def gather(self, names: Sequence[str]) -> Gathered:
        """Read these sources at the same time; changes nothing."""
        readings: list[tuple[str, Reading]] = []
        faults: list[tuple[str, HarkenError]] = []
        jobs: list[tuple[str, Callable[[], Reading]]] = []
        for name in names:
            try:
                record = self.intake.records.get(name)
                if not is_followed(record):
                    jobs.append((name, self.read_polled(name)))
                elif record.position is None or not is_active(record):
                    jobs.append((name, self._starter(record)))
            except HarkenError as error:
                faults.append((name, error))
        workers = min(len(jobs), self.runtime.settings["source_workers"])
        if workers:
            with ThreadPoolExecutor(workers, "harken-source") as pool:
                running = [(name, pool.submit(read)) for name, read in jobs]
                for name, done in running:
                    try:
                        readings.append((name, done.result()))
                    except HarkenError as error:
                        faults.append((name, error))
        return Gathered(tuple(readings), tuple(faults))

    def take_gathered(self, gathered: Gathered | None) -> list[Taken]:
        """In a transaction: apply what was read."""
        found: list[Taken] = []
        if gathered is None:
            return found
        for name, reading in gathered.readings:
            try:
                taken = self.take_polled(name, reading)
                for _ in range(TRIES):  # another session may have been quicker
                    if not taken.is_stale:
                        break
                    again = self.gather([name])
                    if again.faults:
                        raise again.faults[0][1]
                    for _, fresh in again.readings:
                        taken = self.take_polled(name, fresh)
                found.append(taken)
            except SourceFault as error:
                found += self._noted((name,), error)
        for name, fault in gathered.faults:
            found += self._noted((name,), fault)
        return found

    def take_logs(self, servers: Sequence[str] | None = None) -> list[Taken]:
        """In a transaction: apply all that servers have to tell, of all of them or of these."""
        found: dict[str, Taken] = {}
        for key, group in self.log.groups().items():
            if servers is not None and key not in servers:
                continue
            try:
                for each in self._take_log(key):
                    _add(found, each)
            except SourceFault as error:
                for each in self._noted([record.name for record in group], error):
                    _add(found, each)
        return list(found.values())

    def _take_log(self, key: str) -> Iterator[Taken]:
        for _ in range(MOST_READINGS):
            records = [e for e in self.log.groups().get(key, []) if e.position is not None]
            if not records:
                return
            reading = self.log.server(records).read(records, None)
            self.log.note_offered(self.log.newly_offered(reading))
            if not reading.transactions:
                yield from self.log.recover(self.failures.failing(reading.names.values()))
                return
            positions = dict(reading.positions)
            for transaction in reading.transactions:
                try:
                    with self.transactions.all_or_nothing():
                        taken, positions = self.log.apply(reading, transaction, positions)
                except Misfit as misfit:
                    yield self.log.note_misfit(misfit.name, misfit.error)
                    break  # read again without it
                yield from taken
                self.log.note_done(key, transaction, taken)
            else:
                if positions == reading.positions:
                    return

    def _noted(self, names: Sequence[str], error: HarkenError) -> Iterator[Taken]:
        for name in names:
            taken = self.failures.note(name, error)
            if taken is not None:
                yield taken

    def release(self) -> None:
        """After a commit: servers may forget what is committed here. What they are not told now,
        they are told with the next reading."""
        for key, group in self.log.groups().items():
            position = self.log.to_release(key, group)
            if position is not None:
                with suppress(HarkenError):
                    self.log.server(group).release(position)


def _add(found: dict[str, Taken], taken: Taken) -> None:
    """What several transactions did to one source."""
    known = found.get(taken.name)
    if known is None:
        found[taken.name] = taken
        return
    found[taken.name] = Taken(
        taken.name,
        taken.state,
        known.plus + taken.plus,
        known.minus + taken.minus,
        taken.why or known.why,
        known.recovered or taken.recovered,
        rows=known.rows if taken.rows is None else taken.rows,
        lag=known.lag if taken.lag is None else taken.lag,
    )
