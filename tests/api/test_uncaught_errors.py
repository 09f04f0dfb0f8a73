"""What a user of Python sees who catches nothing: the message, the place in the text, the hint."""

from __future__ import annotations

import pickle
import traceback

import pytest

import harken


def shown(text: str) -> list[str]:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (shop STRING)")
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(text)
    return "".join(traceback.format_exception_only(caught.value)).splitlines()


def test_the_place_and_the_hint_follow_the_message() -> None:
    assert shown("SELECT *\nFROM sales") == [
        "harken.errors.NameFault: there is no table or view sales",
        "2:6: [unknown-table]",
        "  FROM sales",
        "       ^^^^^",
        "hint: did you mean sale?",
    ]


def test_notes_of_others_are_kept() -> None:
    error = harken.ValueFault("no", hint="yes")
    error.add_note("mine")
    assert error.__notes__ == ["[bad-value]\nhint: yes", "mine"]
    assert str(error) == "no"
    assert pickle.loads(pickle.dumps(error)).__notes__ == error.__notes__


def test_an_empty_database_says_that_it_is_empty() -> None:
    with harken.connect() as db, pytest.raises(harken.NameFault) as caught:
        db.sql("SELECT * FROM sale")
    assert "is empty; --db FILE" in str(caught.value.hint)


def test_a_value_of_another_type_names_its_column() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT, shop STRING)")
        for text, values in (
            ("INSERT INTO sale VALUES ('x', 'y')", None),
            ("INSERT INTO sale VALUES (?, ?)", ["x", "y"]),
        ):
            with pytest.raises(harken.TypeFault) as caught:
                db.sql(text, values)
            assert str(caught.value) == "column id: STRING cannot be stored as BIGINT"


def test_a_given_row_with_a_wrong_value_names_its_column() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT, shop STRING)")
        with pytest.raises(harken.ValueFault) as caught:
            db.insert("sale", [("x", "y")])
    assert str(caught.value) == "sale.id: 'x' is not of type integer"


def test_a_format_of_dates_of_another_system_is_told_how_to_write_it() -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError) as caught:
        db.sql("SELECT to_char(DATE '2026-01-01', 'YYYY')")
    assert "yyyy-MM-dd" in str(caught.value.hint)


def test_the_database_api_is_there_without_an_import_of_its_own() -> None:
    assert harken.dbapi.apilevel == "2.0"
