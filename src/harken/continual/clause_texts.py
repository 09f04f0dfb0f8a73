"""The text of a statement into the clauses of a continual query, in both layouts.

    SELECT ... TRIGGER EVERY DAY STOP AFTER 2 WEEKS DELIVER INSERTED NOTIFY EMAIL '...'
    Query: SELECT ...;  Trigger: every 20 minutes;  Stop: 1 year (default).

The words of clauses may be names of columns in a query, so a clause starts only where the word is
followed by what its clause begins with, outside of parentheses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from harken.continual import local_times, time_texts
from harken.continual.couplings import take_couplings
from harken.continual.query_clauses import (
    STRATEGIES,
    Clauses,
    Deadline,
    Deliver,
    Delivery,
    Shown,
    Stop,
)
from harken.continual.trigger_kinds import SQL, THESIS, Kinds
from harken.continual.words import Reader, Word, depths, words_of
from harken.database.messages import Recipient
from harken.errors import HarkenError, Span, SyntaxFault, offered

QUERY = "QUERY"
NAMES = (
    *("TRIGGER", "STOP", "DELIVER", "NOTIFY", "ZONE", "STRATEGY", "PRIORITY", "DEADLINE", "OWNER"),
    "COUPLING",
)
"""The words that clauses begin with."""
_STOPS = ("AT", "AFTER", "WHEN", "IN", "NEVER", "NEXT", "ON", *time_texts.NUMBERS)
_NOT_BEFORE = frozenset(
    (
        *("SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "BY", "ON", "AS", "FROM", "JOIN"),
        *("IN", "LIKE", "BETWEEN", "HAVING", "CASE", "WHEN", "THEN", "ELSE", "USING", "INTERVAL"),
        *("WITH", "LIMIT", "OFFSET", "IS"),
    )
)
"""After these words comes the name of a column or table."""

_SAID_WRONG = frozenset({"STOP", "DELIVER", "STRATEGY", "PRIORITY", "DEADLINE", "COUPLING", "ZONE"})
_AFTER_NAMES = frozenset(
    (
        *("AS", "FROM", "WHERE", "GROUP", "GROUPBY", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH"),
        *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "NATURAL", "ANTI", "SEMI"),
        *("ON", "USING", "UNION", "EXCEPT", "INTERSECT", "MINUS", "WINDOW", "QUALIFY", "LATERAL"),
        *("AND", "OR", "XOR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "CONTAINS"),
        *("WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "NULLS", "OVER", "FILTER", "COLLATE"),
        *("DIV", "MOD", "REGEXP", "ESCAPE", "SIMILAR", "OVERLAPS", "AT", "FOR", "ROWS", "RANGE"),
        *("TABLESAMPLE", "PIVOT", "UNPIVOT", "WITH", "BY", "SET", "VALUES", "ISNULL", "NOTNULL"),
        *("STRAIGHT_JOIN", "CLUSTER", "DISTRIBUTE", "SORT", *NAMES),
        *("OF", "CHANGES", "INCBY", "DECBY", "INCBYP", "DECBYP", "INCREASEBY", "DECREASEBY"),
        *("INCREASEBY%", "DECREASEBY%", "INCREASED", "DECREASED", "INCREASES", "DECREASES"),
        *("WITHIN", "SINCE", "TEMPLATE", "DIGEST", "QUIET", "AT_MOST", "SECRET"),
    )
)
"""The names that SQL, a trigger or NOTIFY may have behind a column, a table, or an alias."""


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one clause, without its first word, and where it starts in the statement."""

    name: str
    text: str
    base: int

    @property
    def span(self) -> Span:
        return Span(self.base, self.base + max(1, len(self.text)))


def parts_of(text: str, base: int = 0) -> list[Part]:
    """The clauses of the SQL layout. What comes before the first of them is the query.

    >>> [(each.name, each.text) for each in parts_of("SELECT stop FROM t TRIGGER EVERY DAY")]
    [('QUERY', 'SELECT stop FROM t'), ('TRIGGER', 'EVERY DAY')]
    """
    words = words_of(text)
    starts = [(0, 0, QUERY)]  # of the text, of the words after the name of the clause
    for i, depth in enumerate(depths(words)):
        name = _clause_at(words, i) if depth == 0 else None
        if name is not None:
            is_time_zone = name == "ZONE" and i > 0 and words[i - 1].upper == "TIME"
            first = words[i - 1] if is_time_zone else words[i]
            starts.append((first.start, words[i].end, name))
    found = []
    ends = [start for start, _, _ in starts[1:]] + [len(text)]
    for (_, inner, name), end in zip(starts, ends, strict=True):
        said = text[inner:end]
        lead = len(said) - len(said.lstrip())
        found.append(Part(name, said.strip(), base + inner + lead))
    return found


