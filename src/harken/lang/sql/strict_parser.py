"""Words that SQL demands and sqlglot treats as optional.

sqlglot reads many dialects and is lenient: it skips a missing THEN, an empty USING () or a trailing
comma. Spark's parser rejects all of them, and so does this one.

Law: a text that is accepted here, and uses nothing but Spark's syntax, is accepted by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

LONGEST_NUMBER = 1_000
"""Characters of the longest number that is read. A DOUBLE written out in full has at most 767
significant digits; Python refuses to convert more than 4,300."""

_T = TokenType
_OPENING = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET}
_CLOSING = frozenset(_OPENING.values())
_CLAUSES = frozenset(
    {_T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.ORDER_BY, _T.UNION, _T.INTERSECT, _T.THEN}
)
_FULL = tuple([word] for word in ("UNIQUE", "KEY", "CONFLICT", "EXCEPT", "INSERT"))
"""Words whose parentheses cannot be empty."""
_WITH_FROM = (["SUBSTRING"], ["SUBSTR"], ["TRIM"], ["EXTRACT"], ["OVERLAY"])
"""Functions with a FROM between their arguments."""
_ONCE = frozenset({"ADD", "RENAME", "TEMPORARY", "MATERIALIZED", "SET", "INTO", "FROM"})
"""Words that never follow themselves."""

Complaint = tuple[Token, bool]
"""A token, and whether it cannot stand there; otherwise something is missing after it."""


def _parameter(parser: Any) -> exp.Expr | None:
    """`?` or `:name`, with its place in the text."""
    first = parser._prev
    if first.token_type is _T.PLACEHOLDER:
        return exp.Placeholder().update_positions(first)
    if not parser._match_set(parser.COLON_PLACEHOLDER_TOKENS):
        return None
    made = exp.Placeholder(this=parser._prev.text)
    made.meta.update(start=first.start, end=parser._prev.end)
    return made


class StrictParser(SparkParser):
    """Spark's parser of sqlglot, strict about the words between the expressions."""

    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Callable[[Any], Any]]] = {
        **SparkParser.PLACEHOLDER_PARSERS,
        _T.PLACEHOLDER: _parameter,
        _T.COLON: _parameter,
    }

    def _missing(self) -> None:
        self.raise_error("Something is missing", self._prev)

    def _unexpected(self) -> None:
        self.raise_error("Unexpected token", self._curr or self._prev)

    def _expect(self, *types: TokenType) -> None:
        if self._curr is None or self._curr.token_type not in types:
            self._missing()

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = _T.COMMA) -> list[Any]:
        found = parse_method()
        if found is None and self._match(sep, advance=False):
            self._unexpected()
        items = [] if found is None else [found]
        while self._match(sep):
            if isinstance(found, exp.Expr):
                self._add_comments(found)
            found = parse_method()
            if found is None:
                self._missing()
            items.append(found)
        return items

    # --- queries ---------------------------------------------------------------------------

    def _parse_join(self, *given: Any, **options: Any) -> exp.Join | None:
        comma = self._match(_T.COMMA, advance=False)
        if comma:
            self._advance()
            if not self._curr or self._curr.token_type in _CLAUSES | _CLOSING | {_T.COMMA}:
                self._missing()
            self._retreat(self._index - 1)
        join = super()._parse_join(*given, **options)
        if join is None:
            return None
        if self._prev.token_type in (_T.ON, _T.USING):
            self._missing()
        if join.method == "NATURAL":
            conditional = join.args.get("on") is not None or join.args.get("using")
            if conditional or join.kind == "CROSS" or self._at(_T.ON, _T.USING):
                self.raise_error("Unexpected token", self._prev)
        return join

    def _at(self, *types: TokenType) -> bool:
        return bool(self._curr) and self._curr.token_type in types

    def _parse_using_identifiers(self) -> list[Any]:
        """USING takes plain names of columns, each of them once."""
        self._expect(_T.L_PAREN)
        names = self._parse_wrapped_csv(self._parse_id_var)
        if not names or len({each.name.lower() for each in names}) < len(names):
            self.raise_error("Unexpected token", self._prev)
        return names

    def _parse_table_alias(self, *given: Any, **options: Any) -> exp.TableAlias | None:
        start = self._index
        alias = super()._parse_table_alias(*given, **options)
        if alias is None and self._prev.token_type is _T.ALIAS and self._index > start:
            self._missing()
        if alias is not None and alias.this is None:  # VALUES (1) (2): no name, only columns
            self._retreat(start)
            self._unexpected()
        return alias

    def _parse_limit(self, *given: Any, **options: Any) -> exp.Expr | None:
        start = self._index if self._match(_T.FETCH, advance=False) else None
        found = super()._parse_limit(*given, **options)
        if start is not None:
            words = [token.text.upper() for token in self._tokens[start : self._index]]
            ends = (words[-2:] == ["WITH", "TIES"] and words[-3:-2]) or words[-2:-1]
            ended = words[-1] in ("ONLY", "TIES") and ends and ends[-1] in ("ROW", "ROWS")
            if words[1:2] not in (["FIRST"], ["NEXT"]) or not ended:
                self._missing()
        return found

    def _parse_ordered(self, *given: Any, **options: Any) -> exp.Ordered | None:
        start = self._index
        found = super()._parse_ordered(*given, **options)
        types = [token.token_type for token in self._tokens[start : self._index]]
        if found is not None and types[-2:] == [_T.ASC, _T.DESC]:
            self.raise_error("Unexpected token", self._prev)
        return found

    # --- windows ---------------------------------------------------------------------------

    def _parse_window(self, this: Any, alias: bool = False) -> exp.Expr | None:
        if self._match_pair(_T.FILTER, _T.L_PAREN, advance=False):
            behind = self._tokens[self._index + 2 : self._index + 3]
            if not behind or behind[0].token_type is not _T.WHERE:
                self.raise_error("Something is missing", self._next)
        found = super()._parse_window(this, alias)
        if isinstance(found, exp.Window) and self._prev.token_type is _T.OVER:
            self._missing()
        return found

    def _parse_named_window(self) -> exp.Expr | None:
        name = self._parse_id_var()
        if name is not None:
            self._expect(_T.ALIAS)
            found = self._parse_window(name, alias=True)
            if self._prev.token_type is _T.ALIAS:
                self._missing()
            return found
        return None

    def _parse_partition_by(self) -> list[Any]:
        asked = self._match(_T.PARTITION_BY, advance=False)
        found: list[Any] = super()._parse_partition_by()
        if asked and not found:
            self._missing()
        return found

    def _parse_window_spec(self) -> dict[str, Any]:
        """One end of a frame: ROWS 1 PRECEDING, or ROWS BETWEEN 1 PRECEDING AND CURRENT ROW."""
        before = self._prev.token_type
        if self._at(_T.BETWEEN):
            self._unexpected()
        found: dict[str, Any] = super()._parse_window_spec()
        if found["value"] is None or (found["side"] is None and found["value"] != "CURRENT ROW"):
            self._missing()
        if before is _T.BETWEEN:
            self._expect(_T.AND)
        elif before is not _T.AND and self._at(_T.AND):
            self._unexpected()
        return found

    # --- conditions ------------------------------------------------------------------------

    def _parse_between(self, this: Any) -> exp.Between:
        start = self._index
        found = super()._parse_between(this)
        low, high = found.args.get("low"), found.args.get("high")
        inside = self._tokens[start : self._index]
        if low is None or high is None or not _has_at_the_top(inside, _T.AND):
            self._missing()
        return found

    def _parse_in(self, this: Any, alias: bool = False) -> exp.In:
        found = super()._parse_in(this, alias)
        if not any(found.args.get(key) for key in ("expressions", "query", "field", "unnest")):
            self._missing()
        return found

    def _parse_is(self, this: Any) -> exp.Expr | None:
        """IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM. UNKNOWN is the NULL of a condition:
        its node remembers that."""
        asked = self._next if self._match(_T.NOT, advance=False) else self._curr
        found = super()._parse_is(this)
        test = found.this if isinstance(found, exp.Not) else found
        if isinstance(test, exp.Is):
            if asked.token_type not in (_T.NULL, _T.TRUE, _T.FALSE, _T.UNKNOWN):
                self.raise_error("Unexpected token", asked)
            test.meta["of_condition"] = asked.token_type is _T.UNKNOWN
        return found

    def _parse_case(self) -> exp.Expr | None:
        start = self._index
        found = super()._parse_case()
        if isinstance(found, exp.Case):
            self._check_pairs(self._tokens[start : self._index])
        return found

    def _check_pairs(self, tokens: Sequence[Token]) -> None:
        """Each WHEN has its THEN."""
        waiting: Token | None = None
        for token in _at_the_top(tokens):
            if token.token_type is _T.WHEN and waiting is None:
                waiting = token
            elif token.token_type is _T.THEN and waiting is not None:
                waiting = None
            elif token.token_type in (_T.WHEN, _T.ELSE, _T.END) and waiting is not None:
                self.raise_error("Something is missing", waiting)
        if waiting is not None:
            self.raise_error("Something is missing", waiting)

    # --- changes ---------------------------------------------------------------------------

    def _parse_drop_column(self) -> exp.Drop | exp.Command | None:
        found = super()._parse_drop_column()
        if isinstance(found, exp.Drop) and not found.this and not found.args.get("tables"):
            self._missing()
        return found

    def _parse_insert(self) -> Any:
        self._expect(_T.INTO, _T.OVERWRITE, _T.OR)
        return super()._parse_insert()

    def _parse_update(self) -> exp.Update:
        found = super()._parse_update()
        if not found.expressions:
            self._missing()
        if not all(isinstance(each, exp.EQ) for each in found.expressions):
            self._missing()
        return found

    def _parse_on_conflict(self) -> exp.OnConflict | None:
        start = self._index
        found = super()._parse_on_conflict()
        if found is None:
            return None
        words = {token.text.upper() for token in _at_the_top(self._tokens[start : self._index])}
        needed = {"DO", "UPDATE", "SET"} if "UPDATE" in words else {"DO", "NOTHING"}
        if not needed <= words or ("UPDATE" in words and not found.expressions):
            self._missing()
        return found

    def _parse_merge(self) -> exp.Merge:
        self._expect(_T.INTO)
        return super()._parse_merge()

    def _parse_when_matched(self) -> exp.Whens:
        start = self._index
        found = super()._parse_when_matched()
        tokens = self._tokens[start : self._index]
        self._check_pairs(tokens)
        outer = list(_at_the_top(tokens))
        for place, token in enumerate(outer):
            if token.token_type is _T.WHEN:
                words = [each.text.upper() for each in outer[place + 1 : place + 3]]
                if words[:1] != ["MATCHED"] and words != ["NOT", "MATCHED"]:
                    self.raise_error("Something is missing", token)
        for when in found.expressions:
            self._check_action(when)
        return found

    def _check_action(self, when: exp.Expr) -> None:
        then = when.args.get("then")
        matched = when.args.get("matched") or when.args.get("source")
        match then:
            case exp.Update():
                given = then.args.get("expressions")
                right = matched and isinstance(given, list) and bool(given)  # UPDATE * is none
            case exp.Insert():
                whole = isinstance(then.this, exp.Star)
                values = then.args.get("expression")
                right = not matched and (
                    whole or (isinstance(values, exp.Tuple) and bool(values.expressions))
                )
            case _:
                right = then is not None
        if not right:
            self._missing()


