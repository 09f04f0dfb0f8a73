"""Statements that take too much are stopped with an error of ours, and the session goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import harken
from harken.errors import HarkenError, LimitFault
from harken.lang.sql.strict_parser import StrictParser
from harken.limits import UNLIMITED, Watch

BOMBS = {
    "cross join": "SELECT count(*) FROM n a, n b, n c, n d, n e, n f",
    "recursion": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 9e8) "
    "SELECT count(*) FROM r",
    "levenshtein": "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    "instr": "SELECT locate(concat(repeat('a', 2000000), 'b'), repeat('a', 6000000)) FROM n a, n b",
    "backtracking": "SELECT count(*) FROM n WHERE concat(repeat('x', 5000), '-y') RLIKE "
    r"'(x*)(x*)(x*)\\1\\2\\3y'",
}


def numbers(**settings: Any) -> harken.Database:
    db = harken.connect(settings=settings)
    db.sql("CREATE TABLE n (i INT)")
    db.load("n", [(i,) for i in range(300)])
    return db


def refused(work: Callable[[], object]) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        work()
    return caught.value


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_statement_that_takes_too_long_is_stopped(bomb: str) -> None:
    with numbers(statement_timeout=0.2) as db:
        error = refused(lambda: db.sql(bomb))
        assert isinstance(error, LimitFault)
        assert error.code == "timeout"
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]


def test_what_a_stopped_statement_had_written_is_undone() -> None:
    with numbers(statement_timeout=0.2) as db:
        error = refused(lambda: db.sql("INSERT INTO n SELECT a.i FROM n a, n b, n c, n d, n e"))
        assert error.code == "timeout"
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]
        db.sql("INSERT INTO n VALUES (1)")
        assert db.sql("SELECT count(*) FROM n").rows == [(301,)]


def test_a_recursion_leaves_no_rows_behind_when_it_is_stopped() -> None:
    with numbers(statement_timeout=0.2) as db:
        db.sql(
            "CREATE VIEW r AS WITH RECURSIVE r(i) AS (SELECT i FROM n WHERE i = 1 UNION "
            "SELECT i + 1 FROM r WHERE i < 900000000) SELECT i FROM r"
        )
        assert refused(lambda: db.sql("SELECT count(*) FROM r")).code == "timeout"
        db.sql("DELETE FROM n")
        assert db.sql("SELECT count(*) FROM r").rows == [(0,)]


def test_an_endless_recursion_of_datalog_is_stopped() -> None:
    with harken.connect(settings={"statement_timeout": 0.3}) as db:
        program = ".decl s(x: number) s(1). s(x + 1) :- s(x). ?- s(x)."
        assert refused(lambda: db.datalog(program)).code == "timeout"


@pytest.mark.parametrize("language", ["sql", "datalog", "amosql"])
def test_a_text_that_doubles_without_end_is_an_error(language: str) -> None:
    programs = {
        "sql": "WITH RECURSIVE r(t) AS (SELECT 'ab' UNION ALL SELECT t || t FROM r) "
        "SELECT max(length(t)) FROM r",
        "datalog": '.decl s(x: symbol) s("ab"). s(cat(x, x)) :- s(x). ?- s(x).',
        "amosql": "create function twice(charstring s) -> charstring as select s + s;"
        'select length(t) for each charstring t where t in tclose(twice, "ab");',
    }
    with harken.connect(settings={"text_limit": 1_000_000}) as db:
        error = refused(lambda: getattr(db, language)(programs[language]))
        assert error.code in ("bad-value", "overflow")
        assert db.sql("SELECT 1").rows == [(1,)]


def test_a_query_of_too_many_rows_is_refused_while_they_come() -> None:
    with numbers(row_limit=10_000) as db:
        assert refused(lambda: db.sql("SELECT a.i FROM n a, n b, n c, n d")).code == "row-limit"
        assert db.sql("SELECT count(*) FROM n a, n b").rows == [(90_000,)]


@pytest.mark.parametrize(
    "bomb",
    [
        "SELECT string_agg(repeat('x', 100000), ',') FROM n a, n b",
        "SELECT repeat('x', 100000 + a.i) FROM n a, n b",
        "SELECT a.i, b.i FROM n a, n b, n c",
    ],
)
def test_what_needs_too_much_memory_is_refused(bomb: str) -> None:
    with numbers(memory_limit=64 * 2**20) as db:
        assert refused(lambda: db.sql(bomb)).code == "memory-limit"
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]


def test_replacing_cannot_make_an_endless_text() -> None:
    with numbers() as db:
        for call in ("replace", "regexp_replace"):
            bomb = f"SELECT {call}(repeat('a', 1000000), 'a', repeat('b', 1000000))"
            assert refused(lambda bomb=bomb: db.sql(bomb)).code in ("overflow", "bad-value")


def test_a_running_statement_is_cancelled_from_another_thread() -> None:
    with numbers() as db:
        running = threading.Event()
        done: list[HarkenError] = []
        db.foreign("begun", lambda: running.set())

        def work() -> None:
            db.amosql("begun();")
            done.append(refused(lambda: db.sql(BOMBS["cross join"])))

        thread = threading.Thread(target=work)
        thread.start()
        running.wait()
        while thread.is_alive():
            db.cancel()
            thread.join(0.01)
        assert done[0].code == "cancelled"
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]


def test_cancelling_nothing_does_nothing() -> None:
    with numbers() as db:
        assert not db.cancel()
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]


def test_what_is_cancelled_before_its_commit_is_not_committed() -> None:
    watch = Watch(UNLIMITED)
    with watch.statement():
        assert watch.cancel("enough")
        with pytest.raises(LimitFault, match="enough"):
            watch.begin_commit()


def test_what_is_cancelled_during_its_commit_is_committed() -> None:
    watch = Watch(UNLIMITED)
    with watch.statement():
        watch.begin_commit()
        assert not watch.cancel("too late")
        watch.end_commit()


def test_waiting_for_another_writer_counts(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as one:
        one.sql("CREATE TABLE t (a INT)")
        with harken.connect(path, timeout=100, settings={"statement_timeout": 0.2}) as other:
            one.sql("BEGIN; INSERT INTO t VALUES (1)")
            assert refused(lambda: other.sql("INSERT INTO t VALUES (2)")).code == "timeout"
            one.sql("COMMIT")
            other.sql("INSERT INTO t VALUES (3)")
            assert other.sql("SELECT a FROM t ORDER BY a").rows == [(1,), (3,)]


def test_a_foreign_function_that_hangs_is_left_behind() -> None:
    with numbers(statement_timeout=0.2) as db:
        db.amosql('create function hang(integer i) -> integer as foreign "foreign_functions:hang";')
        db.amosql("commit;")
        assert refused(lambda: db.amosql("select hang(1);")).code == "timeout"
        assert refused(lambda: db.amosql("select hang(1);")).code == "timeout"
        assert db.sql("SELECT count(*) FROM n").rows == [(300,)]


def test_settings_are_set_and_shown_in_sql() -> None:
    with numbers() as db:
        assert db.sql("SHOW statement_timeout").rows[0][:3] == ("statement_timeout", "0", "seconds")
        db.sql("SET statement_timeout = 0.2")
        assert db.settings["statement_timeout"] == 0.2
        assert refused(lambda: db.sql(BOMBS["cross join"])).code == "timeout"
        db.sql("SET statement_timeout TO '0'; set row_limit=10")
        assert [row[0] for row in db.sql("SHOW SETTINGS").rows] == list(db.settings)
        assert db.sql("SHOW row_limit").rows[0][1] == "10"
        error = refused(lambda: db.sql("SELECT 1; SET statement_timout = 5"))
        assert error.hint == "did you mean statement_timeout?"
        assert error.column == 11
        assert refused(lambda: db.sql("SET row_limit = many")).code == "bad-value"


@pytest.mark.parametrize("seconds", [0, 30])
@pytest.mark.parametrize("separate", [True, False])
def test_a_memory_limit_can_be_taken_back(seconds: float, separate: bool) -> None:
    """SET runs under the old limit; it used to fail, or to leave the limit to other sessions."""
    statements = ["SET memory_limit = 100000", "SELECT 1 AS a", "SET memory_limit = 0"]
    with harken.connect(settings={"statement_timeout": seconds}) as db:
        for text in statements if separate else ["; ".join(statements)]:
            db.sql(text)
        assert apsw.hard_heap_limit(-1) == 0
        db.sql("SET memory_limit = 10")
        for _ in range(2):
            with pytest.raises(LimitFault):
                db.sql("SELECT 1 AS a")
        db.sql("SET memory_limit = 0")
        assert db.sql("SELECT 1 AS a").rows == [(1,)]
        with harken.connect() as other:
            assert other.sql("SELECT 2 AS a").rows == [(2,)]


def test_a_memory_limit_counts_for_the_next_statement_of_its_text() -> None:
    with harken.connect() as db:
        with pytest.raises(LimitFault):
            db.sql("SET memory_limit = 10; SELECT 1 AS a")
        db.sql("SET memory_limit = 0; SELECT 1 AS a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text_limit", 10**12),
        ("text_limit", "99999999999"),
        ("text_limit", 0),
        ("memory_limit", 2**63),
        ("row_limit", 10**400),
        ("statement_timeout", float("inf")),
        ("statement_timeout", "1e400"),
        ("outbox_alarm", 2),
        ("max_streams", 2**40),
        ("lake_roots", [5]),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(name: str, value: object) -> None:
    error = refused(lambda: harken.connect(settings={name: value}))
    assert error.code == "bad-value"
    assert name in error.message
    assert error.hint is not None
    assert " from " in error.hint or "paths" in error.hint


def test_a_relative_root_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with harken.connect(settings={"lake_roots": "data:s3://sales"}) as db:
        monkeypatch.chdir("/")
        assert db.settings["lake_roots"] == (str(tmp_path / "data"), "s3://sales")


def test_settings_can_be_assigned() -> None:
    with harken.connect() as db:
        db.settings.row_limit = 6
        assert db.settings["row_limit"] == db.settings.row_limit == 6
        assert refused(lambda: db.sql("SELECT id FROM range(10)")).code == "row-limit"
        db.settings["row_limit"] = 20
        assert len(db.sql("SELECT id FROM range(10)").rows) == 10
        error = refused(lambda: setattr(db.settings, "row_limt", 6))
        assert (error.code, error.hint) == ("bad-value", "did you mean row_limit?")
        assert refused(lambda: setattr(db.settings, "row_limit", "many")).code == "bad-value"
        db.settings.memory_limit = 10  # the connection is told, too
        assert refused(lambda: db.sql("SELECT 1 AS a")).code == "memory-limit"
        db.settings.memory_limit = 0
        assert not hasattr(db.settings, "row_limt")


def test_default_is_the_value_that_the_session_began_with() -> None:
    with harken.connect(settings={"row_limit": 7}) as db:
        db.sql("SET row_limit = 3; SET row_limit = default")
        assert db.settings.row_limit == 7
        assert refused(lambda: db.sql("SET row_limt = DEFAULT")).hint == "did you mean row_limit?"


def test_rows_inside_a_query_do_not_count() -> None:
    with numbers(row_limit=1000) as db:
        assert db.sql("SELECT count(*) AS n FROM range(20000)").rows == [(20_000,)]
        assert len(db.sql("SELECT id % 3 AS k FROM range(5000) GROUP BY id % 3").rows) == 3
        db.settings.memory_limit = 2**20
        assert refused(lambda: db.sql("SELECT count(*) AS n FROM range(10000000)")).code == (
            "memory-limit"
        )


@pytest.mark.parametrize(
    "expression",
    [
        "+".join(["1"] * 200_000),
        " OR ".join(["1 = 1"] * 50_000),
        "(" + " || ".join(["concat('a', 'b')"] * 50_000) + ")",
        "CASE " + "WHEN 1 = 2 THEN 3 " * 50_000 + "END",
    ],
    ids=["sum", "or", "calls", "case"],
)
def test_an_expression_of_too_many_operators_is_refused_before_it_is_parsed(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with numbers(operator_limit=500) as db:
        with monkeypatch.context() as patch:
            patch.setattr(StrictParser, "parse", lambda *_, **__: pytest.fail("it was parsed"))
            error = refused(lambda: db.sql(f"SELECT {expression} AS a"))
        assert error.code == "too-complex"
        values = ", ".join(f"(-{i})" for i in range(2000))
        db.sql(f"INSERT INTO n VALUES {values} -- {'+' * 1000}")
        many = ", ".join(map(str, range(2000)))
        assert db.sql(f"SELECT count(*) AS c FROM n WHERE i IN ({many})").rows == [(301,)]
