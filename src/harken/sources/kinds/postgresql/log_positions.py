"""How far the log of a server was read.

A position is a place in the log (an LSN) of one server and timeline, because after a failover the
same numbers stand for other transactions. The order of the log is not quite the order in which
transactions become visible, so after a snapshot a table has a `Window`: up to its end, transactions
that the snapshot has seen are skipped.

Law: each transaction is in the snapshot or is read from the log, never both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.errors import SourceFault
from harken.sources.outside import Position

LOW = 0xFFFFFFFF
HALF = 1 << 31


def lsn_number(text: str) -> int:
    """
    >>> lsn_number("1/16B3748"), lsn_text(4317722440)
    (4318771016, '1/15B3748')
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(number: int) -> str:
    return f"{number >> 32:X}/{number & LOW:X}"


def whole_number(low: int, near: int) -> int:
    """A transaction's number, of which the log has 32 bits, close to another one.

    >>> whole_number(5, (3 << 32) + 9) == (3 << 32) + 5, whole_number(2**32 - 1, 3 << 32) >> 32
    (True, 2)
    """
    found = (near & ~LOW) | low
    if found - near > HALF:
        return found - LOW - 1
    return found + LOW + 1 if near - found > HALF else found


@dataclass(frozen=True, slots=True)
class Seen:
    """Which transactions a snapshot has seen: `pg_current_snapshot()`.

    >>> seen = Seen.read("10:20:12,15")
    >>> [number for number in (9, 12, 13, 20) if seen.has(number)]
    [9, 13]
    """

    oldest: int
    next: int
    open: frozenset[int] = frozenset()

    @classmethod
    def read(cls, text: str) -> Seen:
        oldest, following, others = text.split(":")
        return cls(
            int(oldest), int(following), frozenset(map(int, filter(None, others.split(","))))
        )

    @property
    def text(self) -> str:
        return f"{self.oldest}:{self.next}:{','.join(map(str, sorted(self.open)))}"

    def has(self, number: int) -> bool:
        return number < self.oldest or (number < self.next and number not in self.open)


@dataclass(frozen=True, slots=True)
class Window:
    """Up to the place `end`, the log may have transactions that the snapshot has seen."""

    seen: Seen
    end: int

    def skips(self, low_number: int, place: int) -> bool:
        return place <= self.end and self.seen.has(whole_number(low_number, self.seen.next))


@dataclass(frozen=True, slots=True)
class LogPosition:
    place: int
    server: str
    """Its identity and timeline."""
    windows: Mapping[str, Window] = field(default_factory=dict)
    """Those that are still open, by table."""

    @classmethod
    def read(cls, text: Position) -> LogPosition:
        try:
            given = json.loads(text)
            windows = {
                table: Window(Seen.read(seen), lsn_number(end))
                for table, (seen, end) in given.get("windows", {}).items()
            }
            return cls(lsn_number(given["lsn"]), given["server"], windows)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceFault(
                "the position of the source is not one in the log of a PostgreSQL server",
                code="source-lost",
            ) from error

    @property
    def text(self) -> Position:
        given: dict[str, object] = {"lsn": lsn_text(self.place), "server": self.server}
        if self.windows:
            given["windows"] = {
                table: [each.seen.text, lsn_text(each.end)] for table, each in self.windows.items()
            }
        return json.dumps(given, separators=(",", ":"))
