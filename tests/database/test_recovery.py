"""A database in a file survives `kill -9`: it holds exactly the committed transactions."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from tests.harness import consistency, ledger

ROOT = Path(__file__).parents[2]
KILLS_PER_FILE = 8


class Writers:
    """A process that forks writers, and the pipe on which they report their commits."""

    def __init__(self, engine: str = "resident", program: str = ledger.__name__) -> None:
        self._reports, report = os.pipe()
        self._buffer = b""
        self._server = subprocess.Popen(
            [sys.executable, "-m", program, str(report), engine],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            pass_fds=[report],
        )
        os.close(report)

    def run(self, path: str, seconds: float, commits: int = 0) -> int | None:
        """Let a writer commit so often and then run so long, kill it, and give the number of the
        last commit it reported."""
        assert self._server.stdin is not None
        self._server.stdin.write(f"{path}\n".encode())
        self._server.stdin.flush()
        last = None
        line = self._line()
        while not line.startswith("started"):  # a quick writer reports before its start is told
            last = int(line)
            line = self._line()
        writer = int(line.split()[1])
        for _ in range(commits):
            last = int(self._line())
        deadline = time.monotonic() + seconds
        while select.select([self._reports], [], [], max(0, deadline - time.monotonic()))[0]:
            last = int(self._line())
        os.kill(writer, signal.SIGKILL)
        while (line := self._line()) != "dead":
            last = int(line)
        return last

    def _line(self) -> str:
        while b"\n" not in self._buffer:
            read = os.read(self._reports, 65536)
            assert read, "the writers are gone"
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def stop(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
        os.close(self._reports)


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    started = Writers()
    yield started
    started.stop()


def check_recovered(path: str) -> int:
    """Assert that a database holds a whole number of transactions, and tell how many."""
    with harken.connect(path) as db:
        n = ledger.committed(db)
        consistency.check(db)
        if n >= 0:
            assert ledger.answers(db) == ledger.ledger_after(n).answers()
        else:
            assert db.amosql('select t for each type t where name(t) = "account";').rows == []
    return n


def kill_and_check(writers: Writers, directory: Path, kills: int, chance: random.Random) -> None:
    for number in range(kills):
        path = str(directory / f"{number // KILLS_PER_FILE}.db")
        if number % KILLS_PER_FILE == 0:
            before = -1
        # The first writer of a file may be killed while it creates the file and the schema. Each of
        # the others first commits as often as it is told, however long that takes.
        is_first = number % KILLS_PER_FILE == 0
        longest = 0.1 if is_first else chance.choice([0.05, 0.2, 0.5])
        commits = 0 if is_first else chance.choice([0, 1, 2])
        reported = writers.run(path, chance.uniform(0, longest), commits)
        least = before if reported is None else reported
        found = check_recovered(path)
        assert least <= found <= least + 1
        assert found - before >= commits
        before = found


def test_a_killed_writer_leaves_exactly_the_committed_transactions(
    writers: Writers, tmp_path: Path
) -> None:
    kill_and_check(writers, tmp_path, kills=40, chance=random.Random(20))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_many_killed_writers(writers: Writers, tmp_path: Path, seed: int) -> None:
    kill_and_check(writers, tmp_path, kills=200, chance=random.Random(seed))


# --- a log that ends anywhere --------------------------------------------------------------


def logged_database(directory: Path, transactions: int) -> tuple[Path, Path]:
    """Copies of a database file and of the write-ahead log with all its transactions."""
    path = directory / "whole.db"
    database, log = directory / "copied.db", directory / "copied.log"
    with harken.connect(str(path)) as db:
        db.internals.connection.raw.pragma("wal_autocheckpoint", 0)
        for k in range(transactions):
            ledger.transaction(db, k)
            db.commit()
        ledger.transaction(db, transactions)  # and one that is still open
        shutil.copy(path, database)
        shutil.copy(f"{path}-wal", log)
        db.rollback()
    return database, log


def check_cut_logs(directory: Path, lengths: list[int], database: Path, log: Path) -> list[int]:
    found = []
    for number, length in enumerate(lengths):
        path = directory / f"cut{number}.db"
        shutil.copy(database, path)
        Path(f"{path}-wal").write_bytes(log.read_bytes()[:length])
        found.append(check_recovered(str(path)))
        path.unlink()
    return found


def test_a_log_that_was_cut_off_anywhere_gives_whole_transactions(tmp_path: Path) -> None:
    """As after a loss of power: what SQLite had written so far ends at some byte."""
    database, log = logged_database(tmp_path, 8)
    size = log.stat().st_size
    chance = random.Random(3)
    lengths = sorted([0, 31, 32, size, *(chance.randrange(size) for _ in range(40))])
    found = check_cut_logs(tmp_path, lengths, database, log)
    assert found == sorted(found)
    assert found[0] == -1
    assert found[-1] == 7
    assert len(set(found)) > 4


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_log_that_was_cut_off_at_every_page(tmp_path: Path) -> None:
    database, log = logged_database(tmp_path, 13)
    lengths = [*range(32, log.stat().st_size, 4096 + 24), log.stat().st_size]
    found = check_cut_logs(tmp_path, lengths, database, log)
    assert found == sorted(found)
    assert set(found) == set(range(-1, 13))


def test_a_log_with_a_damaged_end_gives_whole_transactions(tmp_path: Path) -> None:
    """The last pages were written as something else: their checksums tell."""
    database, log = logged_database(tmp_path, 6)
    content = bytearray(log.read_bytes())
    content[-2000:-1000] = bytes(1000)
    log.write_bytes(bytes(content))
    found = check_cut_logs(tmp_path, [len(content)], database, log)
    assert found[0] in (4, 5)
