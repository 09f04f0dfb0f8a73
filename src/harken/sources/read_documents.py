"""Documents of the web and of this machine, which a kind of source parses into rows.

A document is read again only if its ETag, its date, or its content changed; for a file, its size
and times. The stamp of a document says in which state it was read.

Law: a document is whole, or it is a fault.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from harken.errors import SourceFault
from harken.sources.local_files import files_at, is_unchanged, permitted, read_whole
from harken.sources.outside import Context, Option
from harken.sources.safe_fetch import FetchLimits, SafeFetch

FETCH_OPTIONS = (
    Option("url", "The address of the page; several are separated by spaces."),
    Option("headers", "Headers to send: `Name: value`, one on each line.", secret=True),
    Option("token", "Sent as `Authorization: Bearer ...`.", secret=True),
    Option("timeout", "The longest time for one page.", "duration", 30.0, least=0.001, most=3600),
    Option("pause", "The time between two requests to a host.", "duration", least=0, most=86_400),
)
PATH_OPTION = Option("path", "A file in place of a page; with `*` all files that match.")
SIZE_OPTION = Option(
    "max_bytes", "The most bytes of one reading.", "integer", 50_000_000, least=1, most=2**40
)
ENCODING_OPTION = Option("encoding", "The characters' encoding, where the document says it wrong.")
PART_OPTION = Option(
    "page_column",
    "A column with the page or file of each row. With it, one that cannot be read is set aside.",
)
DOCUMENT_OPTIONS = (*FETCH_OPTIONS, PATH_OPTION, SIZE_OPTION, ENCODING_OPTION, PART_OPTION)

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    """For messages. Of a page only its host, because addresses may hold secrets."""
    address: str
    """As it was asked for: a URL, or the path of a file."""
    base: str
    """Where a page was in the end, to which its links are relative."""
    body: bytes
    stamp: str
    media_type: str = ""
    charset: str | None = None
    modified: datetime.datetime | None = None
    links: Mapping[str, str] = field(default_factory=dict)

    def text(self, encoding: str | None = None, otherwise: tuple[str, ...] = ("utf-8",)) -> str:
        """The characters. The option comes first, then a byte order mark, then what the server
        says, then the first of the others that fits."""
        body = self.body
        marked = next((name for mark, name in BYTE_ORDER_MARKS if body.startswith(mark)), None)
        told = encoding or marked or self.charset
        names = (told,) if told else otherwise
        for name in names:
            try:
                return body.decode(name).removeprefix("\ufeff")
            except UnicodeDecodeError:
                continue
            except LookupError:
                raise SourceFault(
                    f"{self.name} is encoded as {name[:40]!r}, which is not known",
                    code="bad-option" if encoding else "source-suspect",
                    hint="name its encoding with the option encoding",
                ) from None
        raise SourceFault(
            f"{self.name} is not encoded as {' or '.join(names)}, or only a part of it arrived",
            code="source-suspect",
            hint="the option encoding says how it is encoded, such as windows-1252",
        )


class Reading(Protocol):
    """What one snapshot reads."""

    def addresses(self) -> list[str]: ...

    def name(self, address: str) -> str: ...

    def document(self, address: str, since: str | None) -> Document | None:
        """None if the document is as it was at that stamp."""


class Library(Protocol):
    """Where the documents of a source are."""

    def reading(self) -> Any:
        """A context with a `Reading`."""


@dataclass(frozen=True, slots=True)
class WebPages:
    urls: tuple[str, ...]
    headers: Mapping[str, str] = field(repr=False)
    limits: FetchLimits
    context: Context
    accept: str = "*/*"
    types: tuple[str, ...] = ()

    @contextmanager
    def reading(self) -> Iterator[_WebReading]:
        with SafeFetch(
            self.limits,
            allow_private_addresses=self.context.allow_private_addresses,
            agent=self.context.agent,
            now=self.context.now,
        ) as fetch:
            yield _WebReading(self, fetch)


@dataclass(frozen=True, slots=True)
class _WebReading:
    pages: WebPages
    fetch: SafeFetch

    def addresses(self) -> list[str]:
        return list(self.pages.urls)

    def name(self, address: str) -> str:
        urls = self.pages.urls
        host = urlsplit(address).hostname or "the host"
        if len(urls) > 1 and address in urls:
            return f"page {urls.index(address) + 1} of {len(urls)}, of {host},"
        return f"the page of {host}"

    def document(self, address: str, since: str | None) -> Document | None:
        pages = self.pages
        page = self.fetch.get(
            address, headers=pages.headers, since=since, accept=pages.accept, types=pages.types
        )
        if page is None:
            return None
        return Document(
            name=self.name(address),
            address=address,
            base=page.url,
            body=page.body,
            stamp=page.validators,
            media_type=page.media_type,
            charset=page.charset,
            modified=page.modified,
            links=page.links,
        )


@dataclass(frozen=True, slots=True)
class Files:
    path: str
    most_bytes: int
    roots: tuple[str, ...] | None

    @contextmanager
    def reading(self) -> Iterator[FileReading]:
        yield FileReading(files_at(self.path, self.roots), self.most_bytes, self.roots)


@dataclass(slots=True)
class FileReading:
    files: list[Path]
    most_bytes: int
    """Of all files together."""
    roots: tuple[str, ...] | None
    most_each: int | None = None
    _room: int = field(init=False)

    def __post_init__(self) -> None:
        self._room = self.most_bytes

    def addresses(self) -> list[str]:
        return [str(path) for path in self.files]

    def name(self, address: str) -> str:
        return address

    def document(self, address: str, since: str | None) -> Document | None:
        path = permitted(address, self.roots)
        try:
            if since is not None and is_unchanged(path, since):
                return None
            modified = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        except OSError as error:
            raise SourceFault(
                f"{path} cannot be read: {error.strerror}", code="source-down"
            ) from None
        body, stamp = read_whole(path, self._room if self.most_each is None else self.most_each)
        self._room -= len(body)
        if self._room < 0:
            raise SourceFault(
                f"the files are larger than {self.most_bytes:,} bytes together",
                code="bad-option",
                hint="raise the limit with the option max_bytes, if there may be so much",
            )
        return Document(
            name=str(path),
            address=address,
            base=path.as_uri(),
            body=body,
            stamp=stamp,
            modified=modified,
        )


def library(
    options: Mapping[str, Any],
    context: Context,
    *,
    accept: str = "*/*",
    types: tuple[str, ...] = (),
) -> Library:
    """The documents that the options of a source name."""
    urls, path = tuple((options.get("url") or "").split()), options.get("path")
    if bool(urls) == bool(path):
        raise SourceFault(
            "a page or a file must be named" if not urls else "a page and a file are named",
            code="bad-option",
            hint="give the option url or the option path",
        )
    if path:
        return Files(str(path), options["max_bytes"], context.allowed_roots)
    if len(set(urls)) < len(urls):
        raise SourceFault("an address is named twice in the option url", code="bad-option")
    limits = FetchLimits(
        size=options["max_bytes"], seconds=options["timeout"], pause=options.get("pause")
    )
    return WebPages(urls, _headers(options), limits, context, accept, types)


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in (options.get("headers") or "").splitlines():
        if line.strip():
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                raise SourceFault(
                    "a line of the option headers is not a name and a value",
                    code="bad-option",
                    hint="write `Accept-Language: en`, one header on each line",
                )
            found[name.strip()] = value.strip()
    if options.get("token"):
        found["Authorization"] = f"Bearer {options['token']}"
    return found


def same_state(stamp: str | None, other: str | None) -> bool:
    """Do two stamps stand for the same content?"""
    if stamp is None or other is None:
        return False
    return bool(json.loads(stamp)["digest"] == json.loads(other)["digest"])
