"""A backup is one committed state, and a restored database goes on from there."""

import datetime
import json
import threading
import zipfile
from pathlib import Path

import pytest

import harken
from harken.database.secrets import Secrets
from harken.engines.sqlite.layout import table_name

SHOP = """
    CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, amount INT);
    CREATE MATERIALIZED VIEW total AS SELECT shop, sum(amount) AS amount FROM sale GROUP BY shop;
    CREATE VIEW big AS SELECT id FROM sale WHERE amount > 10;
    INSERT INTO sale VALUES (1, 'Oslo', 5), (2, 'Rome', 20);
"""


@pytest.fixture
def shop(tmp_path: Path):
    with harken.connect(tmp_path / "shop.db") as db:
        db.sql(SHOP)
        yield db


def test_a_restored_database_has_the_state_of_the_backup_and_goes_on(shop, tmp_path):
    made = shop.backup(tmp_path / "shop.harken")
    shop.sql("INSERT INTO sale VALUES (3, 'Rome', 1)")
    done = harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
    assert made.bytes == Path(made.path).stat().st_size
    assert done.tables == 0
    with harken.connect(tmp_path / "copy.db") as copy:
        assert sorted(copy.sql("SELECT * FROM total").rows) == [("Oslo", 5), ("Rome", 20)]
        changes = copy.monitor("total")
        copy.sql("INSERT INTO sale VALUES (3, 'Oslo', 1)")
        (change,) = changes.changes()
        assert (change.plus, change.minus) == ([("Oslo", 6)], [("Oslo", 5)])
        assert copy.verify().ok


def test_a_backup_is_one_committed_state_while_others_write(tmp_path):
    """Every transaction moves an amount between two tables: the sum never changes."""
    path = tmp_path / "bank.db"
    with harken.connect(path) as db:
        db.sql("CREATE TABLE a (n INT); CREATE TABLE b (n INT); INSERT INTO a VALUES (1000);")
        db.sql("INSERT INTO b VALUES (0)")
    ended, moved = threading.Event(), threading.Event()

    def move() -> None:
        with harken.connect(path, timeout=60) as db:
            while not ended.is_set():
                db.sql("BEGIN; UPDATE a SET n = n - 1; UPDATE b SET n = n + 1; COMMIT")
                moved.set()

    writer = threading.Thread(target=move)
    writer.start()
    try:
        with harken.connect(path, timeout=60) as db:
            for number in range(5):
                moved.clear()
                assert moved.wait(60)
                db.backup(tmp_path / f"{number}.harken")
    finally:
        ended.set()
        writer.join()
    for number in range(5):
        harken.restore(tmp_path / f"{number}.harken", tmp_path / f"{number}.db")
        with harken.connect(tmp_path / f"{number}.db") as copy:
            ((a,),), ((b,),) = copy.sql("SELECT n FROM a").rows, copy.sql("SELECT n FROM b").rows
            assert a + b == 1000
            assert b > 0


def test_tables_in_the_lake_are_copied_at_the_version_of_the_file(tmp_path):
    with harken.connect(tmp_path / "shop.db", engine="lake") as db:
        db.sql("CREATE TABLE price (item STRING PRIMARY KEY, cents INT)")
        db.sql("INSERT INTO price VALUES ('pen', 120), ('ink', 450)")
        db.flush()
        made = db.backup(tmp_path / "shop.harken")
        assert [table.rows for table in made.tables] == [2]
        db.sql("UPDATE price SET cents = 1 WHERE item = 'pen'")
        db.flush()
        referred = db.backup(tmp_path / "referred.harken", lake="reference")
        assert [table.rows for table in referred.tables] == [None]
        harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
        harken.restore(tmp_path / "referred.harken", tmp_path / "referring.db")
    with harken.connect(tmp_path / "copy.db") as copy:
        rows = "SELECT * FROM price ORDER BY item"
        assert copy.sql(rows).rows == [("ink", 450), ("pen", 120)]
        copy.sql("INSERT INTO price VALUES ('cup', 300)")
        copy.flush()
        assert copy.verify().ok
        assert len(copy.sql(rows).rows) == 3
    with harken.connect(tmp_path / "referring.db") as referring:
        assert referring.sql(rows).rows == [("ink", 450), ("pen", 1)]
    with harken.connect(tmp_path / "shop.db") as db:
        assert db.sql(rows).rows == [("ink", 450), ("pen", 1)]


