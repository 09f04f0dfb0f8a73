"""CREATE, DROP and SHOW TEMPLATE, RESEND: what they do, and what they say when they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken

CREATE = "CREATE TEMPLATE alert (n INT, price DECIMAL(9, 2)) SUBJECT 's' TEXT '{{ n }}' HTML '<b/>'"


def test_templates_are_created_replaced_listed_and_dropped() -> None:
    with harken.connect() as db:
        db.sql(CREATE)
        assert db.sql("SHOW TEMPLATES").rows == [("alert", "n integer, price number")]
        with pytest.raises(harken.HarkenError, check=lambda e: e.code == "exists"):
            db.sql(CREATE)
        db.sql("CREATE OR REPLACE TEMPLATE alert TEXT 'it''s {{ query }}'")
        (template,) = db.notifications.templates()
        assert (template.text, dict(template.fields)) == ("it's {{ query }}", {})
        db.sql("BEGIN; DROP TEMPLATE alert; ROLLBACK")
        assert db.sql("SELECT name FROM message_template").rows == [("alert",)]
        db.sql("DROP TEMPLATE alert; DROP TEMPLATE IF EXISTS alert")
        with pytest.raises(harken.HarkenError, match="there is no template alert"):
            db.sql("DROP TEMPLATE alert")


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("CREATE TEMPLATE", 8, "a name should stand here"),
        ("CREATE TEMPLATE a", 17, "the TEXT of the template is missing"),
        ("CREATE TEMPLATE a (n BLOB) TEXT 'x'", 22, "a type should stand here"),
        ("CREATE TEMPLATE a (n INT, n INT) TEXT 'x'", 29, "the field n is there twice"),
        ("CREATE TEMPLATE a TEXT x", 24, "TEXT is followed by a text in quotes"),
        ("CREATE TEMPLATE a TEXT 'x' BODY 'y'", 28, "BODY cannot stand here"),
        ("DROP TEMPLATE a b", 17, "b cannot stand here"),
        ("RESEND MESSAGE x", 16, "the number of a message should stand here"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, column: int, said: str) -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError, match=said) as raised:
        db.sql(text)
    assert raised.value.code == "syntax"
    assert raised.value.column == column


def test_dead_messages_are_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "later" / "out.jsonl"
    path.parent.mkdir()
    with harken.connect(settings={"notification_attempts": 1}) as db:
        number = db.notifications.send("file", str(path), "hello")
        path.parent.rmdir()
        db.run_due()
        assert db.sql("SELECT state FROM delivery").rows == [("dead",)]
        path.parent.mkdir()
        db.sql("RESEND DEAD MESSAGES")
        db.run_due()
        assert db.sql("SELECT state FROM delivery").rows == [("delivered",)]
        db.sql(f"RESEND MESSAGE {number}")
        db.run_due()
        assert len(path.read_text().splitlines()) == 2
        with pytest.raises(harken.HarkenError, check=lambda e: e.code == "no-such-row"):
            db.sql("RESEND MESSAGE 999")
