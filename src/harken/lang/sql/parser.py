"""A text of SQL into statements, each with its place in the text.

sqlglot parses, in the dialect of Spark; what it makes is checked and translated by us, and no text
of a user is ever handed to an engine.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import HarkenError, LanguageError, Span, SyntaxFault, ValueFault, nearest
from harken.lang.sql.continual_statements import Continual, verb_of, with_clauses
from harken.lang.sql.domain_statements import read_domain_statement
from harken.lang.sql.grant_statements import read_granting
from harken.lang.sql.normalization import normalized_throughout
from harken.lang.sql.other_dialects import PARTS, TYPES, Advice, advice, misspelt, sign_advice
from harken.lang.sql.source_statements import read_source_statement
from harken.lang.sql.strict_parser import LONGEST_NUMBER, StrictParser, complaints
from harken.lang.sql.supported_syntax import unknown_parts
from harken.lang.sql.template_statements import read_message_statement
from harken.settings import SETTINGS
from harken.stack import NESTED, room_for

KEPT = (
    "log2",
    "log10",
    "shiftleft",
    "shiftright",
    "shiftrightunsigned",
    "group_concat",
    "date_format",
    *("to_date", "try_to_date", "to_timestamp", "try_to_timestamp", "from_unixtime"),
    *("make_timestamp", "try_mod", "trunc", "truncate", "date_trunc", "date_sub"),
    *("unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros"),
    *("timestamp_seconds", "timestamp_millis", "timestamp_micros"),
    *("width_bucket", "elt", "format_number", "conv", "bround", "hex"),
    *("sec", "csc", "to_char", "current_database", "current_schema"),
)


def _called(name: str) -> Callable[..., exp.Expr]:
    return lambda given: exp.Anonymous(this=name, expressions=given)


def _is_of(part: exp.Expr, given: exp.Expr) -> bool:
    """Is it what was given, or the unit that it names, as in dateadd(DAY, a, b)?"""
    return part == given or (isinstance(part, exp.Var) and part.name.lower() == given.name.lower())


def _all_of(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """A function of sqlglot's that keeps the columns and constants that it is given: a call of
    which it drops one is one that it does not know."""

    def built(given: list[exp.Expr], **options: object) -> exp.Expr:
        made = build(given, **options)
        kinds = (exp.Column, exp.Literal)
        asked = [each for each in given if isinstance(each, exp.Expr) and each.find(*kinds)]
        parts = list(made.walk()) if asked else []
        if all(sum(_is_of(part, e) for part in parts) >= asked.count(e) for e in asked):
            return made
        return exp.Anonymous(this=name.lower(), expressions=given)

    return built


class HarkenSpark(Spark):
    """Spark's dialect, in which '' inside of a text is a quote since Spark 4; sqlglot reads it as
    Spark did before."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'"]

    class Parser(StrictParser):
        SUPPORTS_TABLE_QUERY = True
        # It has log10(x) as log(10, x), which has other last digits, the patterns of date_format as
        # those of C, which say less, and shiftleft(a | b, c) as a | b << c, in which the other
        # operator is stronger; more units of trunc than there are; and group_concat, which is not
        # Spark's and has a comma where nothing is said, as string_agg, which has none.
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            **{name: _all_of(name, each) for name, each in StrictParser.FUNCTIONS.items()},
            **{name.upper(): _called(name) for name in KEPT},
        }

        def _parse_distinct_arg_function(self, func: Any, distinct_index: int = 0) -> Any:
            """percentile(x, 0.5, often), of which sqlglot drops the last, is not known."""
            start = self._index
            made = super()._parse_distinct_arg_function(func, distinct_index)
            if self._given_since(start) <= len(func.arg_types):
                return made
            return exp.Anonymous(this="percentile", expressions=[made.this])

        def _parse_position(self, haystack_first: bool = False) -> Any:
            """position(a, b, 1, 2), of which sqlglot drops the last, is not known."""
            start = self._index
            made = super()._parse_position(haystack_first)
            if self._given_since(start) <= 3:
                return made
            return exp.Anonymous(this="position", expressions=[made.this])

        def _given_since(self, start: int) -> int:
            """How many arguments there are between the parentheses of a function."""
            depth, given = 0, 1
            for token in self._tokens[start : self._index]:
                depth += token.token_type is TokenType.L_PAREN
                depth -= token.token_type is TokenType.R_PAREN
                given += depth == 0 and token.token_type is TokenType.COMMA
            return given

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            """Of any expressions, conditions among them."""
            kinds: dict[TokenType, type[exp.Cube | exp.Rollup]] = {
                TokenType.CUBE: exp.Cube,
                TokenType.ROLLUP: exp.Rollup,
            }
            kind = next((kind for token, kind in kinds.items() if self._match(token)), None)
            if kind is None:
                return None
            given = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
            made: exp.Cube | exp.Rollup = kind(expressions=given)
            return made

        def _is_table_query(self) -> bool:
            """`(table INT, ...` declares a column."""
            return super()._is_table_query() and self._next.token_type not in self.TYPE_TOKENS