def _clause_at(words: list[Word], at: int) -> str | None:
    word = words[at]
    if word.upper not in NAMES:
        return None
    before = words[at - 1] if at else None
    after = words[at + 1] if at + 1 < len(words) else None
    if before is not None and (
        before.upper in _NOT_BEFORE or (before.kind == "sign" and before.text not in ")]*?")
    ):
        return None
    return word.upper if _begins(word.upper, after) else None


def _begins(name: str, after: Word | None) -> bool:
    """Whether a clause of this name can begin so."""
    if after is None:
        return True
    if after.kind == "name" and name in _SAID_WRONG and after.upper not in _AFTER_NAMES:
        return True  # a wrong clause, rather than an alias with another name behind it
    match name:
        case "TRIGGER":
            return after.kind != "sign" or after.text == "("
        case "STOP":
            return after.kind in ("text", "number") or after.upper in _STOPS
        case "DELIVER":
            return after.upper in tuple(Deliver)
        case "NOTIFY":
            return after.kind == "name" and after.upper not in ("FROM", "AS")
        case "STRATEGY":
            return after.text.lower() in STRATEGIES
        case "PRIORITY" | "DEADLINE":
            return after.kind == "number" or after.text == "-" or after.upper in time_texts.NUMBERS
        case "ZONE":
            return after.kind == "text"
        case "COUPLING":
            return after.upper in ("IN", "AFTER", "BETWEEN")
    return after.kind in ("name", "text", "quoted") and after.upper not in ("FROM", "AS")


def clauses_of(parts: Iterable[Part], kinds: Kinds, layout: str = SQL) -> Clauses:
    """The clauses of a new query."""
    values = values_of(parts, kinds, layout)
    query = values.pop("query", "")
    return Clauses(query=query, **values)


def altered(clauses: Clauses, parts: Iterable[Part], kinds: Kinds) -> Clauses:
    """The clauses after those that are said have taken the place of others."""
    values = values_of(parts, kinds, SQL)
    if not values.get("query"):
        values.pop("query", None)
    return replace(clauses, **values)


