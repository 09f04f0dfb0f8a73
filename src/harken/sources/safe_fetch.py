"""Pages of the web, fetched so that neither an address nor an answer can do harm.

    SafeFetch(limits).get(url) → Page, None (unchanged), or FetchFault

An address that somebody typed must not reach what only this machine can reach; an answer may be
slow, endless, cut off, packed a thousand times over, or lead elsewhere. Texts of faults name the
host and nothing else of the address, because paths and queries often hold keys.

Law: a page is whole, or it is a fault. All limits hold for the page with its redirects.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NoReturn

import httpcore
import httpx

from harken.errors import HarkenError, SourceFault
from harken.network_guard import Resolve
from harken.sources.guarded_transport import Deadline, GuardedTransport
from harken.sources.host_queue import SHARED, Busy, HostPlace, HostQueue

CONDITIONS = {"etag": "If-None-Match", "modified": "If-Modified-Since"}
LONGEST_VALIDATOR = 1_000
"""Characters of an ETag; a longer one is not remembered."""
LONGEST_URL = 8_000
"""Characters of an address, in redirects too."""
LONGEST_PAUSE = 86_400.0
"""Seconds; a host that asks for more is tried again after a day."""
PUBLIC_PAUSE = 1.0
"""Seconds between two requests to a public host, if the limits do not say."""
BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
FIXED_HEADERS = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "range"),
        *("accept-encoding", *map(str.lower, CONDITIONS.values())),
    }
)
"""With one of these a request would mean something else than was checked."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
GZIP = b"\x1f\x8b"
"""How packed data begin; several such members may follow each other."""
UNPACKERS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class FetchFault(SourceFault):
    """No page. `status` is the server's answer, if there was one; `retry_after` how many seconds
    it asks to be left alone."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "source-down",
        hint: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`size` is in bytes, unpacked, for everything that one SafeFetch reads; `seconds` is for one
    page, from the look-up of its name to its last byte. Without `pause` there is a second between
    requests to a public host, and none for private addresses, which are the operator's own."""

    size: int = 50_000_000
    seconds: float = 30.0
    redirects: int = 5
    pause: float | None = None
    patience: float = 60.0
    """How long to wait for other requests to the same host."""


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    """Where it was in the end. May hold a secret."""
    body: bytes
    media_type: str
    """Such as `text/html`; empty if the server does not say."""
    charset: str | None
    validators: str
    """What to give as `since` when the page is read again."""
    modified: datetime.datetime | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    """The addresses in the header `Link`, by their relation."""