DIALECT = HarkenSpark()
TRANSACTIONS = {
    ("START", "TRANSACTION"): exp.Transaction,
    ("BEGIN", "TRANSACTION"): exp.Transaction,
    ("BEGIN", "WORK"): exp.Transaction,
    ("COMMIT", "WORK"): exp.Commit,
    ("ROLLBACK", "WORK"): exp.Rollback,
    ("END",): exp.Commit,
    ("ABORT",): exp.Rollback,
}

NAMES = [setting.name for setting in SETTINGS]
_SET = re.compile(r"SET\s+(\w+)\s*(?:=|\bTO\b)\s*(\S+|'[^']*'|\"[^\"]*\")", re.IGNORECASE)
SYSTEMS_OWN = {
    "SHOW": "SHOW TABLES, VIEWS, SETTINGS, COLUMNS IN t, SHOW with the name of a setting, and "
    "DESCRIBE t are there",
    "DESCRIBE": "DESCRIBE takes the name of a table or view",
    "DESC": "DESCRIBE takes the name of a table or view",
    "REFRESH": "a materialized view is always up to date; REFRESH MATERIALIZED VIEW v is there",
    "ANALYZE": "Harken counts rows itself",
    "CACHE": "CREATE MATERIALIZED VIEW keeps the rows of a query",
    "SET": "write SET name = value, with a number or a text; SHOW SETTINGS lists the names",
    "USE": "a file is a database, and has no others in it",
    "COPY": "CREATE TABLE ... USING lake LOCATION '...' reads files",
    "REPLACE": "INSERT INTO ... ON CONFLICT (key) DO UPDATE SET ... changes rows that are there",
    "VACUUM": "a file needs no vacuum",
}
"""What other systems have, and what to do here."""
STATEMENTS = (
    *("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"),
    *("SELECT", "WITH", "VALUES", "EXPLAIN", "BEGIN", "COMMIT", "ROLLBACK", "FROM", "TABLE"),
)
_LISTED = f"{', '.join(STATEMENTS[:-3])} and {STATEMENTS[-3]} are there"
_OTHER_FORMS = "there are other forms of it, which docs/sql.md lists"
UNFINISHED = frozenset({"TABLE", "VIEW", "COLUMN", "ADD", "DROP", "ALTER", "RENAME", "TO", "AS"})
"""Words after which a statement cannot end."""
LONGEST_TRIED = 2000
"""Characters of the longest statement that is tried with another word, to find a typing error."""
CONTEXT = 100
"""So much of the text before an error the parser remembers."""

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # we report unknown syntax ourselves


