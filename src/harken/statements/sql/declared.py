"""What a text of SQL declares: its tables and views."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from harken.errors import SyntaxFault
from harken.lang.sql.domain_statements import DomainDefinition, domain_text, domain_words
from harken.lang.sql.parser import DIALECT, Statement, statements
from harken.lang.sql.source_statements import SourceWords, source_words, text_of
from harken.statements.declaration import (
    DOMAIN,
    MATERIALIZED,
    SEEDS,
    SOURCE,
    TABLE,
    VIEW,
    Declaration,
    Part,
    not_declared,
)
from harken.statements.sql.table_creation import created_name

CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.TruncateTable)


def declarations(text: str) -> Iterator[Declaration]:
    for statement in statements(text):
        node = statement.node
        if isinstance(node, DomainDefinition):
            yield _domain(statement, node)
            continue
        if isinstance(node, exp.Create) and not statement.explained:
            if str(node.args.get("kind", "")).upper() != "INDEX":  # Harken makes its own
                yield _declaration(statement, node)
            continue
        words = source_words(node)
        if words is not None and words.verb == "create":
            yield _source(statement, words)
            continue
        word = statement.text.split()[0].upper()
        if isinstance(node, CHANGES):
            raise not_declared(f"{word} of rows", statement.span, SEEDS)
        if isinstance(node, exp.Alter):
            hint = "edit its CREATE TABLE: the table in the database is altered to be that"
            raise not_declared(word, statement.span, hint)
        if isinstance(node, exp.Drop):
            hint = "take its CREATE out of the project: what a project no longer has is dropped"
            raise not_declared(word, statement.span, hint)
        raise not_declared(word, statement.span)


def _source(statement: Statement, words: SourceWords) -> Declaration:
    return Declaration(
        kind=SOURCE,
        name=words.name,
        span=statement.span,
        meaning=text_of(words),
        parts=_parts(statement, "SOURCE", SOURCE, located=False),
        removal=f"DROP SOURCE `{words.name}`",
        called=frozenset({words.name}),
        in_place=True,
    )


def _domain(statement: Statement, node: DomainDefinition) -> Declaration:
    words = domain_words(node)
    assert words is not None
    return Declaration(
        kind=DOMAIN,
        name=words.name,
        span=statement.span,
        meaning=domain_text(words),
        parts=_parts(statement, "DOMAIN", DOMAIN, located=False),
        removal=f"DROP DOMAIN `{words.name}`",
        called=frozenset({words.name}),
        needs=frozenset(each.name for each in words.members),
        in_place=True,
    )


def _declaration(statement: Statement, node: exp.Create) -> Declaration:
    word = str(node.args.get("kind", "")).upper()
    if word not in ("TABLE", "VIEW"):
        raise SyntaxFault(f"CREATE {word} is not there", span=statement.span)
    if node.find(exp.TemporaryProperty) is not None:
        raise not_declared("what is temporary", statement.span)
    if word == "TABLE" and node.expression is not None:
        hint = "make it a materialized view, or a table with `seeds:`"
        raise not_declared("CREATE TABLE ... AS", statement.span, hint)
    name = created_name(node)
    located = node.find(exp.LocationProperty) is not None
    kind = TABLE
    if word == "VIEW":
        kind = MATERIALIZED if node.find(exp.MaterializedProperty) is not None else VIEW
    return Declaration(
        kind=kind,
        name=name,
        span=statement.span,
        meaning=_meaning(statement, word),
        parts=_parts(statement, word, kind, located),
        removal=f"DROP {word} `{name}`",
        called=frozenset({name}),
        needs=frozenset(_mentioned(node)) - {name},
        in_place=not located,
        has_rows=kind == TABLE and not located,
        columns=_columns(node),
    )


def _meaning(statement: Statement, word: str) -> str:
    """Its words from its name on; comments and white space are none."""
    tokens = [token.text for token in DIALECT.tokenize(statement.text)]
    start = [token.upper() for token in tokens].index(word) + 1
    return " ".join([word, *_without_if_not_exists(tokens[start:])])


def _without_if_not_exists(words: list[str]) -> list[str]:
    return words[3:] if [each.upper() for each in words[:3]] == ["IF", "NOT", "EXISTS"] else words


def _parts(statement: Statement, word: str, kind: str, located: bool) -> tuple[Part, ...]:
    """CREATE OR REPLACE VIEW, or CREATE OR ALTER TABLE, and the rest as it is written."""
    tokens = DIALECT.tokenize(statement.text)
    at = next(i for i, token in enumerate(tokens) if token.text.upper() == word)
    upper = [token.text.upper() for token in tokens[at + 1 : at + 4]]
    last = tokens[at + 3] if upper == ["IF", "NOT", "EXISTS"] else tokens[at]
    rest = Part(statement.text[last.end + 1 :], statement.offset + last.end + 1)
    if kind == TABLE:
        return Part("CREATE TABLE" if located else "CREATE OR ALTER TABLE"), rest
    verb = "ALTER" if kind == SOURCE else "REPLACE"
    return Part(f"CREATE OR {verb} {kind.upper()}"), rest


def _mentioned(node: exp.Create) -> Iterator[str]:
    """The tables of its query, or those that its keys refer to; and the functions it calls."""
    own = {each.alias_or_name.lower() for each in node.find_all(exp.CTE)}
    for table in node.find_all(exp.Table):
        if table.name.lower() not in own:
            yield table.name.lower()
    for call in node.find_all(exp.Anonymous):
        yield str(call.this).lower()


def _columns(node: exp.Create) -> tuple[str, ...]:
    if not isinstance(node.this, exp.Schema):
        return ()
    return tuple(e.name.lower() for e in node.this.expressions if isinstance(e, exp.ColumnDef))