class SafeFetch:
    """Fetches the pages of one snapshot. Used by one thread; closed with `close` or `with`."""

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        allow_private_addresses: bool = False,
        agent: str = "Harken",
        hosts: HostQueue = SHARED,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._room = self.limits.size
        self._hosts = hosts
        self._now = now
        self._deadline = Deadline(hosts.clock)
        self._transport = GuardedTransport(
            self._deadline, allow_private=allow_private_addresses, resolve=resolve
        )
        self._client = httpx.Client(
            transport=self._transport, trust_env=False, headers={"User-Agent": agent}
        )

    def __enter__(self) -> SafeFetch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        since: str | None = None,
        accept: str = "*/*",
        types: tuple[str, ...] = (),
    ) -> Page | None:
        """The page, or None if it is as it was `since` those validators. With `types`, an answer
        of another media type is a fault. The headers go only to the host of `url` itself."""
        target = _parsed(url)
        first, own = target, _own_headers(headers or {})
        left = self.limits.seconds
        for _ in range(self.limits.redirects + 1):
            sent = {"Accept": accept, "Accept-Encoding": "gzip, deflate"}
            if _origin(target) == _origin(first):
                sent.update(own)
            elif target.username or target.password:
                raise _refused(target, "a redirect leads to an address with a password in it")
            sent.update(_conditions(since, target))
            with self._place(target) as place:
                started = self._hosts.clock()
                self._deadline.begin(max(left, 0.001))
                found = self._request(target, sent, since, types, place)
                left -= self._hosts.clock() - started
            if not isinstance(found, httpx.URL):
                return found
            if target.scheme == "https" and found.scheme == "http":
                raise _refused(found, f"{target.host} redirects from https to http")
            target = found
        raise FetchFault(
            f"{first.host} redirects more than {self.limits.redirects} times",
            hint="give the address at which the page is in the end",
        )

    @contextmanager
    def _place(self, url: httpx.URL) -> Iterator[HostPlace]:
        try:
            with self._hosts.place(url.host, self.limits.patience) as place:
                yield place
        except Busy as error:
            raise FetchFault(
                f"{url.host} is not asked now: other requests to it wait, or it wants a pause",
                retry_after=error.seconds,
            ) from None

    def _request(
        self,
        url: httpx.URL,
        headers: Mapping[str, str],
        since: str | None,
        types: tuple[str, ...],
        place: HostPlace,
    ) -> Page | httpx.URL | None:
        try:
            with self._client.stream("GET", url, headers=headers) as answer:
                if answer.status_code in REDIRECTS:
                    return _redirected(url, answer)
                if answer.status_code == HTTPStatus.NOT_MODIFIED and _is_conditional(headers):
                    return None
                if answer.status_code != HTTPStatus.OK:
                    raise self._refusal(url, answer, place)
                _check_type(url, answer, types)
                return self._page(url, answer, since)
        except FetchFault:
            raise
        except HarkenError as error:
            if error.code != "not-allowed":
                raise
            raise FetchFault(error.message, code=error.code, hint=error.hint) from None
        except Exception as error:
            _explain(error, url, self.limits)
        finally:
            pause = self.limits.pause
            if pause is None:
                pause = PUBLIC_PAUSE if self._transport.reached_public else 0.0
            place.pause_until(self._hosts.clock() + pause)

    def _page(self, url: httpx.URL, answer: httpx.Response, since: str | None) -> Page | None:
        body = self._body(url, answer)
        validators = _validators(url, answer, body)
        if since is not None and _read_validators(since).get("digest") == validators["digest"]:
            return None
        return Page(
            url=str(url),
            body=body,
            media_type=_media_type(answer),
            charset=answer.charset_encoding,
            validators=json.dumps(validators),
            modified=_moment(answer.headers.get("Last-Modified")),
            links={
                relation: str(url.join(link["url"]))
                for relation, link in answer.links.items()
                if relation and "url" in link
            },
        )

    def _body(self, url: httpx.URL, answer: httpx.Response) -> bytes:
        declared = answer.headers.get("Content-Length", "")
        if declared.isdecimal() and int(declared[:20]) > self._room:
            raise self._too_large(url)
        body = bytearray()
        for part in _unpacked(url, answer, lambda: self._room):
            self._room -= len(part)
            if self._room < 0:
                raise self._too_large(url)
            body += part
        return bytes(body)

    def _too_large(self, url: httpx.URL) -> FetchFault:
        return FetchFault(
            f"the answer of {url.host} is larger than {self.limits.size:,} bytes",
            hint="raise the limit with the option max_bytes, if the page may be so large",
        )

    def _refusal(self, url: httpx.URL, answer: httpx.Response, place: HostPlace) -> FetchFault:
        status = answer.status_code
        pause = self._retry_after(answer.headers.get("Retry-After"))
        if pause is not None and status in BUSY:
            place.pause_until(self._hosts.clock() + pause)
        return FetchFault(
            f"{url.host} answered {_status_text(status)}",
            hint=_STATUS_HINTS.get(status),
            status=status,
            retry_after=pause,
        )

    def _retry_after(self, text: str | None) -> float | None:
        if text is None:
            return None
        if text.strip().isdecimal():
            return min(float(text.strip()[:20]), LONGEST_PAUSE)
        moment = _moment(text)
        if moment is None:
            return None
        return min(max((moment - self._now()).total_seconds(), 0.0), LONGEST_PAUSE)


_STATUS_HINTS: Mapping[int, str] = {
    204: "there is no page in such an answer; check the address",
    206: "this is a part of a page, which was not asked for",
    401: "the page wants to know who asks: give a header, with its value in a secret",
    403: "the page is not for everyone: give a header, with its value in a secret",
    404: "check the address",
    410: "check the address",
}


def _parsed(url: str) -> httpx.URL:
    fault = FetchFault(
        "the address is not one of a web page",
        code="bad-option",
        hint="write it with its scheme and host, such as https://example.org/prices",
    )
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        raise fault
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise fault from None
    if found.scheme not in ("http", "https"):
        raise FetchFault(
            "only addresses that begin with http:// or https:// are fetched",
            code="not-allowed",
            hint="for files there are kinds of their own",
        )
    if not found.host:
        raise fault
    return found


def _refused(url: httpx.URL, why: str) -> FetchFault:
    return FetchFault(why, code="not-allowed", hint="give the address at which the page is")


def _redirected(url: httpx.URL, answer: httpx.Response) -> httpx.URL:
    try:
        return _parsed(str(url.join(answer.headers["Location"])))
    except (KeyError, httpx.InvalidURL, UnicodeError, ValueError):
        raise FetchFault(f"{url.host} redirects to nowhere", status=answer.status_code) from None
    except FetchFault as error:
        code = error.code if error.code == "not-allowed" else "source-down"
        raise FetchFault(
            f"{url.host} redirects to something that is not fetched: {error.message}",
            code=code,
            status=answer.status_code,
        ) from None


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name in headers:
        if name.lower() in FIXED_HEADERS:
            raise FetchFault(
                f"the header {name.title()} is set by Harken itself",
                code="bad-option",
                hint="leave it out",
            )
    return dict(headers)


