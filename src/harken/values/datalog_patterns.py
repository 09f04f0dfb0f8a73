"""Regular expressions of Datalog: those of RE2, and what else Python's `re` knows, with the named
classes of POSIX in brackets. `\\d`, `\\w`, `\\s` and `\\b` are of ASCII."""

from __future__ import annotations

import re
from functools import lru_cache

import regex

from harken.values import pattern_size
from harken.values.matching import Pattern, can_be_linear, compile_backtracking

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "lower": "a-z",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_NAMED = re.compile(rf"\[:({'|'.join(_CLASSES)}):\]")


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Pattern | None:
    """None if this is no pattern.

    >>> compiled("[[:digit:]x]+").matches("12x")
    True
    >>> compiled("(") is None
    True
    """
    pattern_size.check(pattern)
    text = _NAMED.sub(lambda match: _CLASSES[match[1]], pattern)
    try:
        re.compile(text)
        backtracking = compile_backtracking(text, regex.ASCII)
    except (re.error, regex.error, OverflowError, RecursionError):
        return None
    return Pattern(pattern, backtracking, text if can_be_linear(text) else None)


def matches(pattern: str, text: str) -> bool:
    """Is all of the text as the pattern says? What is no pattern matches nothing."""
    found = compiled(pattern)
    return found is not None and found.matches(text)
