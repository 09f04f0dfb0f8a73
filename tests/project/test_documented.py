"""The projects of examples/ do what they say; tests/test_docs.py runs docs/projects.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.commands import Command

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(each.parent for each in ROOT.glob("examples/*/project.yml"))


@pytest.mark.parametrize("directory", EXAMPLES, ids=lambda path: path.name)
def test_examples_apply(directory: Path, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    assert command("apply", directory, "--db", file, "--plan").code == 0
    assert not file.exists()
    done = command("apply", directory, "--db", file)
    assert done.code == 0, done.err
    assert "tests passed" in done.out
    assert "nothing to do" in command("apply", directory, "--db", file).out


def test_the_dashboard_is_followed(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "visits.db"
    command("apply", ROOT / "examples/dashboard", "--db", file)
    script = ROOT / "examples/dashboard/follow.py"
    done = subprocess.run(
        [sys.executable, script, file], capture_output=True, text=True, check=True
    )
    assert "+ [('/shop', 3, 181)] - [('/shop', 2, 151)]" in done.stdout