def _is_conditional(headers: Mapping[str, str]) -> bool:
    return any(name in headers for name in CONDITIONS.values())


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _status_text(status: int) -> str:
    """
    >>> _status_text(404), _status_text(599)
    ('404 (Not Found)', '599')
    """
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def _media_type(answer: httpx.Response) -> str:
    text: str = answer.headers.get("Content-Type", "")
    return text.partition(";")[0].strip().lower()


def _check_type(url: httpx.URL, answer: httpx.Response, types: tuple[str, ...]) -> None:
    found = _media_type(answer)
    if types and found and found not in types:
        raise FetchFault(
            f"{url.host} answered with {found[:60]}, not with {' or '.join(types)}",
            status=answer.status_code,
            hint="check the address, and whether this kind of source reads such files",
        )


def _unpacked(url: httpx.URL, answer: httpx.Response, room: Callable[[], int]) -> Iterator[bytes]:
    """The body. At most one byte more than there is room for is unpacked at once."""
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        yield from answer.iter_raw()
        return
    if encoding not in UNPACKERS:
        raise FetchFault(
            f"{url.host} packed its answer as {encoding[:20]}, which was not asked for"
        )
    unpacker = zlib.decompressobj(UNPACKERS[encoding])
    began = False
    for packed in answer.iter_raw():
        if not began and packed:
            began = True
            if encoding == "deflate" and packed[0] & 0x0F != zlib.DEFLATED:
                unpacker = zlib.decompressobj(-zlib.MAX_WBITS)  # without a header, as some send it
        while packed:
            if unpacker.eof:
                if not packed.startswith(GZIP):
                    break  # bytes after the end, which browsers skip, too
                unpacker = zlib.decompressobj(UNPACKERS["gzip"])
            yield unpacker.decompress(packed, max(room(), 0) + 1)
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    if began and not unpacker.eof:
        raise FetchFault(f"{url.host} sent only a part of its page: the packed data end too soon")


def _validators(url: httpx.URL, answer: httpx.Response, body: bytes) -> dict[str, str]:
    told = {"etag": answer.headers.get("ETag"), "modified": answer.headers.get("Last-Modified")}
    return {
        "at": _digest(str(url).encode())[:8],
        "digest": _digest(body),
        **{name: text for name, text in told.items() if text and len(text) <= LONGEST_VALIDATOR},
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _conditions(since: str | None, url: httpx.URL) -> dict[str, str]:
    """An ETag means something only at the address that gave it."""
    if since is None:
        return {}
    known = _read_validators(since)
    if known.get("at") != _digest(str(url).encode())[:8]:
        return {}
    return {header: known[name] for name, header in CONDITIONS.items() if name in known}


def _read_validators(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _moment(text: str | None) -> datetime.datetime | None:
    """
    >>> print(_moment("Wed, 21 Oct 2015 07:28:00 GMT"), _moment("soon"))
    2015-10-21 07:28:00+00:00 None
    """
    try:
        found = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


_NO_PAGE = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpx.HTTPError,
    httpx.InvalidURL,
    OSError,
)


def _explain(error: Exception, url: httpx.URL, limits: FetchLimits) -> NoReturn:
    """Their texts may hold the address or a header, so none of them is passed on."""
    host = url.host
    if isinstance(error, httpcore.TimeoutException | httpx.TimeoutException | TimeoutError):
        raise FetchFault(
            f"{host} did not send its page within {limits.seconds:g} s",
            hint="the option timeout gives it longer",
        ) from None
    if isinstance(error, socket.gaierror | UnicodeError):
        raise FetchFault(
            f"the name {host} is not known", hint="check the address, and the network"
        ) from None
    if isinstance(error, httpcore.LocalProtocolError | httpx.LocalProtocolError | TypeError):
        raise FetchFault(
            f"the request to {host} cannot be sent: a header is not valid",
            code="bad-option",
            hint="a header's value is one line of plain characters",
        ) from None
    if isinstance(error, httpcore.ConnectError) and _is_about_certificates(error):
        raise FetchFault(
            f"{host} could not show who it is: its certificate is not accepted",
            hint="SSL_CERT_FILE in the environment names the authorities to trust",
        ) from None
    if isinstance(error, httpcore.ConnectError):
        raise FetchFault(f"{host} cannot be reached") from None
    if isinstance(error, zlib.error):
        raise FetchFault(f"{host} sent packed data that cannot be unpacked") from None
    if isinstance(error, _NO_PAGE):
        raise FetchFault(f"{host} sent only a part of its page, or not what HTTP allows") from None
    raise error


def _is_about_certificates(error: BaseException | Any) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
