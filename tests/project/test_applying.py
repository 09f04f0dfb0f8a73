"""What happens to a database when a project is applied, as its author meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken.errors import HarkenError
from harken.project.applying import apply_project
from harken.project.plan import make_plan
from harken.project.plan_lines import lines
from harken.project.project_files import read_project

TABLES = "CREATE TABLE item (name STRING PRIMARY KEY, quantity INT, least INT);"
LOW = "CREATE VIEW low AS SELECT name FROM item WHERE quantity < least;"
SEEDS = "seeds: {item: [{name: pen, quantity: 9, least: 5}, {name: ink, quantity: 1, least: 5}]}"


class Shop:
    """A directory and a database."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.db = harken.connect()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (self.directory / f"{stem}.{suffix}").write_text(text)

    def apply(self, *, loss: bool = False, **files: str) -> list[str]:
        """Write some files and apply the project; the lines of the plan."""
        self.write(**files)
        said: list[str] = []
        apply_project(
            self.db,
            read_project(self.directory, {"WHERE": "quantity < least"}),
            allow_data_loss=loss,
            tell=lambda plan: said.extend(lines(plan)),
        )
        return said

    def refusal(self, *, loss: bool = False, **files: str) -> str:
        """The report of what is wrong; nothing may have changed."""
        before = self.db.definitions()
        with pytest.raises(HarkenError) as caught:
            self.apply(loss=loss, **files)
        assert self.db.definitions() == before
        assert not self.db.in_transaction
        return caught.value.report().replace(f"{self.directory}/", "")

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return sorted(self.db.sql(query).rows, key=repr)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_files_are_made_in_the_order_of_dependency(shop: Shop) -> None:
    said = shop.apply(a_sql=LOW, b_sql=TABLES, project_yml=SEEDS)
    assert [line.split("  (")[0] for line in said[1:3]] == ["  + table item", "  + view low"]
    assert shop.rows("SELECT * FROM low") == [("ink",)]


def test_a_second_run_does_nothing(shop: Shop) -> None:
    shop.apply(a_sql=TABLES + LOW, project_yml=SEEDS)
    changes = shop.db.position
    (line,) = shop.apply(a_sql=f"-- a comment\n{TABLES}\n{LOW.replace(' AS ', '  AS  ')}")
    assert line.endswith("nothing to do; 2 definitions are as the project says")
    assert shop.db.position == changes


def test_replacing_a_view_brings_its_readers_along(shop: Shop) -> None:
    counted = "CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM low;"
    shop.apply(a_sql=TABLES + LOW + counted, project_yml=SEEDS)
    monitor = shop.db.monitor("many")
    said = shop.apply(a_sql=TABLES + LOW.replace("<", "<>") + counted)
    assert "      computes again: the materialized view many" in "\n".join(said)
    (change,) = monitor.changes()
    assert (change.plus, change.minus) == ([(2,)], [(1,)])


def test_a_reader_outside_of_the_project_objects(shop: Shop) -> None:
    shop.apply(a_sql=TABLES + LOW)
    shop.db.sql("CREATE VIEW mine AS SELECT name FROM low")
    report = shop.refusal(a_sql=TABLES + LOW.replace("SELECT name", "SELECT quantity"))
    assert "this would break mine" in report


def test_a_reader_of_the_project_that_breaks_is_shown(shop: Shop) -> None:
    shop.apply(a_sql=TABLES, b_sql=LOW, c_sql="CREATE VIEW names AS SELECT name FROM low;")
    report = shop.refusal(b_sql=LOW.replace("SELECT name", "SELECT quantity"))
    assert report.startswith("c.sql:1:1: [in-use] this would break names: there is no column name")
    rule = "create rule r() as when for each charstring n where n = low() do print(n);"
    shop.apply(b_sql=LOW, c_sql="", d_amosql=rule)
    assert shop.refusal(b_sql="").startswith("d.amosql:1:1: [in-use] this would break the rule r")


def test_two_views_change_together_though_neither_fits_the_other_as_it_was(shop: Shop) -> None:
    old = "CREATE VIEW a AS SELECT name FROM item; CREATE VIEW b AS SELECT name FROM a;"
    new = "CREATE VIEW b AS SELECT least FROM a; CREATE VIEW a AS SELECT least FROM item;"
    shop.apply(a_sql=TABLES + old, project_yml=SEEDS)
    shop.apply(a_sql=TABLES + new)
    assert shop.rows("SELECT * FROM b") == [(5,), (5,)]


def test_what_a_project_no_longer_has_is_dropped(shop: Shop) -> None:
    shop.apply(a_sql=TABLES, b_sql=LOW)
    shop.db.sql("CREATE TABLE mine (a INT)")
    (shop.directory / "b.sql").unlink()
    assert "  - view low  (no longer in the project)" in shop.apply()
    assert [each.name for each in shop.db.definitions()] == ["item", "harken_project", "mine"]


