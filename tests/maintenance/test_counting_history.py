"""Counted derivations: when they are, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

import harken
from harken.calculus.counting import count_derivations
from harken.cli import app
from harken.ir.assemble import assemble
from harken.ir.printer import print_program
from harken.ir.safety import required_inputs
from harken.maintenance import tuning
from harken.maintenance.counting_history import CountingHistory
from harken.maintenance.measurements import Experience
from harken.maintenance.nodes import ViewNode
from harken.maintenance.strategies import Strategy
from harken.propagation.wave import ViewChange

PROGRAM = """
.decl e(x: number, y: number)
.decl p(x: number)
.decl t(x: number, y: number)
p(x) :- e(x, y).
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
"""


def node(db: harken.Database, view: str) -> ViewNode:
    found = db.internals.network.graph.node(f"monitor {view}()")
    assert found is not None
    return found


def told(db: harken.Database) -> list[str]:
    """How the change of each condition is found, from now on."""
    found: list[str] = []
    propagate = db.internals.network.propagate

    def listening(deliver: Callable[[ViewChange], None], *, wants_all: bool = False) -> None:
        def noting(change: ViewChange) -> None:
            found.append(change.strategy)
            deliver(change)

        propagate(noting, wants_all=wants_all)

    db.internals.network.propagate = listening  # type: ignore[method-assign]
    return found


def test_a_set_is_read_from_its_counted_derivations() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        catalog = db.internals.catalog
        relation = db.internals.relation("p")
        assert relation is not None
        program = assemble(relation, (), catalog)
        found = count_derivations(program, required_inputs(program))
        assert found is not None
        reading, derivations = found
        assert print_program(reading) == "p_integer(X0) ←\n  counted p()_integer(X0)"
        assert "e_integer,integer(x, y)" in print_program(derivations.members)
        recursive = db.internals.relation("t")
        assert recursive is not None
        program = assemble(recursive, (), catalog)
        assert count_derivations(program, required_inputs(program)) is None


def test_a_row_goes_with_its_last_derivation() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        db.datalog("e(1, 1). e(1, 2). e(2, 1).")
        view = db.monitor("p", strategy="counting")
        ways = told(db)
        db.datalog("-e(1, 1).")
        assert view.changes() == []
        db.datalog("-e(1, 2). +e(3, 3). +e(3, 4).")
        (change,) = view.changes()
        assert (change.plus, change.minus) == ([(3,)], [(1,)])
        assert set(ways) == {Strategy.COUNTING, "unchanged"} or set(ways) == {Strategy.COUNTING}
        assert "derivations are counted: 2 rows have 3 of them" in str(
            db.explain("p", verbose=True)
        )
        view.close()
        assert "derivations" not in str(db.explain("p", verbose=True))


def test_what_was_counted_is_undone_with_its_transaction() -> None:
    with harken.connect() as db:
        db.datalog(f"{PROGRAM}\n.decl small(x: number)\ne(1, 1).")
        view = db.monitor("p", strategy="counting")
        db.sql("BEGIN")
        db.function("e").add(1, 2)
        db.function("e").add(5, 5)
        db.rollback()
        db.datalog("-e(1, 1).")
        (change,) = view.changes()
        assert (change.plus, change.minus) == ([], [(1,)])


def test_recursion_is_left_to_the_others() -> None:
    """Of a recursive relation nothing is counted; what is not recursive above it is."""
    with harken.connect() as db:
        db.datalog(f"{PROGRAM}\n.decl c(x: number)\nc(x) :- t(x, y), e(y, x).\ne(1, 2).")
        views = {name: db.monitor(name, strategy="counting") for name in ("t", "c")}
        assert node(db, "t").counted is None
        assert node(db, "c").counted is not None
        db.datalog("+e(2, 1).")
        assert {name: len(v.changes()[0].plus) for name, v in views.items()} == {"t": 3, "c": 2}
        db.datalog("-e(1, 2).")
        assert {name: len(v.changes()[0].minus) for name, v in views.items()} == {"t": 3, "c": 2}


def test_auto_counts_when_looking_for_others_has_taken_long() -> None:
    """A clock on which differentials take a second, and all else nothing."""
    with harken.connect() as db:
        db.datalog(PROGRAM)
        db.datalog(" ".join(f"e({x}, {y})." for x in range(5) for y in range(5)))
        view = db.monitor("p")
        counting_history = node(db, "p").counting_history
        assert counting_history is not None
        views = db.internals.network.view_changes
        now = [0.0]
        db.internals.engine.connection.working_time = lambda: now[0]
        found = views.found_change
        counted_takes = [0.0]

        def taking(each: ViewNode, *others: object) -> object:
            change = found(each, *others)  # type: ignore[arg-type]
            now[0] += 1.0 if change.strategy == Strategy.INCREMENTAL else counted_takes[0]
            return change

        views.found_change = taking  # type: ignore[method-assign,assignment]
        for y in (5, 6):  # the first has its plan to make
            db.datalog(f"+e(0, {y}).")
        assert node(db, "p").counting_history is counting_history
        assert counting_history.is_counting
        assert "derivations are counted: 5 rows have 27 of them" in str(
            db.explain("p", verbose=True)
        )
        db.datalog("-e(1, 0). -e(1, 1). -e(1, 2). -e(1, 3). -e(1, 4).")
        (change,) = view.changes()
        assert change.minus == [(1,)]
        counted_takes[0] = 50.0
        for number in range(40):
            db.datalog(f"{'+-'[number % 2]}e(0, 9).")
            if not counting_history.is_counting:
                break
        assert number == tuning.MANY_RUNS - 1
        assert "derivations are not counted" in str(db.explain("p", verbose=True))
        db.datalog("-e(2, 0). -e(2, 1). -e(2, 2). -e(2, 3). -e(2, 4).")
        (change,) = view.changes()
        assert change.minus == [(2,)]


def test_what_differentials_took_is_forgotten_when_they_read_stored_rows() -> None:
    known, case = Experience({}), (Strategy.INCREMENTAL, frozenset({"e"}))
    counting_history = CountingHistory()
    counting_history.experience(lambda: known)
    counting_history.note_differentials(case, 1, 1.0, is_fresh=False)
    assert counting_history.should_start_counting
    counting_history.begin()
    counting_history.notice(frozenset({"t"}))
    assert counting_history.should_stop_counting
    assert not counting_history.took.taken
    counting_history.end()
    assert not counting_history.was_useless
    assert not counting_history.should_start_counting  # not before they have taken long again
    counting_history.notice(frozenset({"t"}))
    assert not counting_history.should_stop_counting


def test_differentials_that_take_little_count_as_well() -> None:
    """Counting is ended where most changes are found sooner without, though some take long."""
    counting_history, (ours, others) = (
        CountingHistory(),
        ((Strategy.COUNTING, frozenset("f")), (Strategy.INCREMENTAL, frozenset("f"))),
    )
    for _ in range(4):
        for seconds in (0.0005, 0.00005, 0.00005, 0.00005):
            counting_history.note_differentials(others, 1, seconds, is_fresh=False)
    counting_history.begin()
    for _ in range(tuning.MANY_RUNS):
        assert not counting_history.should_stop_counting
        counting_history.note_counting(ours, others, 1, 0.00015, is_fresh=False)
    assert counting_history.should_stop_counting


def test_a_way_that_is_settled_is_watched_now_and_then() -> None:
    counting_history, case = CountingHistory(), (Strategy.INCREMENTAL, frozenset("f"))
    watched = 0
    for _ in range(1000):
        if counting_history.is_timed_now():
            watched += 1
            counting_history.note_differentials(case, 1, 0.001, is_fresh=False)
    assert watched < tuning.MANY_RUNS + 1000 / tuning.MANY_RUNS
    assert 0.9 < counting_history.spent < 1.1


def test_where_a_row_has_one_derivation_there_is_no_choice() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE item (name STRING PRIMARY KEY, n INT NOT NULL)")
        db.sql("CREATE VIEW low AS SELECT DISTINCT name FROM item WHERE n < 3")
        db.monitor("low")
        assert node(db, "low").counting_history is None


def test_watch_counts(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(f"{PROGRAM}\n.output p\n")
    lines = [{"insert": {"e": [[1, 1], [1, 2]]}}, {"delete": {"e": [[1, 1]]}}]
    lines.append({"delete": {"e": [[1, 2]]}})
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, lines)))
    options = ["--changes", str(tmp_path / "c.jsonl"), "--strategy", "counting"]
    result = CliRunner().invoke(app, ["watch", str(tmp_path / "p.dl"), *options])
    assert result.exit_code == 0, result.output
    told = [json.loads(line) for line in result.stdout.splitlines()]
    changes = [(each["plus"], each["minus"]) for each in told if each.get("view") == "p"]
    assert changes == [([[1]], []), ([], [[1]])]
