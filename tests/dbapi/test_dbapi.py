"""Harken through PEP 249: module, connection, cursor, errors, transactions."""

from __future__ import annotations

import datetime
import decimal
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas
import pytest

import harken
from harken import dbapi

DAY = datetime.date(2026, 2, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def connection(path: Path) -> Iterator[dbapi.Connection]:
    made = dbapi.connect(path)
    made.execute(
        "CREATE TABLE sale (id INT PRIMARY KEY, city STRING, price DECIMAL(8, 2), day DATE)"
    )
    made.executemany(
        "INSERT INTO sale VALUES (?, ?, ?, ?)",
        [(1, "Oslo", decimal.Decimal("1.5"), DAY), (2, "Rome", None, None), (3, "Rome", None, DAY)],
    )
    made.commit()
    yield made
    made.close()


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert dbapi.Date(2026, 2, 3) == DAY
    assert dbapi.TimestampFromTicks(0).year == 1970
    for refused in (lambda: dbapi.Binary(b"x"), lambda: dbapi.Time(1, 2, 3)):
        with pytest.raises(dbapi.NotSupportedError, match="no type for"):
            refused()


def test_rows_are_fetched(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM sale WHERE city = ? ORDER BY id", ("Rome",))
    assert cursor.rowcount == 2
    assert cursor.fetchone() == (2,)
    assert cursor.fetchone() == (3,)
    assert cursor.fetchone() is None
    cursor.execute("SELECT id FROM sale ORDER BY id")
    assert (cursor.fetchmany(), cursor.fetchmany(5), cursor.fetchall()) == (
        [(1,)],
        [(2,), (3,)],
        [],
    )
    assert list(cursor.execute("SELECT id FROM sale WHERE id < :n", {"n": 2})) == [(1,)]


def test_columns_are_described(connection: dbapi.Connection) -> None:
    cursor = connection.execute("SELECT id, city, price, day FROM sale")
    assert cursor.description is not None
    names, codes = (
        [each[0] for each in cursor.description],
        [each[1] for each in cursor.description],
    )
    assert names == ["id", "city", "price", "day"]
    kinds: list[Any] = [dbapi.NUMBER, dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME]
    assert codes == kinds
    assert codes[0] != dbapi.STRING
    assert codes[0] not in (dbapi.BINARY, dbapi.ROWID)
    assert cursor.description[2][4:] == (8, 2, True)
    assert cursor.description[0][6] is False
    assert connection.execute("DELETE FROM sale").description is None


def test_a_transaction_begins_with_the_first_change(
    connection: dbapi.Connection, path: Path
) -> None:
    other = dbapi.connect(path)
    connection.execute("SELECT * FROM sale")
    assert not connection.in_transaction
    connection.execute("-- gone\n delete FROM sale")
    assert connection.in_transaction
    assert len(other.execute("SELECT * FROM sale").fetchall()) == 3
    connection.rollback()
    assert len(connection.execute("SELECT * FROM sale").fetchall()) == 3
    connection.execute("DELETE FROM sale WHERE id = 1")
    connection.commit()
    assert len(other.execute("SELECT * FROM sale").fetchall()) == 2
    other.close()


def test_closing_undoes_what_is_open(connection: dbapi.Connection, path: Path) -> None:
    connection.execute("CREATE TABLE gone (a INT)")
    connection.close()
    with dbapi.connect(path) as again, pytest.raises(dbapi.ProgrammingError, match="no table"):
        again.execute("SELECT * FROM gone")
    again.close()


def test_a_block_commits_or_undoes(connection: dbapi.Connection) -> None:
    with connection:
        connection.execute("DELETE FROM sale WHERE id = 1")
    with suppress(ZeroDivisionError), connection:
        connection.execute("DELETE FROM sale")
        _ = 1 / 0
    assert connection.execute("SELECT count(*) FROM sale").fetchone() == (2,)


def test_autocommit(connection: dbapi.Connection) -> None:
    connection.execute("DELETE FROM sale WHERE id = 1")
    connection.autocommit = True  # commits what is open
    connection.execute("DELETE FROM sale WHERE id = 2")
    assert not connection.in_transaction
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM sale").fetchone() == (1,)
    connection.execute("BEGIN; DELETE FROM sale")
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM sale").fetchone() == (1,)


def test_a_materialized_view_commits_what_is_open(connection: dbapi.Connection) -> None:
    connection.execute("DELETE FROM sale WHERE id = 1")
    connection.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM sale")
    connection.rollback()
    assert connection.execute("SELECT n FROM n").fetchone() == (2,)


def test_several_results(connection: dbapi.Connection) -> None:
    cursor = connection.execute("SELECT 1; DELETE FROM sale WHERE id = 1; SELECT 2, 3")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [(2, 3)]
    assert cursor.nextset() is None
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM sale").fetchone() == (3,)


def test_changes_with_returning_have_rows(connection: dbapi.Connection) -> None:
    cursor = connection.execute("UPDATE sale SET city = 'Roma' WHERE city = 'Rome' RETURNING id")
    assert cursor.rowcount == 2
    assert sorted(cursor.fetchall()) == [(2,), (3,)]
    assert connection.cursor().rowcount == -1


def test_changed_rows_are_counted(connection: dbapi.Connection) -> None:
    counted = [
        ("UPDATE sale SET city = 'Roma' WHERE id > ?", (1,), 2),
        ("UPDATE sale SET city = 'Roma' WHERE id > ?", (0,), 1),  # two have that city already
        ("UPDATE sale SET city = 'Roma'", (), 0),
        ("INSERT INTO sale (id) VALUES (4), (5)", (), 2),
        ("INSERT INTO sale (id) SELECT id + 10 FROM sale", (), 5),
        (
            "INSERT INTO sale (id, city) VALUES (4, 'x'), (6, 'y') ON CONFLICT (id) DO UPDATE "
            "SET city = excluded.city",
            (),
            2,
        ),
        (
            "MERGE INTO sale t USING (SELECT 1 AS id UNION ALL SELECT 2 UNION ALL SELECT 7) s "
            "ON t.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET "
            "city = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            (),
            3,
        ),
        ("CREATE TABLE other (a INT)", (), 0),
        ("DELETE FROM sale WHERE id = ?", (99,), 0),
        ("DELETE FROM sale WHERE id = ?", (7,), 1),
        ("UPDATE sale SET price = coalesce(price, 0) + 1; DELETE FROM sale WHERE id > 10", (), 15),
        ("TRUNCATE TABLE sale", (), 5),
    ]
    for text, values, expected in counted:
        assert connection.execute(text, values).rowcount == expected, text
    many = connection.executemany("INSERT INTO sale (id) VALUES (?)", [(1,), (2,), (3,)])
    assert many.rowcount == 3
    again = connection.executemany("DELETE FROM sale WHERE id = ?", [(1,), (2,), (9,)])
    assert again.rowcount == 2
    assert connection.executemany("DELETE FROM sale WHERE id = ?", []).rowcount == 0
    assert connection.database.sql("DELETE FROM sale").changed == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT * FORM sale", dbapi.ProgrammingError),
        ("SELECT * FROM sail", dbapi.ProgrammingError),
        ("SELECT id + 'x' FROM sale WHERE city", dbapi.ProgrammingError),
        ("SELECT id / 0 FROM sale", dbapi.DataError),
        ("SELECT CAST('x' AS INT)", dbapi.DataError),
        ("INSERT INTO sale VALUES (1, 'x', 1, NULL)", dbapi.IntegrityError),
        ("INSERT INTO sale VALUES (NULL, 'x', 1, NULL)", dbapi.IntegrityError),
        ("SELECT INTERVAL 1 DAY", dbapi.NotSupportedError),
        ("COMMIT", None),
    ],
)
def test_errors_are_those_of_pep_249(
    connection: dbapi.Connection, text: str, kind: type[dbapi.Error] | None
) -> None:
    if kind is None:
        connection.execute(text)
        return
    with pytest.raises(kind) as caught:
        connection.execute(text)
    assert isinstance(caught.value.__cause__, harken.HarkenError)
    assert caught.value.code == caught.value.__cause__.code
    assert isinstance(caught.value, connection.DatabaseError)