def test_rows_are_lost_only_when_that_is_allowed(shop: Shop) -> None:
    shop.apply(a_sql=TABLES, b_sql="CREATE TABLE note (text STRING);", project_yml=SEEDS)
    shop.db.sql("INSERT INTO note VALUES ('mine')")
    assert "rows would be lost: table note (1 row)" in shop.refusal(b_sql="")
    lost = shop.refusal(b_sql="", a_sql=TABLES.replace(", least INT", ""))
    assert "table item (least of 2 rows)" in lost
    shop.write(a_sql=TABLES, b_sql="")
    shop.apply(loss=True)
    assert "note" not in [each.name for each in shop.db.definitions()]


def test_a_table_is_altered_with_its_rows(shop: Shop) -> None:
    shop.apply(a_sql=TABLES + LOW, project_yml=SEEDS)
    shop.db.sql("UPDATE item SET quantity = 0 WHERE name = 'pen'")
    shop.apply(a_sql=TABLES.replace(", least", ", price DECIMAL(5, 2) DEFAULT 1.5, least") + LOW)
    assert shop.rows("SELECT name, quantity, price FROM item WHERE name = 'pen'")[0][1] == 0
    assert shop.db.sql("SELECT * FROM item").columns == ("name", "quantity", "price", "least")


def test_another_type_of_a_column_is_refused_in_words(shop: Shop) -> None:
    shop.apply(a_sql=TABLES, project_yml=SEEDS)
    report = shop.refusal(a_sql=TABLES.replace("quantity INT", "quantity STRING"))
    assert report.startswith("a.sql:1:1: [unsupported] item cannot be altered: quantity is BIGINT")


def test_a_changed_seed_leaves_the_rows_of_others(shop: Shop) -> None:
    shop.apply(a_sql=TABLES, project_yml=SEEDS)
    shop.db.sql(
        "INSERT INTO item VALUES ('mine', 1, 1); UPDATE item SET least = 4 WHERE name = 'pen'"
    )
    said = shop.apply(project_yml=SEEDS.replace("ink, quantity: 1", "ash, quantity: 2"))
    assert "  ~ seed item: 1 row in, 1 row out" in said
    assert shop.rows("SELECT * FROM item") == [("ash", 2, 5), ("mine", 1, 1), ("pen", 9, 4)]


def test_seeds_come_from_files(shop: Shop) -> None:
    shop.write(item_csv="name,quantity,least\npen,9,\nink,1,5\n")
    shop.apply(a_sql=TABLES, project_yml="seeds: {item: item.csv}")
    assert shop.rows("SELECT * FROM item") == [("ink", 1, 5), ("pen", 9, None)]
    wrong = shop.refusal(item_csv="name,quantity\npen,many\n")
    assert wrong == "item.csv:2: [bad-project] 'many' is no integer for the column quantity"


def test_a_failing_test_rolls_back(shop: Shop) -> None:
    tests = "\ntests:\n  - {name: all is well, view: low, rows: []}\n"
    report = shop.refusal(a_sql=TABLES + LOW, project_yml=SEEDS + tests)
    assert report.startswith(
        'project.yml:3:5: [test-failed] all is well: 1 row not expected: <"ink">'
    )
    shop.apply(project_yml=SEEDS.replace("quantity: 1", "quantity: 7") + tests)


def test_tests_see_what_rules_did_and_materialized_views_have(shop: Shop) -> None:
    rule = (
        "create rule refill() as when for each charstring n where n = low() do set quantity(n) = 9;"
        "activate refill();"
    )
    tables = (
        "CREATE TABLE quantity (name STRING PRIMARY KEY, quantity INT NOT NULL);"
        "CREATE VIEW low AS SELECT name FROM quantity WHERE quantity < 5;"
        "CREATE MATERIALIZED VIEW total AS SELECT sum(quantity) AS n FROM quantity;"
    )
    yml = (
        "seeds: {quantity: [[pen, 1]]}\n"
        "tests:\n"
        "  - {view: total, rows: [[9]]}\n"
        "  - {given: {quantity: [[ink, 2], [ash, 7]]}, view: total, rows: [{n: 16}]}\n"
    )
    shop.apply(a_sql=tables, r_amosql=rule, project_yml=yml)
    assert shop.rows("SELECT * FROM quantity") == [("pen", 9)]


def test_a_mistake_is_found_at_its_place(shop: Shop) -> None:
    report = shop.refusal(
        a_sql=TABLES, b_sql="-- views\n\nCREATE VIEW v AS\n  SELECT nam FROM item;"
    )
    assert report.startswith("b.sql:4:10: [unknown-column]")
    report = shop.refusal(b_sql="CREATE VIEW v AS\nSELECT name FROM item WHERE;")
    assert report.startswith("b.sql:2:")
    report = shop.refusal(b_sql="", c_dl=".decl p(x: number)\np(x) :- q(x).")
    assert report.startswith("c.dl:2:9: [unknown-relation]")
    report = shop.refusal(c_dl="", d_amosql="create function f() -> integer as select g();")
    assert report.startswith("d.amosql:1:")
    report = shop.refusal(d_amosql="", e_yml="tests:\n  - vew: low\n    rows: []")
    assert report.startswith("e.yml:2:5: [bad-project] a test has no vew")


