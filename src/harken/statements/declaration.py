"""What a text declares: the tables, views, types, functions, rules and relations that there are to
be, apart from how one gets there.

A project (`harken.project`) compares declarations with what a database has. Law: running the parts
of a declaration where it is not there makes what it says; where `in_place` holds, also where there
is another of that kind and name.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.errors import LanguageError, Span

TABLE, VIEW, MATERIALIZED = "table", "view", "materialized view"
TYPE, FUNCTION, RULE, ACTIVATION = "type", "function", "rule", "activation"
RELATION, FACT, SOURCE, DOMAIN = "relation", "fact", "source", "domain"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the program that makes something: what stands at `start` in the text that declares
    it, or, without a start, what was added."""

    text: str
    start: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    kind: str
    name: str
    span: Span
    meaning: str
    """Two declarations of one meaning are the same, however they are laid out."""
    parts: tuple[Part, ...]
    removal: str
    """The statement that takes it away, in the `removal_language`: its own unless given."""
    removal_language: str = ""
    called: frozenset[str] = frozenset()
    """The names by which others mention it, in lower case."""
    needs: frozenset[str] = frozenset()
    """The names that it mentions, in lower case."""
    in_place: bool = False
    has_rows: bool = False
    """Does it hold rows that nothing can compute again?"""
    columns: tuple[str, ...] = ()
    """The columns of a table."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name


def not_declared(what: str, span: Span, hint: str | None = None) -> LanguageError:
    """A statement that does something, where a text only says what there is."""
    return LanguageError(
        f"{what} is not part of a project, whose files only say what there is",
        code="unsupported",
        span=span,
        hint=hint or "run it with `harken run`, or in the shell",
    )


SEEDS = "rows come from `seeds:` in a .yml file"
