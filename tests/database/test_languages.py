"""The catalog knows in which language a function was defined, and whether it is materialized."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import harken
from harken.engines.sqlite.opened_files import FORMAT

PROGRAMS = """
create type item properties (name charstring);
create function short(item i) -> charstring as select name(i);
"""
TABLES = """
CREATE TABLE sale (city STRING, amount INT);
CREATE VIEW total AS SELECT city, sum(amount) AS amount FROM sale GROUP BY city;
/* a comment first */ create   materialized
view kept AS SELECT * FROM sale;
"""
RELATIONS = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path("a", "b").
path(x, y) :- edge(x, y).
"""
EXPECTED = {
    ("name", "amosql", False, ""),
    ("short", "amosql", False, ""),
    ("sale", "sql", False, ""),
    ("total", "sql", False, ""),
    ("kept", "sql", True, ""),
    ("edge", "datalog", False, ""),
    ("path", "datalog", False, ""),
    ("path facts", "datalog", False, "path"),
}
Entry = tuple[str, str, bool, str]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


@pytest.fixture
def db(path: str) -> Iterator[harken.Database]:
    with harken.connect(path) as database:
        database.amosql(PROGRAMS)
        database.commit()
        database.sql(TABLES)
        database.datalog(RELATIONS)
        yield database


def recorded(db: harken.Database) -> set[Entry]:
    db.views()  # looks at what other sessions did
    return {
        (each.name, each.language, each.materialized, each.facts_of)
        for each in db.internals.catalog.functions()
        if not each.system
    }


def test_it_is_recorded_with_each_function(db: harken.Database) -> None:
    assert recorded(db) == EXPECTED


def test_it_is_there_when_the_file_is_opened_again(db: harken.Database, path: str) -> None:
    db.close()
    with harken.connect(path) as again:
        assert recorded(again) == EXPECTED
        again.sql("INSERT INTO sale VALUES ('Oslo', 3)")
        assert again.sql("SELECT * FROM kept").rows == [("Oslo", 3)]
        assert again.datalog('+edge("b", "c"). ?- path(x, y).').rows == [("a", "b"), ("b", "c")]


def test_another_session_sees_it(db: harken.Database, path: str) -> None:
    with harken.connect(path) as other:
        db.sql("CREATE MATERIALIZED VIEW big AS SELECT * FROM sale WHERE amount > 10")
        db.amosql("create function twice(integer i) -> integer as select 2 * i;")
        db.commit()
        more = {("big", "sql", True, ""), ("twice", "amosql", False, "")}
        assert recorded(other) == EXPECTED | more


def test_a_view_that_is_replaced_changes_what_it_is(db: harken.Database) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW total AS SELECT city FROM sale")
    assert ("total", "sql", True, "") in recorded(db)
    db.sql("CREATE OR REPLACE VIEW total AS SELECT city FROM sale")
    assert recorded(db) == EXPECTED


def test_a_name_can_pass_to_another_language(db: harken.Database) -> None:
    db.sql("DROP VIEW total")
    db.datalog(".decl total(x: symbol)\ntotal(x) :- edge(x, _).")
    assert ("total", "datalog", False, "") in recorded(db)


def test_alter_table_leaves_it_as_it_was(db: harken.Database) -> None:
    db.sql("ALTER TABLE sale ADD COLUMN day INT")
    assert recorded(db) == EXPECTED
    assert db.sql("SELECT count(*) FROM kept").rows == [(0,)]


def test_a_rollback_takes_it_back(db: harken.Database) -> None:
    db.sql("BEGIN; DROP VIEW total; CREATE TABLE total (x INT); ROLLBACK")
    assert recorded(db) == EXPECTED


def test_a_relation_that_gets_its_first_rule_is_still_one_of_datalog(db: harken.Database) -> None:
    db.datalog('edge("a", "b").\nedge(x, y) :- path(y, x).')
    assert recorded(db) == EXPECTED | {("edge facts", "datalog", False, "edge")}


def test_a_table_whose_name_looks_like_a_hidden_one_is_shown(db: harken.Database) -> None:
    db.sql("CREATE TABLE `other facts` (x INT)")
    shown = {name for row in db.sql("SHOW TABLES").rows for name in row}
    assert "other facts" in shown
    assert "path facts" not in shown


def test_columns_keep_the_order_of_their_declaration(db: harken.Database, path: str) -> None:
    db.sql("CREATE TABLE stock (n INT, place STRING, item STRING, PRIMARY KEY (item, place))")
    db.sql("INSERT INTO stock VALUES (1, 'Oslo', 'pen')")
    db.sql("ALTER TABLE stock ADD COLUMN day INT DEFAULT 2")
    db.close()
    with harken.connect(path) as again:
        assert again.sql("SELECT * FROM stock").rows == [(1, "Oslo", "pen", 2)]
        assert again.datalog("?- stock(n, p, i, d).").rows == [(1, "Oslo", "pen", 2)]
        text = "select item, place, n, day for each charstring item, charstring place, "
        text += "integer n, integer day where <n, day> = stock(item, place);"
        assert again.amosql(text).rows == [("pen", "Oslo", 1, 2)]


def test_python_functions_of_the_session_are_in_no_language_of_the_file(
    db: harken.Database, path: str
) -> None:
    db.foreign("double", _double)
    assert ("double", "python", False, "") in recorded(db)
    with harken.connect(path) as other:
        assert recorded(other) == EXPECTED


def _double(value: int) -> int:
    return 2 * value


def test_the_schema_can_be_asked(db: harken.Database) -> None:
    text = "select language(f), materialized(f) for each function f where name(f) = 'kept';"
    assert db.amosql(text).rows == [("sql", True)]


def test_a_file_of_an_older_layout_is_refused_untouched(db: harken.Database, path: str) -> None:
    db.close()
    apsw.Connection(path).pragma("user_version", FORMAT - 1)
    content = Path(path).read_bytes()
    with pytest.raises(harken.StorageError) as raised:
        harken.connect(path)
    assert raised.value.code == "older-format"
    assert str(FORMAT - 1) in raised.value.message
    assert "create the database again" in (raised.value.hint or "")
    assert Path(path).read_bytes() == content
