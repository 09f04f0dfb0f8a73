"""The interface of a language, and the registry of languages.

A language registers itself when its module (`statements.sql.language` and so on) is imported, which
`api` does. Stored definitions find their language by the name in the catalog, programs by the
suffix of their file, users by what they type in the shell. So the languages need not know each
other.

Law: a definition always means what its text means in the present schema, whichever language uses
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harken.consumers.programs.program_runs import Programs
from harken.consumers.rules.rules import Rules
from harken.continual.continual_queries import ContinualQueries
from harken.database.catalog import Catalog
from harken.database.changes import Change
from harken.database.results import Result
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import NameFault
from harken.intake.session_sources import SessionSources
from harken.ir.clauses import Definition
from harken.ir.schema import Function
from harken.statements.completing import Candidates, KnownNames, Place
from harken.statements.declaration import Declaration


class Monitor(Protocol):
    """Starts reporting the changes of a view."""

    def __call__(
        self, name: str, listener: Callable[[Change], object], *, strategy: str
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run; each language ignores those that do not concern it."""

    source: str | None = None
    """The name of the text in errors, such as a file name."""
    facts: Path = Path()
    """The directory of fact files."""
    output: Path | None = None
    """The directory for outputs; without it they are among the results."""
    warn: Callable[[str], None] | None = None
    """Called with each warning; without it, Python's `warnings` are used."""
    strategy: str = "auto"
    """The strategy for the changes of views that the program monitors."""
    materialise: str = "auto"
    """What programs of production rules store: a policy, or `auto`."""
    values: Any = None
    """The values of parameters: a sequence or a mapping, or a list of tuples or mappings, for each
    of which the program runs once."""


NO_OPTIONS = RunOptions()


class StoredViews(Protocol):
    """The rows of materialized views."""

    def fill(self, function: Function) -> None:
        """Fill the table of a new view with the present rows of its query."""

    def compare_again(self, function: Function) -> None:
        """Compare the table with all rows of its query when the transaction ends."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts that a session of any language works with."""

    runtime: Runtime
    transactions: Transactions
    rules: Rules
    materialized: StoredViews
    sources: SessionSources
    monitor: Monitor
    programs: Programs
    continual: ContinualQueries


class LanguageSession(Protocol):
    """Runs programs, and keeps state from one to the next."""

    def run(self, text: str, options: RunOptions = ...) -> None:
        """Run a whole text. If it fails, everything since its last commit is rolled back."""

    def close(self) -> None:
        """At the end of the session: drop what is temporary."""


class Language(Protocol):
    name: str
    """As stored in the catalog."""
    title: str
    """As shown to people."""
    suffixes: tuple[str, ...]
    """Of its files."""
    help: str
    """The text of `help` in the shell."""
    quote: str
    """What texts are written in."""
    end: str
    """What a statement ends with."""

    # --- programs --------------------------------------------------------------------------

    def session(self, parts: SessionParts) -> LanguageSession: ...

    def is_complete(self, text: str) -> bool:
        """Whether the text consists of complete statements and can be run."""

    def split(self, text: str) -> list[tuple[int, str]]:
        """The parts of a text that the shell runs one after another, each with its offset."""

    def complete(self, place: Place, names: KnownNames) -> Candidates:
        """What can stand at a place."""

    def format(self, result: Result, *, as_json: bool = False) -> list[str]:
        """How a result is shown: as lines for people, or as lines of JSON."""

    def monitoring(self, text: str) -> tuple[int, str] | None:
        """How many views a program wants to watch, and a program that monitors them. None if the
        language cannot say so: then all views are watched."""

    def declarations(self, text: str) -> Iterable[Declaration]:
        """What a text declares, for projects. What else it does is refused."""

    # --- stored definitions ----------------------------------------------------------------

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        """The clauses of a derived function in the catalog."""

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        """Recompile a function after something it depends on has changed. True if it changed in a
        way that its own dependents can see."""

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise if a stored function cannot hold these rows, which are in stored form, although its
        columns could."""


class UsualFormat:
    """Rows as `<1, "x">` and printed values as they are, or JSON as in `harken run --format
    json`."""

    def format(self, result: Result, *, as_json: bool = False) -> list[str]:
        return result.json_lines() if as_json else result.lines()


_LANGUAGES: dict[str, Language] = {}


def register(language: Language) -> None:
    _LANGUAGES[language.name] = language


def withdraw(language: Language) -> None:
    """Undo `register`."""
    del _LANGUAGES[language.name]


def languages() -> Iterable[Language]:
    return _LANGUAGES.values()


def language_named(name: str) -> Language:
    if name not in _LANGUAGES:
        raise NameFault(
            f"there is no language {name}",
            code="bad-value",
            hint=f"use {' or '.join(_LANGUAGES)}",
        )
    return _LANGUAGES[name]


def language_of_suffix(suffix: str) -> Language | None:
    return next((each for each in languages() if suffix in each.suffixes), None)


def check_rows(function: Function | None, rows: Sequence[tuple[Any, ...]]) -> None:
    """Raise if a stored function cannot hold these rows, although its columns could."""
    if function is not None:
        language_named(function.language).check_rows(function, rows)
