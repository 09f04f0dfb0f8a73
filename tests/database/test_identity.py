"""An object belongs to one database: no other takes its handle, by whatever way it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database, ForeignFault, Object, ValueFault

SHOP = """
create type item properties (name charstring, maker item);
create function parts(item) -> bag of item;
create function named(charstring) -> item;
create function label(item i) -> charstring as select name(i);
create item(name) instances :toy("toy");
commit;
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


@pytest.fixture
def stranger() -> Iterator[Object]:
    """The object of another database that has the number of `:toy`."""
    with harken.connect() as other:
        other.amosql(SHOP)
        yield other.variables["toy"]


USES: dict[str, Callable[[Database, Object], Any]] = {
    "read": lambda db, it: db.function("name")[it],
    "get": lambda db, it: db.function("name").get(it),
    "call": lambda db, it: db.function("name")(it),
    "contains": lambda db, it: it in db.function("name"),
    "derived": lambda db, it: db.function("label")[it],
    "set": lambda db, it: db.function("name").__setitem__(it, "x"),
    "set value": lambda db, it: db.function("named").__setitem__("x", it),
    "set bag": lambda db, it: db.function("parts").__setitem__(db.variables["toy"], [it]),
    "delete": lambda db, it: db.function("name").__delitem__(it),
    "add": lambda db, it: db.function("parts").add(it, it),
    "remove": lambda db, it: db.function("parts").remove(db.variables["toy"], it),
    "assign": lambda db, it: db.assign("it", it),
    "load": lambda db, it: db.load("item", [(it,)], ["maker"]),
}


@pytest.mark.parametrize("transaction", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("use", USES)
def test_an_object_of_another_database_is_refused(
    shop: Database, stranger: Object, use: str, transaction: bool
) -> None:
    before = shop.amosql("select i, name(i) for each item i;").rows
    if transaction:
        shop.amosql("set name(:toy) = 'toy';")
    with pytest.raises(ValueFault, match="is an object of another database") as caught:
        USES[use](shop, stranger)
    assert caught.value.code == "wrong-object"
    assert caught.value.hint is not None
    assert shop.amosql("select i, name(i) for each item i;").rows == before


class Impostor:
    """Something that has a number, as objects have, and is none."""

    def __init__(self, oid: int) -> None:
        self.oid = oid


NOT_OBJECTS: dict[str, Callable[[Object], Any]] = {
    "its number": lambda it: it.oid,
    "its number as text": lambda it: str(it.oid),
    "something with its number": lambda it: Impostor(it.oid),
    "a boolean": lambda it: True,
}


@pytest.mark.parametrize("made", NOT_OBJECTS)
@pytest.mark.parametrize("use", [use for use in USES if use != "assign"])
def test_only_an_object_may_stand_for_an_object(shop: Database, use: str, made: str) -> None:
    given = NOT_OBJECTS[made](shop.variables["toy"])
    before = shop.amosql("select i, name(i) for each item i;").rows
    with pytest.raises(ValueFault, match="is not an object") as caught:
        USES[use](shop, given)
    assert caught.value.code == "wrong-object"
    assert "harken.Object" in str(caught.value.hint)
    assert shop.amosql("select i, name(i) for each item i;").rows == before


@pytest.mark.parametrize("made", ["its number", "its number as text", "a boolean"])
@pytest.mark.parametrize("returned", ["one", "list", "generator", "tuple"])
def test_a_foreign_function_returns_objects_where_objects_are_due(
    shop: Database, made: str, returned: str
) -> None:
    given = NOT_OBJECTS[made](shop.variables["toy"])
    declared = "<item, integer>" if returned == "tuple" else "item"
    shop.amosql(f"create function found(item) -> {declared} as foreign;")
    shop.foreign("found", lambda _: (given, 1) if returned == "tuple" else RETURNS[returned](given))
    for text in ("found(:toy);", "set maker(:toy) = found(:toy);")[: 1 + (returned == "one")]:
        with pytest.raises(ForeignFault, match="is not an object"):
            shop.amosql(text)


RETURNS: dict[str, Callable[[Object], Any]] = {
    "one": lambda it: it,
    "list": lambda it: [it],
    "set": lambda it: {it},
    "generator": lambda it: (each for each in [it]),
}


@pytest.mark.parametrize("kind", RETURNS)
@pytest.mark.parametrize("text", ["found();", "select name(found());", "set :x = found();"])
def test_a_foreign_function_cannot_bring_one_in(
    shop: Database, stranger: Object, kind: str, text: str
) -> None:
    shop.amosql("create function found() -> item as foreign;")
    shop.foreign("found", lambda: RETURNS[kind](stranger))
    with pytest.raises(ValueFault, match="another database"):
        shop.amosql(text)
    toy = shop.variables["toy"]
    shop.foreign("found", lambda: RETURNS[kind](toy))
    shop.amosql(text)


def test_a_foreign_function_cannot_bring_one_in_by_a_row(shop: Database, stranger: Object) -> None:
    shop.amosql("create function found() -> bag of <integer n, item i> as foreign;")
    for rows in ([(1, stranger)], [[1, stranger]], iter([(1, stranger)])):
        shop.foreign("found", lambda rows=rows: rows)
        with pytest.raises(ValueFault, match="another database"):
            shop.amosql("found();")
    shop.foreign("found", lambda: [[1, shop.variables["toy"]]])
    assert shop.amosql("found();").rows == [(1, shop.variables["toy"])]


def test_objects_of_two_databases_are_not_equal(shop: Database, stranger: Object) -> None:
    toy = shop.variables["toy"]
    assert toy.oid == stranger.oid
    assert toy != stranger
    assert {toy: 1}.get(stranger) is None
    assert toy == Object(toy.oid)


def test_sessions_on_one_file_share_their_objects(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    (tmp_path / "link.db").symlink_to(path)
    with harken.connect(str(path)) as one:
        one.amosql(SHOP)
        toy = one.variables["toy"]
        with harken.connect(str(tmp_path / "link.db")) as other:
            assert other.function("name")[toy] == "toy"
            assert other.amosql("select i for each item i;").rows == [(toy,)]


def test_every_object_that_leaves_says_where_it_belongs(shop: Database, stranger: Object) -> None:
    got: list[Any] = []
    shop.foreign("look", got.append)
    shop.amosql("""
        create rule told() as when for each item i where name(i) = "ball" do
            begin look(i); print(i); end;
        activate told();
        add parts(:toy) = :toy;
        look(:toy);
        look(parts(:toy));
    """)
    got += [shop.function("parts")[shop.variables["toy"]][0], *shop.function("parts")]
    got += [row[0] for row in shop.amosql("parts(:toy);").rows]
    got += shop.load("item", [("ball",)], ["name"])
    printed: list[Any] = []
    with shop.listening(lambda result: printed.extend(result.rows)):
        shop.commit()
    got += [printed[0][0]]
    assert len(got) == 8
    assert all(each != Object(each.oid, home=stranger.home) for each in got)
