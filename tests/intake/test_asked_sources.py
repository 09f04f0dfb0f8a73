"""Sources without a mirror answer queries with the rows they have at that moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken.sources.outside import Condition, Order, Question
from tests.harness.toy_sources import Clock, ToyKind, ToyPolled, ToyTable


class ToyAnswering(ToyPolled):
    """Pushes comparisons of the column id, and notes what it was asked."""

    def question(
        self,
        columns: Sequence[str],
        conditions: Sequence[Condition],
        limit: int | None = None,
        order: Sequence[Order] = (),
    ) -> Question:
        pushed = tuple(c for c in conditions if c.column == "id" and c.operator in "=<>")

        def batches() -> Iterator[pa.RecordBatch]:
            ASKED.append((tuple(columns), pushed))
            found = pa.Table.from_batches(list(self.table.batches()), self.table.columns)
            for each in pushed:
                test = {"=": pc.equal, "<": pc.less, ">": pc.greater, "<>": pc.not_equal}
                found = found.filter(test[each.operator](found["id"], each.values[0]))
            yield from found.select(list(columns)).to_batches()

        text = f"{', '.join(columns)} where {[(c.column, c.operator, *c.values) for c in pushed]}"
        return Question(text, pushed, False, batches)


ASKED: list[tuple[tuple[str, ...], tuple[Condition, ...]]] = []


@pytest.fixture
def db(toy: ToyKind, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> harken.Database:
    monkeypatch.setattr("tests.harness.toy_sources.ToyPolled", ToyAnswering)
    ASKED.clear()
    columns = {"id": pa.int64(), "name": pa.string(), "n": pa.float64()}
    toy.table("item", [(1, "pen", 1.0), (2, "ink", None), (2, "ink", None)], **columns)
    db = harken.connect(":memory:", clock=clock)
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item') MIRROR none")
    db.sql("CREATE TABLE stock (id BIGINT, place STRING)")
    db.sql("INSERT INTO stock VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return db


def test_a_query_reads_the_source_now(db: harken.Database, toy: ToyKind) -> None:
    query = "SELECT id, name, n FROM item"
    table = toy.tables["item"]
    assert Counter(db.sql(query).rows) == Counter(table.rows)
    table.rows = [(7, "cap", 0.5)]
    assert db.sql(query).rows == table.rows
    assert db.sql(query).rows == table.rows
    assert dict(db.sql("DESCRIBE SOURCE item").rows)["mirror"].startswith("none")


def test_columns_and_conditions_are_pushed(db: harken.Database) -> None:
    assert db.sql("SELECT n FROM item WHERE id = 1 AND name LIKE 'p%'").rows == [(1.0,)]
    ((columns, pushed),) = ASKED
    assert columns == ("id", "name", "n")
    assert pushed == (Condition("id", "=", (1,)),)
    ASKED.clear()
    assert db.sql("SELECT count(*) FROM item WHERE 1 < id").rows == [(2,)]
    assert [(("id",), (Condition("id", ">", (1,)),))] == ASKED


def test_a_join_asks_once(db: harken.Database) -> None:
    found = db.sql("SELECT s.place, i.name FROM stock s JOIN item i ON i.id = s.id WHERE i.id > 1")
    assert found.rows == [("b", "ink"), ("b", "ink")]
    assert len(ASKED) == 1


def test_a_view_over_it_has_all_rows(db: harken.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT id, name FROM item")
    assert Counter(db.sql("SELECT * FROM v").rows) == {(1, "pen"): 1, (2, "ink"): 2}
    both = db.sql("SELECT count(*) FROM item i JOIN v ON i.id <> v.id WHERE i.id = 1")
    assert both.rows == [(2,)]


def test_explain_says_what_is_asked(db: harken.Database) -> None:
    explained = db.sql("EXPLAIN SELECT name FROM item WHERE id = 2 AND name = 'ink'")
    shown = "\n".join(line for (line,) in explained[-1])
    assert "item is asked for: id, name where [('id', '=', 2)]" in shown
    assert "computed here, of item: name = 'ink'" in shown
    assert ASKED == []


def test_it_cannot_be_watched_or_changed(db: harken.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT id FROM item")
    for name in ("item", "v"):
        with pytest.raises(harken.HarkenError):
            db.monitor(name)
    for text in (
        "INSERT INTO item VALUES (1, 'a', 1)",
        "REFRESH SOURCE item",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM item",
        "DROP TABLE item",
    ):
        with pytest.raises(harken.HarkenError):
            db.sql(text)
    db.sql("DROP SOURCE item CASCADE")


def test_it_is_there_in_the_next_session(toy: ToyKind, clock: Clock, path: str) -> None:
    toy.table("item", [(1, "pen")])
    with harken.connect(path, clock=clock) as db:
        db.source("item", "toy", table="item", mirror=False)
    with harken.connect(path, clock=clock) as db:
        assert db.sql("SELECT * FROM item").rows == [(1, "pen")]


VALUES = st.sampled_from(["1", "2", "3"])
TESTS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["i.id", "i.n"]),
        st.sampled_from(["=", "<", ">", "<>"]),
        VALUES,
    ),
    st.builds("i.id IN ({}, {})".format, VALUES, VALUES),
    st.sampled_from(["i.name IS NULL", "i.name IS NOT NULL", "i.name = 'a'", "s.id = i.id"]),
)
JOINS = st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["a", None]), st.sampled_from([1.0, None])),
        max_size=4,
    ),
    tests=st.lists(TESTS, min_size=1, max_size=3),
    join=JOINS,
    glue=st.sampled_from([" AND ", " OR "]),
)
def test_a_query_has_the_rows_that_it_has_over_a_mirror(
    rows: list[tuple[object, ...]], tests: list[str], join: str, glue: str
) -> None:
    from harken.sources.kinds import OF_USERS, register_kind

    kind = ToyKind()
    columns = {"id": pa.int64(), "name": pa.string(), "n": pa.float64()}
    table: ToyTable = kind.table("item", rows, **columns)

    class Kind(ToyKind):
        def open(self, *given: object, **more: object):  # type: ignore[no-untyped-def]
            from harken.sources.outside import Opened

            return Opened(polled=ToyAnswering(table))

    register_kind(Kind())
    with harken.connect(":memory:") as db:
        db.source("asked", "toy", table="item", mirror=False)
        db.source("kept", "toy", table="item")
        db.sql("CREATE TABLE stock (id BIGINT)")
        db.sql("INSERT INTO stock VALUES (1), (2)")
        found = [
            db.sql(
                f"SELECT s.id, i.name FROM stock s {join} {name} i ON i.id = s.id "
                f"WHERE {glue.join(tests)}"
            ).rows
            for name in ("asked", "kept")
        ]
    assert Counter(found[0]) == Counter(found[1])
    del OF_USERS["toy"]
