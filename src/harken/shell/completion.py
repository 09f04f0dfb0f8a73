"""Completion: what can stand at this place, asked of the language that is spoken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import harken
from harken.database.language_names import SQL
from harken.errors import HarkenError
from harken.shell.loop import commands
from harken.statements.completing import Candidates, Place
from harken.statements.language_registry import Language, language_named

_WORD = re.compile(r"[:\\.]?\w*$")
BACKSLASH = ("\\d", "\\dt", "\\dv", "\\dr", "\\timing", "\\watch", "\\pager", "\\i", "\\q", "\\?")


class NameCompleter(Completer):
    def __init__(self, db: harken.Database, language: Callable[[], str] = lambda: SQL) -> None:
        """`language` returns the name of the current language."""
        self._names = SessionNames(db)
        self._language = language

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        language = language_named(self._language())
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        place = Place(word, before[: len(before) - len(word)], document.text)
        if place.before.count(language.quote) % 2:
            return
        typed = word.removeprefix(".")
        seen: set[str] = set()
        for kind, names in self._candidates(language, place):
            for name in sorted(set(names)):
                if name.lower().startswith(typed.lower()) and name not in seen:
                    seen.add(name)
                    yield Completion(
                        _cased(name, typed) if kind == "keyword" else name,
                        start_position=-len(typed),
                        display_meta=kind,
                    )

    def _candidates(self, language: Language, place: Place) -> Candidates:
        if place.begins and place.word.startswith("\\"):
            yield "command", BACKSLASH
            return
        yield from language.complete(place, self._names)
        if place.begins:
            yield "command", commands()


class SessionNames:
    """The names that completion offers. The schema is data like any other, so queries list it; no
    completions are better than a broken line editor."""

    def __init__(self, db: harken.Database) -> None:
        self._db = db

    def tables(self) -> Mapping[str, Sequence[str]]:
        try:
            return {
                each.name: [column.name for column in each.columns] for each in self._db.views()
            }
        except HarkenError:
            return {}

    def functions(self) -> list[str]:
        return self._query("select name(f) for each function f;")

    def types(self) -> list[str]:
        return self._query("select name(t) for each type t;")

    def variables(self) -> Iterable[str]:
        return self._db.variables

    def _query(self, query: str) -> list[str]:
        try:
            return [name for (name,) in self._db.amosql(query).rows]
        except HarkenError:
            return []


def _cased(keyword: str, typed: str) -> str:
    """A keyword in the letters that the person uses."""
    return keyword.lower() if typed and typed == typed.lower() else keyword