def test_secrets_are_left_out_unless_they_are_asked_for(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("HARKEN_SECRETS_KEY", "a long key of the operator")
    internals = shop.internals
    with shop.transaction():
        Secrets(internals.connection.records, internals.runtime.settings).store("mail", "sesame!")
    stored = internals.connection.rows("SELECT value FROM harken_secrets")[0][0]
    for name, asked in (("without", False), ("with", True)):
        shop.backup(tmp_path / f"{name}.harken", secrets=asked)
        harken.restore(tmp_path / f"{name}.harken", tmp_path / f"{name}.db")
        assert (stored.encode() in (tmp_path / f"{name}.db").read_bytes()) is asked


def test_no_position_has_two_meanings(shop, tmp_path):
    kept = shop.monitor("total", keep=harken.Keep())
    shop.sql("INSERT INTO sale VALUES (3, 'Oslo', 1)")
    shop.backup(tmp_path / "shop.harken")
    shop.sql("INSERT INTO sale VALUES (4, 'Oslo', 1)")
    (first, lost) = kept.changes()
    harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
    with harken.connect(tmp_path / "copy.db") as copy:
        assert copy.position > lost.transaction
        for position in (first.transaction, lost.transaction):
            (change,), _ = copy.changes_after("total", position)
            assert change.fresh
            assert sorted(change.plus) == [("Oslo", 6), ("Rome", 20)]


def test_a_durable_subscriber_gets_all_rows_once(shop, tmp_path):
    durable = shop.monitor("total", durable="dashboard")
    shop.sql("INSERT INTO sale VALUES (3, 'Oslo', 1)")
    for _ in durable.changes():
        pass
    shop.backup(tmp_path / "shop.harken")
    harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
    with harken.connect(tmp_path / "copy.db") as copy:
        again = copy.monitor("total", durable="dashboard")
        (change,) = again.changes()
        assert change.fresh
        copy.sql("INSERT INTO sale VALUES (4, 'Oslo', 1)")
        (change,) = again.changes()
        assert (change.plus, change.minus) == ([("Oslo", 7)], [("Oslo", 6)])


def test_messages_are_not_sent_twice(shop, tmp_path):
    out = tmp_path / "out.jsonl"
    shop.notifications.send("file", str(out), "delivered before")
    shop.notifications.run()
    shop.notifications.send("file", str(out), "waits")
    shop.backup(tmp_path / "shop.harken")
    harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
    held = harken.restore(tmp_path / "shop.harken", tmp_path / "held.db", hold_messages=True)
    assert held.held_messages == 1
    with harken.connect(tmp_path / "held.db") as copy:
        assert copy.notifications.run() == []
    with harken.connect(tmp_path / "copy.db") as copy:
        copy.notifications.run()
        copy.notifications.run()
    texts = [json.loads(line)["text"] for line in out.read_text().splitlines()]
    assert texts == ["delivered before", "waits"]


@pytest.mark.parametrize("name", ["shop.db", "shop.lake", "shop.db-wal"])
def test_nothing_is_overwritten(shop, tmp_path, name):
    shop.backup(tmp_path / "shop.harken")
    with pytest.raises(harken.StorageError, match="exists already"):
        shop.backup(tmp_path / "shop.harken")
    shop.backup(tmp_path / "shop.harken", overwrite=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / name).write_text("mine")
    with pytest.raises(harken.StorageError, match="exists already"):
        harken.restore(tmp_path / "shop.harken", tmp_path / "there" / "shop.db")
    assert [each.name for each in (tmp_path / "there").iterdir()] == [name]


def test_a_damaged_backup_restores_nothing(shop, tmp_path):
    whole = tmp_path / "shop.harken"
    shop.backup(whole)
    content = whole.read_bytes()
    middle = len(content) // 2
    broken = {
        "cut": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "text": b"SELECT 1",
        "empty": b"",
    }
    for name, text in broken.items():
        (tmp_path / name).write_bytes(text)
        with pytest.raises(harken.StorageError) as caught:
            harken.restore(tmp_path / name, tmp_path / "copy.db")
        assert caught.value.code == "bad-backup"
        assert not list(tmp_path.glob("copy*"))
        assert not list(tmp_path.glob(".harken*"))


@pytest.mark.parametrize("odd", ["../out", "/out", "lake/../../out", "lake\\..\\out", "other"])
def test_an_entry_cannot_lead_elsewhere(shop, tmp_path, odd):
    shop.backup(tmp_path / "shop.harken")
    with (
        zipfile.ZipFile(tmp_path / "shop.harken") as read,
        zipfile.ZipFile(tmp_path / "evil.harken", "w") as write,
    ):
        manifest = json.loads(read.read("manifest.json"))
        write.writestr("database", read.read("database"))
        write.writestr(odd, b"evil")
        manifest["entries"][odd] = {"bytes": 4, "sha256": "0" * 64}
        write.writestr("manifest.json", json.dumps(manifest))
    (tmp_path / "new").mkdir()
    with pytest.raises(harken.StorageError, match="no whole backup"):
        harken.restore(tmp_path / "evil.harken", tmp_path / "new" / "copy.db")
    assert not list((tmp_path / "new").iterdir())


def test_verify_finds_a_view_with_wrong_rows(shop):
    assert shop.verify().ok
    table = table_name(shop.internals.relation("total"))
    shop.internals.connection.run(f"UPDATE \"{table}\" SET c1 = 6 WHERE c0 = 'Oslo'")
    found = shop.verify()
    assert not found.ok
    assert "1 row is missing and 1 row is too many" in str(found)
    shop.sql("REFRESH MATERIALIZED VIEW total")
    assert shop.verify().ok


def test_the_commands(shop, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("backup", "shop.db", "out.harken").out.startswith("shop.db: ")
    (restored,) = command("restore", "out.harken", "new.db", "--format", "json").results
    assert datetime.datetime.fromisoformat(str(restored["at"]))
    checked = command("verify", "new.db")
    assert checked.out == "file: ok\nmaterialized view total: ok, 2 rows\n"
    refused = command("restore", "out.harken", "new.db")
    assert refused.code == 1
    assert "exists already" in refused.err
