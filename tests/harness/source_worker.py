"""A process that takes in sources until it is killed: as `harken pipeline run --watch` does, with a
clock of its own that makes everything due at once.

Run as a script with the path of a database.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path


class SourceWorker:
    """The near end."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def wait_for_round(self) -> None:
        """Until it has looked at all sources once more."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "round\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def work(path: str) -> None:
    now = datetime.datetime.now(datetime.UTC)

    def clock() -> datetime.datetime:
        return now

    with harken.connect(path, clock=clock, settings={"allow_private_addresses": True}) as db:
        print("ready", flush=True)
        while True:
            now += datetime.timedelta(hours=1)
            db.run_due()
            print("round", flush=True)


if __name__ == "__main__":
    import harken

    work(sys.argv[1])
