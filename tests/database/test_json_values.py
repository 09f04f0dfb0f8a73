"""Values in JSON: what JavaScript would not read exactly goes as text, and comes back so."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import harken
from harken import HarkenError, cli
from harken.api.json_changes import apply
from harken.database.json_values import read_json

LARGE = 9007199254740993
SCHEMA = "CREATE TABLE t (n BIGINT, price DECIMAL(10,2), f DOUBLE);"


def lines_of(*arguments: object) -> list[Any]:
    done = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_run_prints_all_digits_and_the_types_of_columns(tmp_path: Path) -> None:
    program = tmp_path / "p.sql"
    program.write_text(
        SCHEMA + "CREATE VIEW v AS SELECT * FROM t;"
        f"INSERT INTO t VALUES ({LARGE}, 205039.00, 0.1); SELECT * FROM t;"
    )
    change, rows = lines_of("run", program, "--format", "json")
    row = [str(LARGE), "205039.00", 0.1]
    assert change == {"kind": "change", "view": "v", "plus": [row], "minus": []}
    assert rows == {
        "kind": "rows",
        "columns": ["n", "price", "f"],
        "types": ["integer", "decimal(10,2)", "number"],
        "rows": [row],
    }


def test_every_language_gives_the_types_of_columns(tmp_path: Path) -> None:
    amosql, datalog = tmp_path / "p.amosql", tmp_path / "p.dl"
    amosql.write_text(
        "create function n() -> integer; set n() = 9007199254740993; select n(); print(n());"
    )
    datalog.write_text(f'.decl r(x: number, y: symbol) r({LARGE}, "a"). .output r ?- r(x, y).')
    rows, printed = lines_of("run", amosql, "--format", "json")
    assert (rows["types"], rows["rows"]) == (["integer"], [[str(LARGE)]])
    assert printed == {"kind": "print", "values": [str(LARGE)]}
    for each in lines_of("run", datalog, "--format", "json", "-D", "-"):
        assert (each["types"], each["rows"]) == (["integer", "charstring"], [[str(LARGE), "a"]])


@pytest.mark.parametrize(
    ("suffix", "program", "table", "row"),
    [
        (
            ".sql",
            SCHEMA + "CREATE VIEW v AS SELECT * FROM t;",
            "t",
            [str(LARGE), "205039.00", 0.1],
        ),
        (
            ".amosql",
            "create function t(integer) -> number;"
            "create function v(integer n) -> number as select t(n);",
            "t",
            [str(LARGE), 0.1],
        ),
        (
            ".dl",
            ".decl t(n: number, f: float) .decl v(n: number, f: float) v(n, f) :- t(n, f). "
            ".output v",
            "t",
            [str(LARGE), 0.1],
        ),
    ],
    ids=["sql", "amosql", "datalog"],
)
def test_watch_reads_what_it_prints(
    tmp_path: Path, suffix: str, program: str, table: str, row: list[Any]
) -> None:
    source, changes = tmp_path / f"p{suffix}", tmp_path / "changes.jsonl"
    source.write_text(program)
    lines = ({side: {table: [row]}} for side in ("insert", "delete"))
    changes.write_text("\n".join(map(json.dumps, lines)))
    came, _, went, _ = lines_of("watch", source, "--changes", changes)
    assert came == {"kind": "change", "view": "v", "plus": [row], "minus": []}
    assert went == {"kind": "change", "view": "v", "plus": [], "minus": [row]}


def test_a_decimal_may_come_as_a_number_with_all_its_digits() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE p (x DECIMAL(18,4))")
        apply(db, read_json('{"p": [[12345678901234.5678], [1e2], [7]]}'), {})
        rows = db.sql("SELECT x FROM p ORDER BY x").rows
    assert rows == [(Decimal("7"),), (Decimal("100"),), (Decimal("12345678901234.5678"),)]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("NaN", 't.price: "NaN" is not of type decimal(10,2)'),
        ("1_000", 't.price: "1_000" is not of type decimal(10,2)'),
        ("1e9999", "t.price: "),
        ("9" * 1_000_000, "t.price: "),
        (True, "t.price: True is not of type decimal(10,2)"),
        ([1], "t.price: [1] is not of type decimal(10,2)"),
    ],
    ids=lambda value: str(value)[:10],
)
def test_a_wrong_decimal_is_refused(value: Any, said: str) -> None:
    with harken.connect() as db:
        db.sql(SCHEMA)
        with pytest.raises(HarkenError) as caught:
            apply(db, {"t": [[1, value, 0.5]]}, {})
    assert caught.value.message.startswith(said)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", ["x", "", "1.5", "٣", "9" * 50, 1.5, "1e3", " 1"])
def test_a_wrong_integer_is_refused(value: Any) -> None:
    with harken.connect() as db:
        db.sql(SCHEMA)
        with pytest.raises(HarkenError, match="is not of type integer"):
            apply(db, {"t": [[value, 1, 0.5]]}, {})


def test_whole_numbers_of_any_form_are_integers() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE n (i BIGINT, d DECIMAL(10, 2))")
        apply(db, read_json('{"n": [[1.0, 5.555], [1e3, -5.555], [-2.50e1, 5.545]]}'), {})
        rows = db.sql("SELECT * FROM n ORDER BY i").rows
    assert [(i, str(d)) for i, d in rows] == [(-25, "5.55"), (1, "5.56"), (1000, "-5.56")]


@pytest.mark.parametrize(
    ("type_", "sent", "said"),
    [
        ("BIGINT", "1.5", "1.5"),
        ("BIGINT", "1e400", "1E+400"),
        ("BIGINT", "1E+999999999", "1E+999999999"),
        ("BIGINT", "1e19", "10000000000000000000"),
        ("BIGINT", "Infinity", "Infinity"),
        ("DOUBLE", "1e400", "1E+400"),
        ("DECIMAL(10, 2)", "1E+999999999", "1E+999999999"),
        ("DECIMAL(10, 2)", '"x"', '"x"'),
    ],
)
def test_an_error_shows_what_was_sent(type_: str, sent: str, said: str) -> None:
    with harken.connect() as db:
        db.sql(f"CREATE TABLE n (i {type_})")
        with pytest.raises(harken.HarkenError) as caught:
            apply(db, read_json(f'{{"n": [[{sent}]]}}'), {})
    assert caught.value.message.startswith(f"n.i: {said} ")
    assert "Decimal(" not in caught.value.message
