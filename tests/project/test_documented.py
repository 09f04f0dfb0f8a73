"""The projects of examples/ do what they say; tests/test_docs.py runs docs/projects.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harken
from tests.harness.commands import Command
from tests.harness.servers import PostgresDatabase

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(each.parent for each in ROOT.glob("examples/*/project.yml"))


@pytest.mark.parametrize("directory", EXAMPLES, ids=lambda path: path.name)
def test_examples_apply(directory: Path, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    assert command("apply", directory, "--db", file, "--plan").code == 0
    assert not file.exists()
    done = command("apply", directory, "--db", file)
    assert done.code == 0, done.err
    assert re.search(r"[1-9] tests? passed", done.out)
    assert "nothing to do" in command("apply", directory, "--db", file).out


def test_the_dashboard_is_followed(command: Command, tmp_path: Path, warm_python: Path) -> None:
    file = tmp_path / "visits.db"
    command("apply", ROOT / "examples/dashboard", "--db", file)
    script = ROOT / "examples/dashboard/follow.py"
    done = subprocess.run([warm_python, script, file], capture_output=True, text=True, check=True)
    assert "+ [('/shop', 3, 181)] - [('/shop', 2, 151)]" in done.stdout


def run(python: Path, script: Path, *given: Path | str) -> list[str]:
    done = subprocess.run([python, script, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_worker_ships_each_order_once(
    command: Command, tmp_path: Path, warm_python: Path
) -> None:
    file, worker = tmp_path / "shipping.db", ROOT / "examples/shipping/worker.py"
    command("apply", ROOT / "examples/shipping", "--db", file)
    assert run(warm_python, worker, file) == []
    with harken.connect(file) as db:
        db.sql("INSERT INTO orders VALUES (1, 'pen', 'open'), (2, 'ink', 'paid')")
        db.sql("UPDATE orders SET state = 'paid' WHERE id = 1")
    assert run(warm_python, worker, file) == ["shipping ink", "shipping pen"]
    assert run(warm_python, worker, file) == []


def test_the_bakery_says_what_gets_low(tmp_path: Path, warm_python: Path) -> None:
    bakery = tmp_path / "bakery"
    shutil.copytree(ROOT / "examples/bakery", bakery)
    file, alert = tmp_path / "bakery.db", bakery / "alert.py"
    assert run(warm_python, alert, file) == ["low so far: ['bread']"]
    (bakery / "sales/wednesday.csv").write_text("receipt,product,pieces\n6,cake,8\n")
    assert run(warm_python, alert, file) == ["low so far: ['bread']", "low: cake, -2 left"]


def test_the_storm_holds_up_deliveries(
    logical_database: PostgresDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warm_python: Path,
) -> None:
    """A table of PostgreSQL joined with a page, by a program that is run now and then."""
    monkeypatch.setenv("HARKEN_ALLOW_PRIVATE_ADDRESSES", "1")
    example = ROOT / "examples/deliveries"
    page, file = tmp_path / "weather.html", tmp_path / "deliveries.db"
    shutil.copy(example / "weather.html", page)
    logical_database.run((example / "tables.sql").read_text())
    storm = (example / "storm.py", file, logical_database.url, page)
    assert run(warm_python, *storm) == ["held up: ['Ada', 'Cy']"]
    logical_database.run("UPDATE delivery SET harbour = 'Oslo' WHERE id = 1")
    assert run(warm_python, *storm) == ["- Ada waited: 12.5 m/s at Bergen", "held up: ['Cy']"]
    page.write_text(page.read_text().replace("12.5", "3").replace("<td>4<", "<td>10.5<"))
    assert run(warm_python, *storm) == [
        "+ Ada waits: 10.5 m/s at Oslo",
        "+ Bob waits: 10.5 m/s at Oslo",
        "- Cy waited: 12.5 m/s at Bergen",
        "held up: ['Ada', 'Bob']",
    ]
