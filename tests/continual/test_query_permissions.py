"""Continual queries of users: only their own, over what they may read, by channels they may use."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import harken
from harken.api.database import Database
from harken.database.permissions import Role, User

ANN, BOB = User("ann", Role.AUTHOR), User("bob", Role.READER)
MINE = "CREATE CONTINUAL QUERY low AS SELECT item FROM stock TRIGGER EVERY DAY"
REFUSED = (
    "CREATE CONTINUAL QUERY x AS SELECT * FROM secret TRIGGER EVERY DAY",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock WHERE quantity IN (SELECT n FROM secret)",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM of_secret",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM continual_execution",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock TRIGGER WHEN secret.n > 3",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock "
    "TRIGGER WHEN stock.quantity > (SELECT max(n) FROM secret)",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock TRIGGER AFTER EXECUTION OF theirs",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock STOP WHEN EXISTS (SELECT * FROM secret)",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock DEADLINE 5 MINUTES ELSE DROP TABLE stock",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock NOTIFY LOG",
    "CREATE CONTINUAL QUERY x AS SELECT * FROM stock OWNER 'root'",
    "CREATE OR REPLACE CONTINUAL QUERY theirs AS SELECT * FROM stock",
    "ALTER CONTINUAL QUERY theirs OWNER TO ann",
    "ALTER CONTINUAL QUERY theirs OWNER 'ann'",
    "ALTER CONTINUAL QUERY low AS SELECT * FROM secret",
    "ALTER CONTINUAL QUERY low OWNER TO root",
    *(f"{verb} CONTINUAL QUERY theirs" for verb in ("PAUSE", "RESUME", "MUTE", "EXECUTE", "DROP")),
    *(f"{verb} CONTINUAL QUERY theirs" for verb in ("SHOW", "EXPLAIN", "ACTIVATE", "DEACTIVATE")),
    "CREATE SOURCE s USING json OPTIONS (path '/etc/passwd')",
)


@pytest.fixture
def shop() -> Iterator[Database]:
    with harken.connect(":memory:") as db:
        db.sql(
            "CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT);"
            "CREATE TABLE secret (n INT);"
            "CREATE VIEW of_secret AS SELECT n FROM secret; INSERT INTO stock VALUES ('pen', 5);"
            "GRANT SELECT ON stock TO ann; GRANT SELECT ON stock TO bob;"
            "CREATE CONTINUAL QUERY theirs AS SELECT * FROM stock TRIGGER EVERY DAY"
        )
        with db.acting_as(ANN):
            db.sql(MINE)
        yield db


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_a_users_is_refused(shop: Database, statement: str) -> None:
    before = shop.continual_queries.export()
    with shop.acting_as(ANN), pytest.raises(harken.HarkenError) as caught:
        shop.sql(statement)
    assert caught.value.code == "not-permitted"
    assert shop.continual_queries.export() == before


def test_a_user_sees_and_changes_the_users_own(shop: Database) -> None:
    with shop.acting_as(ANN):
        assert [each.name for each in shop.continual_queries.list()] == ["low"]
        assert [row[0] for row in shop.sql("SHOW CONTINUAL QUERIES").rows] == ["low"]
        for verb in ("PAUSE", "RESUME", "MUTE", "UNMUTE", "EXECUTE", "SHOW", "EXPLAIN"):
            shop.sql(f"{verb} CONTINUAL QUERY low")
        low = shop.continual_queries.get("low")
        assert low.status.owner == "ann"
        assert len(low.history()) == 2
        assert low.deliveries() == []
        with pytest.raises(harken.HarkenError, match="not ann's"):
            shop.continual_queries.get("theirs")
        shop.sql("DROP CONTINUAL QUERY low")
    with shop.acting_as(BOB), pytest.raises(harken.HarkenError, match="takes an author"):
        shop.sql(MINE)


def test_a_channel_is_granted(shop: Database) -> None:
    statement = MINE.replace("low", "told") + " NOTIFY LOG"
    shop.sql("GRANT NOTIFY ON CHANNEL log TO ann")
    with shop.acting_as(ANN):
        assert shop.continual_queries.preview(statement).samples[0].channel == "log"
        shop.sql(statement)
        (message,) = shop.continual_queries.get("told").deliveries()
        shop.continual_queries.get("told").resend(message.number)
        with pytest.raises(harken.HarkenError, match="has no message"):
            shop.continual_queries.get("low").resend(message.number)


def test_a_right_that_is_revoked_ends_what_a_query_tells() -> None:
    now = [datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)]
    with harken.connect(clock=lambda: now[0]) as db:
        db.users.add("ann", role="author", password="correct horse battery")
        db.sql("CREATE TABLE stock (item STRING PRIMARY KEY); GRANT SELECT ON stock TO ann")
        with db.acting_as(ANN):
            db.sql(MINE)

        def outcome() -> str:
            now[0] += datetime.timedelta(days=1)
            db.sql("INSERT INTO stock VALUES (?)", (str(now[0]),))
            (done,) = db.run_due()
            return done.error

        assert outcome() == ""
        db.sql("REVOKE SELECT ON stock FROM ann")
        assert "ann may not read stock" in outcome()
        db.sql("GRANT SELECT ON stock TO ann")
        assert outcome() == ""
        db.users.set_active("ann", False)
        assert "the account of ann is disabled" in outcome()
        db.users.set_active("ann", True)
        assert outcome() == ""
