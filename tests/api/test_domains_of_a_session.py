"""`db.domain` and `db.domains` do what the statements do."""

from __future__ import annotations

from typing import Any

import pytest

import harken


@pytest.fixture
def db() -> harken.Database:
    db = harken.connect(":memory:")
    db.sql("CREATE TABLE paper (title STRING, abstract STRING, published INT)")
    db.sql("CREATE TABLE book (title STRING, year INT)")
    return db


def test_a_domain_is_made_altered_and_dropped(db: harken.Database) -> None:
    db.domain("Library", {"paper": {"keyword": ["title", "abstract"], "year": "published"}})
    db.domains.add("library", "book", {"keyword": "title", "year": "year"})
    db.domains.skip_unavailable("library")
    (found,) = db.domains.list()
    assert (found.name, found.columns, found.skips_unavailable) == (
        "library",
        ("keyword", "year"),
        True,
    )
    assert found.members == {
        "paper": {"keyword": ("title", "abstract"), "year": ("published",)},
        "book": {"keyword": ("title",), "year": ("year",)},
    }
    assert db.domains.describe("library")["member book"] == "keyword from title; year from year"
    db.domains.remove("library", "paper")
    db.domain("library", ["book"], columns=["title"], replace=True)
    assert db.sql("SELECT * FROM library").columns == ("title", "_member")
    db.domains.drop("library")
    assert db.domains.list() == []


@pytest.mark.parametrize(
    "members",
    [None, "paper", [], {}, {"paper": 1}, {"paper": {"k": [1]}}, {1: None}, [None], {"a\0": None}],
)
def test_other_members_are_refused(db: harken.Database, members: Any) -> None:
    with pytest.raises(harken.HarkenError):
        db.domain("library", members)
    assert db.domains.list() == []
