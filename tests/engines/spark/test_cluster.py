"""The lake on a standalone cluster: a master and two workers, on loopback.

A worker that dies in the middle of a step costs time and nothing else: Spark runs its tasks again
on the other worker, and the step reports exactly the changes that recomputing gives.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import BinaryIO
from urllib.request import urlopen

import pyspark
import pytest

from tests.engines.spark import cluster_gate
from tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.engines.spark.cluster_program"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
ENVIRONMENT = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",  # also for the pages of master and workers
    "SPARK_DAEMON_MEMORY": "256m",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
}


class Daemon:
    """A master or worker with everything it starts, in a process group of its own."""

    def __init__(self, name: str, *arguments: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=ENVIRONMENT | environment,
        )
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as log:
            for line in log:
                self._lines.put(line)

    def logged(self, pattern: str) -> str:
        """The first group of the pattern, in the first line of the log that has it from here on."""
        while True:
            found = re.search(pattern, self._lines.get(timeout=PATIENCE))
            if found:
                return found.group(1)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)


@dataclass(frozen=True)
class Cluster:
    master: Daemon
    address: str
    page: str
    workers: dict[str, Daemon]

    def count_workers(self) -> int:
        """How many workers the master takes to be alive."""
        with urlopen(f"{self.page}/json/", timeout=PATIENCE) as answer:
            return int(json.load(answer)["aliveworkers"])


@contextmanager
def cluster(directory: Path, *names: str) -> Iterator[Cluster]:
    with ExitStack() as stack:

        def start(kind: str, *arguments: str, **environment: str) -> Daemon:
            given = ("--host", "127.0.0.1", "--webui-port", "0", *arguments)
            daemon = Daemon(kind, *given, **environment)
            stack.callback(daemon.kill)
            return daemon

        master = start("master.Master", "--port", "0")
        address = master.logged(r"Starting Spark master at (spark://\S+)")
        page = master.logged(r"started at (http://\S+)")
        workers = {}
        for name in names:
            own = {cluster_gate.WORKER: name, cluster_gate.DIRECTORY: str(directory)}
            given = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / name))
            workers[name] = start("worker.Worker", *given, address, **own)
            master.logged("(Registering worker)")
        yield Cluster(master, address, page, workers)


@contextmanager
def closed_gate(directory: Path) -> Iterator[tuple[int, BinaryIO]]:
    """The pipe that workers write their names to, and the file whose lock they wait for."""
    os.mkfifo(directory / "arrivals")
    arrivals = os.open(directory / "arrivals", os.O_RDWR)  # so that it never ends
    try:
        with (directory / "locked").open("wb") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield arrivals, gate
    finally:
        os.close(arrivals)


def wait_for(names: set[str], arrivals: int, log: Path) -> None:
    """Until each of these workers has a task at the gate."""
    arrived = b""
    while not names <= set(arrived.decode().split("\n")[:-1]):
        ready, _, _ = select.select([arrivals], [], [], PATIENCE)
        assert ready, log.read_text()[-4_000:]
        arrived += os.read(arrivals, 1_000)


@pytest.mark.nightly  # it starts six processes of Java
@pytest.mark.timeout(900)
def test_a_worker_killed_in_a_step_changes_nothing_but_its_time(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    with (
        closed_gate(tmp_path) as (arrivals, gate),
        cluster(tmp_path, "first", "second") as spark,
        log.open("wb") as errors,
    ):
        assert spark.count_workers() == 2
        driver = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, spark.address, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=ENVIRONMENT,
        )
        try:
            wait_for({"first", "second"}, arrivals, log)
            spark.workers["second"].kill()
            spark.master.logged("(Removing worker)")
            assert spark.count_workers() == 1
            fcntl.flock(gate, fcntl.LOCK_UN)
            printed, _ = driver.communicate(timeout=PATIENCE)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, log.read_text()[-4_000:]
    steps = [json.loads(line) for line in printed.splitlines()]
    print(*steps, sep="\n")  # docs/scale.md quotes the seconds
    assert [step["taken"] for step in steps] == [{"quantity": 600_000}] * 2
    assert all(step["exact"] for step in steps)
