"""A source that is read again as documents, each of which gives rows.

A part is what one document gave. The parts of the last reading are kept within `KEPT_BYTES`, so
that of many pages only those that changed are read and parsed.

Laws: a snapshot has the rows of all documents, or names those that were set aside; with none that
changed, there is none. A document that cannot be parsed is a fault, not an empty one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.outside import Context, Opened, OutsideSchema, Position, Snapshot
from harken.sources.read_documents import Document, Library, Reading, library, same_state
from harken.sources.safe_fetch import FetchFault
from harken.sources.typed_rows import TypedRows, batches, distinct_names

KEPT_BYTES = 32 * 2**20
"""Bytes of the documents whose rows an open source keeps until the next reading."""


@dataclass(slots=True)
class Parsed:
    """What a parser makes of a document. Each row is as long as `names`."""

    names: Sequence[str]
    rows: list[Sequence[Any]]
    next: str | None = None
    """The address of the document that continues this one."""
    set_aside: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Part:
    stamp: str
    parsed: Parsed | None
    """None if it is as it was, and its rows are not kept."""
    size: int = 0
    modified: Any = None


@dataclass(slots=True)
class _Reading:
    parts: dict[str, _Part] = field(default_factory=dict)
    failed: dict[str, SourceFault] = field(default_factory=dict)
    """The documents that could not be read, by address."""

    def stamps(self) -> dict[str, str]:
        stamps = {_mark(address): part.stamp for address, part in self.parts.items()}
        for address, fault in self.failed.items():
            stamps[_mark(address)] = json.dumps({"digest": f"failed: {fault.message}"})
        return stamps


@dataclass(slots=True)
class PolledDocuments:
    """`parse` makes rows of a document. `follows`: a document may lead to the next one, and at most
    `most_documents` are read. `part_column` is the column that names the document of a row."""

    library: Library
    parse: Callable[[Document], Parsed]
    typed: TypedRows
    context: Context
    key: tuple[str, ...] = ()
    follows: bool = False
    most_documents: int = 1_000
    part_column: str | None = None
    part_name: Callable[[str], str] = str
    """The name of a document in that column, by its address."""
    fixed_names: Sequence[str] | None = None
    """The columns if there are no rows, where the kind knows them."""
    meaning: str = ""
    """Changes with the options (`meaning_of`): a position of other options is not continued."""
    _kept: dict[str, _Part] = field(default_factory=dict, init=False)

    def schema(self) -> OutsideSchema:
        found = self.snapshot()
        assert found is not None
        return found.schema

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        before = self._stamps_of(since)
        with self.library.reading() as reading:
            found = self._read(reading, before)
            if before is not None and self._is_same(found.stamps(), before):
                return None
            self._complete(reading, found)
            names = {address: reading.name(address) for address in found.failed}
        self._keep(found.parts)
        table = self._table(found)
        aside = {
            (self.part_name(address) if self.part_column else names[address]): fault.message
            for address, fault in found.failed.items()
        }
        for part in found.parts.values():
            aside |= part.parsed.set_aside if part.parsed else {}
        moments = [part.modified for part in found.parts.values() if part.modified is not None]
        return Snapshot(
            schema=OutsideSchema(table.schema, self.key),
            batches=batches(table),
            position=json.dumps({"of": self._fingerprint(), "parts": found.stamps()}),
            expected_rows=table.num_rows,
            at=max(moments) if moments else None,
            set_aside=aside,
            part_column=self.part_column,
        )

    def close(self) -> None:
        self._kept = {}

    # --- reading ---

    def _read(self, reading: Reading, before: Mapping[str, str] | None) -> _Reading:
        found = _Reading()
        addresses = list(reversed(reading.addresses()))
        while addresses:
            check()
            address = addresses.pop()
            try:
                part = found.parts[address] = self._part(reading, address, before)
            except SourceFault as fault:
                self._set_aside(found, address, fault)
                continue
            following = part.parsed.next if part.parsed is not None else None
            if following is not None:
                addresses.append(self._checked_next(address, following, found.parts))
        if found.failed and not found.parts:
            raise next(iter(found.failed.values()))
        return found

    def _part(self, reading: Reading, address: str, before: Mapping[str, str] | None) -> _Part:
        kept = self._kept.get(address)
        since = kept.stamp if kept is not None else None
        if kept is None and before is not None and not self.follows:
            since = before.get(_mark(address))
        document = reading.document(address, _usable(since))
        if document is None:
            assert since is not None
            return kept or _Part(since, None)
        if kept is not None and same_state(kept.stamp, document.stamp):
            return replace(kept, stamp=document.stamp)
        return self._parsed(document)

    def _parsed(self, document: Document) -> _Part:
        parsed = self.parse(document)
        return _Part(document.stamp, parsed, len(document.body), document.modified)

    def _set_aside(self, found: _Reading, address: str, fault: SourceFault) -> None:
        """One of several documents may fail if its rows can be told from those of the others."""
        if self.part_column is None or self.follows or fault.code in ("bad-option", "not-allowed"):
            raise fault
        found.failed[address] = fault

    def _complete(self, reading: Reading, found: _Reading) -> None:
        """Read those that are as they were, too, because others are not."""
        for address, part in list(found.parts.items()):
            if part.parsed is None:
                check()
                document = reading.document(address, None)
                assert document is not None
                found.parts[address] = self._parsed(document)

    def _checked_next(self, address: str, following: str, read: Mapping[str, _Part]) -> str:
        if following in read:
            raise FetchFault("a page leads to one that was read already, as its next page")
        if len(read) >= self.most_documents:
            raise FetchFault(
                f"there are more than {self.most_documents:,} pages",
                hint="raise the limit with the option max_pages, if there may be so many",
            )
        if _origin(address) != _origin(following):
            raise FetchFault(
                "the next page is at another host, to which the headers may not go",
                code="not-allowed",
            )
        return following

    # --- rows ---

    def _table(self, found: _Reading) -> pa.Table:
        names: dict[str, None] = dict.fromkeys(distinct_names(self.fixed_names or ()))
        for part in found.parts.values():
            assert part.parsed is not None
            names.update(dict.fromkeys(part.parsed.names))
        adds_part = self.part_column is not None and self.part_column not in names
        rows: list[Sequence[Any]] = []
        for address, part in found.parts.items():
            assert part.parsed is not None
            name = self.part_name(address) if adds_part else None
            rows += _aligned(part.parsed, list(names), name)
        if not rows and self.context.known is not None:
            return self.context.known.columns.empty_table()
        if not names:
            raise SourceFault(
                "there are no rows yet, so the columns are not known",
                code="bad-option",
                hint="name them with the options names or columns, and types",
            )
        every = [*names, self.part_column] if adds_part and self.part_column else list(names)
        return self.typed.table(every, rows)

    def _keep(self, parts: dict[str, _Part]) -> None:
        is_small = sum(part.size for part in parts.values()) <= KEPT_BYTES
        self._kept = dict(parts) if is_small else {}

    # --- positions ---

    def _fingerprint(self) -> str:
        return hashlib.sha256(self.meaning.encode()).hexdigest()[:16]

    def _stamps_of(self, since: Position | None) -> dict[str, str] | None:
        try:
            found = json.loads(since or "{}")
        except ValueError:
            return None
        is_ours = isinstance(found, dict) and found.get("of") == self._fingerprint()
        return dict(found["parts"]) if is_ours else None

    @staticmethod
    def _is_same(now: Mapping[str, str], before: Mapping[str, str]) -> bool:
        return now.keys() == before.keys() and all(
            same_state(stamp, before[mark]) for mark, stamp in now.items()
        )


def open_documents(
    kind: str,
    parse: Callable[[Document], Parsed],
    typed: TypedRows,
    options: Mapping[str, Any],
    context: Context,
    *,
    accept: str = "*/*",
    types: tuple[str, ...] = (),
    part_column: str | None = None,
    **more: Any,
) -> Opened:
    """What a kind opens that has `DOCUMENT_OPTIONS`; `more` is for `PolledDocuments`."""
    return Opened(
        polled=PolledDocuments(
            library(options, context, accept=accept, types=types),
            parse,
            typed,
            context,
            part_column=part_column or options.get("page_column"),
            meaning=meaning_of(kind, options),
            **more,
        )
    )


MEANINGLESS = frozenset({"headers", "token", "timeout", "pause", "max_bytes"})
"""Options that do not change what the rows are."""


def meaning_of(kind: str, options: Mapping[str, Any]) -> str:
    given = sorted((name, value) for name, value in options.items() if name not in MEANINGLESS)
    return f"{kind} {given!r}"


def _aligned(parsed: Parsed, names: Sequence[str], part: str | None) -> Iterator[Sequence[Any]]:
    """The rows with all of these columns."""
    end = () if part is None else (part,)
    if list(parsed.names) == list(names):
        yield from parsed.rows if part is None else ((*row, part) for row in parsed.rows)
        return
    places = {name: place for place, name in enumerate(parsed.names)}
    order = [places.get(name) for name in names]
    for row in parsed.rows:
        yield (*(None if place is None else row[place] for place in order), *end)


def _usable(stamp: str | None) -> str | None:
    """A document that failed last time is read."""
    return None if stamp is None or '"failed: ' in stamp else stamp


def _mark(address: str) -> str:
    """Stands for an address in a position, because it may hold a secret."""
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc
