"""A name that is not there is answered in the words of those who made the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken import Database, HarkenError

SQL = "CREATE TABLE stock (item STRING, n INT); CREATE VIEW low AS SELECT item FROM stock;"
DATALOG = (
    ".decl edge(x: symbol, y: symbol)\n.decl path(x: symbol, y: symbol)\npath(x, y) :- edge(x, y)."
)
AMOSQL = (
    "create type item properties (name charstring);"
    "create type shop properties (name charstring, size integer);"
    "commit;"
)


def made(*languages: str) -> Database:
    db = harken.connect()
    for text in languages:
        {SQL: db.sql, DATALOG: db.datalog, AMOSQL: db.amosql}[text](text)
    return db


@pytest.mark.parametrize("ask", [Database.monitor, Database.explain])
@pytest.mark.parametrize(
    ("languages", "name", "message", "hint"),
    [
        ([SQL], "stok", "there is no table or view stok", "did you mean stock?"),
        ([SQL], "LOW", "there is no table or view LOW", "did you mean low?"),
        ([SQL], "nope", "there is no table or view nope", "CREATE VIEW"),
        ([DATALOG], "pth", "there is no relation pth", "did you mean path?"),
        ([DATALOG], "nope", "there is no relation nope", ".decl"),
        ([AMOSQL], "siz", "there is no function siz", "did you mean size?"),
        ([AMOSQL], "shop.nam", "there is no function shop.nam", "did you mean shop.name?"),
        ([AMOSQL], "nope", "there is no function nope", "`create function`"),
        ([SQL, DATALOG], "pth", "there is no table, view or relation pth", "path"),
        ([SQL, AMOSQL], "item_nam", "there is no table, view or function item_nam", "item.name"),
        ([], "nope", "there is no table, view, relation or function nope", "create it first"),
    ],
)
def test_by_the_languages_of_the_database(
    ask: Callable[[Database, str], object], languages: list[str], name: str, message: str, hint: str
) -> None:
    with made(*languages) as db, pytest.raises(HarkenError) as caught:
        ask(db, name)
    assert caught.value.code == "unknown-function"
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")


def test_what_is_explained_may_be_a_rule() -> None:
    with made(SQL) as db:
        db.amosql("create rule order_more() as when for each integer i where i = 1 do print(i);")
        with pytest.raises(
            HarkenError, match="there is no rule, table or view ordr_more"
        ) as caught:
            db.explain("ordr_more", verbose=True)
        assert caught.value.hint == "did you mean order_more?"
        with pytest.raises(HarkenError, match="there is no table or view ordr_more"):
            db.function("ordr_more")


def test_a_function_that_was_replaced_is_deleted_for_good(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as db:
        for more in (1, 2):
            db.amosql(f"create function next(integer i) -> integer as select i + {more};")
        assert db.amosql("next(1);").rows == [(3,)]
        db.amosql("delete function next;")
    with harken.connect(path) as db, pytest.raises(harken.NameFault):
        db.amosql("next(1);")