@dataclass(frozen=True, slots=True)
class Statement:
    """`explained` says that it stands behind EXPLAIN; `key` are the columns of KEY (...) at the end
    of CREATE TABLE. What it draws by chance is of its own `lot`. `values` are those lifted out of
    it (`lifting`); `queries` keeps what its queries were compiled to, for all statements that
    differ in the values only."""

    node: exp.Expr
    text: str
    offset: int
    explained: bool = False
    key: tuple[str, ...] = ()
    lot: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)
    values: tuple[Any, ...] = field(default=(), compare=False)
    queries: dict[str, Any] | None = field(default=None, compare=False)

    def with_values(self, values: tuple[Any, ...]) -> Statement:
        return replace(self, values=values)

    @property
    def span(self) -> Span:
        return Span(self.offset, self.offset + len(self.text))

    def place(self, node: exp.Expr) -> Span:
        """Where a part of the statement is; the whole of it if the part does not know."""
        found = [each.meta for each in node.walk() if isinstance(each.meta.get("start"), int)]
        if not found:
            return self.span
        start = min(meta["start"] for meta in found)
        end = max(meta["end"] for meta in found)
        return Span(self.offset + start, self.offset + end + 1)


@room_for(NESTED)
def statements(text: str) -> list[Statement]:
    return [each for part in _parts(text) for each in _statement(text, part)]


def cut(text: str) -> list[tuple[int, str]]:
    """The statements of a text as they are written, each with its place; the last is what follows
    the last semicolon, if anything does."""
    parts = [part for part in _parts(text) if part]
    return [(part[0].start, text[part[0].start : part[-1].end + 1]) for part in parts]


def text_after(word: str, statement: Statement) -> str:
    """The text after the first occurrence of a word."""
    tokens = DIALECT.tokenize(statement.text)
    end = next(token.end for token in tokens if token.text.upper() == word)
    return statement.text[end + 1 :].strip()


def is_closed(text: str) -> bool:
    """Is this nothing but whole statements, each with its semicolon?"""
    try:
        return not _parts(text)[-1]
    except HarkenError:
        return False


def _parts(text: str) -> list[list[Token]]:
    """The words of each statement; those after the last semicolon come last, if only none."""
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError as error:
        raise SyntaxFault(
            "a text or a comment is not closed",
            code="syntax",
            span=Span(0, len(text)),
            hint="a quote inside of a text is written twice: 'it''s'",
        ) from error
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
            continue
        if token.token_type is TokenType.NUMBER and len(token.text) > LONGEST_NUMBER:
            raise ValueFault(
                f"this number has {len(token.text):,} digits",
                code="overflow",
                span=Span(token.start, token.end + 1),
                hint="whole numbers have 64 bits, decimals at most 38 digits",
            )
        found[-1].append(token)
    return with_clauses(found)


def fragment(text: str) -> exp.Expr:
    """An expression of our own."""
    (node,) = DIALECT.parse(f"SELECT {text}")
    assert isinstance(node, exp.Select)
    return normalized_throughout(node.expressions[0].pop())


