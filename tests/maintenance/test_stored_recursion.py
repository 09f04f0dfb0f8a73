"""What lies above a recursive relation reads its rows where they are stored."""

from __future__ import annotations

import harken
from harken.maintenance.recursive_nodes import RecursiveNode

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl apart(x: number, y: number)
.decl many(x: number, n: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
many(x, n) :- edge(x, _), n = count : { path(x, _) }.
edge(1, 2). edge(2, 3). edge(4, 5).
"""


def rows_of(db: harken.Database, view: str) -> set[tuple[object, ...]]:
    return set(db.datalog(f"?- {view}(x, y).")[-1].rows)


def statements(db: harken.Database, view: str) -> list[str]:
    """Those that find the changes of a view."""
    node = db.internals.network.graph.node(f"monitor {view}()")
    assert node is not None
    queries = [each for plans in node.plans.values() for each in (plans.plus, plans.minus) if each]
    return [query.sql for query in queries]


def test_conditions_read_stored_rows() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        names = ("apart", "many")
        views = {name: db.monitor(name, strategy="materialized") for name in names}
        held = {name: rows_of(db, name) for name in names}
        for change in ("+edge(3, 4).", "-edge(2, 3).", "+edge(2, 3). -edge(1, 2)."):
            db.datalog(change)
            for name, view in views.items():
                for told in view.changes():
                    held[name] = (held[name] - set(told.minus)) | set(told.plus)
                assert held[name] == rows_of(db, name)
        found = statements(db, "apart")
        assert found
        assert all("kept path" in sql for sql in found)
        assert not any("recursion" in sql for sql in found)


def test_rows_that_are_dropped_are_not_read() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        view = db.monitor("apart", strategy="materialized")
        db.datalog("+edge(5, 6).")
        assert any("kept path" in sql for sql in statements(db, "apart"))
        (node,) = (
            n for n in db.internals.network.graph.derived.values() if isinstance(n, RecursiveNode)
        )
        node.kept_rows.drop()
        other = db.monitor("apart", strategy="external")
        db.datalog("+edge(6, 1).")
        assert not any("kept path" in sql for sql in statements(db, "apart"))
        view.changes()
        other.close()
        held = rows_of(db, "apart")
        for change in ("-edge(6, 1).", "-edge(4, 5)."):  # the rows are stored anew, and read again
            db.datalog(change)
            for told in view.changes():
                held = (held - set(told.minus)) | set(told.plus)
            assert held == rows_of(db, "apart")
        assert any("kept path" in sql for sql in statements(db, "apart"))


def test_what_was_undone_is_not_read() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        view = db.monitor("apart", strategy="materialized")
        db.sql("BEGIN")
        db.function("edge").add(3, 1)
        db.rollback()
        held = rows_of(db, "apart")
        db.datalog("+edge(2, 1).")
        for told in view.changes():
            held = (held - set(told.minus)) | set(told.plus)
        assert held == rows_of(db, "apart")


def test_explain_names_the_strategies_and_the_one_in_use() -> None:
    with harken.connect() as db:
        db.datalog(
            ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
            "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
            ".decl few(x: number)\n.limitsize few(n=5)\n"
            "few(x) :- edge(x, _).\nfew(y) :- few(x), edge(x, y)."
        )
        told = str(db.explain("path", verbose=True))
        assert told.startswith("path is a relation with rules\n")
        assert "Strategies for recursion: auto, counting, external, materialized, naive\n" in told
        assert "\npath: external rederives what a change can affect, and stores nothing" in told
        assert "\nin use: none" in told
        with db.monitor("path", strategy="materialized"):
            db.datalog("+edge(1, 2). +edge(2, 3).")
            assert "\nin use: materialized; 3 rows are stored\n" in str(
                db.explain("path", verbose=True)
            )
            with db.monitor("path", where="x = 1", strategy="naive"):
                assert "\nin use: naive; all rows are recomputed at each change" in str(
                    db.explain("path", verbose=True)
                )
        with db.monitor("path", strategy="external"):
            db.datalog("+edge(3, 4).")
            assert "\nin use: external; nothing is stored\n" in str(
                db.explain("path", verbose=True)
            )
        assert "because few has a limit" in str(db.explain("few", verbose=True))
        assert "Strategies" not in str(db.explain("edge", verbose=True))
