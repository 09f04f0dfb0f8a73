"""Names that another connection has just created, and names that mean several functions."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken


def test_what_another_connection_created_is_known(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db") as db, harken.connect(tmp_path / "a.db") as other:
        other.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t WHERE a > 1")
        assert "v" in str(db.explain("v", verbose=True))
        other.sql("CREATE VIEW w AS SELECT a FROM t")
        assert "w" in [each.name for each in db.views()]


def test_a_function_that_another_connection_declared_foreign_is_given_its_python(
    tmp_path: Path,
) -> None:
    with harken.connect(tmp_path / "a.db") as db, harken.connect(tmp_path / "a.db") as other:
        other.amosql("create function twice(integer n) -> integer as foreign; commit;")
        db.foreign("twice", lambda n: 2 * n)
        assert db.amosql("twice(21);")[-1].rows == [(42,)]


@pytest.mark.parametrize("statement", ["delete function f;", "create rule r() as when f() do f();"])
def test_a_name_of_several_functions_of_which_one_takes_nothing(statement: str) -> None:
    with harken.connect() as db:
        db.amosql("create type item; create function f() -> integer;")
        db.amosql("create function f(item) -> integer;")
        for attempt in (lambda: db.function("f"), lambda: db.explain("f", verbose=True)):
            with pytest.raises(harken.TypeFault) as told:
                attempt()
            assert told.value.hint == 'name the type: "item.f"'
        with pytest.raises(harken.HarkenError):
            db.amosql(statement)
