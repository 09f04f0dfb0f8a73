"""Transactions of a server arrive whole, once, and in order, whatever dies in between."""

import dataclasses
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken.errors import SourceFault
from harken.sources.kinds import OF_USERS, register_kind
from harken.sources.outside import UNCHANGED, TableChange
from tests.harness.toy_sources import Clock, Row, Server, ToyServerKind


@pytest.fixture
def db(logs: ToyServerKind, clock: Clock) -> harken.Database:
    return harken.connect(":memory:", clock=clock)


def make(db: harken.Database, table: str, name: str = "", more: str = "") -> None:
    db.sql(f"CREATE SOURCE {name or table} USING log OPTIONS (table '{table}') {more}")


def mirror(db: harken.Database, name: str) -> Counter[Row]:
    return Counter(db.sql(f"SELECT id, name, n FROM {name}").rows)


def state(db: harken.Database, name: str) -> str:
    return next(each.state for each in db.sources.list() if each.name == name)


def test_a_transaction_there_is_one_here(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    item = logs.table("item", [(1, "pen", 1.0)], "id")
    sale = logs.table("sale", [(1, "a", 1.0), (1, "a", 1.0)])
    server = logs.servers["one"]
    make(db, "item", more="KEY (id)")
    make(db, "sale")
    db.sql("CREATE VIEW both AS SELECT i.name, s.n FROM item i JOIN sale s ON i.id = s.id")
    changes = db.monitor("both")
    server.run(
        TableChange("item", minus=[(1, None, None)], plus=[(2, "ink", 2.0)]),
        TableChange("sale", minus=[(1, "a", 1.0)], plus=[(2, "b", 5.0)]),
    )
    server.run(TableChange("sale", plus=[(2, "b", 6.0)]))
    clock.forward(2)
    db.run_due()
    first, second = changes.changes()
    assert (Counter(first.plus), first.minus) == (Counter([("ink", 5.0)]), [("pen", 1.0)] * 2)
    assert second.plus == [("ink", 6.0)]
    assert mirror(db, "item") == Counter(item.rows)
    assert mirror(db, "sale") == Counter(sale.rows)
    clock.forward(2)
    db.run_due()
    assert server.released == server.last == 2


def test_a_step_takes_all_servers_in_one_transaction(
    db: harken.Database, logs: ToyServerKind
) -> None:
    logs.table("item", [(1, "pen", 1.0)], "id")
    logs.table("far", [], "id", server="two")
    make(db, "item", more="KEY (id)")
    db.sql("CREATE SOURCE far USING log OPTIONS (table 'far', server 'two') KEY (id)")
    db.sql("CREATE VIEW both AS SELECT id FROM item UNION ALL SELECT id FROM far")
    changes = db.monitor("both")
    logs.servers["one"].run(TableChange("item", plus=[(2, "ink", None)]))
    logs.servers["one"].run(TableChange("item", minus=[(1, None, None)]))
    logs.servers["two"].run(TableChange("far", plus=[(9, "ox", None)]))
    db.step()
    (change,) = changes.changes()
    assert (sorted(change.plus), change.minus) == ([(2,), (9,)], [(1,)])
    assert [each.released for each in logs.servers.values()] == [2, 1]


def test_refresh_takes_all_of_the_server(db: harken.Database, logs: ToyServerKind) -> None:
    item = logs.table("item", [(1, "pen", 1.0)], "id")
    other = logs.table("other", [])
    make(db, "item")
    make(db, "other")
    logs.servers["one"].run(TableChange("item", truncated=True, plus=[(7, "x", 1.0)]))
    logs.servers["one"].run(TableChange("other", plus=[(7, "x", 1.0)] * 2))
    done = db.sources.refresh("item")
    assert (done.plus, done.minus) == (1, 1)
    assert mirror(db, "item") == Counter(item.rows)
    assert mirror(db, "other") == Counter(other.rows)
    assert db.sources.describe("item")["position"] == "1"


def test_values_that_the_server_does_not_repeat(db: harken.Database, logs: ToyServerKind) -> None:
    logs.table("item", [(1, "long text", 1.0), (2, "other", 2.0)], "id")
    make(db, "item")
    server = logs.servers["one"]
    server.run(TableChange("item", plus=[(1, UNCHANGED, 5.0)]))
    server.run(
        TableChange("item", minus=[(2, None, None)], plus=[(3, UNCHANGED, 3.0)], moved={(3,): (2,)})
    )
    db.step()
    assert mirror(db, "item") == Counter([(1, "long text", 5.0), (3, "other", 3.0)])


def test_keys_may_change_places(db: harken.Database, logs: ToyServerKind) -> None:
    logs.table("item", [(1, "a", 1.0), (2, "b", 2.0)], "id")
    make(db, "item")
    logs.servers["one"].run(
        TableChange(
            "item",
            minus=[(1, None, None), (2, None, None)],
            plus=[(2, UNCHANGED, 1.0), (1, UNCHANGED, 2.0)],
            moved={(2,): (1,), (1,): (2,)},
        )
    )
    db.step()
    assert mirror(db, "item") == Counter([(2, "a", 1.0), (1, "b", 2.0)])


def test_a_table_whose_columns_change_stops_alone(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    logs.table("item", [(1, "pen", 1.0)], "id")
    other = logs.table("other", [])
    make(db, "item")
    make(db, "other")
    server = logs.servers["one"]
    server.run(
        TableChange("item", plus=[(2, "ink", 1.0)]),
        TableChange("other", plus=[(5, "e", None)]),
        altered={"item": "the column name was dropped"},
    )
    clock.forward(5)
    db.run_due()
    assert mirror(db, "item") == Counter([(1, "pen", 1.0)])
    assert mirror(db, "other") == Counter(other.rows)
    assert state(db, "item") == "schema changed"
    assert "REFRESH SOURCE item" in db.sources.describe("item")["what to do"]
    server.run(TableChange("item", plus=[(3, "cap", 1.0)]))
    db.sql("REFRESH SOURCE item")
    assert mirror(db, "item") == Counter(logs.servers["one"].tables["item"].rows)
    assert state(db, "item") == "ok"
    server.run(TableChange("item", plus=[(4, "cup", 1.0)]))
    db.step()
    assert mirror(db, "item") == Counter(server.tables["item"].rows)


def test_refresh_says_that_the_columns_have_changed(
    db: harken.Database, logs: ToyServerKind
) -> None:
    logs.table("item", [(1, "pen", 1.0)], "id")
    other = logs.table("other", [])
    make(db, "item")
    make(db, "other")
    logs.servers["one"].run(
        TableChange("other", plus=[(5, "e", None)]),
        altered={"item": "the column name was dropped"},
    )
    with pytest.raises(SourceFault, match="the column name was dropped") as told:
        db.sql("REFRESH SOURCE item")
    assert (told.value.code, "item" in str(told.value.hint)) == ("source-changed", True)
    assert mirror(db, "other") == Counter(other.rows)
    assert state(db, "item") == "schema changed"
    db.sql("REFRESH SOURCE item")
    assert state(db, "item") == "unchanged"


def test_a_paused_source_begins_again_with_all_rows(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    item = logs.table("item", [(1, "pen", 1.0)], "id")
    other = logs.table("other", [])
    make(db, "item")
    make(db, "other")
    server = logs.servers["one"]
    db.sql("ALTER SOURCE item PAUSE")
    server.run(
        TableChange("item", plus=[(2, "ink", 1.0)]), TableChange("other", plus=[(1, "", 0.0)])
    )
    db.step()
    assert mirror(db, "other") == Counter(other.rows)
    assert mirror(db, "item") == Counter([(1, "pen", 1.0)])
    db.sql("ALTER SOURCE item RESUME")
    clock.forward(5)
    db.run_due()
    assert mirror(db, "item") == Counter(item.rows)


def test_a_server_that_fails_is_tried_later_and_after_longer(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    item = logs.table("item", [(1, "pen", 1.0)], "id")
    make(db, "item")
    server = logs.servers["one"]
    server.fault = SourceFault("no route", code="source-down")
    waits = []
    for _ in range(4):
        due = db.next_due()
        assert due is not None
        waits.append((due - clock()).total_seconds())
        clock.moment = max(due, clock())
        db.run_due()
        assert state(db, "item") == "failing"
    assert waits[1] < waits[2] < waits[3]
    server.run(TableChange("item", plus=[(2, "ink", 1.0)]))
    server.fault = None
    clock.forward(1000)
    db.run_due()
    assert mirror(db, "item") == Counter(item.rows)
    assert state(db, "item") == "ok"


def test_a_lost_log_means_all_rows_again(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    item = logs.table("item", [(1, "pen", 1.0)], "id")
    make(db, "item")
    server = logs.servers["one"]
    server.run(TableChange("item", plus=[(2, "ink", 1.0)]))
    server.released = 1
    for _ in range(3):
        clock.forward(100)
        db.run_due()
    assert mirror(db, "item") == Counter(item.rows)
    assert server.started == ["item", "item"]


def test_dropping_removes_what_was_installed(
    db: harken.Database, logs: ToyServerKind, clock: Clock
) -> None:
    logs.table("item", [], "id")
    logs.table("other", [])
    server = logs.servers["one"]
    make(db, "item")
    make(db, "other")
    db.sql("DROP SOURCE item")
    assert server.followed == {"other"}
    server.run(TableChange("other", plus=[(1, "", 0.0)]))
    db.step()
    assert mirror(db, "other").total() == 1
    server.fault = SourceFault("away", code="source-down")
    db.sql("DROP SOURCE other")
    assert server.followed == {"other"}
    server.fault = None
    make(db, "item")
    clock.forward(1000)
    db.run_due()
    assert server.followed == {"item"}


def test_a_table_is_followed_once(db: harken.Database, logs: ToyServerKind) -> None:
    logs.table("item", [], "id")
    make(db, "item")
    with pytest.raises(harken.HarkenError, match="already"):
        make(db, "item", "again")


def test_a_source_that_was_not_made_leaves_nothing(
    db: harken.Database, logs: ToyServerKind
) -> None:
    logs.table("item", [(1, "a", 1.0), (1, "b", 1.0)])
    with pytest.raises(harken.HarkenError, match="no key"):
        make(db, "item", more="KEY (id)")
    assert logs.servers["one"].followed == set()


def test_only_some_options_can_be_changed(db: harken.Database, logs: ToyServerKind) -> None:
    logs.table("item", [], "id")
    make(db, "item")
    db.sql("ALTER SOURCE item SET (suspect_share 1)")
    db.sql("ALTER SOURCE item POLL EVERY 3 SECONDS")
    for text in ("table 'other'",):
        with pytest.raises(harken.HarkenError, match="cannot be changed"):
            db.sql(f"ALTER SOURCE item SET ({text})")
    assert logs.servers["one"].started == ["item"]


def test_scripts_are_for_the_operator(db: harken.Database, logs: ToyServerKind) -> None:
    logs.table("item", [])
    found = db.sources.scripts("item", "log", {"table": "item"})
    assert found == ("create item", "drop item")
    assert logs.servers["one"].followed == set()


# --- exactly once ----------------------------------------------------------------------------


class Killed(BaseException):
    """The process dies here."""


KEYED = st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.sampled_from([0.0, 1.5]))
CHANGES = st.one_of(
    st.builds(
        lambda gone, come: ("item", gone, come),
        st.lists(st.integers(0, 4), max_size=2),
        st.lists(KEYED, max_size=2, unique_by=lambda row: row[0]),
    ),
    st.builds(lambda come: ("bag", [], come), st.lists(KEYED, max_size=2)),
    st.just(("bag-", [], [])),
    st.just(("truncate", [], [])),
)
STEPS = st.lists(
    st.one_of(
        st.lists(CHANGES, min_size=1, max_size=2),
        st.sampled_from(["due", "step", "refresh", "reopen", "kill"]),
        st.tuples(st.just("kill at"), st.integers(0, 12)),
    ),
    max_size=14,
)


def transaction(server: Server, changes: list[tuple[str, list[int], list[Row]]]) -> None:
    made: dict[str, TableChange] = {}
    for what, gone, come in changes:
        if what == "item":
            new = {row[0] for row in come}
            minus = [(i, None, None) for i in gone if i not in new]
            made["item"] = TableChange("item", minus=minus, plus=come)
        elif what == "bag":
            made["bag"] = TableChange("bag", plus=come)
        elif what == "bag-" and server.tables["bag"].rows:
            made["bag"] = TableChange("bag", minus=[server.tables["bag"].rows[0]])
        elif what == "truncate":
            made["item"] = dataclasses.replace(
                made.get("item", TableChange("item")), truncated=True
            )
    server.run(*made.values())


@settings(max_examples=25)
@given(STEPS)
def test_every_change_arrives_once_whatever_dies(
    tmp_path_factory: pytest.TempPathFactory, steps: list[object]
) -> None:
    kind, clock = ToyServerKind(), Clock()
    register_kind(kind)
    path = tmp_path_factory.mktemp("followed") / "a.db"
    kind.table("item", [(1, "a", 0.0)], "id")
    kind.table("bag", [(1, "a", 0.0), (1, "a", 0.0)])
    server = kind.servers["one"]
    db = harken.connect(path, clock=clock)
    for each in ("item", "bag"):
        make(db, each)
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT name, count(*) c FROM bag GROUP BY name")
    seen: Counter[Row] = mirror(db, "item")
    changes = db.monitor("item", durable="seen")

    def collect() -> None:
        for change in changes.changes():
            seen.update(change.plus)
            seen.subtract(change.minus)
        changes.acknowledge()

    def work(how: object) -> None:
        clock.forward(2_000)
        if how == "due":
            db.run_due()
        elif how == "step":
            db.step()
        elif how == "refresh":
            db.sources.refresh("item")

    def reopen() -> None:
        nonlocal db, changes
        db.internals.connection.rollback()
        db.internals.connection.close()
        db = harken.connect(path, clock=clock)
        changes = db.monitor("item", durable="seen")

    for step in steps:
        match step:
            case list():
                transaction(server, step)
            case "reopen" | "kill":
                reopen()
            case ("kill at", int(number)):
                _die(server, db, number, work)
                reopen()
            case _:
                work(step)
        collect()
    work("due")
    work("step")
    collect()
    assert mirror(db, "item") == Counter(server.tables["item"].rows)
    assert mirror(db, "bag") == Counter(server.tables["bag"].rows)
    assert +seen == mirror(db, "item")
    totals = Counter(row[1] for row in server.tables["bag"].rows)
    assert Counter(dict(db.sql("SELECT * FROM total").rows)) == totals
    db.close()
    del OF_USERS[kind.name]


def _die(server: Server, db: harken.Database, number: int, work: Callable[[object], None]) -> None:
    """Let the session die at its n-th commit or reading."""
    left = [number]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    connection = db.internals.connection
    commit = connection.commit

    def dying() -> None:
        count()
        commit()
        count()

    connection.commit, server.crash = dying, count
    try:
        work("due" if number % 2 else "step")
    except Killed:
        pass
    finally:
        connection.commit, server.crash = commit, lambda where: None
