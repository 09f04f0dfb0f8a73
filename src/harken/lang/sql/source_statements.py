"""The statements about outside sources, which sqlglot does not know.

    CREATE [OR ALTER] SOURCE [IF NOT EXISTS] name USING kind [OPTIONS (name value, ...)]
        [KEY (column, ...)] [CAPTURE way] [POLL EVERY n unit] [MIRROR none] [IN lake]
    ALTER SOURCE name SET (option value, ...) | POLL EVERY n unit | PAUSE | RESUME
        | ADD COLUMN column, ... | DROP COLUMN column, ... | RENEW COLUMNS
    DROP SOURCE [IF EXISTS] name [CASCADE]
    REFRESH SOURCE name [CONFIRM]
    DESCRIBE SOURCE name          SHOW SOURCES

Law: `text_of` writes a statement that reads back as the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from harken.lang.sql.word_reader import WordReader, literal, plain_number, quoted

Verb = Literal["create", "alter", "drop", "refresh", "describe", "show"]
SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
LONGEST_POLL = 10 * 365 * 86_400
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWords:
    """What such a statement says; what it leaves out is None, False or empty. `alone` marks MIRROR
    none: nothing is stored."""

    verb: Verb
    name: str = ""
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """By name: a text, a number or a boolean. None in ALTER puts an option back to its default."""
    key: tuple[str, ...] | None = None
    capture: str | None = None
    poll: float | None = None
    """Seconds."""
    alone: bool = False
    in_lake: bool = False
    if_exists: bool = False
    """IF NOT EXISTS of CREATE, IF EXISTS of DROP."""
    cascade: bool = False
    alters: bool = False
    """CREATE OR ALTER: one that is there becomes what the statement says."""
    confirmed: bool = False
    paused: bool | None = None
    """ALTER ... PAUSE or RESUME."""
    change: Literal["", "add", "drop", "renew"] = ""
    """What ALTER does to the columns."""
    columns: tuple[str, ...] = ()
    """Those that it adds or drops."""


class SourceStatement(exp.Expression):
    """Its words are in `this`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


def source_words(node: exp.Expr) -> SourceWords | None:
    found = node.args["this"] if isinstance(node, SourceStatement) else None
    assert found is None or isinstance(found, SourceWords)
    return found


def read_source_statement(tokens: Sequence[Token]) -> exp.Expr | None:
    """The statement, if these words are one."""
    words, start = [token.text.upper() for token in tokens[:4]], 2
    match words:
        case ["CREATE", "OR", "ALTER", "SOURCE"]:
            start = 4
        case ["CREATE" | "ALTER" | "DROP" | "REFRESH", "SOURCE", *_]:
            pass
        case ["DESCRIBE" | "DESC", "SOURCE", _, *_]:
            pass
        case ["SHOW", "SOURCES", *_]:
            pass
        case _:
            return None
    return SourceStatement(this=_Reader(tokens, start).words())


