"""The statements about domains, which group relations under names of their own for the columns.

    CREATE [OR REPLACE] DOMAIN [IF NOT EXISTS] name [(column, ...)]
        OVER member [(column [AS name], ...)], ... [UNAVAILABLE skip]
    ALTER DOMAIN name ADD member [(column [AS name], ...)] | DROP member | UNAVAILABLE skip|fail
    DROP DOMAIN [IF EXISTS] name [CASCADE]
    DESCRIBE DOMAIN name          SHOW DOMAINS

A domain is the view of its members' rows, one after the other. A name that no column of a member
has is NULL in the rows of that member; two columns of a member under one name are their texts, one
below the other, so that what either contains the name contains. `_member` says whose row it is.

Law: `domain_text` writes a statement that reads back as the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from harken.lang.sql.word_reader import WordReader, quoted

Verb = Literal["create", "add", "remove", "availability", "drop", "describe", "show"]
MEMBER = "_member"
"""The column that names the member of a row."""
MOST_MEMBERS = 500
_NEW = "the name of the new domain"
_NAME = "the name of a domain"


@dataclass(frozen=True, slots=True)
class Member:
    """A relation in a domain. `columns` are pairs of a column and its name in the domain; None
    takes the columns that are called as in the domain."""

    name: str
    columns: tuple[tuple[str, str], ...] | None = None

    def columns_of(self, name: str) -> tuple[str, ...]:
        """The columns that are called so in the domain."""
        return tuple(column for column, called in self.columns or () if called == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainWords:
    """What such a statement says."""

    verb: Verb
    name: str = ""
    columns: tuple[str, ...] | None = None
    """The names of the domain; None: those that its members have."""
    members: tuple[Member, ...] = ()
    skips: bool = False
    """UNAVAILABLE skip: a member that cannot be read has no rows, rather than the query an
    error."""
    if_exists: bool = False
    """IF NOT EXISTS of CREATE, IF EXISTS of DROP."""
    replaces: bool = False
    cascade: bool = False

    @property
    def is_explicit(self) -> bool:
        """Do the words alone say which columns there are?"""
        return self.columns is not None and all(e.columns is not None for e in self.members)


class DomainStatement(exp.Expression):
    """Its words are in `this`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class DomainDefinition(exp.Create):
    """CREATE DOMAIN, as the view that it is. Without a query, if tables must be asked for it."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Create.arg_types, "words": True}


def domain_words(node: exp.Expr) -> DomainWords | None:
    match node:
        case DomainStatement():
            found = node.args["this"]
        case DomainDefinition():
            found = node.args["words"]
        case _:
            return None
    assert isinstance(found, DomainWords)
    return found


def read_domain_statement(tokens: Sequence[Token]) -> exp.Expr | None:
    """The statement, if these words are one."""
    words = [token.text.upper() for token in tokens[:4]]
    start = 2
    match words:
        case ["CREATE", "OR", "REPLACE", "DOMAIN"]:
            start = 4
        case ["CREATE", "DOMAIN", *_] if not any(t.text.upper() == "OVER" for t in tokens):
            return None  # of another system: a type with a condition
        case ["CREATE" | "ALTER" | "DROP", "DOMAIN", *_] | ["SHOW", "DOMAINS"]:
            pass
        case ["DESCRIBE" | "DESC", "DOMAIN", _, *_]:
            pass
        case _:
            return None
    found = _Reader(tokens, start).words()
    return DomainStatement(this=found) if found.verb != "create" else _definition(found)


def _definition(words: DomainWords) -> exp.Expr:
    named = exp.Table(this=exp.to_identifier(words.name))
    query = domain_query(words) if words.is_explicit else None
    return DomainDefinition(
        this=named, kind="VIEW", replace=words.replaces, expression=query, words=words
    )


def domain_query(words: DomainWords) -> exp.Query:
    """The view of the members' rows."""
    assert words.columns is not None
    branches = [_branch(each, words.columns) for each in words.members]
    return reduce(lambda left, right: exp.union(left, right, distinct=False), branches)


def _branch(member: Member, names: Sequence[str]) -> exp.Query:
    columns = [_column(member.columns_of(name)).as_(name, quoted=True) for name in names]
    columns.append(exp.Literal.string(member.name).as_(MEMBER, quoted=True))
    return exp.select(*columns).from_(exp.Table(this=exp.to_identifier(member.name, quoted=True)))


def _column(columns: Sequence[str]) -> exp.Expr:
    found = [exp.column(exp.to_identifier(each, quoted=True)) for each in columns]
    match found:
        case []:
            return exp.Null()
        case [one]:
            return one
    joined = exp.ConcatWs(expressions=[exp.Literal.string("\n"), *found], safe=True)
    return exp.Nullif(this=joined, expression=exp.Literal.string(""))


