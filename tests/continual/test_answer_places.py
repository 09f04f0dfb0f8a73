"""Continual queries that differ in constants alone are one view and a table of constants."""

import pytest

from tests.continual.conftest import Watched

SHARED = "CREATE CONTINUAL QUERY {0} AS SELECT symbol, price FROM stock WHERE company = '{1}'"


def views(watched: Watched) -> list[str]:
    network = watched.db.internals.network
    return [each.name for each in network.graph.views() if each.name.startswith("answer ")]


def install(watched: Watched, *companies: str) -> None:
    for number, company in enumerate(companies):
        watched.sql(SHARED.format(f"q{number}", company) + " TRIGGER EVERY HOUR")


def found(watched: Watched) -> dict[str, list[object]]:
    return {each.query: each.inserted for each in watched.run(hours=1)}


def test_one_view_for_all(watched: Watched) -> None:
    install(watched, "IBM", "SAP", "Bayer AG")
    assert len(views(watched)) == 1
    watched.sql("INSERT INTO stock VALUES ('S', 'SAP', 1), ('I', 'IBM', 2)")
    assert found(watched) == {"q0": [("I", 2.0)], "q1": [("S", 1.0)], "q2": []}


def test_other_constants_or_another_shape(watched: Watched) -> None:
    install(watched, "IBM")
    watched.sql("ALTER CONTINUAL QUERY q0 AS SELECT symbol, price FROM stock WHERE company = 'SAP'")
    watched.sql("INSERT INTO stock VALUES ('S', 'SAP', 1), ('I', 'IBM', 2)")
    assert found(watched) == {"q0": [("S", 1.0)]}
    watched.sql("ALTER CONTINUAL QUERY q0 AS SELECT symbol FROM stock WHERE price > 50")
    watched.sql("INSERT INTO stock VALUES ('T', 'SAP', 70)")
    assert found(watched) == {"q0": [("T",)]}
    assert len(views(watched)) == 1


def test_the_last_one_takes_the_view_with_it(watched: Watched) -> None:
    install(watched, "IBM", "SAP")
    watched.sql("DROP CONTINUAL QUERY q0")
    watched.sql("INSERT INTO stock VALUES ('S', 'SAP', 1), ('I', 'IBM', 2)")
    assert found(watched) == {"q1": [("S", 1.0)]}
    watched.sql("DROP CONTINUAL QUERY q1")
    assert views(watched) == []


def test_a_rollback_restores_the_constants(watched: Watched) -> None:
    install(watched, "IBM", "SAP")
    watched.sql(
        f"BEGIN; DROP CONTINUAL QUERY q0; DROP CONTINUAL QUERY q1; {SHARED.format('x', 'X')};"
        "INSERT INTO stock VALUES ('X', 'X', 1); ROLLBACK"
    )
    watched.sql("INSERT INTO stock VALUES ('S', 'SAP', 1), ('I', 'IBM', 2)")
    assert found(watched) == {"q0": [("I", 2.0)], "q1": [("S", 1.0)]}


def test_another_session_follows_all_of_them(watched: Watched) -> None:
    install(watched, "IBM", "SAP")
    with watched.connect() as other:
        other.sql("INSERT INTO stock VALUES ('S', 'SAP', 1)")
        other.sql(SHARED.format("late", "Late"))
    watched.sql("INSERT INTO stock VALUES ('I', 'IBM', 2), ('L', 'Late', 3)")
    watched.reopen()
    watched.sql("INSERT INTO stock VALUES ('J', 'IBM', 4)")
    assert found(watched) == {"q0": [("I", 2.0), ("J", 4.0)], "q1": [("S", 1.0)]}
    assert watched.run(days=1)[-1].inserted == [("L", 3.0)]


def test_one_that_fails_does_not_make_the_others_wrong(watched: Watched) -> None:
    for number, company in enumerate(("IBM", "Bayer AG")):
        watched.sql(
            f"CREATE CONTINUAL QUERY q{number} AS SELECT symbol, 100 / price AS ratio FROM stock "
            f"WHERE company = '{company}' TRIGGER EVERY HOUR"
        )
    assert len(views(watched)) == 1
    watched.sql("UPDATE stock SET price = 0 WHERE symbol = 'IBM'")
    first, second = watched.run(hours=1)
    assert (first.outcome, second.outcome) == ("error", "unchanged")
    watched.sql("INSERT INTO stock VALUES ('B2', 'Bayer AG', 50)")
    (done,) = (each for each in watched.run(hours=1) if each.query == "q1")
    assert (done.inserted, done.deleted) == ([("B2", 2.0)], [])
    watched.sql("UPDATE stock SET price = 50 WHERE symbol = 'IBM'")
    watched.sql("INSERT INTO stock VALUES ('B3', 'Bayer AG', 10)")
    done_by = {each.query: (each.inserted, each.deleted) for each in watched.run(hours=9)}
    assert done_by["q1"] == ([("B3", 10.0)], [])
    assert done_by["q0"] == ([("IBM", 2.0)], [("IBM", 1.0)])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT company, sum(price) AS total FROM stock WHERE price > {} GROUP BY company",
        "SELECT symbol FROM stock WHERE price > (SELECT avg(price) FROM stock WHERE price > {})",
        "SELECT symbol FROM stock WHERE price > {} UNION SELECT company FROM stock",
    ],
)
def test_queries_of_other_forms_are_shared_as_well(watched: Watched, query: str) -> None:
    for limit in (1, 60):
        watched.sql(f"CREATE CONTINUAL QUERY q{limit} AS {query.format(limit)} TRIGGER EVERY HOUR")
    before = [set(watched.sql(query.format(limit))) for limit in (1, 60)]
    watched.sql("INSERT INTO stock VALUES ('S', 'SAP', 70), ('T', 'IBM', 30)")
    after = [set(watched.sql(query.format(limit))) for limit in (1, 60)]
    for done, old, new in zip(watched.run(hours=1), before, after, strict=True):
        assert (set(done.inserted), set(done.deleted)) == (new - old, old - new)
    assert len(views(watched)) == 1


def test_the_cost_of_a_change_does_not_grow_with_queries_it_does_not_concern(
    watched: Watched,
) -> None:
    raw = watched.db.internals.connection.raw

    def rows_written() -> int:
        watched.sql("UPDATE stock SET price = price + 1 WHERE symbol = 'IBM'")
        before = raw.total_changes()
        for _ in range(3):
            watched.sql("UPDATE stock SET price = price + 1 WHERE symbol = 'IBM'")
        return int(raw.total_changes() - before)

    install(watched, "IBM", *(f"C{n}" for n in range(3)))
    watched.run(hours=1)
    few = rows_written()
    for n in range(40):
        watched.sql(SHARED.format(f"more{n}", f"D{n}"))
    watched.run(hours=1)
    assert rows_written() < few + 30
    assert len(views(watched)) == 1
