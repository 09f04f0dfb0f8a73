"""Java's regular expressions, which Spark's SQL has.

Law: a pattern that is read matches the same texts, with the same groups, as in Java; one that we
cannot follow is refused. Java's `.` stops at more line ends than RE2's and Python's, its `$` and
`\\Z` stand before any of them, its `\\d`, `\\w` and `\\s` are of ASCII, and so is ignoring case.
Letters beyond ASCII are none to `\\b`, as in Java since its version 19.

The reader makes both forms of a `matching.Pattern` in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import regex

from harken.errors import ValueFault
from harken.values import pattern_size
from harken.values.matching import END, Pattern, can_be_linear, compile_backtracking, escaped

LAST = 0x10FFFF
Ranges = list[tuple[int, int]]

_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_NO_LINE_END = f"[^{_LINE_ENDS}]"
_LINEAR_NO_LINE_END = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_AT_THE_END = r"(?:(?=(?:\r\n|[\r\u0085\u2028\u2029])?\Z)|(?<!\r)(?=\n\Z))"
_CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7, "e": 27}
_DIGITS: Ranges = [(48, 57)]
_WORDS: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
_BLANKS: Ranges = [(9, 13), (32, 32)]
_SETS = {"d": _DIGITS, "w": _WORDS, "s": _BLANKS}
_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>", "?i:")
_LINEAR_GROUPS = {"?:": "(?:", "?i:": "(?:"}
_LOOKING = ("?=", "?!", "?<=", "?<!")
_FLAGS = re.compile(r"\(\?([is]+)\)")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_COUNTED = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}")
_POSIX = re.compile(r"[pP]\{(\w+)\}")
_FOLDED: list[Ranges] = [[(75, 75), (107, 107)], [(83, 83), (115, 115)]]
"""RE2 takes [Kk] for a K of any case, and the sign of Kelvin for one, and so with S. A class with
something more in it is taken as it is."""
_POSIX_CLASSES: dict[str, Ranges] = {
    "Lower": [(97, 122)],
    "Upper": [(65, 90)],
    "Alpha": [(65, 90), (97, 122)],
    "Digit": _DIGITS,
    "Alnum": [(48, 57), (65, 90), (97, 122)],
    "Punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "Space": _BLANKS,
    "Blank": [(9, 9), (32, 32)],
    "XDigit": [(48, 57), (65, 70), (97, 102)],
    "ASCII": [(0, 127)],
}


def refusal(pattern: str, why: str) -> ValueFault:
    return ValueFault(
        f"the pattern '{pattern_size.shown(pattern)}' cannot be used: {why}",
        code="bad-value",
        hint="a pattern is one of Java's; a backslash in a text is written twice, or r'...'",
    )


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search with.

    >>> found = compiled(r"\\d+$").search("٣ 12\\r\\n")
    >>> found.spans
    [(2, 4)]
    """
    pattern_size.check(pattern)
    flags = regex.ASCII
    leading = _FLAGS.match(pattern)
    if leading is not None:
        flags |= regex.IGNORECASE if "i" in leading[1] else 0
        flags |= regex.DOTALL if "s" in leading[1] else 0
    text = pattern if leading is None else pattern[leading.end() :]
    reader = _Reader(pattern, text, bool(flags & regex.DOTALL), bool(flags & regex.IGNORECASE))
    try:
        whole = reader.whole()
        re.compile(whole.backtracking)  # says what is wrong better, and takes less
        backtracking = compile_backtracking(whole.backtracking, flags)
    except (re.error, regex.error, OverflowError) as error:
        raise refusal(pattern, str(error)) from None
    except RecursionError:
        raise refusal(pattern, "it is nested too deeply") from None
    linear = whole.linear if whole.linear is not None and can_be_linear(whole.linear) else None
    return Pattern(pattern, backtracking, linear, whole.is_exact, reader.own)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern in both forms. `linear` is None if RE2 cannot do it; `has_end` says that
    it has a `$`, after which RE2 can match nothing else."""

    linear: str | None
    backtracking: str
    may_be_empty: bool = False
    has_end: bool = False
    is_exact: bool = True

    def then(self, other: _Piece) -> _Piece:
        linear = None
        if self.linear is not None and other.linear is not None and not self.has_end:
            linear = self.linear + other.linear
        return _Piece(
            linear,
            self.backtracking + other.backtracking,
            self.may_be_empty and other.may_be_empty,
            self.has_end or other.has_end,
            self.is_exact and other.is_exact,
        )

    def otherwise(self, other: _Piece) -> _Piece:
        linear = None
        if self.linear is not None and other.linear is not None:
            linear = f"{self.linear}|{other.linear}"
        return _Piece(
            linear,
            f"{self.backtracking}|{other.backtracking}",
            self.may_be_empty or other.may_be_empty,
            self.has_end or other.has_end,
            self.is_exact and other.is_exact,
        )

    def repeated(self, sign: str, least: int, most: int | None) -> _Piece:
        is_loop = most is None or most > 1
        is_possessive = len(sign) > 1 and sign.endswith("+")
        cannot = self.linear is None or is_possessive or (is_loop and self.has_end)
        return _Piece(
            None if cannot else f"{self.linear}{sign}",
            self.backtracking + sign,
            self.may_be_empty or least == 0,
            self.has_end,
            self.is_exact and not (is_loop and self.may_be_empty),
        )


_NOTHING = _Piece("", "", may_be_empty=True)


class _Reader:
    def __init__(self, pattern: str, text: str, dotall: bool, ignores_case: bool) -> None:
        self._pattern, self._text, self._dotall = pattern, text, dotall
        self._ignores_case = ignores_case
        self._place = 0
        self.own: list[bool] = []
        """For each group of the linear form, whether it is one of the pattern's."""

    def whole(self) -> _Piece:
        found = self._alternatives()
        while self._place < len(self._text):  # a `)` too many, which the engine complains about
            self._place += 1
            found = found.then(_Piece(None, ")")).then(self._alternatives())
        return found

    def _alternatives(self) -> _Piece:
        found = [self._sequence()]
        while self._follows("|"):
            self._place += 1
            found.append(self._sequence())
        return reduce(_Piece.otherwise, found)

    def _sequence(self) -> _Piece:
        found = _NOTHING
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            found = found.then(self._repeated(self._next()))
        return found

    def _repeated(self, piece: _Piece) -> _Piece:
        """With what counts it. One count after another is for the engine to complain about."""
        while self._place < len(self._text) and self._text[self._place] in "*+?{":
            first = self._text[self._place]
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(first, (0, None))
            if first == "{":
                counted = self._match(_COUNTED, "a { that counts nothing")
                sign, least = counted[0], int(counted[1])
                most = (int(counted[3]) if counted[3] else None) if counted[2] else least
            else:
                sign = self._taken()
            if self._follows("?") or self._follows("+"):
                sign += self._taken()
            piece = piece.repeated(sign, least, most)
        return piece

    def _next(self) -> _Piece:
        match character := self._taken():
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "{":
                self._place -= 1
                return self._repeated(_Piece(None, ""))
            case ".":
                if self._dotall:
                    return _Piece("(?s:.)", ".")
                return _Piece(_LINEAR_NO_LINE_END, _NO_LINE_END)
            case "$":
                return self._end()
            case "^":
                return _Piece("\\A", "^", may_be_empty=True)
            case _ if character in "*+?":
                return _Piece(None, character)
        return self._literal(character)

    def _literal(self, character: str) -> _Piece:
        return _Piece(self._linear_set([(ord(character), ord(character))]), re.escape(character))

    def _linear_set(self, ranges: Ranges, negated: bool = False) -> str:
        """RE2 ignores the case of all letters, Java that of ASCII: so we do it here."""
        if self._ignores_case:
            ranges = _both_cases(ranges)
        if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return escaped(chr(ranges[0][0]))
        if not negated and sorted(ranges) in _FOLDED:
            ranges = [*ranges, (LAST, LAST)]
        inside = "".join(f"{escaped(chr(low))}-{escaped(chr(high))}" for low, high in ranges)
        return f"[{'^' * negated}{inside}]"

    def _end(self) -> _Piece:
        self.own.append(False)
        return _Piece(END, _AT_THE_END, may_be_empty=True, has_end=True)

    def _taken(self) -> str:
        if self._place >= len(self._text):
            raise refusal(self._pattern, "it ends too early")
        self._place += 1
        return self._text[self._place - 1]

    def _match(self, wanted: re.Pattern[str], otherwise: str) -> re.Match[str]:
        found = wanted.match(self._text, self._place)
        if found is None:
            raise refusal(self._pattern, f"there is {otherwise}")
        self._place = found.end()
        return found

    def _follows(self, text: str) -> bool:
        return self._text.startswith(text, self._place)

    def _group(self) -> _Piece:
        kind = next((each for each in _GROUPS if self._follows(each)), None)
        if kind is not None:
            self._place += len(kind)
            return self._inside(f"({kind}", _LINEAR_GROUPS.get(kind), kind)
        if not self._follows("?"):
            self.own.append(True)
            return self._inside("(", "(")
        name = self._match(_NAMED, "a kind of group that is not known")[1]
        self.own.append(True)
        return self._inside(f"(?P<{name}>", f"(?P<{name}>")

    def _inside(self, opening: str, linear_opening: str | None, kind: str = "") -> _Piece:
        outer, self._ignores_case = self._ignores_case, self._ignores_case or kind == "?i:"
        found = self._alternatives()
        self._ignores_case = outer
        closing = ")" if self._follows(")") else ""  # missing: the engine complains
        self._place += len(closing)
        linear = None
        if linear_opening is not None and found.linear is not None:
            linear = f"{linear_opening}{found.linear}{closing}"
        return _Piece(
            linear,
            f"{opening}{found.backtracking}{closing}",
            found.may_be_empty or kind in _LOOKING,
            found.has_end,
            found.is_exact,
        )

    def _escape(self) -> _Piece:
        character = self._taken()
        match character:
            case "Q":
                return self._quoted()
            case "Z":
                return self._end()
            case "z":
                return _Piece("\\z", "\\Z", may_be_empty=True)
            case "A" | "b":
                return _Piece(f"\\{character}", f"\\{character}", may_be_empty=True)
            case "B":  # RE2 finds one between the bytes of a character
                return _Piece(None, "\\B", may_be_empty=True)
        if character.lower() in _SETS:
            ranges = _SETS[character.lower()]
            return _Piece(self._linear_set(ranges, character.isupper()), f"\\{character}")
        if character in "123456789" and not self._text[self._place : self._place + 1].isdigit():
            return _Piece(None, f"(?:\\{character})", may_be_empty=True)
        if character in "pP":
            ranges, negated = self._posix(character), character == "P"
            return _Piece(self._linear_set(ranges, negated), _backtracking_set(ranges, negated))
        return self._literal(self._escaped_character(character))

    def _escaped_character(self, character: str) -> str:
        if character in _CONTROLS:
            return chr(_CONTROLS[character])
        if character in "xu":
            self._place -= 1
            return chr(int(self._match(_CODE, f"no code after \\{character}")[0][1:], 16))
        if character.isascii() and character.isalnum():
            raise refusal(self._pattern, f"\\{character} is not known")
        return character

    def _posix(self, character: str) -> Ranges:
        self._place -= 1
        name = self._match(_POSIX, f"no class after \\{character}")[1]
        if name not in _POSIX_CLASSES:
            raise refusal(self._pattern, f"the class {name} is not known")
        return _POSIX_CLASSES[name]

    def _quoted(self) -> _Piece:
        end = self._text.find("\\E", self._place)
        inside = self._text[self._place : end if end >= 0 else len(self._text)]
        self._place += len(inside) + (2 if end >= 0 else 0)
        if not inside:
            return _NOTHING
        before = reduce(_Piece.then, map(self._literal, inside[:-1]), _NOTHING)
        return before.then(
            self._repeated(self._literal(inside[-1]))
        )  # what is counted is its last one

    def _class(self) -> _Piece:
        """Java has unions and intersections in it; we do not."""
        negated = self._follows("^")
        self._place += negated
        if self._follows("]"):
            raise refusal(self._pattern, "a class begins with ]: write \\]")
        items: list[Ranges | str] = []
        while (character := self._taken()) != "]":
            if character == "[" or (character in "&-" and self._follows(character)):
                raise refusal(self._pattern, "a class has another in it")
            items.append(self._escape_in_class() if character == "\\" else character)
        ranges = self._class_ranges(items)
        return _Piece(self._linear_set(ranges, negated), _backtracking_set(ranges, negated))

    def _escape_in_class(self) -> Ranges | str:
        character = self._taken()
        if character.lower() in _SETS:
            ranges = _SETS[character.lower()]
            return _others(ranges) if character.isupper() else ranges
        if character == "p":
            return self._posix(character)
        if character == "P":
            raise refusal(self._pattern, "a class has another in it")
        found = self._escaped_character(character)
        return [(ord(found), ord(found))]  # `\-` is no sign of a range

    def _class_ranges(self, items: Sequence[Ranges | str]) -> Ranges:
        """`-` between two characters makes a range; first or last it is itself."""
        found: Ranges = []
        place = 0
        while place < len(items):
            low = _code(items[place])
            if place + 2 < len(items) and items[place + 1] == "-":
                high = _code(items[place + 2])
                if low is None or high is None or low > high:
                    raise refusal(self._pattern, "a class has an invalid range")
                found.append((low, high))
                place += 3
                continue
            item = items[place]
            found += [(ord(item), ord(item))] if isinstance(item, str) else item
            place += 1
        return found


def _code(item: Ranges | str) -> int | None:
    """The code of a single character."""
    if isinstance(item, str):
        return ord(item)
    return item[0][0] if len(item) == 1 and item[0][0] == item[0][1] else None


def _others(ranges: Ranges) -> Ranges:
    """All characters that are not in the ranges.

    >>> _others([(48, 57)])
    [(0, 47), (58, 1114111)]
    """
    found, start = [], 0
    for low, high in sorted(ranges):
        if start < low:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return [*found, (start, LAST)] if start <= LAST else found


def _both_cases(ranges: Ranges) -> Ranges:
    """With the letters of ASCII in their other case.

    >>> _both_cases([(66, 67)])
    [(66, 67), (98, 99)]
    """
    found = list(ranges)
    for first, shift in ((65, 32), (97, -32)):
        for low, high in ranges:
            if low <= first + 25 and high >= first:
                found.append((max(low, first) + shift, min(high, first + 25) + shift))
    return found


def _backtracking_set(ranges: Ranges, negated: bool) -> str:
    inside = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return f"[{'^' * negated}{inside}]"
