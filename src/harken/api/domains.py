"""Domains, as `db.domains`: relations that are grouped under names of their own for the columns.

`db.domain(...)` makes one. Each does what the statement of SQL does.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.api.internals import Internals
from harken.database.arguments import check_flag, check_names, check_text
from harken.database.exclusive import SessionLock, exclusive
from harken.errors import TypeFault
from harken.lang.sql.domain_statements import (
    DomainWords,
    Member,
    domain_text,
    member_text,
    members_of,
)
from harken.lang.sql.word_reader import quoted
from harken.statements.sql.domain_definitions import all_domains, words_of_domain

Members = Mapping[str, Any] | Sequence[str]


@dataclass(frozen=True, slots=True)
class Domain:
    """`members` has, for each member, the names of the domain with its columns that are called
    so."""

    name: str
    columns: tuple[str, ...]
    members: Mapping[str, Mapping[str, tuple[str, ...]]]
    skips_unavailable: bool
    statement: str


class Domains:
    """The domains of a session: `db.domains`."""

    def __init__(
        self,
        internals: Internals,
        session_lock: SessionLock,
        run: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._internals = internals
        self.session_lock = session_lock
        self._run = run

    @exclusive
    def list(self) -> builtins.list[Domain]:
        """The domains, in the order of their names. A user sees those that the user may read."""
        self._internals.look()
        runtime = self._internals.runtime
        found = (e for e in all_domains(runtime.catalog) if runtime.permissions.may_see(e))
        return [_domain(words_of_domain(each), each.text) for each in found]

    @exclusive
    def describe(self, name: str) -> Mapping[str, str]:
        """What DESCRIBE DOMAIN shows: its columns, and what each member has of them."""
        return self._run(f"DESCRIBE DOMAIN {_name(name)}")

    @exclusive
    def create(
        self,
        name: str,
        members: Members,
        *,
        columns: Sequence[str] | None = None,
        skip_unavailable: bool = False,
        replace: bool = False,
    ) -> None:
        """Group relations: CREATE DOMAIN. `members` are names of relations, or a mapping from each
        to its columns: `{"paper": {"keyword": ["title", "abstract"]}, "book": ["keyword"]}`.

        With `skip_unavailable`, a member without a mirror that cannot be read has no rows; without,
        the query is an error.
        """
        check_flag(replace, "replace")
        text = domain_text(
            domain_words_of(name, members, columns=columns, skip_unavailable=skip_unavailable)
        )
        self._run(text.replace("CREATE", "CREATE OR REPLACE", 1) if replace else text)

    @exclusive
    def add(self, name: str, member: str, columns: Any = None) -> None:
        """Add a member, with its columns as `create` takes them."""
        (found,) = _members({_plain(member): columns})
        self._run(f"ALTER DOMAIN {_name(name)} ADD {member_text(found)}")

    @exclusive
    def remove(self, name: str, member: str) -> None:
        """Take a member out."""
        self._run(f"ALTER DOMAIN {_name(name)} DROP {_name(member)}")

    @exclusive
    def skip_unavailable(self, name: str, skip: bool = True) -> None:
        """Whether a member that cannot be read has no rows, rather than a query an error."""
        check_flag(skip, "skip")
        self._run(f"ALTER DOMAIN {_name(name)} UNAVAILABLE {'skip' if skip else 'fail'}")

    @exclusive
    def drop(self, name: str, *, cascade: bool = False) -> None:
        """Drop a domain; its members stay. With `cascade`, also the views over it."""
        check_flag(cascade, "cascade")
        self._run(f"DROP DOMAIN {_name(name)}{' CASCADE' if cascade else ''}")


def domain_words_of(
    name: str, members: Members, *, columns: Sequence[str] | None, skip_unavailable: bool
) -> DomainWords:
    """The statement that the arguments of `db.domain` stand for."""
    check_flag(skip_unavailable, "skip_unavailable")
    names = None if columns is None else tuple(check_names(columns, "the columns"))
    return DomainWords(
        verb="create",
        name=_plain(name),
        columns=None if names is None else tuple(each.lower() for each in names),
        members=_members(members),
        skips=skip_unavailable,
    )


def _domain(words: DomainWords, text: str) -> Domain:
    columns = words.columns or ()
    members = {
        each.name: {name: each.columns_of(name) for name in columns if each.columns_of(name)}
        for each in words.members
    }
    return Domain(words.name, columns, members, words.skips, text)


def _plain(name: str) -> str:
    check_text(name, "the name of a domain or a member")
    return name.lower()


def _name(name: str) -> str:
    return quoted(_plain(name))


def _members(given: Members) -> tuple[Member, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Mapping | Sequence) or not given:
        raise TypeFault(
            "the members of a domain are names of relations, or a mapping from them to columns",
            code="type-mismatch",
            hint='{"paper": {"keyword": ["title", "abstract"]}, "book": None}',
        )
    if not isinstance(given, Mapping):
        given = dict.fromkeys(check_names(given, "the members"))
    for member, columns in given.items():
        _plain(member)
        listed = columns if isinstance(columns, Mapping) else {"": columns}
        for called, value in listed.items():
            check_text(called, "the name of a column")
            if value is not None and not isinstance(value, str):
                check_names(value, f"the columns of {member}")
            elif value is not None:
                check_text(value, f"a column of {member}")
    return members_of(given)
