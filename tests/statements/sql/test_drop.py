"""What keeps a table from being dropped is named, and the hint says what to do: following it, one
can drop the table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import harken
from harken import Database, HarkenError
from harken.cli import app

SCHEMA = """
CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT);
CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10;
CREATE VIEW lowest AS SELECT item FROM low WHERE quantity < 2;
"""


def refused(db: Database, text: str) -> tuple[str, str]:
    with pytest.raises(HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == "in-use"
    return caught.value.message, caught.value.hint or ""


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = harken.connect(tmp_path / "shop.db")
    db.sql(SCHEMA)
    return db


def test_a_durable_monitor_is_ended_as_the_hint_says(db: Database) -> None:
    db.monitor("low", durable="reports").close()
    message, hint = refused(db, "DROP TABLE stock CASCADE")
    assert message == (
        "stock cannot be dropped: the durable monitor reports of low() would no longer work"
    )
    assert hint == 'first db.monitor("low", durable="reports").delete() in Python'
    code = re.fullmatch("first (.*) in Python", hint)
    assert code is not None
    eval(code[1], {"db": db})
    db.sql("DROP TABLE stock CASCADE")


def test_one_of_the_function_of_a_type_as_well(db: Database) -> None:
    db.amosql(
        "create type item properties (name charstring);"
        "create type shop properties (name charstring); commit;"
    )
    db.monitor("item.name", durable="reports").close()
    with pytest.raises(HarkenError) as caught:
        db.amosql("delete function item.name;")
    hint = 'first db.monitor("item.name", durable="reports").delete() in Python'
    assert caught.value.hint == hint
    db.rollback()
    db.monitor("item.name", durable="reports").delete()
    db.amosql("delete function item.name; commit;")


def test_monitors_of_the_session_are_closed(db: Database) -> None:
    one, other = db.monitor("lowest"), db.monitor("lowest")
    message, hint = refused(db, "DROP TABLE stock")
    assert message == ("stock cannot be dropped: low, the monitor of lowest() would no longer work")
    assert hint == (
        "first call close() on the monitors of lowest in this session; "
        "then add CASCADE, or drop the views first"
    )
    one.close()
    refused(db, "DROP TABLE stock CASCADE")
    other.close()
    db.sql("DROP TABLE stock CASCADE")


def test_views_alone_go_with_it(db: Database) -> None:
    assert refused(db, "DROP TABLE stock")[1] == "add CASCADE, or drop the views first"
    db.sql("DROP TABLE stock CASCADE")


def test_rules_procedures_and_tables_do_not_go_with_it(db: Database) -> None:
    db.sql("CREATE TABLE shelf (place STRING, item STRING REFERENCES stock)")
    db.amosql(
        "create rule tell() as when for each charstring i where stock(i) < 5 do print(i);"
        'create function fill() -> boolean as begin set stock("pen") = 9; end; commit;'
    )
    message, hint = refused(db, "DROP TABLE stock CASCADE")
    assert "low" not in message
    assert hint == (
        "first DROP TABLE shelf, `delete function fill;` in AMOSQL, `delete rule tell;` in AMOSQL"
    )
    db.amosql("delete function fill; delete rule tell; commit;")
    db.sql("DROP TABLE shelf; DROP TABLE stock CASCADE")


def test_a_session_that_cannot_record_for_a_durable_monitor_can_end_it(db: Database) -> None:
    def twice(n: int) -> int:
        return 2 * n

    db.foreign("twice", twice)
    db.amosql("create function double(charstring i) -> integer as select twice(stock(i)); commit;")
    db.monitor("double", durable="reports").close()
    db.sql("INSERT INTO stock VALUES ('pen', 1)")
    db.close()
    with harken.connect(db.internals.connection.path) as other:
        _, hint = refused(other, "UPDATE stock SET quantity = 2")
        assert 'or delete it: db.monitor("double", durable="reports").delete() in Python' in hint
        reports = other.monitor("double", durable="reports")
        assert [each.plus for each in reports.changes()] == [[("pen", 2)]]
        with pytest.raises(HarkenError, match="there is no function twice"):
            reports.rows()
        reports.delete()
        other.sql("UPDATE stock SET quantity = 2")


def test_a_program_drops_views_whose_changes_are_printed(tmp_path: Path) -> None:
    """`harken run --format json` watches all views: that kept a program from dropping them."""
    program = tmp_path / "p.sql"
    program.write_text(
        SCHEMA
        + """
        INSERT INTO stock VALUES ('pen', 5);
        BEGIN; DROP VIEW low CASCADE; INSERT INTO stock VALUES ('cap', 1); ROLLBACK;
        INSERT INTO stock VALUES ('ink', 6);
        BEGIN; DROP VIEW low CASCADE; CREATE VIEW low AS SELECT item FROM stock; COMMIT;
        DROP VIEW low;
        INSERT INTO stock VALUES ('hat', 7);
        BEGIN; CREATE VIEW low AS SELECT item FROM stock; DELETE FROM stock; COMMIT;
        INSERT INTO stock VALUES ('bag', 8);
        DROP TABLE stock CASCADE;
        """
    )
    done = CliRunner().invoke(app, ["run", str(program), "--format", "json"])
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["view"], each["plus"], each["minus"]) for each in told] == [
        ("low", [["pen", 5]], []),
        ("low", [["ink", 6]], []),
        ("low", [["ink"], ["pen"]], [["ink", 6], ["pen", 5]]),
        ("low", [["bag"]], []),
    ]
