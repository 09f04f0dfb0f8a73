"""Server-sent events: what the client of a view is sent, and how often.

    event: change
    id: 17
    data: {"kind":"change","view":"low","plus":[["ink",3]],"minus":[],"position":17,"fresh":false}

The id is the position. A browser that loses its connection sends the last id it received, and the
stream resumes there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from harken.database.changes import Change, StoredChange, net_change
from harken.database.results import to_json
from harken.errors import HarkenError
from harken.server.values import change_json
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.server.feeds import Entry, Feed

MAX_INTERVAL = 24 * 3600.0
HEARTBEAT = b":\n\n"
API = "/api/v1"


def event(kind: str, data: str, position: int | None = None) -> bytes:
    place = "" if position is None else f"id: {position}\n"
    return f"event: {kind}\n{place}data: {data}\n\n".encode()


def without_id(data: bytes) -> bytes:
    """
    >>> without_id(event("change", "{}", 17))
    b'event: change\\ndata: {}\\n\\n'
    """
    kind, _, rest = data.partition(b"\n")
    return kind + b"\n" + rest[rest.index(b"data: ") :]


def change_event(change: Change) -> bytes:
    return event("change", change_json(change), change.position)


def failure_event(error: HarkenError) -> bytes:
    return event("failed", to_json(error_json(error)))


def error_json(error: HarkenError) -> dict[str, Any]:
    return {
        "kind": "error",
        "code": error.code,
        "message": error.message,
        "line": error.line,
        "column": error.column,
        "hint": error.hint,
    }


def address(view: str, what: str = "", **parameters: Any) -> str:
    """
    >>> address("item.name", "/changes", since=3, where="name = 'a'")
    '/api/v1/views/item.name/changes?since=3&where=name+%3D+%27a%27'
    """
    given = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{API}/views/{quote(view, safe='')}{what}" + (f"?{given}" if given else "")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a client wants its changes: each one, or merged into at most one per `every` seconds;
    with all rows, or only their number and a link to them."""

    every: float = 0.0
    counts: bool = False

    def snapshot(self, feed: Feed, change: Change, data: str) -> bytes:
        if not self.counts:
            return event("snapshot", data, change.position)
        link = address(feed.view, where=feed.watched.where)
        return self._count(feed, len(change.plus), 0, change.position, link, fresh=True)

    def events(
        self, feed: Feed, entries: Sequence[Entry], since: int
    ) -> Iterator[tuple[int, bytes]]:
        """The events for changes that the client has not seen, each with its position."""
        if not self.every and not self.counts:
            yield from ((entry.position, entry.event) for entry in entries)
            return
        whole = [entries] if entries else []
        groups = whole if self.every else [[entry] for entry in entries]
        for group in groups:
            position, stored = group[-1].position, net([entry.stored for entry in group])
            if not stored:
                continue
            if self.counts:
                link = address(feed.view, "/changes", since=since, where=feed.watched.where)
                plus, minus = len(stored.plus.rows), len(stored.minus.rows)
                yield position, self._count(feed, plus, minus, position, link)
            else:
                (entry,) = feed.entries([(position, stored)])
                yield position, entry.event
            since = position

    def _count(
        self, feed: Feed, plus: int, minus: int, position: int, link: str, fresh: bool = False
    ) -> bytes:
        data = {
            "kind": "count",
            "view": feed.view,
            "plus": plus,
            "minus": minus,
            "position": position,
            "fresh": fresh,
            "link": link,
        }
        return event("count", to_json(data), position)


def net(changes: Sequence[StoredChange]) -> StoredChange:
    """Merge changes into one. A row that was inserted and deleted again is not in it."""
    if len(changes) == 1:
        return changes[0]
    weights: Counter[Row] = Counter()
    for change in changes:
        weights.update(change.plus.rows)
        weights.subtract(change.minus.rows)
    return net_change(changes[-1].plus.types, weights, at=changes[-1].at)
