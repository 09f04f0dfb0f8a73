"""Completion: the keywords of the language, and the present types, functions and interface
variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import harken
from harken.database.language_names import AMOSQL
from harken.errors import HarkenError
from harken.shell.loop import commands
from harken.statements.language_registry import language_named

_WORD = re.compile(r":?\w*$")


class NameCompleter(Completer):
    def __init__(self, db: harken.Database, language: Callable[[], str] = lambda: AMOSQL) -> None:
        """`language` returns the name of the current language."""
        self._db = db
        self._language = language

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.current_line_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        if before[: len(before) - len(word)].count('"') % 2:
            return
        for kind, names in self._names(word):
            for name in sorted(set(names)):
                if name.lower().startswith(word.lower()):
                    yield Completion(name, start_position=-len(word), display_meta=kind)

    def _names(self, word: str) -> Iterator[tuple[str, Iterable[str]]]:
        if word.startswith(":"):
            yield "variable", (f":{name}" for name in self._db.variables)
            return
        yield "function", self._query("select name(f) for each function f;")
        yield "type", self._query("select name(t) for each type t;")
        yield "keyword", language_named(self._language()).keywords
        yield "command", commands()

    def _query(self, query: str) -> list[str]:
        """The schema is data like any other, so a query lists it."""
        try:
            return [name for (name,) in self._db.amosql(query).rows]
        except HarkenError:
            return []  # no completions are better than a broken line editor
