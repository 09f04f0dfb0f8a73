"""`harken watch`: each line of the file of changes is answered, whatever the strategy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from harken.cli import app, running
from harken.engines import fetch_limits as limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOSURE = """
.decl edge(x: symbol, y: symbol)
.decl closure(x: symbol, y: symbol)
.decl unseen(x: symbol)
.input edge
.output closure
.monitor unseen
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
unseen(x) :- edge(x, _), !closure("f", x).
"""
FACTS = "f\te\ne\td\ne\ta\na\tb\nd\tc\nb\tc\nc\tg\n"
STRATEGIES = ["auto", "external", "materialized", "naive"]


def watched(
    tmp_path: Path,
    program: str,
    suffix: str,
    *lines: str,
    strategy: str = "auto",
    engine: str = "resident",
):
    (tmp_path / f"p{suffix}").write_text(program)
    (tmp_path / "edge.facts").write_text(FACTS)
    changes = tmp_path / "changes.jsonl"
    changes.write_text("\n".join(lines))
    options = ["--changes", str(changes), "-F", str(tmp_path)]
    options += ["--strategy", strategy, "--engine", engine]
    result = CliRunner().invoke(app, ["watch", str(tmp_path / f"p{suffix}"), *options])
    told = [json.loads(line) for line in result.stdout.splitlines()]
    return result, told


@pytest.mark.parametrize(
    ("strategy", "engine"),
    [*((strategy, "resident") for strategy in STRATEGIES), ("auto", "lake")],
)
def test_each_transaction_is_answered(tmp_path: Path, strategy: str, engine: str) -> None:
    result, told = watched(
        tmp_path,
        CLOSURE,
        ".dl",
        '{"insert":{"edge":[["h","d"]]},"delete":{"edge":[["b","c"]]}}',
        "",
        '{"insert":{"edge":[["h","d"]]}}',
        '{"delete":{"edge":[["h","d"]]}}',
        strategy=strategy,
        engine=engine,
    )
    assert result.exit_code == 0
    assert sorted(told[:2], key=lambda each: each["view"]) == [
        {
            "kind": "change",
            "view": "closure",
            "plus": [["h", "c"], ["h", "d"], ["h", "g"]],
            "minus": [["a", "c"], ["a", "g"], ["b", "c"], ["b", "g"]],
        },
        {"kind": "change", "view": "unseen", "plus": [["h"]], "minus": []},
    ]
    assert told[2:4] == [
        {"kind": "commit", "transaction": 1},
        {"kind": "commit", "transaction": 2},
    ]
    assert {each["kind"] for each in told[4:-1]} == {"change"}
    assert told[-1] == {"kind": "commit", "transaction": 3}


@pytest.mark.parametrize(
    ("line", "place", "code"),
    [
        ('{"insert":{"edge":[["x"', "2:24", "bad-change"),
        ('{"insert":{"edge":[[1,"d"]]}}', "2:12", "type-mismatch"),
        ('{"insert":{"edge":[["d"]]}}', "2:12", "arity"),
        ('{"insert":{"nothing":[["d"]]}}', "2:12", "unknown-relation"),
        ('{"insert":{"closure":[["d","e",[1]]]}}', "2:12", "bad-change"),
        ('{"upsert":{}}', "2:2", "bad-change"),
        ('{"insert":[]}', "2:2", "bad-change"),
        ('{"insert":{},"insert":{}}', "2:2", "bad-change"),
        ('{"insert":{"edge":[["x",null]]}}', "2:12", "bad-value"),
        ("[]", "2:1", "bad-change"),
        ("[" * 100_000, "2:1", "bad-change"),
        ('{"insert":{"edge":[[' + "9" * 5000 + "]]}}", "2:1", "bad-change"),
    ],
)
def test_a_bad_line_is_named_and_what_was_before_it_stays(
    tmp_path: Path, line: str, place: str, code: str
) -> None:
    result, told = watched(tmp_path, CLOSURE, ".dl", '{"insert":{"edge":[["q","r"]]}}', line)
    assert result.exit_code == 1
    assert f"changes.jsonl:{place}: [{code}]" in result.stderr
    assert told[-2] == {"kind": "commit", "transaction": 1}
    assert told[-1]["kind"] == "error"


def test_lines_after_a_bad_one_are_done(tmp_path: Path) -> None:
    lines = ("nonsense", '{"insert":{"edge":[["q","r"]]}}', '{"insert":{"edge":[["q"]]}}', "")
    lines += ('{"delete":{"edge":[["q","r"]]}}',)
    result, told = watched(tmp_path, CLOSURE, ".dl", *lines)
    assert result.exit_code == 1
    kinds = [each["kind"] for each in told if each["kind"] != "change"]
    assert kinds == ["error", "commit", "error", "commit"]
    assert [each["line"] for each in told if each["kind"] == "error"] == [1, 3]
    assert [each["transaction"] for each in told if each["kind"] == "commit"] == [1, 2]


def test_bytes_that_are_no_text_are_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl e(x: number) .output e")
    changes = tmp_path / "changes.jsonl"
    changes.write_bytes(b'\xef\xbb\xbf{"insert":{"e":[[1]]}}\n\xff\n{"insert":{"e":[[2]]}}\n')
    result = CliRunner().invoke(app, ["watch", str(tmp_path / "p.dl"), "--changes", str(changes)])
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["kind"] for each in told] == ["change", "commit", "error", "change", "commit"]
    assert told[2]["code"] == "not-utf-8"


def test_strict_ends_at_the_first_bad_line(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl e(x: number) .output e")
    changes = tmp_path / "changes.jsonl"
    changes.write_text('nonsense\n{"insert":{"e":[[2]]}}\n')
    options = ["--changes", str(changes), "--strict"]
    result = CliRunner().invoke(app, ["watch", str(tmp_path / "p.dl"), *options])
    assert result.exit_code == 1
    assert [json.loads(line)["kind"] for line in result.stdout.splitlines()] == ["error"]


def test_all_of_a_line_or_nothing(tmp_path: Path) -> None:
    lines = ('{"insert":{"edge":[["q","r"],["s"]]}}',)
    result, told = watched(tmp_path, CLOSURE, ".dl", *lines)
    assert result.exit_code == 1
    assert [each["kind"] for each in told] == ["error"]


def test_views_of_sql_are_watched(tmp_path: Path) -> None:
    result, told = watched(
        tmp_path,
        "create table t (a int, b string);"
        "create view v as select b, count(*) as n from t group by b;"
        "insert into t values (1, 'x');",
        ".sql",
        '{"insert":{"t":[[2,"it\'s"],[3,null]]},"delete":{"t":[[1,"x"]]}}',
    )
    assert result.exit_code == 0, result.stderr
    assert told == [
        {"kind": "change", "view": "v", "plus": [[None, 1], ["it's", 1]], "minus": [["x", 1]]},
        {"kind": "commit", "transaction": 1},
    ]


def test_of_equal_rows_one_is_deleted(tmp_path: Path) -> None:
    result, told = watched(
        tmp_path,
        "CREATE TABLE sale (shop STRING, n INT);\n"
        "CREATE VIEW sold AS SELECT shop, sum(n) AS s FROM sale GROUP BY shop;",
        ".sql",
        '{"insert":{"sale":[["a",1],["a",1],["a",1]]}}',
        '{"delete":{"sale":[["a",1],["b",2]]}}',
    )
    assert result.exit_code == 0
    changes = [(each["plus"], each["minus"]) for each in told if each["kind"] == "change"]
    assert changes == [([["a", 3]], []), ([["a", 2]], [["a", 3]])]


def test_a_program_without_views_to_watch_is_reported(tmp_path: Path) -> None:
    result, told = watched(tmp_path, ".decl edge(x: symbol, y: symbol)", ".dl", "{}")
    assert [each["kind"] for each in told] == ["commit"]
    assert "has no views to watch" in result.stderr


def test_a_view_over_the_clock_is_watched_with_a_warning(tmp_path: Path) -> None:
    program = "CREATE TABLE e (at TIMESTAMP); CREATE VIEW late AS SELECT now() AS n FROM e"
    result, _ = watched(tmp_path, program, ".sql")
    assert result.exit_code == 0, result.stderr
    assert "late: it depends on now() in a way " in result.stderr
    assert "[warning]" in result.stderr


def test_derived_functions_of_amosql_are_watched(tmp_path: Path) -> None:
    result, told = watched(
        tmp_path,
        "create function quantity(integer i) -> integer;"
        "create function low() -> bag of integer as"
        " select i for each integer i where quantity(i) < 5;"
        "create function twice(integer i) -> integer as select 2 * i;",
        ".amosql",
        '{"insert":{"quantity":[[2,3],[3,9]]}}',
        '{"insert":{"quantity":[[3,1]]},"delete":{"quantity":[[2,3]]}}',
    )
    assert result.exit_code == 0, result.stderr
    assert told == [
        {"kind": "change", "view": "low", "plus": [[2]], "minus": []},
        {"kind": "commit", "transaction": 1},
        {"kind": "change", "view": "low", "plus": [[3]], "minus": [[2]]},
        {"kind": "commit", "transaction": 2},
    ]


def test_relations_in_the_lake_are_watched_with_spark(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def session() -> SparkSession:
        asked.append(spark)
        return spark

    monkeypatch.setattr(running, "command_line_spark", session)
    for limit in ("SMALL", "MOST_ROWS", "CACHE_ROWS"):
        monkeypatch.setattr(limits, limit, 0)
    result, told = watched(
        tmp_path,
        ".decl edge(x: symbol, y: symbol)\n.decl end(x: symbol)\n.monitor end\n.input edge\n"
        "end(y) :- edge(_, y), !edge(y, _).",
        ".dl",
        '{"insert":{"edge":[["g","h"]]},"delete":{"edge":[["b","c"]]}}',
        strategy="naive",
        engine="lake",
    )
    assert result.exit_code == 0, result.stderr
    assert told == [
        {"kind": "change", "view": "end", "plus": [["b"], ["h"]], "minus": [["g"]]},
        {"kind": "commit", "transaction": 1},
    ]
    assert asked, "Spark was not needed"


FACTS_OF_ALL_KINDS = """
.decl edge(x: number, y: symbol)
.decl start(x: number)
start(x) :- edge(x, _).
.decl weight(w: float)
.decl ready()
.decl size(n: unsigned)
.output start, weight, ready, size
"""


def test_rows_go_into_relations_of_all_kinds_and_beside_rules(tmp_path: Path) -> None:
    """What is stated of a relation with rules, and a relation without attributes, too."""
    result, told = watched(
        tmp_path,
        FACTS_OF_ALL_KINDS,
        ".dl",
        '{"insert":{"edge":[[1,"a\\"\\n"],[1,"b"],[1,"b"]],"start":[[7]],"weight":[[1],[2.5]],'
        '"ready":[[]],"size":[[5]]}}',
        '{"delete":{"edge":[[1,"b"],[9,"z"]],"start":[[7],[1]],"ready":[[]]}}',
    )
    assert result.exit_code == 0
    assert told == [
        {"kind": "change", "view": "start", "plus": [[1], [7]], "minus": []},
        {"kind": "change", "view": "weight", "plus": [[1], [2.5]], "minus": []},
        {"kind": "change", "view": "ready", "plus": [[]], "minus": []},
        {"kind": "change", "view": "size", "plus": [[5]], "minus": []},
        {"kind": "commit", "transaction": 1},
        {"kind": "change", "view": "start", "plus": [], "minus": [[7]]},
        {"kind": "change", "view": "ready", "plus": [], "minus": [[]]},
        {"kind": "commit", "transaction": 2},
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"insert":{"size":[[-5]]}}', "size.n: -5 is below zero"),
        ('{"insert":{"size":[[true]]}}', "size.n: true is not of type unsigned"),
        ('{"insert":{"edge":[[1.5,"a"]]}}', "edge.x: 1.5 is not of type number"),
        ('{"delete":{"weight":[["a"]]}}', 'weight.w: "a" is not of type float'),
        ('{"insert":{"ready":[[1]]}}', "ready has 0 attributes, but a row has 1 value"),
        ('{"insert":{"edge":[[9223372036854775808,"a"]]}}', "edge.x: "),
    ],
)
def test_a_value_of_another_kind_is_named(tmp_path: Path, line: str, message: str) -> None:
    result, _ = watched(tmp_path, FACTS_OF_ALL_KINDS, ".dl", line)
    assert result.exit_code == 1
    assert message in result.stderr


def test_materialized_views_are_watched_as_well(tmp_path: Path) -> None:
    program = "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t;"
    result, told = watched(tmp_path, program, ".sql", '{"insert":{"t":[[5],[5]]}}')
    assert result.exit_code == 0
    assert told == [
        {"kind": "change", "view": "n", "plus": [[2]], "minus": [[0]]},
        {"kind": "commit", "transaction": 1},
    ]
