"""Texts that are no programs: cut off, a word lost, strange characters, numbers too long, nesting
too deep.

Law: the outcome is a result or an error of ours that can be printed and points into the text, never
another exception, and the session works as before.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import pytest

import harken
from tests.generators.statements import (
    AMOSQL,
    AMOSQL_SCHEMA,
    DATALOG,
    DATALOG_SCHEMA,
    SQL,
    SQL_SCHEMA,
)

LANGUAGES = {
    "sql": (SQL_SCHEMA, SQL),
    "amosql": (AMOSQL_SCHEMA, AMOSQL),
    "datalog": (DATALOG_SCHEMA, DATALOG),
}
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|->|<>|:-|::|[<>!]=|\S")
ODD = ("\0", "\ud800", "\ufeff", "²", "١", "😀", "``", "'", '"', "\\", ";", "(", "é", "$")
ODD += ("{x}", "?", ":x", "@")
LONG = ("9" * 19, "9" * 40, "9" * 5000, "0" * 5000, "1e" + "9" * 5000, "." + "1" * 5000)
NESTED = 20_000
ALL = [(language, text) for language, (_, texts) in LANGUAGES.items() for text in texts]


def outcome(db: harken.Database, language: str, text: str) -> harken.HarkenError | None:
    """Run a text, undo it, and give the error of ours that it met; others go through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with db.transaction():
                getattr(db, language)(text)
                raise Undone
        except Undone:
            return None
        except harken.HarkenError as error:
            return error


class Undone(Exception):
    """Ends a transaction that is not kept."""


def check(db: harken.Database, language: str, text: str) -> None:
    error = outcome(db, language, text)
    if error is not None:
        error.report("file").encode()
        assert error.code != "internal", text
        assert error.span is None or 0 <= error.span.start <= len(error.text or text), text


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, harken.Database]]:
    made = {language: harken.connect() for language in LANGUAGES}
    for language, (schema, _) in LANGUAGES.items():
        getattr(made[language], language)(schema)
        made[language].commit()
    yield made
    for db in made.values():
        assert db.sql("SELECT 1").rows == [(1,)]
        db.close()


@pytest.mark.parametrize(("language", "text"), ALL)
def test_the_statements_themselves_are_right(language: str, text: str) -> None:
    with harken.connect() as db, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(db, language)(LANGUAGES[language][0])
        getattr(db, language)(text)


def without_one_word(text: str) -> Iterator[str]:
    for token in TOKEN.finditer(text):
        yield text[: token.start()] + text[token.end() :]


def cut_off(text: str) -> Iterator[str]:
    for token in TOKEN.finditer(text):
        yield text[: token.start()]
        yield text[: token.end() - 1]


def with_one_word(text: str, words: tuple[str, ...], every: int) -> Iterator[str]:
    """Each word instead of another, at every few positions."""
    places = list(TOKEN.finditer(text))
    for number, token in enumerate(places[::every]):
        word = words[number % len(words)]
        yield text[: token.start()] + word + text[token.end() :]


@pytest.mark.parametrize(("language", "text"), ALL)
def test_a_damaged_statement(
    sessions: dict[str, harken.Database], language: str, text: str
) -> None:
    damaged = [*cut_off(text), *without_one_word(text)]
    damaged += [*with_one_word(text, ODD, 2), *with_one_word(text, LONG, 2)]
    for each in dict.fromkeys(damaged):
        check(sessions[language], language, each)


@pytest.mark.parametrize("number", LONG)
def test_long_numbers(sessions: dict[str, harken.Database], number: str) -> None:
    sql = (
        *("SELECT {}", "SELECT -{}", "SELECT CAST({} AS STRING)", "SELECT CAST('{}' AS INT)"),
        *("SELECT CAST('{}' AS DECIMAL(38, 2))", "SELECT CAST('{}' AS DOUBLE)"),
        *("SELECT a FROM t LIMIT {}", "SELECT a FROM t OFFSET {}", "SELECT a FROM t ORDER BY {}"),
        *("SELECT a FROM t GROUP BY {}", "SELECT DATE '2024-01-01' + INTERVAL {} DAY"),
        *("SELECT DATE '2024-01-01' + INTERVAL '{}' DAY", "SELECT CAST(1 AS DECIMAL({}))"),
        *("SELECT CAST(1 AS DECIMAL(9, {}))", "SELECT lag(a, {}) OVER (ORDER BY a) FROM t"),
        *("SELECT ntile({}) OVER (ORDER BY a) FROM t", "SELECT a FROM t WHERE a = '{}'"),
        "SELECT sum(a) OVER (ORDER BY a ROWS {} PRECEDING) FROM t",
        "SELECT sum(a) OVER (ORDER BY d RANGE INTERVAL '{}' DAY PRECEDING) FROM t",
        *("SELECT round(1.5, {})", "INSERT INTO t (a) VALUES ({})", "SELECT DATE '{}-01-01'"),
    )
    datalog = (
        *("e({}, 1).", ".decl f(x: float) f({}).", ".decl f(x: unsigned) f({}).", "?- e({}, _)."),
        *(".limitsize e(n={})", '.decl f(x: number) f(to_number("{}")). .output f'),
    )
    amosql = ("select {};", "set quantity(:a) = {};", "select i for each item i where {} = 1;")
    for language, texts in {"sql": sql, "datalog": datalog, "amosql": amosql}.items():
        for text in texts:
            check(sessions[language], language, text.format(number))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sql", "SELECT " + "(" * NESTED + "1" + ")" * NESTED),
        ("sql", "SELECT " + "NOT " * NESTED + "true"),
        ("sql", "SELECT " + "CASE WHEN true THEN " * NESTED),
        ("sql", "SELECT " + "1 + " * NESTED + "1"),
        ("sql", "(" * NESTED),
        ("amosql", "select " + "(" * NESTED + "1" + ")" * NESTED + ";"),
        ("amosql", "select " + "-" * NESTED + "1;"),
        ("datalog", ".decl f(x: number) f(" + "(" * NESTED + "1" + ")" * NESTED + ")."),
        ("datalog", "?- " + "!" * NESTED + "e(x, y)."),
    ],
)
def test_deep_nesting(sessions: dict[str, harken.Database], language: str, text: str) -> None:
    check(sessions[language], language, text)


def test_half_of_a_surrogate_pair_is_named(sessions: dict[str, harken.Database]) -> None:
    for language, text in (
        ("sql", "SELECT 1 AS \ud800"),
        ("amosql", "create type \ud800;"),
        ("datalog", ".decl a(x: symbol) // \ud800"),
    ):
        error = outcome(sessions[language], language, text)
        assert error is not None
        assert error.code == "bad-value"
        assert "surrogate" in error.message
        assert "?" in error.report()


def test_a_decimal_that_does_not_fit() -> None:
    with harken.connect() as db:
        for value in ("1", "1.5", "1000000000"):
            with pytest.raises(harken.HarkenError) as caught:
                db.sql(f"SELECT CAST({value} AS DECIMAL(38, 30))")
            assert caught.value.code == "overflow"
        assert db.sql("SELECT CAST(1.005 AS DECIMAL(9, 2)) AS x").rows[0][0].as_tuple().digits
