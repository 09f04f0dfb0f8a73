"""Sources by the host that they are read from, as the thesis names them: FROM www.nws.nova.gov."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from harken.engines.protocol import Records
from harken.intake.source_records import SOURCES, SourceRecords

HOST = re.compile(r"(?i)(?<=\bFROM\s)\s*((?:[a-z0-9-]+\.){2,}[a-z]{2,})(?![\w.(])")
"""A host where a query names a table: three words with dots between them, at least."""


def source_of_host(records: Records, host: str) -> str | None:
    """The name of the only source that is read from a host."""
    found = [name for name, each in _hosts(records) if each == host.lower()]
    return found[0] if len(found) == 1 else None


def _hosts(records: Records) -> Iterator[tuple[str, str]]:
    if not records.exist(SOURCES):
        return
    for source in SourceRecords(records).all():
        for value in source.definition.options.values():
            if isinstance(value, str) and "://" in value:
                yield source.definition.name, (urlsplit(value).hostname or "").lower()


def with_sources(records: Records, text: str) -> str:
    """The text of a query in which hosts are the names of their sources."""

    def named(match: re.Match[str]) -> str:
        name = source_of_host(records, match[1])
        return match[0] if name is None else match[0].replace(match[1], f"`{name}`")

    return HOST.sub(named, text)