class _Reader(WordReader):
    def words(self) -> SourceWords:
        match self._tokens[0].text.upper():
            case "CREATE":
                found = self._create()
            case "ALTER":
                found = self._alter()
            case "DROP":
                if_exists = self._takes("IF", "EXISTS")
                name = self._name("the name of a source")
                cascade = self._takes("CASCADE")
                found = SourceWords(verb="drop", name=name, if_exists=if_exists, cascade=cascade)
            case "REFRESH":
                name = self._name("the name of a source")
                found = SourceWords(verb="refresh", name=name, confirmed=self._takes("CONFIRM"))
            case "SHOW":
                found = SourceWords(verb="show")
            case _:
                found = SourceWords(verb="describe", name=self._name("the name of a source"))
        if self._here is not None:
            raise self._cannot_stand()
        return found

    def _create(self) -> SourceWords:
        if_exists = self._takes("IF", "NOT", "EXISTS")
        name = self._name("the name of the new source")
        self._expect("USING", "CREATE SOURCE name USING kind OPTIONS (...)")
        given: dict[str, Any] = {"kind": self._name("a kind of source")}
        while self._here is not None:
            clause, found = self._clause()
            if given.keys() & found.keys():
                raise self._fault(f"{clause} is there twice", self._tokens[self._at - 1])
            given |= found
        alters = self._tokens[1].text.upper() == "OR"
        return SourceWords(verb="create", name=name, if_exists=if_exists, alters=alters, **given)

    def _clause(self) -> tuple[str, dict[str, Any]]:
        assert self._here is not None
        word = self._here.text.upper()
        if self._takes("OPTIONS"):
            return word, {"options": self._options()}
        if self._takes("KEY"):
            return word, {"key": self._columns()}
        if self._takes("CAPTURE"):
            return word, {"capture": self._name("a way of capture, such as logical or poll")}
        if self._takes("POLL"):
            return word, {"poll": self._every()}
        if self._takes("MIRROR"):
            self._expect("NONE", "MIRROR none")
            return word, {"alone": True}
        if self._takes("IN"):
            self._expect("LAKE", "IN lake")
            return word, {"in_lake": True}
        raise self._cannot_stand(
            ("OPTIONS", "KEY", "CAPTURE", "POLL EVERY", "MIRROR none", "IN lake")
        )

    def _alter(self) -> SourceWords:
        name = self._name("the name of a source")
        if self._takes("PAUSE"):
            return SourceWords(verb="alter", name=name, paused=True)
        if self._takes("RESUME"):
            return SourceWords(verb="alter", name=name, paused=False)
        if self._takes("POLL"):
            return SourceWords(verb="alter", name=name, poll=self._every())
        if self._takes("SET"):
            return SourceWords(verb="alter", name=name, options=self._options())
        if self._takes("RENEW"):
            self._columns_word("RENEW COLUMNS")
            return SourceWords(verb="alter", name=name, change="renew")
        changes: tuple[tuple[str, Literal["add", "drop"]], ...] = (("ADD", "add"), ("DROP", "drop"))
        for word, change in changes:
            if self._takes(word):
                self._columns_word(f"{word} COLUMN column")
                columns = self._listed_columns()
                return SourceWords(verb="alter", name=name, change=change, columns=columns)
        raise self._cannot_stand(
            ("SET (option value)", "POLL EVERY", "PAUSE", "RESUME", "ADD COLUMN", "DROP COLUMN")
        )

    def _columns_word(self, pattern: str) -> None:
        if not self._takes("COLUMNS"):
            self._expect("COLUMN", pattern)

    def _listed_columns(self) -> tuple[str, ...]:
        found = [self._name("a column")]
        while self._takes(","):
            found.append(self._name("a column"))
        return tuple(dict.fromkeys(found))

    def _every(self) -> float:
        self._expect("EVERY", "POLL EVERY 5 MINUTES")
        token = self._here
        number = None if token is None else plain_number(token.text)
        if token is None or token.token_type is not TokenType.NUMBER or number is None:
            raise self._missing("a number, as in POLL EVERY 5 MINUTES")
        self._at += 1
        unit = self._here
        seconds = None if unit is None else SECONDS.get(unit.text.upper().removesuffix("S"))
        if unit is None or seconds is None:
            raise self._missing("a unit: SECONDS, MINUTES, HOURS, DAYS or WEEKS")
        self._at += 1
        if not 0 < number * seconds <= LONGEST_POLL:
            raise self._fault(f"nothing is polled every {token.text} {unit.text}", token)
        return number * seconds


# --- writing -------------------------------------------------------------------------------------


def text_of(words: SourceWords) -> str:
    """CREATE SOURCE as text.

    >>> text_of(SourceWords(verb="create", name="a", kind="json", options={"url": "it's"}, poll=60))
    "CREATE SOURCE a USING json OPTIONS (url 'it''s') POLL EVERY 1 MINUTE"
    """
    parts = [f"CREATE SOURCE {quoted(words.name)} USING {quoted(words.kind)}"]
    if words.options:
        given = (f"{quoted(name)} {literal(value)}" for name, value in words.options.items())
        parts.append(f"OPTIONS ({', '.join(given)})")
    if words.key is not None:
        parts.append(f"KEY ({', '.join(map(quoted, words.key))})")
    if words.capture is not None:
        parts.append(f"CAPTURE {quoted(words.capture)}")
    if words.poll is not None:
        parts.append(f"POLL EVERY {every_text(words.poll)}")
    parts += ["MIRROR none"] if words.alone else []
    parts += ["IN lake"] if words.in_lake else []
    return " ".join(parts)


def seconds_of(text: str) -> float | None:
    """A length of time: a number of seconds, or a number and a unit.

    >>> seconds_of("20 minutes"), seconds_of("1.5"), seconds_of("soon")
    (1200.0, 1.5, None)
    """
    number, _, unit = text.strip().partition(" ")
    length = SECONDS.get(unit.strip().upper().removesuffix("S")) if unit else 1
    found = plain_number(number)
    if found is None or length is None or not 0 < found * length <= LONGEST_POLL:
        return None
    return float(found * length)


def every_text(seconds: float) -> str:
    """
    >>> every_text(5400), every_text(120), every_text(0.5)
    ('90 MINUTES', '2 MINUTES', '0.5 SECONDS')
    """
    unit, length = next(
        ((name, each) for name, each in reversed(SECONDS.items()) if seconds % each == 0),
        ("SECOND", 1),
    )
    number = seconds / length
    shown = f"{number:.0f}" if number == int(number) else repr(number)
    return f"{shown} {unit}{'' if number == 1 else 'S'}"
