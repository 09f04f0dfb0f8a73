"""The same under Spark Connect, where the session is a client and has no JVM of its own.

A process has either kind of session, so all of it runs in one other process.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("connect_program.py")


@pytest.mark.nightly  # it starts a server
@pytest.mark.timeout(300)
def test_all_of_it_under_spark_connect(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    checks = "whole keys metrics missing kinds stream feed database released"
    assert ran.stdout.split() == checks.split()
