"""Feeds, RSS and Atom: one row for each entry.

Law: a feed without entries is one whose end has arrived. Entries that have no name of their own are
named by their link, or by what they say.
"""

from __future__ import annotations

import calendar
import datetime
import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import feedparser
import pyarrow as pa

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.column_types import TEXT, TIMESTAMP
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, ENCODING_OPTION, Document
from harken.sources.typed_rows import TypedRows

COLUMNS = pa.schema(
    [
        *((name, TEXT) for name in ("id", "title", "link", "summary", "author")),
        ("published", TIMESTAMP),
        ("updated", TIMESTAMP),
        ("categories", TEXT),
    ]
)
MOST_ENTRIES = 100_000
_ENDS = re.compile(rb"</([\w.-]+:)?(rss|feed|RDF|rdf)\s*>", re.IGNORECASE)


def parse(document: Document) -> Parsed:
    if not document.body.strip():
        raise SourceFault(f"{document.name} is empty", code="source-suspect")
    told = document.media_type + (f"; charset={document.charset}" if document.charset else "")
    # A stream, because it would take bytes for the name of a file. It does not learn the address,
    # to which it would make the names of entries relative.
    found = feedparser.parse(
        io.BytesIO(document.body), response_headers={"content-type": told} if told else {}
    )
    if not found.version:
        raise SourceFault(
            f"{document.name} is no feed",
            code="source-suspect",
            hint="give the address of the feed itself; for a page there is the kind html",
        )
    if found.version.startswith("json") or not _ENDS.search(document.body[-2_000:]):
        raise SourceFault(f"{document.name} breaks off before its end", code="source-suspect")
    if len(found.entries) > MOST_ENTRIES:
        raise SourceFault(
            f"{document.name} has more than {MOST_ENTRIES:,} entries", code="source-suspect"
        )
    rows: dict[str, tuple[Any, ...]] = {}
    for entry in found.entries:
        check()
        row = _row(entry, document.base)
        rows.setdefault(row[0], row)  # of entries with one name the first, which is the newest
    return Parsed(COLUMNS.names, list(rows.values()))


def _row(entry: Any, base: str) -> tuple[Any, ...]:
    content = entry.get("summary") or next(
        (each.get("value") for each in entry.get("content", ())), None
    )
    title, link = entry.get("title"), entry.get("link")
    said = hashlib.sha256(f"{title}\0{content}".encode()).hexdigest()
    return (
        entry.get("id") or link or said,
        title or None,
        urljoin(base, link) if link else None,
        content or None,
        entry.get("author") or None,
        _moment(entry.get("published_parsed")),
        _moment(entry.get("updated_parsed") if "updated" in entry else None),
        ", ".join(each["term"] for each in entry.get("tags", ()) if each.get("term")) or None,
    )


def _moment(parts: Any) -> datetime.datetime | None:
    try:
        seconds = calendar.timegm(parts)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class FeedKind:
    name = "feed"
    title = "feed (RSS or Atom)"
    captures = ("poll",)
    options: tuple[Option, ...] = tuple(
        each for each in DOCUMENT_OPTIONS if each is not ENCODING_OPTION
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        typed = TypedRows.of(context.known, COLUMNS)
        part = options["page_column"]
        return open_documents(
            self.name,
            parse,
            typed,
            options,
            context,
            accept="application/atom+xml, application/rss+xml, application/xml, */*;q=0.5",
            key=("id", part) if part else ("id",),
            fixed_names=COLUMNS.names,
        )


KIND = FeedKind()
