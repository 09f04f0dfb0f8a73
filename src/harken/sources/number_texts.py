"""Numbers as people write them in pages and files: `1,234.50`, `1.234,50`, `−5`.

Law: a text that is not such a number stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from harken.errors import SourceFault
from harken.sources.outside import Option

TYPES_OPTION = Option("types", "Types of columns: `price decimal(8, 2), day date`.", "names", ())
NULLS_OPTION = Option(
    "nulls", "Texts that mean that there is no value, such as `n/a, -`.", "names", ()
)
NUMBER_OPTIONS = (
    TYPES_OPTION,
    NULLS_OPTION,
    Option("thousands", "What stands between thousands in numbers, such as a comma."),
    Option(
        "decimal", "What stands before the fraction of a number.", "choice", ".", choices=(".", ",")
    ),
)
MINUS = "\u2212"
"""The sign that typography has for it."""


def numeral_reader(options: Mapping[str, Any]) -> Callable[[str], str]:
    """A function that makes of a text the number that it is, if it is one.

    >>> read = numeral_reader({"thousands": ".", "decimal": ","})
    >>> read("1.234,50"), read("1.2"), read("−5"), read("calm")
    ('1234.50', '1.2', '-5', 'calm')
    """
    point, between = options["decimal"], options["thousands"] or ""
    if between == point or len(between) > 1 or between.isalnum() or between == "-":
        raise SourceFault(
            f"{between!r} cannot stand between thousands",
            code="bad-option",
            hint="give one sign, such as a comma, another than that before the fraction",
        )
    if not between and point == ".":
        return lambda text: text.replace(MINUS, "-", 1) if text.startswith(MINUS) else text
    whole = r"\d+"
    if between:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(between)}\d{{3}})+|\d+)"
    number = re.compile(rf"[-{MINUS}]?{whole}(?:{re.escape(point)}\d+)?", re.ASCII)

    def read(text: str) -> str:
        if not number.fullmatch(text):
            return text
        plain = text.replace(MINUS, "-").replace(between, "") if between else text
        return plain.replace(MINUS, "-").replace(point, ".")

    return read
