"""Law: every law that holds for compiled waves holds for interpreted ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAWS = Path(__file__).parent


@pytest.mark.nightly  # all laws once more
@pytest.mark.timeout(3600)
def test_the_laws_hold_with_compiled_waves_switched_off() -> None:
    """`test_compiled_waves.py` compares both ways, so it is not run again."""
    pytest_again = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*pytest_again, str(LAWS), "--ignore", str(LAWS / "test_compiled_waves.py")],
        env={**os.environ, "HARKEN_COMPILED_WAVES": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:]
