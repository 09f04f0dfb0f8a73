"""What takes long to start runs in one process only (tests/harness/distribution.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.harness.distribution import GROUPS, group_of

SUITE = """
import os, pytest

@pytest.fixture
def spark(): pass

@pytest.fixture
def chromium(): pass

@pytest.mark.parametrize("n", range(4))
def test_with_spark(n, spark): print("ran spark", os.getpid())

@pytest.mark.parametrize("n", range(4))
def test_with_a_browser(n, chromium): print("ran chromium", os.getpid())

@pytest.mark.parametrize("n", range(4))
def test_others(n): print("ran", __name__, os.getpid())
"""


def test_groups_come_first(request: pytest.FixtureRequest) -> None:
    order = [*GROUPS, None]
    places = [order.index(group_of(item)) for item in request.session.items]
    assert places == sorted(places)


def test_each_group_and_the_rest_of_each_file_has_one_process(tmp_path: Path) -> None:
    """A version of pytest where xdist no longer groups would let everything start twice, and only
    be slow."""
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(SUITE)
    (tmp_path / "pytest.ini").touch()
    options = ["-n2", "--dist=loadgroup", "-p", "tests.harness.distribution", "-rP"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    processes = defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith("ran "):
            _, unit, process = line.split()
            processes[unit].append(process)
    counts = {unit: (len(tests), len(set(tests))) for unit, tests in processes.items()}
    files = {f"test_{name}": (4, 1) for name in ("one", "two", "three")}
    assert counts == {"spark": (12, 1), "chromium": (12, 1), **files}
