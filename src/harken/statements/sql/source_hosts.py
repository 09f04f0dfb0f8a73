"""Sources by the host that they are read from, as the thesis names them: FROM www.nws.nova.gov."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from harken.engines.protocol import Records
from harken.errors import NameFault, Span
from harken.intake.source_records import SOURCES, SourceRecords

HOST = re.compile(
    r"""(?ix) '(?:[^']|'')*' | "[^"]*" | `[^`]*` | --[^\n]*
      | (?:\b(?:FROM|JOIN)\s|,)\s* (?P<host> (?:[a-z0-9-]+\.){2,}[a-z]{2,} ) (?![\w.(])"""
)
"""A host where a query names a table: three words with dots between them, at least. What stands in
quotes is gone past."""


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


def with_sources(records: Records, text: str, is_table: Callable[[str], bool]) -> str:
    """The text of a query in which hosts are the names of their sources, or of a table that is
    called so."""

    def named(match: re.Match[str]) -> str:
        host = match["host"]
        if host is None:
            return match[0]
        name = host if is_table(host) else source_of_host(records, host)
        if name is not None:
            return match[0].replace(host, f"`{name}`")
        if match[0].startswith(",") or host.lower().startswith("default."):
            return match[0]  # it may be a column: s.t.c
        raise NameFault(
            f"there is no source that is read from {host}",
            code="unknown-table",
            span=Span(match.start("host"), match.end("host")),
            hint=_hint(records, host),
        )

    return HOST.sub(named, text)


def _hint(records: Records, host: str) -> str:
    found = [name for name, each in _hosts(records) if each == host.lower()]
    if found:
        return f"several are: name one of them, {', '.join(sorted(found))}"
    return f"CREATE SOURCE name USING html OPTIONS (url 'https://{host}/...')"
