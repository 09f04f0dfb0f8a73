"""The same under Spark Connect, where the session is a client and has no JVM of its own.

A process has either kind of session, so all of it runs in one other process.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.engines.spark.connect_program"


@pytest.mark.nightly  # it starts a server
@pytest.mark.timeout(300)
def test_all_of_it_under_spark_connect(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    checks = "whole keys metrics missing kinds stream feed database released"
    assert ran.stdout.split() == checks.split()
