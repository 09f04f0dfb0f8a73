"""One setting: its name, its type, its unit, its range, and how a value of it is read from text."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from harken.errors import ValueFault

PREFIX = "HARKEN_"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
MOST = 10**18
"""The largest whole number for a setting; added to the amount in use it still fits in 64 bits."""
LONGEST = 1e9
"""The longest time in seconds, about 31 years: clocks and threads can wait that long."""
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Setting:
    """One tunable. `served` is its default in the service; None means the same as `default`. A
    `fixed` one is set when the database is opened, and cannot be changed later. A `kept` one can be
    kept in the database file, where the operator sets it on a page of the console."""

    name: str
    default: Any
    about: str
    unit: str = ""
    served: Any = None
    least: float = 0
    most: float = MOST
    fixed: bool = False
    kept: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    def read(self, value: Any) -> Any:
        """The value in the setting's own type, from text too."""
        kind = type(self.default)
        try:
            found = _CONVERSIONS[kind](value)
        except (TypeError, ValueError, OverflowError):
            raise self._does_not_fit(value) from None
        if kind in (int, float) and not self.least <= found <= self.most:
            raise self._does_not_fit(value)
        return found

    @property
    def range(self) -> str:
        """The allowed values, for a reader.

        >>> Setting("n", 5, "", least=1, most=5000).range, Setting("b", True, "").range
        ('1 to 5,000', 'true or false')
        """
        if type(self.default) not in (int, float):
            return _KINDS[type(self.default)]
        return f"{self.least:,} to {self.most:,.0f}"

    def _does_not_fit(self, value: Any) -> ValueFault:
        kind = _KINDS[type(self.default)]
        bound = f" from {self.range}" if type(self.default) in (int, float) else ""
        shown = repr(value)
        return ValueFault(
            f"the setting {self.name} cannot be {shown if len(shown) < 60 else shown[:57] + '...'}",
            code="bad-value",
            hint=f"it takes {kind}{bound}" + (f", in {self.unit}" if self.unit else ""),
        )


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in TRUE | FALSE:
        raise ValueError(text)
    return text in TRUE


def _whole(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > 20):
        raise ValueError(value)
    found = int(value)
    if found != (float(value) if isinstance(value, str) else value):
        raise ValueError(value)
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _names(value: Any) -> tuple[str, ...]:
    """Several places: a sequence, or one text with the parts separated as in PATH. The colon of
    `s3://` separates nothing."""
    if isinstance(value, str):
        found = tuple(part for part in re.split(rf"{os.pathsep}(?!//)", value) if part)
    else:
        found = tuple(os.fspath(part) for part in value)
    if not all(isinstance(part, str) for part in found):
        raise ValueError(value)
    # A process may change its directory later, but that must not change what is allowed.
    return tuple(part if ADDRESS.match(part) else os.path.abspath(part) for part in found)


_CONVERSIONS: dict[type, Any] = {
    bool: _boolean,
    int: _whole,
    float: _number,
    str: str,
    tuple: _names,
}
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: f"paths and addresses: a list, or one text separated by {os.pathsep!r}",
}