def values_of(parts: Iterable[Part], kinds: Kinds, layout: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    notify: list[Recipient] = []
    for part in parts:
        try:
            if part.name == "NOTIFY":
                notify.append(_recipient(part))
                continue
            field, value = _read(part, kinds, layout)
        except HarkenError as error:
            if error.span is None:
                error.span = part.span
            raise
        if field in found:
            raise SyntaxFault(f"there are two clauses {part.name}", code="syntax", span=part.span)
        found[field] = value
    if notify:
        found["notify"] = tuple(notify)
    return found


def _read(part: Part, kinds: Kinds, layout: str) -> tuple[str, Any]:
    match part.name:
        case "QUERY":
            return "query", part.text
        case "TRIGGER":
            if not part.text:
                raise SyntaxFault("TRIGGER says nothing", code="syntax", span=part.span)
            return "trigger", kinds.read(part.text, part.base, layout)
        case "STOP" if layout == THESIS and _is_condition(part.text, kinds):
            return "stop", Stop(condition=part.text)
    field, read = _READERS[part.name]
    reader = Reader(part.text, part.base)
    value = read(reader)
    reader.need_end(part.name)
    return field, value


def _is_condition(text: str, kinds: Kinds) -> bool:
    """Whether a STOP is a condition without WHEN."""
    first = text.split(maxsplit=1)[0].upper() if text else ""
    return first not in _STOPS and kinds.is_condition(text)


def recipients_of(parts: Iterable[Part]) -> list[Recipient]:
    return [_recipient(part) for part in parts if part.name == "NOTIFY"]


def stop_of(text: str) -> Stop:
    """
    >>> print(stop_of("AFTER 2 WEEKS OR WHEN price > 100 OR price < 5 OR AFTER 10 EXECUTIONS"))
    AFTER 2 WEEKS OR AFTER 10 EXECUTIONS OR WHEN price > 100 OR price < 5
    """
    reader = Reader(text)
    found = _stop(reader)
    reader.need_end("STOP")
    return found


def _stop(reader: Reader) -> Stop:
    if reader.takes("NEVER"):
        return Stop()
    found: dict[str, Any] = {}
    while True:
        field, value = _one_stop(reader)
        if field in found:
            raise reader.fault(f"STOP says twice {_SAID[field]}", "the first of them would do")
        found[field] = value
        if not reader.takes("OR"):
            return Stop(**found)


_SAID = {"at": "AT", "after": "AFTER", "executions": "AFTER n EXECUTIONS", "condition": "WHEN"}


def _one_stop(reader: Reader) -> tuple[str, Any]:
    if reader.takes("WHEN"):
        return "condition", _condition(reader)
    reader.takes("STOP")  # "Stop: stop by the midnight of December 31, 1998"
    reader.takes_one(("AT", "ON", "BY", "UNTIL"))
    reader.takes("THE")
    moment = time_texts.take_moment(reader)
    if moment is not None:
        return "at", moment
    reader.takes_one(("AFTER", "IN", "FOR"))
    reader.takes("THE")
    reader.takes("NEXT")
    here = reader.at
    number = reader.takes_kind("number")
    if number is not None and reader.takes_one(("EXECUTION", "EXECUTIONS", "RUN", "RUNS")):
        return "executions", number.whole or 0
    reader.at = here
    duration = time_texts.take_duration(reader)
    if duration is None:
        raise reader.fault(
            "STOP needs a time, a length of time, a number of executions or a condition",
            "STOP AFTER 2 WEEKS, STOP AT '2027-01-31', STOP AFTER 10 EXECUTIONS, STOP WHEN ...",
        )
    return "after", duration


def _condition(reader: Reader) -> str:
    """Up to the end, or to an OR that another stop follows."""
    start = reader.at
    around = depths(reader.words)
    while not reader.is_done and not (around[reader.at] == 0 and _is_next_stop(reader)):
        reader.at += 1
    text = reader.between(start, reader.at)
    if not text:
        raise reader.fault("a condition is missing after WHEN")
    return text


def _is_next_stop(reader: Reader) -> bool:
    """OR AFTER 3 EXECUTIONS, OR AT '2026-12-31': what no condition can go on with."""
    word, stop, length = (reader.words[reader.at :] + [None] * 3)[:3]
    if word is None or word.upper != "OR" or stop is None or length is None:
        return False
    if stop.upper == "AT":
        return length.kind == "text"
    return stop.upper == "AFTER" and (length.kind == "number" or length.upper in time_texts.NUMBERS)


def _delivery(reader: Reader) -> Delivery:
    part = reader.takes_one(tuple(Deliver))
    if part is None:
        raise reader.unknown("part of an answer", tuple(Deliver))
    key: list[str] = []
    if reader.takes("BY"):
        in_parentheses = reader.takes("(")
        key.append(reader.need_name("a column"))
        while reader.takes(","):
            key.append(reader.need_name("a column"))
        if in_parentheses:
            reader.need(")")
    shown, always = Shown.TABLE, False
    while True:
        if reader.takes("AS"):
            said = reader.takes_one(tuple(Shown))
            if said is None:
                raise reader.unknown("form", tuple(Shown))
            shown = Shown(said)
        elif reader.takes("ALWAYS"):
            always = True
        else:
            return Delivery(Deliver(part), tuple(name.lower() for name in key), shown, always)


def _recipient(part: Part) -> Recipient:
    reader = Reader(part.text, part.base)
    channel = reader.need_name("a channel").lower()
    address = reader.takes_kind("text")
    options: dict[str, Any] = {}
    while not reader.is_done:
        name = reader.need_name("an option").lower()
        options[name] = _value(reader, name)
    return Recipient(channel, "" if address is None else address.value, options)


def _value(reader: Reader, name: str) -> Any:
    word = reader.takes_kind("text", "name", "quoted", "number")
    if word is None:
        raise reader.fault(f"the value of {name.upper()} is missing")
    if word.kind == "number":
        return word.whole if word.whole is not None else float(word.text[:40])
    return word.value


def _zone(reader: Reader) -> str:
    name = reader.need_text("a time zone")
    local_times.zone_named(name)
    return name


def _strategy(reader: Reader) -> str:
    word = reader.takes_kind("name", "text")
    if word is None or word.value.lower() not in STRATEGIES:
        said = "" if word is None else word.value
        reader.at -= word is not None
        raise reader.fault("there is no such strategy", offered(said, STRATEGIES, "strategies"))
    return word.value.lower()


def _priority(reader: Reader) -> int:
    sign = -1 if reader.takes("-") else 1
    return sign * reader.need_whole("a number")


def _deadline(reader: Reader) -> Deadline:
    after = time_texts.need_duration(reader)
    if not reader.takes("ELSE"):
        return Deadline(after)
    text, _ = reader.rest()
    if not text:
        raise reader.fault("a statement is missing after ELSE")
    return Deadline(after, text)


def _owner(reader: Reader) -> str:
    word = reader.takes_kind("name", "text", "quoted")
    if word is None:
        raise reader.fault("the owner is missing", "OWNER 'ann@example.org'")
    return word.value


_READERS: dict[str, tuple[str, Callable[[Reader], Any]]] = {
    "STOP": ("stop", _stop),
    "DELIVER": ("deliver", _delivery),
    "ZONE": ("zone", _zone),
    "STRATEGY": ("strategy", _strategy),
    "PRIORITY": ("priority", _priority),
    "DEADLINE": ("deadline", _deadline),
    "OWNER": ("owner", _owner),
    "COUPLING": ("coupling", take_couplings),
}