class _Reader(WordReader):
    def words(self) -> DomainWords:
        match self._tokens[0].text.upper():
            case "CREATE":
                found = self._create()
            case "ALTER":
                found = self._alter()
            case "DROP":
                if_exists = self._takes("IF", "EXISTS")
                name = self._name(_NAME)
                cascade = self._takes("CASCADE")
                found = DomainWords(verb="drop", name=name, if_exists=if_exists, cascade=cascade)
            case "SHOW":
                found = DomainWords(verb="show")
            case _:
                found = DomainWords(verb="describe", name=self._name(_NAME))
        if self._here is not None:
            raise self._cannot_stand()
        return found

    def _create(self) -> DomainWords:
        if_exists = self._takes("IF", "NOT", "EXISTS")
        name = self._name(_NEW)
        columns = self._named_columns() if self._takes("(") else None
        self._expect("OVER", "CREATE DOMAIN name OVER member (column AS name, ...), ...")
        members = [self._member()]
        while self._takes(","):
            members.append(self._member())
            if len(members) > MOST_MEMBERS:
                text = f"a domain has at most {MOST_MEMBERS} members"
                raise self._fault(text, self._tokens[self._at - 1])
        skips = self._availability() if self._here is not None else False
        return DomainWords(
            verb="create",
            name=name,
            columns=_names_of(columns, members),
            members=tuple(members),
            skips=skips,
            if_exists=if_exists,
            replaces=self._tokens[1].text.upper() == "OR",
        )

    def _alter(self) -> DomainWords:
        name = self._name(_NAME)
        if self._takes("ADD"):
            return DomainWords(verb="add", name=name, members=(self._member(),))
        if self._takes("DROP"):
            gone = Member(self._name("the name of a member"))
            return DomainWords(verb="remove", name=name, members=(gone,))
        if self._here is None or self._here.text.upper() != "UNAVAILABLE":
            raise self._cannot_stand(("ADD member", "DROP member", "UNAVAILABLE skip"))
        return DomainWords(verb="availability", name=name, skips=self._availability())

    def _availability(self) -> bool:
        self._expect("UNAVAILABLE", "UNAVAILABLE skip")
        if self._takes("SKIP"):
            return True
        self._expect("FAIL", "UNAVAILABLE skip, or UNAVAILABLE fail")
        return False

    def _named_columns(self) -> tuple[str, ...]:
        found = [self._new_column("the name of a column of the domain", ())]
        while self._takes(","):
            found.append(self._new_column("the name of a column of the domain", found))
        self._expect(")", "(column, ...)")
        return tuple(found)

    def _new_column(self, what: str, known: Sequence[str]) -> str:
        name = self._name(what)
        if name in known or name == MEMBER:
            why = "names the member of each row" if name == MEMBER else "is there twice"
            raise self._fault(f"{name} {why}", self._tokens[self._at - 1])
        return name

    def _member(self) -> Member:
        name = self._name("the name of a source, table or view")
        if not self._takes("("):
            return Member(name)
        found: list[tuple[str, str]] = []
        while True:
            column = self._name("a column")
            called = column
            if self._takes("AS"):
                called = self._new_column("the name of the column in the domain", ())
            if (column, called) in found:
                raise self._fault(f"{column} is there twice", self._tokens[self._at - 1])
            found.append((column, called))
            if not self._takes(","):
                break
        self._expect(")", "member (column AS name, ...)")
        return Member(name, tuple(found))


def _names_of(columns: tuple[str, ...] | None, members: Sequence[Member]) -> tuple[str, ...] | None:
    """The names in the domain, if its members all list them."""
    if columns is not None or any(each.columns is None for each in members):
        return columns
    names = (called for each in members for _, called in each.columns or ())
    return tuple(dict.fromkeys(names))


# --- writing -------------------------------------------------------------------------------------


def domain_text(words: DomainWords) -> str:
    """CREATE DOMAIN as text.

    >>> domain_text(DomainWords(verb="create", name="library", members=(Member("book"),)))
    'CREATE DOMAIN library OVER book'
    """
    columns = "" if words.columns is None else f" ({', '.join(map(quoted, words.columns))})"
    members = ", ".join(map(member_text, words.members))
    skips = " UNAVAILABLE skip" if words.skips else ""
    return f"CREATE DOMAIN {quoted(words.name)}{columns} OVER {members}{skips}"


def member_text(member: Member) -> str:
    """
    >>> member_text(Member("paper", (("title", "keyword"), ("year", "year"))))
    'paper (title AS keyword, year)'
    """
    if member.columns is None:
        return quoted(member.name)
    given = (
        quoted(column) if column == called else f"{quoted(column)} AS {quoted(called)}"
        for column, called in member.columns
    )
    return f"{quoted(member.name)} ({', '.join(given)})"


def members_of(given: Mapping[str, Any]) -> tuple[Member, ...]:
    """Members from names: a mapping of the domain's names to one column of the member or several,
    a list of columns that keep their names, or None.

    >>> members_of({"paper": {"keyword": ["title", "abstract"]}, "book": None})
    (Member(name='paper', columns=(('title', 'keyword'), ('abstract', 'keyword'))), \
Member(name='book', columns=None))
    """
    found = []
    for name, columns in given.items():
        pairs: list[tuple[str, str]] | None = None
        if isinstance(columns, Mapping):
            pairs = [(c, called) for called, value in columns.items() for c in _listed(value)]
        elif columns is not None:
            pairs = [(each, each) for each in _listed(columns)]
        lowered = None if pairs is None else tuple((a.lower(), b.lower()) for a, b in pairs)
        found.append(Member(name.lower(), lowered))
    return tuple(found)


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value
