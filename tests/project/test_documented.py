"""docs/projects.md and examples/ do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.commands import Command

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/projects.md").read_text("utf-8")
FILE = re.compile(r"`(shop/[\w.]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^```console\n\$ (harken apply shop --db shop\.db)\n(.*?)^```$", re.M | re.S)
EXAMPLES = sorted(each.parent for each in ROOT.glob("examples/*/project.yml"))


def without_time(text: str) -> str:
    return re.sub(r"applied in [\d.]+ s", "applied", text)


def test_the_first_project(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    for name, text in FILE.findall(PAGE):
        Path(name).write_text(text)
    first, second = SHOWN.findall(PAGE)
    for line, output in (first, second):
        done = command(*line.split()[1:])
        assert (done.code, done.err) == (0, "")
        assert without_time(done.out) == without_time(output)
        views = Path("shop/views.sql")
        views.write_text(views.read_text().replace("quantity < least", "quantity <= least"))
    assert "nothing to do" in command("apply", "shop", "--db", "shop.db").out


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
