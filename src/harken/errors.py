"""Every error a user can meet: a stable code, a place in their text, and what to do next.

    HarkenError                internal, unsupported, unknown-benchmark, unknown-suffix,
    │                          cannot-read, not-utf-8, bad-change (the command line),
    │                          not-allowed (the service),
    │                          bad-project, data-loss, not-owned, test-failed (projects),
    │                          priority-cycle (rule programs)
    ├── LanguageError          the program text is wrong; nothing was executed
    │   │                      not-allowed (a location outside of `lake_roots`)
    │   ├── SyntaxFault        syntax, missing-semicolon
    │   ├── NameFault          unknown-type, unknown-function, unknown-variable, unknown-rule,
    │   │                      unknown-table, unknown-column, unknown-relation,
    │   │                      unknown-component, unknown-source, unknown-user,
    │   │                      unknown-id, exists, bad-name, not-in-lake
    │   ├── TypeFault          type-mismatch, arity, ambiguous, ungrouped, no-key, cycle
    │   └── SafetyFault        unsafe, not-stratified, not-updatable, side-effect,
    │                          too-complex
    ├── EvaluationError        a correct program met bad data; its statement was undone
    │   │                      ambiguous, no-fixpoint, large-action-set, too-complex
    │   ├── ArithmeticFault    division-by-zero, overflow, bad-value
    │   ├── ValueFault         no-value, many-values, wrong-object, bad-value, overflow,
    │   │                      no-such-position, parameters, bad-password
    │   ├── ForeignFault       foreign
    │   └── LimitFault         timeout, cancelled, row-limit, memory-limit
    ├── EngineError            no-java, wrong-java, wrong-python, no-spark, no-memory,
    │                          no-temporary-space, spark-start, stream (Spark), missing-package
    ├── IntegrityError         in-use, transaction, other-thread, rolled-back, lake-conflict,
    │                          no-such-row, row-exists, not-unique, null, constraint,
    │                          changed-meanwhile, key-reused
    ├── SourceFault            source-down, source-suspect, source-changed, source-lost,
    │                          not-allowed, bad-option, unknown-kind, missing-secret
    └── StorageError           not-a-database, newer-format, older-format, disk-full, disk-error,
                               locked, stale-snapshot, file-lost, read-only, cannot-open, closed,
                               storage, no-lake-table, not-a-lake-table, no-such-version,
                               input-changed, bad-path, bad-file, unknown-format, lake-damaged,
                               not-permitted, cannot-read, cannot-write, not-utf-8,
                               cannot-listen, too-many, too-large, too-slow, bad-backup

Codes are part of the contract: scripts match on them, so they never change their meaning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

OFFERED = 8
"""The number of names in a hint when none is close to the unknown name."""
WIDEST = 120
"""Characters of a line in a report."""
LEAD = 40
"""How many of them come before the marked place, in the middle of a long line."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text, by offsets into it; `end` is exclusive."""

    start: int
    end: int

    def __or__(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))

    def position(self, text: str) -> tuple[int, int]:
        """Line and column, both counted from 1.

        >>> Span(4, 5).position("ab\\ncd")
        (2, 2)
        """
        start = min(self.start, len(text))
        line_start = text.rfind("\n", 0, start) + 1
        return text.count("\n", 0, start) + 1, start - line_start + 1


class HarkenError(Exception):
    """The root of the tree. `str(error)` is the message; `report()` is for people."""

    default_code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        span: Span | None = None,
        hint: str | None = None,
    ) -> None:
        message = printable(message)
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.span = span
        self.hint = hint
        self.text: str | None = None
        self.source: str | None = None
        self._added: list[str] = []
        self.known_line: int | None = None
        """The line, if there is no text to point into."""

    def __str__(self) -> str:
        return self.message

    @property
    def __notes__(self) -> list[str]:
        """What Python prints under an error that nobody caught: the code, the place, the hint."""
        return [self.report().replace(f" {self.message}", "", 1), *self._added]

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        self._added = notes

    def add_note(self, note: str) -> None:
        self._added.append(note)

    def locate(self, text: str, source: str | None = None) -> HarkenError:
        """Attach the text that the span points into; the innermost attachment wins."""
        if self.text is None:
            self.text = text
            self.source = source
        return self

    @property
    def line(self) -> int | None:
        return self._position()[0]

    @property
    def column(self) -> int | None:
        return self._position()[1]

    def _position(self) -> tuple[int | None, int | None]:
        if self.span is None or self.text is None:
            return self.known_line, None
        return self.span.position(self.text)

    def headline(self, source: str | None = None) -> str:
        """`FILE:LINE:COL: [code] message`, as far as the place is known."""
        place = [str(part) for part in (source or self.source, self.line, self.column) if part]
        prefix = ":".join(place) + ": " if place else ""
        return f"{prefix}[{self.code}] {self.message}"

    def report(self, source: str | None = None) -> str:
        """The headline, the line of text with the place marked, and the hint."""
        parts = [self.headline(source)]
        excerpt = self._excerpt()
        if excerpt:
            parts.append(excerpt)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def _excerpt(self) -> str | None:
        if self.span is None or self.text is None:
            return None
        line, column = self.span.position(self.text)
        whole = self.text.split("\n")[line - 1].rstrip("\r")
        shown, before = _window(whole, column - 1)
        width = max(1, min(self.span.end - self.span.start, len(shown) - before))
        tabs = "".join("\t" if char == "\t" else " " for char in shown[:before])
        return f"  {printable(shown)}\n  {tabs}{'^' * width}"


