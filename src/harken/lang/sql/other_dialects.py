"""What people bring along from other systems, and what to write here instead.

Law: nothing here changes what a statement means; it only chooses the words of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from harken.errors import nearest

_RULES = "a rule acts when a condition comes true: `create rule` in AMOSQL, docs/rules.md"
_FOLLOW = "db.monitor(view) in Python, `harken serve` and `harken run --format json` tell changes"
_SHELL = "that is a command of the shell: harken shell"
_FILE = "a database is a file: --db FILE, or harken.connect(FILE)"
_KEEP = "CREATE MATERIALIZED VIEW keeps the rows of a query, and follows every commit"
_PYTHON = "db.foreign(name, function) makes a function of Python one of SQL; or write it in AMOSQL"
_LAKE = "CREATE TABLE name KEY (columns) USING csv LOCATION 'directory' reads files"
_LOAD = f"{_LAKE}; a project's seeds and db.load bring rows once"
_CONFLICT = "INSERT INTO ... ON CONFLICT (key) DO UPDATE SET ... changes rows that are there"
_ISOLATED = "transactions are serialisable as they are: BEGIN, COMMIT, ROLLBACK"

STATEMENTS: dict[tuple[str, ...], str] = {
    ("CREATE", "TRIGGER"): _RULES,
    ("CREATE", "RULE"): _RULES,
    ("CREATE", "EVENT"): _RULES,
    ("CREATE", "FUNCTION"): _PYTHON,
    ("CREATE", "PROCEDURE"): _PYTHON,
    ("CREATE", "AGGREGATE"): _PYTHON,
    ("CREATE", "SEQUENCE"): "give each row its key, uuid() perhaps",
    ("CREATE", "DATABASE"): _FILE,
    ("CREATE", "SCHEMA"): "there is one schema, default; " + _FILE,
    ("CREATE", "USER"): "whoever may read and write the file may read and write all of it",
    ("CREATE", "ROLE"): "whoever may read and write the file may read and write all of it",
    ("CREATE", "TYPE"): "types of objects are made in AMOSQL: create type t properties (...)",
    ("CREATE", "DOMAIN"): "say CHECK (...) behind the column; CREATE DOMAIN name OVER a, b groups "
    "relations",
    ("CREATE", "EXTENSION"): _PYTHON,
    ("CREATE", "CONTINUOUS"): _KEEP,
    ("CREATE", "LIVE"): _KEEP,
    ("CREATE", "INCREMENTAL"): _KEEP,
    ("CREATE", "DYNAMIC"): _KEEP,
    ("CREATE", "STREAMING"): _KEEP,
    ("CREATE", "STREAM"): "a table takes rows as they come; " + _FOLLOW,
    ("CREATE", "SUBSCRIPTION"): _FOLLOW,
    ("CREATE", "PUBLICATION"): _FOLLOW,
    ("CREATE", "EXTERNAL"): _LAKE,
    ("CREATE", "VIRTUAL"): _LAKE,
    ("SUBSCRIBE",): _FOLLOW,
    ("LISTEN",): _FOLLOW,
    ("NOTIFY",): _FOLLOW,
    ("WATCH",): _FOLLOW + "; in the shell \\watch",
    ("MONITOR",): _FOLLOW,
    ("FOLLOW",): _FOLLOW,
    ("TAIL",): _FOLLOW,
    ("PRAGMA",): "SHOW TABLES, DESCRIBE t and SHOW SETTINGS tell what there is",
    ("ATTACH",): _FILE,
    ("DETACH",): _FILE,
    ("USE",): "a file is a database, and has no others in it",
    ("SHOW", "DATABASES"): "SHOW TABLES lists what is in this one; " + _FILE,
    ("SHOW", "SCHEMAS"): "there is one schema, default",
    ("SHOW", "CREATE"): "in the shell \\d name shows the text; in Python db.definitions()",
    ("SHOW", "FUNCTIONS"): "docs/sql.md has the functions",
    (
        "EXPLAIN",
        "ANALYZE",
    ): "EXPLAIN SELECT ... shows the plan, and the shell the time",
    ("SAVEPOINT",): "a statement that fails undoes itself alone; ROLLBACK undoes the transaction",
    ("RELEASE",): "there are no savepoints: COMMIT or ROLLBACK",
    ("LOCK",): "the first change of a transaction takes the write lock",
    ("START", "TRANSACTION"): _ISOLATED,
    ("SET", "TRANSACTION"): _ISOLATED,
    ("BEGIN", "IMMEDIATE"): "BEGIN is enough: the first change takes the lock",
    ("BEGIN", "EXCLUSIVE"): "BEGIN is enough: the first change takes the lock",
    ("BEGIN", "DEFERRED"): "BEGIN is enough: the first change takes the lock",
    ("REPLACE",): _CONFLICT,
    ("UPSERT",): _CONFLICT,
    ("COPY",): _LOAD,
    ("LOAD",): _LOAD,
    ("IMPORT",): _LOAD,
    ("UNLOAD",): 'harken query "SELECT ..." --format csv > rows.csv',
    ("EXPORT",): 'harken query "SELECT ..." --format csv > rows.csv',
    ("CALL",): "procedures are called in AMOSQL: name(arguments);",
    ("EXEC",): "procedures are called in AMOSQL: name(arguments);",
    ("EXECUTE",): "db.sql(text, values) takes parameters, and plans a text once",
    ("PREPARE",): "db.sql(text, values) takes parameters, and plans a text once",
    ("DECLARE",): "values come as parameters: db.sql(text, values)",
    ("DO",): "procedures are written in AMOSQL, or in Python",
    ("ANALYZE",): "Harken counts rows itself",
    ("VACUUM",): "a file needs no vacuum",
    ("OPTIMIZE",): "Harken makes indexes and keeps counts by itself",
    ("REINDEX",): "Harken makes indexes by itself",
    ("CACHE",): _KEEP,
    ("GRANT",): "whoever may read and write the file may read and write all of it",
    ("REVOKE",): "whoever may read and write the file may read and write all of it",
    ("COMMENT",): "write a comment into the text of the project: -- ...",
    ("HELP",): _SHELL,
    ("EXIT",): _SHELL,
    ("QUIT",): _SHELL,
    ("ALTER", "VIEW"): "CREATE OR REPLACE VIEW changes it, and brings along what reads it",
}
"""The first words of statements, and what to do; the longest that fits is meant."""

ONLY_IF_UNREAD: dict[tuple[str, ...], str] = {
    (
        "ALTER",
        "TABLE",
    ): "ADD COLUMN, DROP COLUMN, RENAME COLUMN a TO b, RENAME TO, and ALTER COLUMN "
    "a with SET or DROP of NOT NULL and DEFAULT are there; CREATE OR ALTER TABLE does the rest",
    ("SELECT", "TOP"): "say LIMIT at the end of the query",
    ("DELETE",): "say DELETE FROM table WHERE ...",
    ("INSERT",): "say INSERT INTO table VALUES (...)",
}
"""First words of statements that there are, where what follows is not as it should be."""

MISSPELT = (
    *("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "LIMIT", "VALUES", "INTO", "SELECT"),
    *("TABLE", "VIEW", "MATERIALIZED", "UNION", "DISTINCT", "PRIMARY", "REPLACE"),
)
"""Words that are often mistyped, and then read as a name."""

TYPES = {
    "SERIAL": "BIGINT, with a number that you give, or STRING with uuid()",
    "BIGSERIAL": "BIGINT, with a number that you give, or STRING with uuid()",
    "MONEY": "DECIMAL(18, 2)",
    "JSONB": "STRING",
    "CITEXT": "STRING",
    "HSTORE": "STRING",
    "NUMBER": "DECIMAL(p, s), BIGINT or DOUBLE",
}
"""Types of other systems, and what to take instead."""

FUNCTIONS = {
    "getdate": "current_timestamp()",
    "sysdate": "current_timestamp()",
    "strftime": "date_format(day, 'yyyy-MM')",
    "datetime": "to_timestamp(text)",
    "julianday": "datediff(a, b)",
    "array_agg": "string_agg(x, ', ')",
    "group_concat": "string_agg(x, ', ')",
    "collect_list": "string_agg(x, ', ')",
    "collect_set": "string_agg(DISTINCT x, ', ')",
    "generate_series": "FROM range(n), whose column is id",
    "sequence": "FROM range(n), whose column is id",
    "last_insert_rowid": "INSERT ... RETURNING",
    "lastval": "INSERT ... RETURNING",
    "nextval": "uuid(), or a number of your own",
    "regexp_matches": "regexp_extract(text, pattern)",
    "iif": "if(a, b, c)",
    "charindex": "locate(part, text)",
    "instr": "locate(part, text)",
    "printf": "format_number, lpad and ||",
    "typeof": "DESCRIBE",
    "total": "sum(x)",
    "age": "datediff(a, b)",
    "clock_timestamp": "current_timestamp()",
    "regexp_i_like": "regexp_like(text, '(?i)' || pattern)",
}
"""Functions of other systems, and what to write here."""

PARTS = {
    "FOR UPDATE or FOR SHARE": "leave it out: one transaction at a time changes the file",
    "the name of a schema, other than default,": "write the name of the table alone; "
    "SHOW TABLES and DESCRIBE name say what there is",
    "a UNIQUE INDEX": "a table has UNIQUE (...) among its columns: CREATE OR ALTER TABLE adds it",
}
"""Parts of statements, as the message calls them, and what to write instead."""
SIGNS = (
    ("~", "write regexp_like(text, pattern)"),
    ("!~", "write NOT regexp_like(text, pattern)"),
    ("@>", "write contains(text, part)"),
    ("%s", "parameters are ? or :name"),
    ("%(", "parameters are ? or :name"),
    ("#", "a name that has this sign stands in backticks"),
)
"""Operators and parameters of other systems, and what to write here."""
LEFT = 30
"""How far back a sign may begin before the place where the parser stopped, as in `%(name)s`."""


def sign_advice(text: str, place: int) -> str | None:
    """What to write instead of a sign at a place that cannot be read.

    >>> sign_advice("SELECT * FROM sale WHERE id = %s", 31)
    'parameters are ? or :name'
    """
    for sign, hint in SIGNS:
        if text.startswith(sign, place) or text.startswith(sign, max(0, place - 1)):
            return hint
    word = text[max(0, place - LEFT) : place].split()
    return "parameters are ? or :name" if word and word[-1].startswith("%(") else None


ALIKE = 0.7
"""How alike a word and the keyword that is meant are; FORM and FROM have 0.75."""
TRIED = 5
"""How many words of a statement are tried."""


def replacement(call: str) -> str | None:
    """
    >>> replacement("array_agg(shop)")
    "write string_agg(x, ', ')"
    """
    other = FUNCTIONS.get(call.partition("(")[0].lower())
    return None if other is None else f"write {other}"


class Advice(NamedTuple):
    title: str
    """What it is about."""
    hint: str
    words: int = 1
    """How many words at the beginning of the statement that is."""


def advice(text: str, *, unread: bool = False) -> Advice | None:
    """What to write instead of a statement; `unread` says that it cannot be read.

    >>> advice("CREATE TRIGGER t AFTER INSERT ON sale").title
    'CREATE TRIGGER'
    """
    words = text.upper().replace(";", " ").replace("(", " ").split()[:6]
    if words[:2] in (["INSERT", "OR"], ["UPDATE", "OR"]):
        return Advice(f"{words[0]} OR", _CONFLICT, 2)
    if words[:1] == ["CREATE"]:
        words = [word for word in words if word not in ("OR", "REPLACE", "TEMP", "TEMPORARY")]
    if words and words[0].startswith((".", "\\")):
        return Advice(words[0], _SHELL)
    for known in (STATEMENTS, ONLY_IF_UNREAD) if unread else (STATEMENTS,):
        for length in (2, 1):
            hint = known.get(tuple(words[:length]))
            if hint is not None and len(words) >= length and not _is_whole(words):
                title = {
                    "INSERT": "INSERT without INTO",
                    "DELETE": "DELETE without FROM",
                    "ALTER TABLE": "ALTER TABLE of this form",
                }
                said = " ".join(words[:length])
                return Advice(title.get(said, said), hint, length)
    return None


def _is_whole(words: Sequence[str]) -> bool:
    """INSERT INTO and DELETE FROM are as they should be: what is wrong comes later."""
    return words[:2] in (["INSERT", "INTO"], ["INSERT", "OVERWRITE"], ["DELETE", "FROM"])


def misspelt(words: Sequence[str], reads: Callable[[int, str], bool]) -> tuple[int, str] | None:
    """The place of a word with which a statement cannot be read, and the keyword with which it can:
    `reads` tries one at a place."""
    found = [
        (SequenceMatcher(None, word, near).ratio(), place, near)
        for place, word in enumerate(words)
        if place and len(word) > 2 and word.isalpha() and word not in MISSPELT
        if (near := nearest(word, MISSPELT)) is not None
    ]
    for ratio, place, near in sorted(found, reverse=True)[:TRIED]:
        if ratio >= ALIKE and reads(place, near):
            return place, near
    return None
