"""Changes of the configuration are in the audit log, with who made them, however they are made."""

from __future__ import annotations

import pytest

import harken
from harken.database.permissions import Role, User

ANN = User("ann", Role.OPERATOR)


def entries(db: harken.Database) -> list[tuple[str, str, str, str]]:
    found = db.users.audit()
    return [(each.account, each.action, each.object, each.detail) for each in reversed(found)]


def test_rights_sources_and_templates(tmp_path: object) -> None:
    db = harken.connect(settings={"source_roots": [str(tmp_path)]})
    place = f"{tmp_path}/a.json"
    with open(place, "w") as file:
        file.write('[{"a": 1}]')
    db.sql("CREATE TABLE t (n INT)")
    with db.acting_as(ANN):
        db.sql("GRANT SELECT, INSERT ON t TO bob, carl")
        db.sql("REVOKE INSERT ON t FROM bob")
        db.sql("GRANT NOTIFY ON CHANNEL log TO bob")
    db.source("s", "json", path=place)
    db.sources.alter("s", every=60)
    db.sources.drop("s")
    db.notifications.save_template("few", "{{ count }}")
    db.notifications.drop_template("few")
    query = db.continual("q", "SELECT n FROM t")
    owner = query.status.owner
    query.drop()
    assert entries(db) == [
        ("ann", "grant", "t", "SELECT, INSERT bob, carl"),
        ("ann", "revoke", "t", "INSERT bob"),
        ("ann", "grant", "log", "NOTIFY bob"),
        ("", "create source", "s", "json"),
        ("", "alter source", "s", ""),
        ("", "drop source", "s", ""),
        ("", "save template", "few", ""),
        ("", "drop template", "few", ""),
        ("", "drop continual query", "q", owner),
    ]
    db.close()


def test_what_failed_or_was_undone_is_not_there() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (n INT)")
    with pytest.raises(harken.HarkenError):
        db.sql("GRANT SELECT ON nothing TO bob")
    db.sql("BEGIN; GRANT SELECT ON t TO bob; ROLLBACK")
    assert entries(db) == []
    db.close()
