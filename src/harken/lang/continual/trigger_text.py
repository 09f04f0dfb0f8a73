"""The text of a content trigger into its syntax.

    WHEN stock.price DECBYP 5 WHERE stock.company = 'Bayer AG'
    STOCK.price DECBYP 5 WHERE STOCK.companyname = 'IBM' OR MAX(STOCK.trans_volume) < 2390000

The second is the layout of the thesis, which has no WHEN. There AND and OR after WHERE or GROUPBY
join groups, and `^` joins conditions inside of a WHERE. After WHEN or WHILE a WHERE is that of SQL:
it takes everything before it, and AND and OR in it belong to it; so do GROUP BY and FOR MORE THAN.

From weak to strong: ELSE, THEN, OR, AND, NOT.
"""

from __future__ import annotations

from collections.abc import Sequence as Words
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from harken.errors import Span, SyntaxFault, offered
from harken.ir.event_trees import Length
from harken.lang.continual.condition_words import (
    LEADING,
    WordReader,
    clause_end,
    is_bare_event,
    is_event_in_parentheses,
    word,
)
from harken.lang.continual.row_tests import test_of, tokens_of
from harken.lang.continual.syntax import (
    OPERATORS,
    All,
    Alternative,
    AnyChange,
    Condition,
    Either,
    Group,
    Lasting,
    Negation,
    Parallel,
    RowEvent,
    Sequence,
    Signal,
    Trend,
    Trigger,
)

LONGEST = 20_000
"""Characters of the longest trigger that is read."""
DEEPEST = 50
"""How deep conditions may be nested in parentheses."""
AFTER_WHERE = frozenset({"AND", "OR"})
"""What ends a WHERE in the layout of the thesis."""
UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
EVENTS = ("INSERT", "UPDATE", "DELETE")


@lru_cache(maxsize=1024)
def read_trigger(text: str) -> Trigger:
    """The trigger that a text says; the text may begin with WHEN or WHILE."""
    if len(text) > LONGEST:
        raise SyntaxFault(
            f"this trigger has {len(text):,} characters",
            code="syntax",
            span=Span(0, len(text)),
            hint=f"at most {LONGEST:,} are read; a view can hold a long condition",
        )
    tokens = tokens_of(text)
    lead = word(tokens[0]) if tokens else ""
    of_thesis = lead not in LEADING
    start = 1 if lead in ("WHEN", "WHILE") else 0
    parser = _Parser(text, tokens, start, of_thesis)
    return Trigger(parser.whole(), lead == "WHILE", text.strip())


_SCHEDULES = frozenset({"EVERY", "AT", "AFTER", "ON", "DAILY", "HOURLY", "WEEKLY", "MONTHLY"})
_TESTING = frozenset(
    (
        *("CHANGES", "CONTAINS", "LIKE", "IN", "BETWEEN", "IS", "EXISTS", "NOT", "SIGNAL"),
        *("=", "<>", "!=", "<", ">", "<=", ">=", "≤", "≥", "≠", *OPERATORS),
    )
)


def is_condition(text: str) -> bool:
    """Whether a text is meant as a content trigger: it begins as one, or tests something."""
    words = [word(each) for each in tokens_of(text)]
    if not words:
        return False
    if words[0] == "ON":
        return words[1:2] != ["REQUEST"]
    if words[0] in (*LEADING, *EVENTS, "FROM", "ALL", "ANY"):
        return True
    return words[0] not in _SCHEDULES and not _TESTING.union(EVENTS).isdisjoint(words)


