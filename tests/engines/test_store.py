"""What it means to keep relations, for every engine that does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.values.types import INTEGER, TEXT

NUMBERS = (Column("a", INTEGER), Column("b", INTEGER))
SET = Relation("s", NUMBERS, 0, Kind.STORED, key=(0, 1))
KEYED = Relation("k", NUMBERS, 1, Kind.STORED, key=(0,))
BAG = Relation("b", NUMBERS, 1, Kind.STORED, Semantics.BAG)
NAMED = Relation("n", (Column("a", INTEGER), Column("t", TEXT.or_null())), 1, Kind.STORED)


def rows(engine: Any, relation: Relation) -> Counter[Any]:
    return Counter(engine.rows(relation))


def test_a_relation_is_empty_when_it_is_made_and_gone_when_it_is_dropped(engine: Any) -> None:
    assert not engine.exists(SET)
    engine.create(SET)
    assert engine.exists(SET)
    assert engine.is_empty(SET)
    assert engine.count(SET) == 0
    engine.drop(SET)
    assert not engine.exists(SET)


def test_a_set_has_each_row_once(engine: Any) -> None:
    engine.create(SET)
    engine.set_row(SET, (1, 2))
    engine.set_row(SET, (1, 2))
    engine.add_many(SET, [(1, 2), (1, 3)])
    assert rows(engine, SET) == Counter([(1, 2), (1, 3)])
    engine.remove_row(SET, (1, 2))
    engine.remove_row(SET, (7, 7))
    assert rows(engine, SET) == Counter([(1, 3)])


def test_a_key_has_one_row(engine: Any) -> None:
    engine.create(KEYED)
    engine.set_row(KEYED, (1, 2))
    engine.set_row(KEYED, (1, 3))
    engine.set_row(KEYED, (2, 3))
    assert rows(engine, KEYED) == Counter([(1, 3), (2, 3)])
    assert engine.results(KEYED, (1,)) == [(3,)]
    assert engine.results(KEYED, (9,)) == []


def test_a_bag_loses_one_of_several_copies(engine: Any) -> None:
    engine.create(BAG)
    engine.insert_many(BAG, [(1, 2), (1, 2), (1, 3)])
    assert engine.count(BAG) == 3
    engine.remove_many(BAG, [(1, 2)])
    assert rows(engine, BAG) == Counter([(1, 2), (1, 3)])
    engine.remove_many(BAG, [(1, 2), (1, 2)])
    assert rows(engine, BAG) == Counter([(1, 3)])


def test_rows_are_found_by_what_is_known_of_them(engine: Any) -> None:
    engine.create(NAMED)
    engine.insert_many(NAMED, [(1, "x"), (1, None), (2, "x")])
    assert Counter(engine.matching(NAMED, {0: 1})) == Counter([(1, "x"), (1, None)])
    assert Counter(engine.matching(NAMED, {1: "x"})) == Counter([(1, "x"), (2, "x")])
    assert engine.matching(NAMED, {1: None}) == [(1, None)]
    assert len(engine.matching(NAMED, {})) == 3
    assert engine.contains(NAMED, (1, None))
    assert not engine.contains(NAMED, (2, None))


def test_clearing_takes_out_what_begins_with_the_arguments(engine: Any) -> None:
    engine.create(BAG)
    engine.insert_many(BAG, [(1, 2), (1, 2), (2, 2)])
    engine.clear(BAG, (1,))
    assert rows(engine, BAG) == Counter([(2, 2)])


def test_a_rollback_puts_back_what_there_was(engine: Any) -> None:
    engine.create(SET)
    engine.set_row(SET, (1, 1))
    engine.connection.begin()
    assert engine.connection.in_transaction
    engine.set_row(SET, (2, 2))
    engine.remove_row(SET, (1, 1))
    engine.create(KEYED)
    engine.connection.rollback()
    assert not engine.connection.in_transaction
    assert rows(engine, SET) == Counter([(1, 1)])
    assert not engine.exists(KEYED)


def test_a_commit_stays(engine: Any) -> None:
    engine.create(SET)
    engine.connection.begin()
    engine.set_row(SET, (2, 2))
    engine.connection.commit()
    assert rows(engine, SET) == Counter([(2, 2)])


def test_a_savepoint_undoes_what_came_after_it_and_no_more(engine: Any) -> None:
    engine.create(SET)
    engine.connection.begin()
    engine.set_row(SET, (1, 1))
    with pytest.raises(ZeroDivisionError):
        _fail_after(engine, (2, 2))
    with engine.connection.savepoint():
        engine.set_row(SET, (3, 3))
    with engine.connection.undone():
        engine.remove_row(SET, (1, 1))
        assert not engine.contains(SET, (1, 1))
    engine.connection.set_savepoint("mine")
    engine.set_row(SET, (4, 4))
    engine.connection.undo_to("mine")
    engine.connection.set_savepoint("mine")
    engine.set_row(SET, (5, 5))
    engine.connection.release("mine")
    engine.connection.commit()
    assert rows(engine, SET) == Counter([(1, 1), (3, 3), (5, 5)])


def _fail_after(engine: Any, row: tuple[int, int]) -> None:
    with engine.connection.savepoint():
        engine.set_row(SET, row)
        raise ZeroDivisionError


def test_numbers_belong_to_their_transaction(file_engine: Any) -> None:
    file_engine.numbers.create({"version": 0, "next": 7})
    file_engine.connection.begin()
    file_engine.numbers.set("version", 3)
    file_engine.numbers.set("new", 1)
    file_engine.connection.rollback()
    assert file_engine.numbers.get("version") == 0
    assert file_engine.numbers.get("new") is None
    file_engine.numbers.raise_to("next", 5)
    assert file_engine.numbers.get("next") == 7
    file_engine.numbers.raise_to("next", 9)
    assert file_engine.numbers.get("next") == 9
