"""Java's regular expressions, which Spark's SQL has, as Python's.

Law: a pattern that is translated matches the same texts, with the same groups, as in Java; one
that Python cannot follow is refused. Java's `.` stops at more ends of lines than Python's, its `$`
and `\\Z` stand before any of them, and its `\\d`, `\\w` and `\\s` are of ASCII. Letters beyond
ASCII are none to `\\b`, as in Java since its version 19.
"""

from __future__ import annotations

import re
from functools import lru_cache

from harken.errors import ValueFault

_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_NO_LINE_END = f"[^{_LINE_ENDS}]"
_AT_THE_END = r"(?:(?=(?:\r\n|[\r\u0085\u2028\u2029])?\Z)|(?<!\r)(?=\n\Z))"
_ESCAPED = {"Z": _AT_THE_END, "z": r"\Z", "e": r"\x1b"}
_ESCAPED |= {each: f"\\{each}" for each in "dDwWsSbBAtnrfa"}
_IN_CLASS = {each: f"\\{each}" for each in "dDwWsStnrfa"} | {"e": r"\x1b"}
_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>", "?i:")
_FLAGS = re.compile(r"\(\?([is]+)\)")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_COUNTED = re.compile(r"\{[0-9]+(,[0-9]*)?\}")
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}")
_POSIX = re.compile(r"([pP])\{(\w+)\}")
_POSIX_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": r" \t\n\x0b\f\r",
    "Blank": r" \t",
    "XDigit": "0-9a-fA-F",
    "ASCII": r"\x00-\x7f",
}


def refusal(pattern: str, why: str) -> ValueFault:
    return ValueFault(
        f"the pattern '{pattern}' cannot be used: {why}",
        code="bad-value",
        hint="a pattern is one of Java's; a backslash in a text is written twice, or r'...'",
    )


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as one of Python's.

    >>> compiled(r"\\d+$").search("٣ 12\\r\\n")
    <re.Match object; span=(2, 4), match='12'>
    """
    text, flags = pattern, re.ASCII
    leading = _FLAGS.match(pattern)
    if leading is not None:
        text = pattern[leading.end() :]
        flags |= re.IGNORECASE if "i" in leading[1] else 0
        flags |= re.DOTALL if "s" in leading[1] else 0
    reader = _Reader(pattern, text, bool(flags & re.DOTALL))
    try:
        return re.compile(reader.translated(), flags)
    except (re.error, OverflowError) as error:
        raise refusal(pattern, str(error)) from None


class _Reader:
    def __init__(self, pattern: str, text: str, dotall: bool) -> None:
        self._pattern, self._text, self._dotall = pattern, text, dotall
        self._place = 0

    def translated(self) -> str:
        found = []
        while self._place < len(self._text):
            found.append(self._next())
        return "".join(found)

    def _next(self) -> str:
        match character := self._taken():
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return "(" + self._group()
            case "{":
                self._place -= 1
                return self._match(_COUNTED, "a { that counts nothing")
            case ".":
                return "." if self._dotall else _NO_LINE_END
            case "$":
                return _AT_THE_END
            case _ if character in "^|)*+?":
                return character
        return re.escape(character)

    def _taken(self) -> str:
        if self._place >= len(self._text):
            raise refusal(self._pattern, "it ends too early")
        self._place += 1
        return self._text[self._place - 1]

    def _match(self, wanted: re.Pattern[str], otherwise: str) -> str:
        found = wanted.match(self._text, self._place)
        if found is None:
            raise refusal(self._pattern, f"there is {otherwise}")
        self._place = found.end()
        return found[0]

    def _follows(self, text: str) -> bool:
        return self._text.startswith(text, self._place)

    def _group(self) -> str:
        if not self._follows("?"):
            return ""
        for kind in _GROUPS:
            if self._follows(kind):
                self._place += len(kind)
                return kind
        return "?P" + self._match(_NAMED, "a kind of group that is not known")[1:]

    def _escape(self) -> str:
        character = self._taken()
        if character == "Q":
            return self._quoted()
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character in "123456789" and not self._text[self._place : self._place + 1].isdigit():
            return f"(?:\\{character})"
        return self._escaped_character(character)

    def _escaped_character(self, character: str) -> str:
        if character in "xu":
            self._place -= 1
            return "\\" + self._match(_CODE, f"no code after \\{character}")
        if character in "pP":
            return f"[{self._posix(character)}]"
        if character.isascii() and character.isalnum():
            raise refusal(self._pattern, f"\\{character} is not known")
        return re.escape(character)

    def _posix(self, character: str) -> str:
        self._place -= 1
        found = _POSIX.match(self._match(_POSIX, f"no class after \\{character}"))
        assert found is not None
        if found[2] not in _POSIX_CLASSES:
            raise refusal(self._pattern, f"the class {found[2]} is not known")
        return ("^" if character == "P" else "") + _POSIX_CLASSES[found[2]]

    def _quoted(self) -> str:
        end = self._text.find("\\E", self._place)
        inside = self._text[self._place : end if end >= 0 else len(self._text)]
        self._place += len(inside) + (2 if end >= 0 else 0)
        return re.escape(inside)  # what is counted after it is its last character, as in Java

    def _class(self) -> str:
        """Java has unions and intersections in it; Python does not."""
        found = ["["]
        if self._follows("^"):
            found.append(self._taken())
        if self._follows("]"):
            raise refusal(self._pattern, "a class begins with ]: write \\]")
        while (character := self._taken()) != "]":
            if character == "[" or (character in "&-" and self._follows(character)):
                raise refusal(self._pattern, "a class has another in it")
            if character == "\\":
                found.append(self._escape_in_class())
            else:
                found.append("-" if character == "-" else re.escape(character))
        return "".join([*found, "]"])

    def _escape_in_class(self) -> str:
        character = self._taken()
        if character in _IN_CLASS:
            return _IN_CLASS[character]
        if character == "p":
            return self._posix(character)
        if character == "P":
            raise refusal(self._pattern, "a class has another in it")
        return self._escaped_character(character)