def _at_the_top(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens outside all parentheses and inner CASE expressions."""
    depth = 0
    for token in tokens:
        if token.token_type in _CLOSING:
            depth -= 1
        elif depth > 0 and token.token_type is _T.END:
            depth -= 1
            continue
        if depth <= 0 and token.token_type is not _T.CASE:
            yield token
        if token.token_type in _OPENING or token.token_type is _T.CASE:
            depth += 1


def _has_at_the_top(tokens: Sequence[Token], wanted: TokenType) -> bool:
    return any(token.token_type is wanted for token in _at_the_top(tokens))


# --- the words of a statement --------------------------------------------------------------


def complaints(tokens: Sequence[Token]) -> Iterator[Complaint]:
    """What is wrong with the words of a statement that sqlglot has accepted."""
    yield from _unbalanced(tokens)
    for place, token in enumerate(tokens):
        before = [_word(each) for each in tokens[max(0, place - 3) : place]]
        if _is_misplaced(token, before):
            yield token, True
        if _lacks_something(token, tokens[place + 1] if place + 1 < len(tokens) else None):
            yield token, False
    yield from _view_without_as(tokens)
    yield from _rename_without_to(tokens)


def _word(token: Token) -> str:
    """A word of SQL in capital letters; what stands in quotes is none."""
    return "" if token.token_type in (_T.STRING, _T.IDENTIFIER) else token.text.upper()


def _unbalanced(tokens: Sequence[Token]) -> Iterator[Complaint]:
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENING:
            opened.append(token)
        elif token.token_type in _CLOSING and opened:
            opened.pop()
    if opened:
        yield opened[-1], False


def _is_misplaced(token: Token, before: Sequence[str]) -> bool:
    """`before` are the last three words before it."""
    word = _word(token)
    match token.token_type:
        case _T.STRING:
            return False
        case _T.IDENTIFIER:  # ``
            return not token.text or "\0" in token.text
        case _ if "\0" in word:
            return True
        case _T.R_PAREN if before[-1:] == ["("]:
            return before[-2:-1] in _FULL or before[-3:-2] == ["REFERENCES"]
        case _T.FROM if before[-1:] == ["("]:
            return before[-2:-1] in _WITH_FROM
        case _T.FOR:
            return before[-1:] in (["FROM"], ["FOR"])
        case _T.NULL:
            return before[-1:] == ["NULL"]
    return word in _ONCE and before[-1:] == [word]


def _lacks_something(token: Token, after: Token | None) -> bool:
    ended = after is None or after.token_type in _CLOSING
    match token.token_type:
        case _T.COMMA | _T.FOR | _T.ALIAS:
            return ended
        case _T.AND:
            return after is not None and after.token_type is _T.THEN
    return False


def _view_without_as(tokens: Sequence[Token]) -> Iterator[Complaint]:
    """CREATE VIEW v AS SELECT ...: sqlglot does not miss the AS, or the query."""
    kinds = [token.token_type for token in tokens[:6]]
    if kinds[:1] != [_T.CREATE] or _T.VIEW not in kinds or _T.TABLE in kinds:
        return
    start = kinds.index(_T.VIEW)
    for token in _at_the_top(tokens[start:]):
        if token.token_type in (_T.SELECT, _T.VALUES, _T.FROM, _T.WITH):
            yield token, True
        if token.token_type is _T.ALIAS:
            if token is tokens[-1]:
                yield token, False
            return
    yield tokens[-1], False


def _rename_without_to(tokens: Sequence[Token]) -> Iterator[Complaint]:
    """ALTER TABLE t RENAME TO u."""
    words = [_word(token) for token in tokens]
    if words[:2] == ["ALTER", "TABLE"] and words[3:4] == ["RENAME"] and len(words) == 5:
        yield tokens[3], False
