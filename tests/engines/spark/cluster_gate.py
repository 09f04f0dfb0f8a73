"""A foreign function that stops each worker of a cluster at a gate, until the test opens it.

The gate is a file that the test has locked. Once it is closed (the file has its name `gate`), the
first call in a Python process of a worker writes the worker's name into the pipe `arrivals` and
waits for the lock. So the test knows which workers are in the middle of a task, and they stay
there, however fast or slow the machine is.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

DIRECTORY = "HARKEN_TEST_GATE"
"""Environment variable of the workers: the directory of the gate."""
WORKER = "HARKEN_TEST_WORKER"
"""Environment variable of a worker, inherited by its executors: its name."""

passed = False
"""Whether this process has been through the closed gate."""


def grade(quantity: int) -> int:
    if not passed and DIRECTORY in os.environ:
        _pass_gate(Path(os.environ[DIRECTORY]))
    return quantity // 10


def _pass_gate(directory: Path) -> None:
    global passed
    try:
        gate = (directory / "gate").open("rb")
    except FileNotFoundError:  # the gate is open
        return
    with gate:
        # A line this short is written whole, whoever else writes.
        with (directory / "arrivals").open("wb", buffering=0) as arrivals:
            arrivals.write(f"{os.environ[WORKER]}\n".encode())
        fcntl.flock(gate, fcntl.LOCK_SH)
    passed = True
