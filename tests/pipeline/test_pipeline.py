"""`harken pipeline`: steps over inputs that others write, and where each input stands."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from tests.harness.commands import Command
from tests.harness.patience import PATIENCE

WATCHED = """\
create function ordered(charstring item) -> integer times;
create rule order_more() as
    when for each charstring i, integer q where stock(i) = q and q < 10
    do print("order", i);
activate order_more();
commit;
"""


class Warehouse:
    """A directory of files that a database has as the function `stock`."""

    def __init__(self, path: Path) -> None:
        self.database = path / "shop.db"
        self._files = path / "stock"
        self._files.mkdir()
        self.arrive("first", "pen,12\nink,30\n")
        with harken.connect(self.database) as db:
            db.lake("stock", self._files, key=["item"])
            db.amosql(WATCHED)

    def arrive(self, name: str, rows: str) -> None:
        (self._files / f".{name}").write_text(f"item,quantity\n{rows}")
        (self._files / f".{name}").rename(self._files / f"{name}.csv")

    def gone(self, name: str) -> None:
        (self._files / f"{name}.csv").unlink()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def test_a_step_tells_what_it_did(command: Command, warehouse: Warehouse) -> None:
    db = ("--db", warehouse.database)
    assert command("pipeline", "run", *db) == (0, "nothing new\n", "")
    warehouse.arrive("second", "nib,3\nblotter,100\n")
    outcome = command("pipeline", "run", *db)
    printed, line = outcome.out.splitlines()
    assert (outcome.code, printed, outcome.err) == (0, "order nib", "")
    assert line.startswith("stock: 2 rows, version 2, ")
    assert " s behind | order_more acted on 1 | " in line
    assert " s, of it order_more 0." in line
    assert command("pipeline", "run", *db).out == "nothing new\n"


def test_a_step_as_json(command: Command, warehouse: Warehouse) -> None:
    warehouse.gone("first")
    warehouse.arrive("second", "pen,5\n")
    told = command("pipeline", "run", "--db", warehouse.database, "--format", "json").results
    assert told[0] == {"kind": "print", "values": ["order", "pen"]}
    lag = told[1].pop("lag")
    assert isinstance(lag, float)
    assert 0 <= lag < 100
    assert told[1] == {
        "kind": "input",
        "name": "stock",
        "rows": 3,
        "version": 2,
        "left_out": None,
    }
    seconds, views = told[2].pop("seconds"), told[2].pop("views")
    assert told[2] == {"kind": "step", "rows": 3, "fired": {"order_more": 1}}
    assert isinstance(seconds, float)
    assert isinstance(views, dict)
    assert 0 < views["order_more"] < seconds


def test_a_step_tells_which_rows_are_left_out(command: Command, warehouse: Warehouse) -> None:
    db = ("--db", warehouse.database)
    sentence = (
        "1 of 2 new rows is left out, because a function has no NULL, no infinite number and no "
        "decimal beyond 64 bits: there are such in quantity in 1"
    )
    warehouse.arrive("second", "nib,\nblotter,100\n")
    outcome = command("pipeline", "run", *db)
    assert outcome.out.startswith("stock: 1 row, version 2, ")
    assert (outcome.code, outcome.err) == (0, f"stock: {sentence} [warning]\n")
    warehouse.arrive("third", "cap,\nbox,100\n")
    outcome = command("pipeline", "run", *db, "--format", "json")
    assert (outcome.results[0]["rows"], outcome.results[0]["left_out"]) == (1, sentence)
    assert outcome.err == f"stock: {sentence} [warning]\n"


def test_a_step_shows_what_durable_monitors_record(command: Command, warehouse: Warehouse) -> None:
    db = ("--db", warehouse.database)
    with harken.connect(warehouse.database) as database:
        database.amosql(
            "create function low() -> charstring as select i for each charstring i, integer q "
            "where stock(i) = q and q < 10; commit;"
        )
        database.monitor("low", durable="purchasing")
    warehouse.arrive("second", "nib,3\n")
    line = command("pipeline", "run", *db).out.splitlines()[-1]
    assert " | order_more acted on 1 | low +1 −0 | " in line
    warehouse.gone("second")
    change = command("pipeline", "run", *db, "--format", "json").results[1]
    del change["transaction"]
    assert change == {"kind": "change", "view": "low", "plus": [], "minus": [["nib"]]}
    with harken.connect(warehouse.database) as database:
        recorded = database.monitor("low", durable="purchasing").changes()
        assert [(each.plus, each.minus) for each in recorded] == [
            ([("nib",)], []),
            ([], [("nib",)]),
        ]


def test_where_the_inputs_stand(command: Command, warehouse: Warehouse) -> None:
    db = ("--db", warehouse.database)
    with harken.connect(warehouse.database) as database:
        database.amosql("create function seen(integer) -> integer stored in lake; commit;")
    source, heading, *lines, last = command("pipeline", "status", *db).out.splitlines()
    assert source.startswith("stock: ok, 2 rows, changed ")
    assert heading.split() == ["relation", "kind", "version", "rows", "pending", "bytes", "path"]
    assert lines[0].startswith("stock     directory of files  1                2     0 ")
    assert lines[1].startswith("seen      written by Harken   not yet written  0     0        0 ")
    assert last == "no step has run yet"
    warehouse.arrive("second", "nib,3\n")
    command("pipeline", "run", *db)
    source_state, stock, seen, step = command("pipeline", "status", *db, "--format", "json").results
    assert source_state["name"] == "stock"
    assert (stock["kind"], stock["name"], stock["source"]) == ("input", "stock", "directory")
    assert (stock["version"], stock["newest"], stock["rows"], stock["pending"]) == (2, 2, 3, 0)
    assert seen["version"] is None
    assert step["kind"] == "step"
    assert step["at"]


def test_nothing_in_the_lake(
    command: Command, program: Callable[..., Path], tmp_path: Path
) -> None:
    command("run", program("create type item;"), "--db", tmp_path / "plain.db")
    outcome = command("pipeline", "status", "--db", tmp_path / "plain.db")
    assert outcome == (0, "this database has no relations in the lake\n", "")


def test_the_status_shows_a_full_outbox(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path, settings={"outbox_changes": 1}) as db:
        db.sql("CREATE TABLE stock (item STRING)")
        db.monitor("stock", durable="reports")
        db.sql("INSERT INTO stock VALUES ('pen'); INSERT INTO stock VALUES ('ink')")
    _, line = command("pipeline", "status", "--db", path).out.splitlines()
    assert line.startswith("the durable monitor reports: 0 changes of stock in 0 bytes wait; 2 ")
    *_, outbox = command("pipeline", "status", "--db", path, "--format", "json").results
    assert (outbox["kind"], outbox["lost"]) == ("outbox", 2)


def test_a_pipeline_of_nothing(command: Command, tmp_path: Path) -> None:
    for name in ("run", "status"):
        outcome = command("pipeline", name, "--db", tmp_path / "missing.db")
        assert outcome.code == 1
        assert outcome.err.startswith("[cannot-open] there is no database")
        assert "hint: " in outcome.err
    assert not (tmp_path / "missing.db").exists()


def test_an_input_that_is_broken(command: Command, warehouse: Warehouse) -> None:
    warehouse.arrive("second", "pen,many\n")
    outcome = command("pipeline", "run", "--db", warehouse.database, "--format", "json")
    assert outcome.code == 1
    assert outcome.results[-1]["code"] == "bad-file"
    assert outcome.err.startswith("[bad-file] cannot read ")
    warehouse.gone("second")
    warehouse.arrive("third", "pen2,1\n")
    assert command("pipeline", "run", "--db", warehouse.database).out.startswith("order pen2\n")


def test_the_shell_and_explain_know_the_lake(command: Command, warehouse: Warehouse) -> None:
    db = ("--db", warehouse.database)
    assert command("shell", *db, "--language", "amosql", stdin=b'select stock("pen");\n') == (
        0,
        "<12>\n",
        "",
    )
    text = command("explain", "stock", *db, "--verbose").out
    assert "stock(charstring), 2 rows: brought here as a whole, because they are few" in text
    (explained,) = command("explain", "stock", *db, "--verbose", "--format", "json").results
    lake = explained["lake"]
    assert isinstance(lake, list)
    assert [(each["relation"], each["how"]) for each in lake] == [("stock(charstring)", "whole")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_pipeline_that_keeps_going(warehouse: Warehouse, warm_python: Path, how: int) -> None:
    arguments = ["pipeline", "run", "--watch", "--every", "0.05", "--db", str(warehouse.database)]
    running = subprocess.Popen(
        [warm_python, "-m", "harken", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    for number in range(3):
        warehouse.arrive(f"more{number}", f"item{number},{number}\n")
        assert running.stdout.readline() == f"order item{number}\n"
        assert running.stdout.readline().startswith(f"stock: 1 row, version {number + 2}, ")
    running.send_signal(how)
    assert running.wait(PATIENCE) == 0
    assert running.stdout.read() == ""
    running.stdout.close()


def test_a_pipeline_sets_a_bad_file_aside(
    command: Command, warehouse: Warehouse, warm_python: Path
) -> None:
    """It says so once, goes on with the others, and reads the file again when it has changed."""
    arguments = ["pipeline", "run", "--watch", "--every", "0.05", "--format", "json"]
    running = subprocess.Popen(
        [warm_python, "-m", "harken", *arguments, "--db", str(warehouse.database)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stderr is not None

    def next_step() -> list[dict[str, object]]:
        lines = [json.loads(running.stdout.readline())]
        while lines[-1]["kind"] != "step":
            lines.append(json.loads(running.stdout.readline()))
        return lines

    warehouse.arrive("bad", "pen,many\n")
    (error,) = (each for each in next_step() if each["kind"] == "error")
    assert (error["code"], error["file"]) == ("bad-file", "bad.csv")
    warehouse.arrive("good", "item1,1\n")
    assert [each["kind"] for each in next_step()] == ["print", "input", "step"]
    status = command("pipeline", "status", "--db", warehouse.database)
    assert "stock: bad.csv is set aside until it changes: cannot read " in status.out
    (told,) = (
        each
        for each in command(
            "pipeline", "status", "--db", warehouse.database, "--format", "json"
        ).results
        if each["kind"] == "input"
    )
    assert list(told["set_aside"]) == ["bad.csv"]  # type: ignore[call-overload]
    warehouse.arrive("bad", "item2,2\n")
    assert next_step()[0] == {"kind": "print", "values": ["order", "item2"]}
    assert "set aside" not in command("pipeline", "status", "--db", warehouse.database).out
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE) == 0
    assert running.stderr.read().count("[bad-file]") == 1
    running.stdout.close()
    running.stderr.close()


def test_a_strict_pipeline_ends_at_a_bad_file(warehouse: Warehouse, warm_python: Path) -> None:
    warehouse.arrive("bad", "pen,many\n")
    arguments = ["pipeline", "run", "--watch", "--strict", "--db", str(warehouse.database)]
    ended = subprocess.run(
        [warm_python, "-m", "harken", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("[bad-file] cannot read ")


def test_rows_of_a_file_that_went_bad_stay(warehouse: Warehouse) -> None:
    with harken.connect(warehouse.database) as db:
        warehouse.arrive("first", "pen,many\n")
        step = db.step(strict=False)
        assert list(step.set_aside["stock"]) == ["first.csv"]
        assert sorted(db.function("stock").items()) == [("ink", 30), ("pen", 12)]
        assert db.step(strict=False).set_aside == {}
        with pytest.raises(harken.StorageError, match="cannot read"):
            db.step()
        warehouse.arrive("first", "pen,7\n")
        assert db.step().taken == {"stock": 3}
        assert sorted(db.function("stock").items()) == [("pen", 7)]
        warehouse.arrive("first", "pen,many\n")
        db.step(strict=False)
        warehouse.gone("first")
        db.step(strict=False)
        assert list(db.function("stock").items()) == []
