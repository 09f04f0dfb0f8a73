"""Regular expressions of Datalog: Python's, with the named classes of POSIX in brackets."""

from __future__ import annotations

import re
from functools import lru_cache

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


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """None if this is no pattern.

    >>> compiled("[[:digit:]x]+").fullmatch("12x") is not None
    True
    >>> compiled("(") is None
    True
    """
    try:
        return re.compile(_NAMED.sub(lambda match: _CLASSES[match[1]], pattern))
    except re.error:
        return None


def matches(pattern: str, text: str) -> bool:
    """Is all of the text as the pattern says? What is no pattern matches nothing."""
    found = compiled(pattern)
    return found is not None and found.fullmatch(text) is not None
