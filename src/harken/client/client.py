"""A client of the service: `harken.Client("http://127.0.0.1:8765")`.

    copy = harken.Copy()
    for change in client.follow("low"):
        copy.apply(change)

A stream that breaks is resumed where it ended. If those changes are no longer kept, the next change
is a fresh one, with all rows.
"""

from __future__ import annotations

import datetime
import http.client
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from harken.client.view_copies import Copy
from harken.database.arguments import (
    LONGEST_TIME,
    check_flag,
    check_names,
    check_number,
    check_text,
    check_whole,
    wrong,
)
from harken.database.changes import Change, RowShape
from harken.database.json_values import column_type, parameter_to_json, read_json, row_reader
from harken.errors import HarkenError, StorageError, TypeFault, ValueFault
from harken.ir.relations import Column
from harken.server.server_sent_events import API, address
from harken.server.values import rows_json
from harken.statements.sql.restricted import condition_text
from harken.values.rows import Row

Where: TypeAlias = str | Mapping[str, Any] | None
"""A condition in SQL, or the values that some columns must have."""

TIMEOUT_SECONDS = 60.0
"""The service sends a heartbeat; after this many seconds of silence it counts as gone."""
FIRST_RETRY_DELAY = 0.2
START_DELAY = 0.05
"""Seconds between two attempts to reach a service that is starting."""
BUSY = ("locked", "too-many")
NOT_HARKEN = "not-harken"
"""The code of answers that did not come from the service, such as those of a proxy while it
restarts."""
FINE, EMPTY = (200, 201, 202, 204, 304), (204, 304)
"""The statuses of answers that are no errors, and of those without a body."""
MAX_RETRY_DELAY = 5.0


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows of a view were inserted and deleted, and a link to them. If fresh, `plus` is
    the number of all rows."""

    view: str
    plus: int
    minus: int
    position: int
    link: str
    fresh: bool = False


class Client:
    """The views of a service. `wait` is how many seconds the first request goes on trying while
    nobody answers at the address, as when the service was started just before."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        wait: float = 0.0,
    ) -> None:
        check_text(address, "the address of a service")
        check_number(timeout, "the timeout", above=True, most=LONGEST_TIME)
        check_number(wait, "the time to wait for a service", most=LONGEST_TIME)
        if token is not None:
            check_text(token, "a token")
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            raise _no_address(address) from None
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise _no_address(address)
        if token is not None and not token.isprintable():
            raise ValueFault("a token is one line of printable characters", code="bad-value")
        kinds: dict[str, type[http.client.HTTPConnection]] = {
            "http": http.client.HTTPConnection,
            "https": http.client.HTTPSConnection,
        }
        self._kind = kinds[parts.scheme]
        self._host, self._port = parts.hostname, port
        self._place = parts.netloc.rpartition("@")[2]
        self._base = parts.path.rstrip("/")
        self._timeout = timeout
        self._wait = wait
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}

    # --- requests --------------------------------------------------------------------------

    def views(self) -> list[dict[str, Any]]:
        """All views and tables: their names, kinds and columns."""
        found: list[dict[str, Any]] = self._call("GET", f"{API}/views")["views"]
        return found

    def snapshot(self, view: str, *, where: Where = None, keep: bool = False) -> Change:
        """All rows of a view, as a fresh change. With `keep` the service keeps the changes after
        it; otherwise they are kept only while somebody follows the view."""
        check_flag(keep, "keep")
        condition = _condition(where)
        if keep:
            return _snapshot(self._call("POST", _address(view, "/keep"), {"where": condition}))
        return _snapshot(self._call("GET", _address(view, where=condition)))

    def changes(
        self, view: str, since: int, *, where: Where = None, net: bool = False
    ) -> list[Change]:
        """The changes after a position; with `net` merged into at most one."""
        check_flag(net, "net")
        check_whole(since, "the position")
        path = _address(view, "/changes", since=since, where=_condition(where), net=net or None)
        found = self._call("GET", path)
        reader = _RowReader(found["columns"])
        return [_change(each, reader) for each in found["changes"]]

    def apply(
        self,
        *,
        insert: Mapping[str, Sequence[Sequence[Any]]] | None = None,
        delete: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    ) -> int:
        """Delete rows and insert rows in one transaction; returns the position after it."""
        body = {"insert": _rows(insert), "delete": _rows(delete)}
        return int(self._call("POST", f"{API}/transactions", body)["position"])

    def signal(self, name: str) -> int:
        """Raise a signal, for which continual queries can wait; returns the position after it."""
        check_text(name, "the name of a signal")
        return int(self._call("POST", f"{API}/signals/{quote(name, safe='')}", {})["position"])

    def sql(self, text: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Row]:
        """Run SQL and return the rows of its last query. `values` are the parameters: a sequence
        for `?`, a mapping for `:name`."""
        check_text(text, "a program")
        given: dict[str, Any] = {"text": text}
        if isinstance(values, Mapping):
            given["values"] = {str(k): parameter_to_json(v) for k, v in values.items()}
        elif values is not None:
            given["values"] = [parameter_to_json(each) for each in values]
        results = self._call("POST", f"{API}/sql", given)["results"]
        if not results:
            return []
        read = row_reader([column_type(name, nullable=True) for name in results[-1]["types"]])
        return [read(row) for row in results[-1]["rows"]]

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Any request to the API, such as `client.request("GET", "/continual-queries")`: the JSON
        of its answer, None if it has none. docs/api.md lists all of them. An error is raised as a
        HarkenError with its code."""
        check_text(method, "the method")
        check_text(path, "the path")
        if headers is not None and not isinstance(headers, Mapping):
            raise wrong(headers, "the headers", "a mapping of names to texts", None)
        if body is not None and not isinstance(body, Mapping):
            raise wrong(body, "the body", "a mapping", None)
        given = {str(name): str(value) for name, value in (headers or {}).items()}
        for text in (method, path, *given, *given.values()):
            if not text.isascii() or not text.isprintable() or (text == path and " " in path):
                raise ValueFault(
                    f"{text!r} cannot be part of a request",
                    code="bad-value",
                    hint="encode what is in a path with urllib.parse.quote",
                )
        if body is None and method.upper() in ("POST", "PUT", "PATCH"):
            body = {}
        return self._call(method.upper(), API + path, body, given)

    def items(self, path: str, *, limit: int = 1_000) -> Iterator[dict[str, Any]]:
        """All items of a list of the API, page after page."""
        check_text(path, "the path")
        check_whole(limit, "the limit", least=1)
        join = "&" if "?" in path else "?"
        cursor: str | None = ""
        while cursor is not None:
            page = self.request("GET", f"{path}{join}limit={limit}{cursor}")
            yield from page["items"]
            cursor = None if page["next"] is None else f"&cursor={quote(page['next'])}"

    # --- streams ---------------------------------------------------------------------------

    def follow(
        self,
        view: str,
        since: int | None = None,
        *,
        where: Where = None,
        every: float = 0.0,
    ) -> Iterator[Change]:
        """The changes of a view as they are committed, without an end. Without `since` the first is
        fresh, with all rows; so is the first after a pause that was too long.

        With `every` there is at most one in this many seconds, the sum of all that happened.
        """
        options = {"where": _condition(where), "every": _interval(every)}
        for changes in self._changes(_address(view, "/events", **options), since):
            yield from changes

    def follow_all(
        self, views: Sequence[str], since: int | None = None, *, every: float = 0.0
    ) -> Iterator[list[Change]]:
        """The changes of several views in one stream: each list holds what one transaction did to
        them, or with `every` what happened in an interval."""
        names = [views] if isinstance(views, str) else views
        path = [("view", view) for view in check_names(names, "the views")]
        path += [("every", str(every))] if _interval(every) else []
        yield from self._changes(f"{API}/events?{urlencode(path)}", since)

    def _changes(self, path: str, since: int | None) -> Iterator[list[Change]]:
        """Group changes that belong together: an event with an id ends a group."""
        readers: dict[str, _RowReader] = {}
        found: list[Change] = []
        for kind, place, data in self._events(path, since):
            if kind == "view":
                found.clear()  # a new connection sends an unfinished group again
            if kind in ("view", "snapshot"):
                readers[data["view"]] = _RowReader(data["columns"])
            if kind == "snapshot":
                found.append(_snapshot(data))
            elif kind == "change":
                found.append(_change(data, readers[data["view"]]))
            if place is not None:
                yield found
                found = []

    def counts(
        self,
        view: str,
        since: int | None = None,
        *,
        where: Where = None,
        every: float = 0.0,
    ) -> Iterator[Count]:
        """Like `follow`, but with the numbers of rows only."""
        options = {"where": _condition(where), "every": _interval(every), "counts": "true"}
        path = _address(view, "/events", **options)
        for kind, _, data in self._events(path, since):
            if kind == "count":
                yield Count(**{name: data[name] for name in Count.__slots__})

    def copy(self, view: str, *, where: Where = None) -> FollowedCopy:
        """A copy of a view: `copy.refresh()` brings it up to date, `copy.follow()` keeps it up to
        date."""
        return FollowedCopy(self, view, where)

    def _events(
        self, path: str, since: int | None
    ) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
        """All events; reconnects as often as necessary, once the first event has arrived."""
        if since is not None:
            check_whole(since, "the position")
        last: str | None = None
        wait: float | None = None
        while True:
            start = "" if since is None or last is not None else f"since={since}"
            join = "&" if "?" in path else "?"
            try:
                for kind, place, data in self._stream(f"{path}{join}{start}", last):
                    last, wait = place or last, FIRST_RETRY_DELAY
                    if kind == "failed":
                        raise _error(data)
                    yield kind, place, data
            except (OSError, http.client.HTTPException) as error:
                if wait is None:
                    raise self._no_answer(error) from error
            except HarkenError as error:
                if wait is None or error.code not in {*BUSY, NOT_HARKEN}:
                    raise
            wait = wait or FIRST_RETRY_DELAY
            time.sleep(wait)
            wait = min(2 * wait, MAX_RETRY_DELAY)

    def _stream(
        self, path: str, last: str | None
    ) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
        """The kind, the id and the data of each event of one connection."""
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        connection = self._connection()
        try:
            self._connect(connection)
            response = self._request(connection, "GET", path, None, headers)
            yield from events_of(response)
        finally:
            connection.close()

    # --- HTTP ------------------------------------------------------------------------------

    def _connection(self) -> http.client.HTTPConnection:
        return self._kind(self._host, self._port, timeout=self._timeout)

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        """The first time, wait for a service that is starting."""
        until = time.monotonic() + self._wait
        while True:
            try:
                connection.connect()
                break
            except ConnectionRefusedError:
                if time.monotonic() >= until:
                    raise
                time.sleep(START_DELAY)
        self._wait = 0.0

    def _call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        connection = self._connection()
        try:
            self._connect(connection)
            response = self._request(connection, method, path, body, headers or {})
            return self._json(response)
        except (OSError, http.client.HTTPException) as error:
            raise self._no_answer(error) from error
        finally:
            connection.close()

    def _no_answer(self, error: Exception) -> StorageError:
        return StorageError(
            f"the service at {self._place} does not answer: {error}",
            code="cannot-open",
            hint="is it running? `harken serve --db PATH` starts it",
        )

    def _request(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        sent = None if body is None else json.dumps(body).encode()
        given: dict[str, str | bytes] = {**self._headers, **headers}
        if sent is not None:
            given["Content-Type"] = "application/json"
        connection.request(method, self._base + path, sent, given)
        response = connection.getresponse()
        if response.status not in FINE:
            raise _error(self._json(response))
        return response

    def _json(self, response: http.client.HTTPResponse) -> Any:
        if response.status in EMPTY:
            return None
        try:
            found = read_json(response.read())
            if isinstance(found, dict) and (response.status in FINE or "code" in found):
                return found
        except ValueError:
            pass
        raise StorageError(
            f"the server at {self._place} answers {response.status} {response.reason}".rstrip()
            + ", which is not an answer of Harken",
            code=NOT_HARKEN,
            hint="check the address, and any proxy in between",
        )


def _no_address(address: str) -> StorageError:
    return StorageError(
        f"{address} is not the address of a service",
        code="cannot-open",
        hint='as "http://127.0.0.1:8765"',
    )


def _condition(where: Where) -> str | None:
    if isinstance(where, Mapping):
        return condition_text(where)
    if where is not None:
        check_text(where, "a condition")
    return where


def _address(view: str, what: str = "", **parameters: Any) -> str:
    check_text(view, "the name of a view")
    return address(view, what, **parameters)


def _interval(every: float) -> float | None:
    check_number(every, "the interval", most=LONGEST_TIME)
    return every or None


class FollowedCopy(Copy):
    """A copy that its client keeps up to date."""

    def __init__(self, client: Client, view: str, where: Where) -> None:
        super().__init__()
        self._client, self._view, self._where = client, view, where
        self.apply(client.snapshot(view, where=where, keep=True))

    def refresh(self) -> list[Change]:
        """Apply all changes since the last refresh, and return them."""
        found = self._client.changes(self._view, self.position, where=self._where)
        if any(change.fresh for change in found):  # the changes may no longer be kept: start over
            found = [self._client.snapshot(self._view, where=self._where, keep=True)]
        for change in found:
            self.apply(change)
        return found

    def follow(self, *, every: float = 0.0) -> Iterator[Change]:
        """Apply each change as it arrives, and pass it on."""
        found = self._client.follow(self._view, self.position, where=self._where, every=every)
        for change in found:
            self.apply(change)
            yield change


def events_of(
    lines: Iterator[bytes] | http.client.HTTPResponse,
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Parse server-sent events: a line for each field, and an empty line after each event."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\n").rstrip("\r")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            data = read_json(fields["data"])
            yield fields.get("event", "message"), fields.get("id"), data
        fields = {}


class _RowReader:
    """Reads the rows of a view from JSON."""

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        types = [column_type(each["type"], each["nullable"]) for each in columns]
        names = [each["name"] for each in columns]
        self.shape = RowShape(tuple(map(Column, names, types)))
        self.read = row_reader(types)


def _snapshot(data: Mapping[str, Any]) -> Change:
    reader = _RowReader(data["columns"])
    rows = [reader.read(row) for row in data["rows"]]
    return Change(data["view"], rows, [], data["position"], fresh=True, shape=reader.shape)


def _change(data: Mapping[str, Any], reader: _RowReader) -> Change:
    plus, minus = ([reader.read(row) for row in data[side]] for side in ("plus", "minus"))
    at = None if data["at"] is None else datetime.datetime.fromisoformat(data["at"])
    return Change(
        data["view"], plus, minus, data["position"], data["fresh"], at=at, shape=reader.shape
    )


def _rows(tables: Mapping[str, Sequence[Sequence[Any]]] | None) -> dict[str, Any]:
    if tables is None:
        return {}
    if not isinstance(tables, Mapping):
        raise wrong(tables, "what is inserted or deleted", "a mapping of names to rows", None)
    for name, rows in tables.items():
        check_text(name, "the name of a table")
        if not isinstance(rows, Iterable) or not all(isinstance(r, list | tuple) for r in rows):
            raise TypeFault(f"the rows of {name} must be a list of tuples", code="bad-value")
    return {name: rows_json([tuple(row) for row in rows]) for name, rows in tables.items()}


def _error(data: Mapping[str, Any]) -> HarkenError:
    code, hint = data["code"], data["hint"]
    return HarkenError(str(data["message"]), code=code, hint=hint)