def test_statements_that_do_something_are_refused(shop: Shop) -> None:
    report = shop.refusal(a_sql=TABLES + "\nINSERT INTO item VALUES ('a', 1, 1);")
    assert "INSERT of rows is not part of a project" in report
    assert "hint: rows come from `seeds:` in a .yml file" in report


def test_types_functions_and_rules_come_and_go(shop: Shop) -> None:
    types = "create type thing properties (size integer);"
    function = "create function twice(thing t) -> integer as select size(t) * 2;"
    shop.apply(a_amosql=types, b_amosql=function)
    shop.db.amosql("create thing(size) instances :a(4); commit;")
    more = types.replace("(size", "(colour charstring, size")
    said = shop.apply(a_amosql=more, b_amosql=function.replace("2", "3"))
    assert "  + function colour(thing)" in "\n".join(said)
    assert shop.db.amosql("select twice(t) for each thing t;").rows == [(12,)]
    shop.apply(b_amosql="")
    assert "twice(thing)" not in [each.name for each in shop.db.definitions()]


def test_relations_are_made_again_with_their_facts(shop: Shop) -> None:
    edges = '.decl edge(x: symbol, y: symbol)\nedge("a", "b").\nedge("b", "c").\n'
    path = ".decl path(x: symbol, y: symbol)\npath(x, y) :- edge(x, y).\n"
    shop.apply(a_dl=edges + path)
    shop.apply(a_dl=edges.replace('"c"', '"d"') + path + "path(x, z) :- path(x, y), edge(y, z).\n")
    assert shop.rows("SELECT * FROM path") == [("a", "b"), ("a", "d"), ("b", "d")]


def test_variables_and_includes(shop: Shop) -> None:
    (shop.directory / "more").mkdir()
    (shop.directory / ".hidden").mkdir()
    (shop.directory / ".hidden" / "x.sql").write_text("nonsense")
    (shop.directory / "more" / "v.sql").write_text(
        "CREATE VIEW low AS SELECT * FROM item WHERE ${WHERE};"
    )
    shop.apply(a_sql=TABLES, project_yml=f"{SEEDS}\ninclude: [more]")
    assert len(shop.rows("SELECT * FROM low")) == 1
    report = shop.refusal(b_sql="CREATE VIEW v AS SELECT ${NOWHERE} FROM item;")
    assert report.startswith("b.sql:1:25: [bad-project] the environment variable NOWHERE")


def test_two_projects_share_a_database(shop: Shop, tmp_path: Path) -> None:
    shop.apply(a_sql=TABLES, project_yml="name: first")
    other = Shop(tmp_path / "other")
    other.directory.mkdir()
    other.db = shop.db
    report = other.refusal(a_sql=TABLES, project_yml="name: second")
    assert "is of the project first" in report
    other.apply(a_sql=LOW)
    assert make_plan(shop.db, read_project(other.directory, {})).is_empty


def test_what_is_there_already_is_taken_over(shop: Shop) -> None:
    shop.db.sql(TABLES + "INSERT INTO item VALUES ('pen', 1, 2);")
    said = shop.apply(a_sql=TABLES)
    assert "  = table item, is there already" in "\n".join(said)
    assert shop.rows("SELECT name FROM item") == [("pen",)]


def test_what_was_changed_by_hand_is_put_back(shop: Shop) -> None:
    shop.apply(a_sql=TABLES + LOW, project_yml=SEEDS)
    shop.db.sql(
        "CREATE OR REPLACE VIEW low AS SELECT least FROM item; ALTER TABLE item ADD COLUMN x INT"
    )
    said = "\n".join(shop.apply(loss=True))
    assert "~ view low" in said
    assert "~ table item" in said
    assert shop.rows("SELECT * FROM low") == [("ink",)]


def test_a_domain_follows_its_text(shop: Shop) -> None:
    tables = "CREATE TABLE paper (title STRING, abstract STRING); CREATE TABLE page (text STRING);"
    domain = (
        "CREATE DOMAIN library OVER paper (title AS word, abstract AS word), page (text AS word);"
    )
    said = shop.apply(a_sql=domain, b_sql=tables)
    assert "  + domain library" in "\n".join(said)
    shop.db.sql("INSERT INTO paper VALUES ('a', 'b')")
    assert shop.rows("SELECT word FROM library") == [("a\nb",)]
    assert make_plan(shop.db, read_project(shop.directory, {})).is_empty
    said = shop.apply(a_sql=domain.replace(", abstract AS word", ""))
    assert "~ domain library" in "\n".join(said)
    assert shop.rows("SELECT word FROM library") == [("a",)]
    shop.apply(a_sql="")
    assert shop.db.domains.list() == []