def _statement(text: str, tokens: list[Token]) -> list[Statement]:
    if not tokens:
        return []
    explained = tokens[0].text.upper() == "EXPLAIN" and len(tokens) > 1
    first = tokens[0]
    start, end = first.start, tokens[-1].end + 1
    if explained:  # all that follows is one token, which does not know where it starts
        start = first.end + 1
        start += len(text[start:end]) - len(text[start:end].lstrip())
    own = text[start:end]
    words = tuple(token.text.upper() for token in tokens)
    if words in TRANSACTIONS:
        return [Statement(TRANSACTIONS[words](), own, start)]
    continual = verb_of(own, explained)
    if continual is not None:
        return [Statement(Continual(this=continual), own, start)]
    asked = None if explained else _own_statement(own, tokens)
    if asked is not None:
        return [Statement(asked, own, start)]
    other = advice(text[first.start : end])
    if other is not None:
        raise _not_here(other, text, first.start)
    key = _key_at_the_end(tokens)
    parsed = own if not key else text[start : tokens[-2 * len(key) - 2].start]
    try:
        (node,) = DIALECT.parse(parsed)
    except ParseError as error:
        is_unfinished = tokens[-1].text.upper() in UNFINISHED
        mistyped = None if is_unfinished else _mistyped(own, start, tokens)
        raise mistyped or _fault(error, own, start) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise SyntaxFault(  # sqlglot trips over some texts that are no SQL
            "this statement cannot be read", code="syntax", span=Span(start, start + len(own))
        ) from error
    word = own.split()[0].upper()
    is_known = isinstance(node, exp.Expr) and not isinstance(node, exp.Command | exp.Alias)
    if not is_known or (word in SYSTEMS_OWN and not explained):
        last = tokens[-1].text.upper()
        if word in STATEMENTS and (len(tokens) == 1 or last in UNFINISHED):
            raise SyntaxFault(
                f"something is missing after {last}",
                code="syntax",
                span=Span(tokens[-1].start, tokens[-1].end + 1),
            )
        mistyped = None if word in SYSTEMS_OWN else _mistyped(own, start, tokens)
        if mistyped is not None:
            raise mistyped
        raise SyntaxFault(
            f"this form of {word} is not in Harken's SQL"
            if word in (*STATEMENTS, "SHOW", "DESCRIBE", "DESC", "REFRESH", "SET")
            else f"there is no statement {word} in Harken's SQL",
            code="syntax",
            span=Span(start, start + len(word)),
            hint=SYSTEMS_OWN.get(word, _OTHER_FORMS if word in STATEMENTS else _LISTED),
        )
    assert isinstance(node, exp.Expr)
    statement = Statement(normalized_throughout(node), own, start, explained, key)
    _check_words(DIALECT.tokenize(own) if explained else tokens, start if explained else 0)
    for part, what in unknown_parts(statement.node):
        raise LanguageError(
            f"{what} is not in Harken's SQL",
            code="unsupported",
            span=statement.place(part),
            hint=PARTS.get(what),
        )
    return [statement]


def _own_statement(text: str, tokens: list[Token]) -> exp.Expr | None:
    return (
        read_granting(tokens, DIALECT.tokenize)
        or read_source_statement(tokens)
        or read_domain_statement(tokens)
        or read_message_statement(tokens)
        or _question(text)
    )


def _not_here(other: Advice, text: str, start: int, offset: int = 0) -> SyntaxFault:
    """The error points to the words that the advice is about."""
    end = [each.end() for each in re.finditer(r"\S+", text[start:])][other.words - 1]
    return SyntaxFault(
        f"there is no statement {other.title} in Harken's SQL",
        code="syntax",
        span=Span(offset + start, offset + start + end),
        hint=other.hint,
    )


def _mistyped(own: str, start: int, tokens: list[Token]) -> SyntaxFault | None:
    """What is wrong with a statement that cannot be read, if one word or its beginning tells."""

    def reads(place: int, keyword: str) -> bool:
        token = tokens[place]
        tried = own[: token.start - start] + keyword + own[token.end + 1 - start :]
        try:
            return not isinstance(DIALECT.parse(tried)[0], exp.Command | exp.Alias | None)
        except (ParseError, TokenError):
            return False

    found = None
    if len(own) <= LONGEST_TRIED:
        found = misspelt([token.text.upper() for token in tokens], reads)
    if found is not None:
        token = tokens[found[0]]
        return SyntaxFault(
            f"{token.text} cannot stand here",
            code="syntax",
            span=Span(token.start, token.end + 1),
            hint=f"did you mean {found[1]}?",
        )
    other = advice(own, unread=True)
    return None if other is None else _not_here(other, own, 0, start)


def _check_words(tokens: list[Token], offset: int) -> None:
    for token, is_misplaced in complaints(tokens):
        word = token.text or "``"
        raise SyntaxFault(
            f"{word} cannot stand here" if is_misplaced else f"something is missing after {word}",
            code="syntax",
            span=Span(offset + token.start, offset + token.end + 1),
        )


