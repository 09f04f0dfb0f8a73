"""How far the delta tables of a server were read: which transactions were taken in.

A snapshot of the server says which transactions have ended, but not in which order they did. One
that depends on another began to write after that had ended, so the order of the last numbers that
transactions drew from a common sequence is one that could have been.

A position has the form of a snapshot, too: it has seen the transactions that were taken.

Law: a position says of each transaction whether it was taken, whatever ends later.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.log_positions import Seen
from harken.sources.outside import Position


def taken(text: Position, table: str) -> tuple[str, Seen]:
    """The server of a position, and what the table has."""
    try:
        given = json.loads(text)
        seen = given["seen"]
        return given["server"], Seen.read(seen[table] if isinstance(seen, dict) else seen)
    except (ValueError, KeyError, TypeError) as error:
        raise SourceFault(
            "the position of the source is not one in the delta tables of a PostgreSQL server",
            code="source-lost",
        ) from error


def position(server: str, seen: Mapping[str, Seen]) -> Position:
    """Of several tables, which nearly always have the same."""
    texts = {name: each.text for name, each in seen.items()}
    common = set(texts.values())
    given = {"server": server, "seen": common.pop() if len(common) == 1 else texts}
    return json.dumps(given, separators=(",", ":"))


def moved_on(before: Seen, now: Seen, last: int, untold: Sequence[int]) -> Seen:
    """What a table has after transactions up to the number `last` were told, of those that the
    snapshot `now` has seen, while some others were not: in their order, `untold`.

    >>> moved_on(Seen(5, 9, frozenset({5})), Seen(5, 20, frozenset({5})), 12, [10, 15]).text
    '5:13:5,10'
    """
    following = max(last + 1, before.next)
    late = untold[: bisect_left(untold, following)]
    missing = {each for each in now.open if each < following}
    missing.update(each for each in late if not before.has(each))
    return Seen(min(missing, default=following), following, frozenset(missing))


def covers(seen: Seen, other: Seen) -> bool:
    """Whether a snapshot has seen everything that another one has.

    >>> covers(Seen(5, 9), Seen(4, 7)), covers(Seen(5, 9, frozenset({5})), Seen(4, 7))
    (True, False)
    """
    if any(other.has(each) for each in seen.open):
        return False
    missing = other.next - seen.next
    return missing <= 0 or sum(1 for each in other.open if each >= seen.next) == missing