def test_the_hint_is_in_the_message(connection: dbapi.Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="did you mean sale"):
        connection.execute("SELECT * FROM sales")


def test_wrong_use_is_said(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="no rows"):
        cursor.fetchone()
    with pytest.raises(dbapi.ProgrammingError, match="executemany"):
        cursor.execute("SELECT ?", [(1,)])
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT ?", (1, 2))
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute(7)  # type: ignore[arg-type]
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    with pytest.raises(dbapi.ProgrammingError, match="number of rows"):
        cursor.execute("SELECT 1").fetchmany(-1)
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
        connection.cursor()
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect("/nowhere/shop.db")


def test_a_session_that_is_open_stays_open() -> None:
    with harken.connect() as db:
        dbapi.connect(db).close()
        assert db.sql("SELECT 1").scalar() == 1


def test_pandas_reads_and_the_monitor_sees(connection: dbapi.Connection) -> None:
    sub = connection.database.monitor("sale")
    connection.execute("DELETE FROM sale WHERE id = 1")
    connection.commit()
    assert len(sub.changes()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas tests SQLAlchemy and SQLite alone
        frame = pandas.read_sql(
            "SELECT id, city FROM sale WHERE id > ? ORDER BY id", connection, params=(2,)
        )
    assert frame.to_dict("list") == {"id": [3], "city": ["Rome"]}