def _question(text: str) -> exp.Expr | None:
    """SHOW TABLES, DESCRIBE t, REFRESH MATERIALIZED VIEW v, SET name = value and SHOW name, which
    sqlglot reads in part."""
    given = _SET.fullmatch(text)
    if given is not None:
        return exp.Set(this=exp.var(given[1].lower()), expression=_plain_value(given[2]))
    *words, last = text.split()
    named = exp.Table(this=exp.to_identifier(last.strip("`")))
    named.this.meta.update(start=len(text) - len(last), end=len(text) - 1)
    match [word.upper() for word in words]:
        case ["SHOW"] if last.upper() in ("TABLES", "VIEWS", "SETTINGS"):
            return exp.Show(this=exp.var(last.upper()))
        case ["SHOW"] if last.lower() in NAMES or nearest(last, NAMES):
            return exp.Show(this=exp.var(last.lower()))
        case ["DESCRIBE" | "DESC"] | ["DESCRIBE" | "DESC", "TABLE" | "EXTENDED"]:
            return exp.Describe(this=named)
        case ["SHOW", "COLUMNS", "IN" | "FROM"]:
            return exp.Describe(this=named)
        case ["REFRESH", "MATERIALIZED", "VIEW"]:
            return exp.Refresh(this=named, kind="MATERIALIZED VIEW")
    return None


def _plain_value(text: str) -> exp.Expr:
    """What SET gives: a number, a word, or a text in quotes."""
    if text.upper() == "DEFAULT":
        return exp.var(text)
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return exp.Literal.string(text[1:-1] if is_quoted else text)


def _key_at_the_end(tokens: list[Token]) -> tuple[str, ...]:
    """The columns of CREATE TABLE ... KEY (a, b), which sqlglot does not know."""
    words = [token.text.upper() for token in tokens]
    if words[:2] != ["CREATE", "TABLE"] or words[-1] != ")" or "KEY" not in words:
        return ()
    start = len(words) - words[::-1].index("KEY")
    names, separators = tokens[start + 1 : -1 : 2], words[start + 2 : -1 : 2]
    ours = words[start - 2] not in ("PRIMARY", "FOREIGN") and words[start] == "("
    if not ours or len(names) != len(separators) + 1 or set(separators) > {","}:
        return ()
    return tuple(token.text.lower() for token in names)


def _fault(error: ParseError, text: str, offset: int) -> SyntaxFault:
    """Where the parser stopped, in our words; its own messages are about its internals."""
    first = text.split()[0]
    if not first.startswith("(") and first.upper() not in STATEMENTS:
        near = None if first.upper() in SYSTEMS_OWN else nearest(first.upper(), STATEMENTS)
        return SyntaxFault(
            f"there is no statement {first.upper()} in Harken's SQL",
            code="syntax",
            span=Span(offset, offset + len(first)),
            hint=f"did you mean {near}?" if near else SYSTEMS_OWN.get(first.upper(), _LISTED),
        )
    details = error.errors[0] if error.errors else {}
    word = str(details.get("highlight") or "")
    place = len(str(details.get("start_context") or ""))
    if len(text) > CONTEXT or text[place : place + len(word)] != word:
        place = _offset(text, details.get("line"), details.get("col"), len(word))
    if word.upper() in TYPES:
        return SyntaxFault(
            f"there is no type {word.upper()}",
            code="syntax",
            span=Span(offset + place, offset + place + len(word)),
            hint=f"take {TYPES[word.upper()]}",
        )
    unexpected = "Unexpected token" in str(details.get("description"))
    return SyntaxFault(
        f"{word} cannot stand here" if unexpected else f"something is missing after {word}",
        code="syntax",
        span=Span(offset + place, offset + max(place + len(word), place + 1)),
        hint=sign_advice(text, place),
    )


def _offset(text: str, line: int | None, column: int | None, length: int) -> int:
    """Where a word begins, of which the line and the column of its end are known."""
    if line is None or column is None:
        return max(0, len(text) - length)
    before = text.split("\n")[: line - 1]
    return max(0, sum(len(each) + 1 for each in before) + column - length)
