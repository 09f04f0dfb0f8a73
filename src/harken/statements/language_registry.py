"""What a language is to the rest of Harken, and the registry of those there are.

A language registers itself when its module (`statements.sql.language` and so on) is imported, which
`api` does. Everything else finds it here: stored definitions by the name that the catalog keeps
with them, programs by the suffix of their file, people by what they type in the shell. So the
languages need not know each other.

Law: a definition always means what its text means in the present schema, whatever language asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harken.consumers.rules.rules import Rules
from harken.database.catalog import Catalog
from harken.database.changes import Change
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import NameFault
from harken.ir.clauses import Definition
from harken.ir.schema import Function
from harken.statements.declaration import Declaration


class Monitor(Protocol):
    """Begins to report the changes of a view."""

    def __call__(
        self, name: str, listener: Callable[[Change], object], *, strategy: str
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program is run; a language ignores what it has no use for."""

    source: str | None = None
    """What the text is called in errors, such as the name of its file."""
    facts: Path = Path()
    """Where files of facts are read."""
    output: Path | None = None
    """Where outputs are written; without it they are among the results."""
    warn: Callable[[str], None] | None = None
    """Called with each warning; without it, Python's `warnings` are used."""
    strategy: str = "auto"
    """How the changes of views that the program monitors are found."""
    values: Any = None
    """What parameters stand for: a sequence or a mapping, or a list of tuples or mappings, for each
    of which the program is run."""


NO_OPTIONS = RunOptions()


class StoredViews(Protocol):
    """The rows of materialized views."""

    def fill(self, function: Function) -> None:
        """Let the table of a new view have the rows that its query has now."""

    def compare_again(self, function: Function) -> None:
        """Compare the table with all rows of its query when the transaction ends."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session of any language works with."""

    runtime: Runtime
    transactions: Transactions
    rules: Rules
    materialized: StoredViews
    monitor: Monitor


class LanguageSession(Protocol):
    """Runs programs, and keeps what one leaves for the next."""

    def run(self, text: str, options: RunOptions = ...) -> None:
        """Run a whole text, or nothing of it since its last commit."""

    def close(self) -> None:
        """At the end of the session: drop what is temporary."""


class Language(Protocol):
    name: str
    """As the catalog keeps it."""
    title: str
    """As people write it."""
    suffixes: tuple[str, ...]
    """Of its files."""
    help: str
    """For a person at the shell."""
    keywords: tuple[str, ...]
    """For completion."""

    # --- programs --------------------------------------------------------------------------

    def session(self, parts: SessionParts) -> LanguageSession: ...

    def is_complete(self, text: str) -> bool:
        """Is this nothing but whole statements, so that it can be run?"""

    def split(self, text: str) -> list[tuple[int, str]]:
        """The parts of a text that the shell runs one after the other, each with its offset."""

    def monitoring(self, text: str) -> tuple[int, str] | None:
        """How many views a program wants to be watched, and a program that monitors them. None if
        the language has no way to say so: then all views are meant."""

    def declarations(self, text: str) -> Iterable[Declaration]:
        """What a text declares, for projects. What else it does is refused."""

    # --- stored definitions ----------------------------------------------------------------

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        """The clauses of a derived function that is in the catalog."""

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        """Compile a function again after something that it depends on has changed. True if it
        changed in a way that its own dependents can see."""

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise if a stored function cannot hold these rows, which are as they are stored, though
        its columns could."""


_LANGUAGES: dict[str, Language] = {}


def register(language: Language) -> None:
    _LANGUAGES[language.name] = language


def languages() -> Iterable[Language]:
    return _LANGUAGES.values()


def language_named(name: str) -> Language:
    if name not in _LANGUAGES:
        raise NameFault(
            f"there is no language {name}",
            code="bad-value",
            hint=f"it is {' or '.join(_LANGUAGES)}",
        )
    return _LANGUAGES[name]


def language_of_suffix(suffix: str) -> Language | None:
    return next((each for each in languages() if suffix in each.suffixes), None)


def check_rows(function: Function | None, rows: Sequence[tuple[Any, ...]]) -> None:
    """Raise if a stored function cannot hold these rows, though its columns could."""
    if function is not None:
        language_named(function.language).check_rows(function, rows)
