"""How every resource is read and changed: as pages, with ETags, preconditions and idempotency keys.

A list is answered in pages: `items`, and `next`, the cursor of the next page. What is read has an
ETag, and with `If-None-Match` it is sent only if it is another. A change with `If-Match` is made
only if the resource is still the one that its sender saw. A POST with an `Idempotency-Key` is
carried out once, however often it arrives.

Law: what a precondition looked at cannot change before the change that it guards commits.
"""

from __future__ import annotations

import datetime
import decimal
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from harken.api.database import Database
from harken.database.json_values import json_value, read_json
from harken.database.kept_answers import KeptAnswer, KeyedRequest
from harken.database.objects import Object
from harken.database.results import to_json
from harken.errors import IntegrityError, ValueFault
from harken.server.service import Service, for_sender
from harken.server.writes import keyed_request, too_large_to_keep

JSON = "application/json"
FIRST_PAGE, LARGEST_PAGE = 100, 1_000
"""Items of a page, unless the request says how many, and at most."""
LONGEST_CURSOR = 2_000

Work = Callable[[Database], Any]


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page of a list: what comes after the cursor, and how many."""

    limit: int
    after: Any = None


def paging(
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Items of a page.")] = (
        FIRST_PAGE
    ),
    cursor: Annotated[
        str | None,
        Query(max_length=LONGEST_CURSOR, description="The member `next` of the page before."),
    ] = None,
) -> Paging:
    return Paging(limit, None if cursor is None else _read_cursor(cursor))


Page = Annotated[Paging, Depends(paging)]


class Exchange:
    def __init__(self, service: Service) -> None:
        self.service = service

    async def show(self, request: Request, work: Work, *, own: bool = False) -> Response:
        """What `work` finds, or that nothing has changed. With `own` it is the service that reads
        what belongs to the sender."""
        read = self.service.read_unchecked if own else self.service.read
        return answer_to(request, plain(await read(work)))

    async def page(
        self,
        request: Request,
        page: Paging,
        work: Callable[[Database], Iterable[Any]],
        key: Callable[[Any], Any],
        *,
        newest_first: bool = False,
        own: bool = False,
    ) -> Response:
        """One page of what `work` finds, in the order of the key."""

        def part(db: Database) -> dict[str, Any]:
            return page_of(work(db), page, key, newest_first=newest_first)

        return await self.show(request, part, own=own)

    async def change(
        self,
        request: Request,
        work: Work,
        *,
        status: int = 200,
        seen: Work | None = None,
        together: bool = True,
        own: bool = False,
    ) -> Response:
        """Run a change and answer with what it returns. `seen` is what a GET of the resource shows,
        for `If-Match`. The change, what it was compared with and the record of its key are one
        transaction, unless it has transactions of its own: then it is not `together` with them.
        """
        found, _ = await self.service.write_raw(
            _guarded(work, await _asked(request), status, seen, together=together, own=own)
        )
        await self.service.publish()
        headers = {"cache-control": "no-store"}
        if found.text:
            headers["etag"] = etag_of(found.text)
        if found.status == 204:
            return Response(status_code=204, headers=headers)
        return Response(found.text, found.status, headers, JSON)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the headers of a change say."""

    keyed: KeyedRequest | None
    if_match: str


async def _asked(request: Request) -> _Asked:
    return _Asked(await keyed_request(request), request.headers.get("if-match", ""))


def _guarded(
    work: Work, asked: _Asked, status: int, seen: Work | None, *, together: bool, own: bool
) -> Callable[[Database], KeptAnswer]:
    # Who sent it is known here, and not in the thread of the session.
    do = work if own else for_sender(work)
    look = seen if own or seen is None else for_sender(seen)

    def done(db: Database) -> KeptAnswer:
        if asked.if_match and look is not None:
            _check_match(asked.if_match, etag_of(to_json(plain(look(db)))))
        found = plain(do(db))
        return KeptAnswer(status, "" if status == 204 else to_json(found))

    def once(db: Database) -> KeptAnswer:
        if asked.keyed is not None:
            found = db.keyed_requests.once(asked.keyed, lambda: done(db), together=together)
            if not found.text and found.status != 204:
                raise too_large_to_keep()
            return found
        with db.transaction() if together else nullcontext():
            return done(db)

    return once


def _check_match(wanted: str, now: str) -> None:
    if wanted.strip() != "*" and now not in [each.strip() for each in wanted.split(",")]:
        raise IntegrityError(
            "somebody else has changed it since you read it",
            code="changed-meanwhile",
            hint="read it again, and send its new ETag in If-Match",
        )


def answer_to(request: Request, found: Any) -> Response:
    text = to_json(found)
    tag = etag_of(text)
    headers = {"cache-control": "no-cache", "etag": tag}
    known = [each.strip().removeprefix("W/") for each in _known(request).split(",")]
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(text, 200, headers, JSON)


def _known(request: Request) -> str:
    return request.headers.get("if-none-match", "")


def etag_of(text: str) -> str:
    return f'"{sha256(text.encode()).hexdigest()[:24]}"'


# --- pages -----------------------------------------------------------------------------


def page_of(
    found: Iterable[Any],
    page: Paging,
    key: Callable[[Any], Any],
    *,
    newest_first: bool = False,
) -> dict[str, Any]:
    """
    >>> page_of([1, 2, 3], Paging(2, 1), lambda each: each)["items"]
    [2, 3]
    """
    ordered = sorted(found, key=key, reverse=newest_first)
    try:
        rest = [
            each
            for each in ordered
            if page.after is None
            or (key(each) < page.after if newest_first else key(each) > page.after)
        ]
    except TypeError:
        raise _no_cursor() from None
    items = rest[: page.limit]
    more = len(rest) > len(items)
    return {"items": items, "next": cursor_after(key(items[-1])) if more else None}


def cursor_after(key: Any) -> str:
    return urlsafe_b64encode(to_json(key).encode()).decode().rstrip("=")


def _read_cursor(text: str) -> Any:
    try:
        found = read_json(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    except ValueError:
        raise _no_cursor() from None
    if not isinstance(found, str | int):
        raise _no_cursor()
    return found


def _no_cursor() -> ValueFault:
    return ValueFault(
        "this cursor belongs to no list",
        code="bad-value",
        hint="send the member `next` of a page, unchanged, to the list that it came from",
    )


# --- JSON ------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What the API answers for a value: fields of objects as members, times in ISO 8601, numbers
    that JavaScript would change as text.

    >>> plain({"at": datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC), "n": 2**53})
    {'at': '2026-01-31T00:00:00+00:00', 'n': '9007199254740992'}
    """
    match value:
        case None | bool() | float() | decimal.Decimal() | Object():
            return json_value(value)
        case Enum():
            return value.value
        case str():
            return value
        case int():
            return json_value(value)
        case datetime.datetime():
            return value.astimezone(datetime.UTC).isoformat()
        case datetime.date():
            return value.isoformat()
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return str(value)