def printable(text: str) -> str:
    """A text that can be encoded: half of a surrogate pair is shown as a question mark.

    >>> printable("a\\ud800b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _window(line: str, place: int) -> tuple[str, int]:
    """The part of a line to show, and where the place is in it.

    >>> _window("short", 2)
    ('short', 2)
    >>> shown, at = _window("x" * 1000 + "y" * 1000, 1000)
    >>> len(shown), shown[0], shown[at - 1 : at + 1], shown[-1]
    (120, '…', 'xy', '…')
    """
    start = max(0, min(place - LEAD, len(line) - WIDEST))
    shown = line[start : start + WIDEST]
    if start > 0:
        shown = "…" + shown[1:]
    if start + WIDEST < len(line):
        shown = shown[:-1] + "…"
    return shown, place - start


class LanguageError(HarkenError):
    default_code = "language"


class SyntaxFault(LanguageError):
    default_code = "syntax"


class NameFault(LanguageError):
    default_code = "unknown-name"


class TypeFault(LanguageError):
    default_code = "type-mismatch"


class SafetyFault(LanguageError):
    default_code = "unsafe"


class EvaluationError(HarkenError):
    default_code = "evaluation"


class ArithmeticFault(EvaluationError):
    default_code = "arithmetic"


class ValueFault(EvaluationError):
    default_code = "bad-value"


class ForeignFault(EvaluationError):
    default_code = "foreign"


class LimitFault(EvaluationError):
    """A statement was stopped, because it exceeded a limit or was cancelled."""

    default_code = "cancelled"


class ClockWarning(UserWarning):
    """A view depends on the time, and its monitor does not report what changes only with time."""


class LakeWarning(UserWarning):
    """A table has rows that the function made from it leaves out: when it is registered, or in a
    step."""


DATA_CODES = frozenset({"ambiguous", "no-fixpoint", "too-complex"})
"""The codes of an `EvaluationError` of no narrower kind that the data alone can cause."""


def is_of_data(error: HarkenError) -> bool:
    """Whether an evaluation failed because of its data. It may succeed on other data, unlike after
    a timeout or with a damaged file.

    >>> is_of_data(ArithmeticFault("division by zero")), is_of_data(LimitFault("it took too long"))
    (True, False)
    """
    if isinstance(error, ForeignFault):
        return error.code == "foreign"
    if isinstance(error, ArithmeticFault | ValueFault):
        return True
    return isinstance(error, EvaluationError) and error.code in DATA_CODES


class EngineError(HarkenError):
    default_code = "engine"


class IntegrityError(HarkenError):
    default_code = "integrity"


class SourceFault(HarkenError):
    """An outside source does not answer, answers in part, or changed its shape. `source-lost`: its
    log no longer has our position, so all rows must be read again."""

    retry_after: float | None = None
    """After how many seconds the source asks to be read again, if it says so."""


class StorageError(HarkenError):
    default_code = "storage"


def counted(number: int, what: str, verb: str = "") -> str:
    """A number of things; with the verb `is` or `was`, in the right form.

    >>> counted(0, "value"), counted(1, "value"), counted(2, "value")
    ('0 values', '1 value', '2 values')
    >>> counted(1, "value", "is"), counted(2, "value", "was")
    ('1 value is', '2 values were')
    """
    things = f"{number} {what}{'' if number == 1 else 's'}"
    return f"{things} {agreeing(number, verb)}" if verb else things


def agreeing(number: int, verb: str = "is") -> str:
    return verb if number == 1 else {"is": "are", "was": "were"}[verb]


def number_given(number: int) -> str:
    """
    >>> number_given(0), number_given(1), number_given(2)
    ('none is given', '1 is given', '2 are given')
    """
    return f"{number} {agreeing(number)} given" if number else "none is given"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, or None.

    >>> nearest("quantiy", ["quantity", "name"])
    'quantity'
    """
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def offered(name: str, known: Iterable[str], what: str) -> str | None:
    """A hint for an unknown name: the nearest known one, or some of them.

    >>> offered("price", ["quantity", "name"], "columns")
    'the columns are quantity, name'
    """
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near}?"
    more = f" and {len(names) - OFFERED} others" if len(names) > OFFERED else ""
    return f"the {what} are {', '.join(names[:OFFERED])}{more}" if names else None