class _Parser:
    def __init__(self, text: str, tokens: list[Token], start: int, of_thesis: bool) -> None:
        self._text = text
        self._words = WordReader(text, tokens, start)
        self._of_thesis = of_thesis
        self._depth = 0

    def whole(self) -> Condition:
        if self._words.is_done:
            raise self._words.fault("a condition is missing")
        found = self._alternative()
        self._words.takes(";")
        if not self._words.is_done:
            raise self._words.unexpected()
        return found

    # --- what joins conditions -------------------------------------------------------------

    def _alternative(self) -> Condition:
        parts = [self._sequence()]
        while self._words.takes("ELSE"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternative(tuple(parts))

    def _sequence(self) -> Condition:
        parts = [self._either()]
        while self._words.takes("THEN"):
            parts.append(self._either())
        within = self._within()
        if len(parts) > 1:
            return Sequence(tuple(parts), within)
        if within is not None:
            raise self._words.fault(
                "WITHIN says how close events must be, and there is only one",
                hint="write a THEN b WITHIN 10 MINUTES, or ALL OF (a, b) WITHIN 10 MINUTES",
            )
        return parts[0]

    def _either(self) -> Condition:
        parts = [self._all()]
        while self._words.takes("OR"):
            parts.append(self._all())
        found = parts[0] if len(parts) == 1 else Either(tuple(parts))
        return found if self._of_thesis else self._lasting(self._with_clauses(found))

    def _all(self) -> Condition:
        parts = [self._negation()]
        while self._words.takes("AND") or self._words.takes("^"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _negation(self) -> Condition:
        found = self._negated()
        return self._lasting(found) if self._of_thesis else found

    def _negated(self) -> Condition:
        return Negation(self._negated()) if self._words.takes("NOT") else self._primary()

    def _lasting(self, part: Condition) -> Condition:
        start = self._words.span
        length = self._for()
        return part if length is None else Lasting(part, *length, span=start)

    # --- one condition ---------------------------------------------------------------------

    def _primary(self) -> Condition:
        words = self._words
        if words.takes("ALL", "OF"):
            parts = self._listed()
            return Parallel(parts, self._within())
        if words.takes("ANY", "OF"):
            return Either(self._listed())
        if words.takes("SIGNAL"):
            span = words.span
            return Signal(words.name("the name of the signal"), span)
        if words.sees("ON"):
            return self._row_event()
        if is_bare_event(words.left, EVENTS, _TESTING):
            return self._bare_event()
        if words.sees("FROM"):
            return self._any_change()
        if words.sees("(") and is_event_in_parentheses(words.left):
            return self._in_parentheses()
        return self._group()

    def _listed(self) -> tuple[Condition, ...]:
        words = self._words
        words.need("(")
        parts = [self._nested()]
        while words.takes(","):
            parts.append(self._nested())
        words.need(")")
        return tuple(parts)

    def _nested(self) -> Condition:
        if self._depth >= DEEPEST:
            raise self._words.fault(
                f"more than {DEEPEST} parentheses in one another",
                hint="a view can hold a long condition",
            )
        self._depth += 1
        found = self._alternative()
        self._depth -= 1
        return found

    def _in_parentheses(self) -> Condition:
        words = self._words
        words.need("(")
        found = self._nested()
        words.need(")")
        return self._with_clauses(found) if self._of_thesis else found

    def _with_clauses(self, found: Condition) -> Condition:
        """(a OR b) WHERE c: the WHERE is that of each group inside that has none."""
        start = self._words.span
        where, by = self._where(), self._group_by()
        if where is None and not by:
            return found
        return _restricted(found, where, by, start)

    def _row_event(self) -> RowEvent:
        words = self._words
        start = words.span
        words.need("ON")
        kinds = [self._event_kind()]
        while words.takes("OR") or words.takes(","):
            kinds.append(self._event_kind())
        if not words.takes("OF"):
            words.need("ON")
        return self._event_of(kinds, start)

    def _event_of(self, kinds: list[str], start: Span) -> RowEvent:
        words = self._words
        columns: tuple[str, ...] = ()
        table = words.table_name()
        if words.takes("("):
            named = [words.name("the name of a column")]
            while words.takes(","):
                named.append(words.name("the name of a column"))
            words.need(")")
            columns = tuple(named)
        span = Span(start.start, words.last_end)
        return RowEvent(frozenset(kinds), table, columns, self._where(), span)

    def _bare_event(self) -> RowEvent:
        """UPDATE stock.price, INSERT INTO stock, and the thesis's UPDATE qty_on_hand(item)."""
        words = self._words
        start = words.span
        kinds = [self._event_kind()]
        while words.takes("OR"):
            kinds.append(self._event_kind())
        if words.takes("OF"):
            return self._event_of(kinds, start)
        words.one_of(("ON", "INTO", "FROM"))
        table, columns = words.table_name(), tuple[str, ...]()
        if table.count(".") == 1:
            table, column = table.split(".")
            columns = (column,)
        elif words.takes("("):
            table, columns = words.name("the name of a table"), (table,)
            words.need(")")
        span = Span(start.start, words.last_end)
        return RowEvent(frozenset(kinds), table, columns, self._where(), span)

    def _event_kind(self) -> str:
        found = self._words.one_of(EVENTS)
        if found is None:
            seen = self._words.seen
            raise self._words.fault(
                f"{seen or 'nothing'} is no event of a table",
                hint=offered(seen, EVENTS, "events") if seen else "write INSERT, UPDATE or DELETE",
            )
        return found

    def _any_change(self) -> AnyChange:
        words = self._words
        start = words.span
        words.need("FROM")
        tables = [words.table_name()]
        while words.takes(","):
            tables.append(words.table_name())
        span = Span(start.start, words.last_end)
        return AnyChange(tuple(tables), self._where(plain=True), span)

    # --- groups ----------------------------------------------------------------------------

    def _group(self) -> Condition:
        words = self._words
        start = words.span
        test = self._test(words.until(clause_end(words.left)), start.start)
        trend = self._trend(test, start)
        if trend is not None:
            return trend
        if not self._of_thesis:
            return Group(test, Span(start.start, words.last_end))
        where, by = self._where(), self._group_by()
        return Group(test, Span(start.start, words.last_end), where, by)

    def _test(self, tokens: Words[Token], start: int) -> exp.Expr:
        return test_of(self._text, tokens, start)

    def _where(self, plain: bool = False) -> exp.Expr | None:
        """`plain` is a WHERE of SQL in every layout."""
        words = self._words
        if not words.takes("WHERE"):
            return None
        ends = AFTER_WHERE if self._of_thesis and not plain else ()
        start = words.last_end
        found = self._test(words.until(clause_end(words.left, ends)), start)
        if words.sees("WHERE"):
            raise words.fault(
                "a second WHERE",
                hint="a WHERE takes everything before it: put conditions in parentheses, "
                "(a WHERE b) OR (c WHERE d)",
            )
        return found

    def _group_by(self) -> tuple[exp.Expr, ...]:
        words = self._words
        if not (words.takes("GROUPBY") or words.takes("GROUP BY")):
            return ()
        start = words.last_end
        found = [self._test(words.until(clause_end(words.left)), start)]
        while self._depth == 0 and words.takes(","):
            found.append(self._test(words.until(clause_end(words.left)), start))
        return tuple(found)

    # --- time ------------------------------------------------------------------------------

    def _trend(self, test: exp.Expr, start: Span) -> Trend | None:
        """x INCREASED MONOTONICALLY FOR 2 HOURS."""
        words = self._words
        said = words.one_of(("INCREASED", "DECREASED", "INCREASES", "DECREASES"))
        if said is None:
            return None
        words.need("MONOTONICALLY")
        where = self._where()
        words.need("FOR")
        length = self._length()
        where = where or self._where()
        span = Span(start.start, words.last_end)
        return Trend(test, said.startswith("INC"), length, span, where)

    def _for(self) -> tuple[Length, bool] | None:
        words = self._words
        if not words.takes("FOR"):
            return None
        longer = words.takes("MORE", "THAN")
        if not longer:
            words.takes("AT", "LEAST")
        return self._length(), longer

    def _within(self) -> Length | None:
        return self._length() if self._words.takes("WITHIN") else None

    def _length(self) -> Length:
        words = self._words
        amount = words.whole_number()
        unit = words.one_of((*UNITS, *(f"{each}S" for each in UNITS)))
        if unit is None:
            seen = words.seen
            raise words.fault(
                "the unit of time is missing" if seen is None else f"{seen} is no unit of time",
                hint=offered(seen or "", UNITS, "units"),
            )
        return Length(amount, unit.removesuffix("S"))


def _restricted(
    condition: Condition, where: exp.Expr | None, by: tuple[exp.Expr, ...], span: Span
) -> Condition:
    match condition:
        case Group(test, span, before, groups):
            return Group(test, span, _and(before, where), groups or by)
        case Trend() if not by:
            return replace(condition, where=_and(condition.where, where))
        case AnyChange() | RowEvent() if not by:
            return replace(condition, where=_and(condition.where, where))
        case Lasting():
            return replace(condition, part=_restricted(condition.part, where, by, span))
        case All(parts):
            return All(tuple(_restricted(each, where, by, span) for each in parts))
        case Either(parts):
            return Either(tuple(_restricted(each, where, by, span) for each in parts))
        case Negation(part):
            return Negation(_restricted(part, where, by, span))
    raise SyntaxFault(
        "WHERE and GROUP BY belong to conditions on rows",
        code="syntax",
        span=span,
        hint="write them inside the parentheses",
    )


def _and(first: exp.Expr | None, second: exp.Expr | None) -> exp.Expr | None:
    if first is None or second is None:
        return first if second is None else second
    return exp.and_(first.copy(), second.copy())
