"""Completion: what can stand at this place, in the language that is spoken.

In SQL the word before says what is meant: behind FROM a table, behind `t.` a column of `t`, and
elsewhere the columns of the tables that the statement names. The other languages get functions,
types and interface variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import harken
from harken.database.language_names import DATALOG, SQL
from harken.errors import HarkenError
from harken.shell.loop import commands
from harken.statements.language_registry import language_named

_WORD = re.compile(r"[:\\.]?\w*$")
_QUOTES = {SQL: "'"}
_TABLES_FOLLOW = {"from", "join", "into", "update", "table", "view", "describe", "desc", "using"}
_NAMED = re.compile(r"\b(?:from|join|into|update|table)\s+`?(\w+)`?(?:\s+(?:as\s+)?(\w+))?", re.I)
BACKSLASH = ("\\d", "\\dt", "\\dv", "\\dr", "\\timing", "\\watch", "\\pager", "\\i", "\\q", "\\?")

Names = Iterator[tuple[str, Iterable[str]]]


class NameCompleter(Completer):
    def __init__(self, db: harken.Database, language: Callable[[], str] = lambda: SQL) -> None:
        """`language` returns the name of the current language."""
        self._db = db
        self._language = language

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        language = self._language()
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        rest = before[: len(before) - len(word)]
        if rest.count(_QUOTES.get(language, '"')) % 2:
            return
        typed = word.removeprefix(".")
        seen: set[str] = set()
        for kind, names in self._names(language, word, rest, document.text):
            for name in sorted(set(names)):
                if name.lower().startswith(typed.lower()) and name not in seen:
                    seen.add(name)
                    yield Completion(
                        _cased(name, typed) if kind == "keyword" else name,
                        start_position=-len(typed),
                        display_meta=kind,
                    )

    def _names(self, language: str, word: str, rest: str, text: str) -> Names:
        if word.startswith("\\") and not rest.strip():
            yield "command", BACKSLASH
        elif language == SQL:
            yield from self._sql_names(word, rest, text)
        elif word.startswith(":"):
            yield "variable", (f":{name}" for name in self._db.variables)
        else:
            yield "relation" if language == DATALOG else "function", self._functions()
            if language != DATALOG:
                yield "type", self._query("select name(t) for each type t;")
            yield "keyword", language_named(language).keywords
            yield "command", commands()

    # --- SQL -------------------------------------------------------------------------------

    def _sql_names(self, word: str, rest: str, text: str) -> Names:
        tables = self._tables()
        named = {alias or table: table for table, alias in _NAMED.findall(text)}
        named |= {table: table for table, _ in _NAMED.findall(text)}
        if word.startswith("."):
            owner = re.search(r"(\w+)$", rest)
            table = named.get(owner[1], owner[1]) if owner else ""
            yield "column", tables.get(str(table).lower(), ())
            return
        last = re.search(r"(\w+)\s*$", rest)
        if rest.strip().startswith("\\d") or (last and last[1].lower() in _TABLES_FOLLOW):
            yield "table", tables
            return
        for table in dict.fromkeys(named.values()):
            yield f"column of {table}", tables.get(table.lower(), ())
        yield "keyword", language_named(SQL).keywords
        yield "table", tables
        if not rest.strip():
            yield "command", commands()

    def _tables(self) -> dict[str, list[str]]:
        try:
            return {
                each.name.lower(): [column.name for column in each.columns]
                for each in self._db.views()
            }
        except HarkenError:
            return {}

    # --- the others ------------------------------------------------------------------------

    def _functions(self) -> list[str]:
        return self._query("select name(f) for each function f;")

    def _query(self, query: str) -> list[str]:
        """The schema is data like any other, so a query lists it."""
        try:
            return [name for (name,) in self._db.amosql(query).rows]
        except HarkenError:
            return []  # no completions are better than a broken line editor


def _cased(keyword: str, typed: str) -> str:
    """A keyword in the letters that the person uses."""
    return keyword.lower() if typed and typed == typed.lower() else keyword
