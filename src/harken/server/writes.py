"""What a request may ask the writing session to do, and the JSON that answers it.

Both ways to a transaction use these functions: the routes of the API, and the direct path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from harken.api.database import Database
from harken.api.json_changes import Rows, apply
from harken.database.json_values import parameters_from_json
from harken.database.kept_answers import KeptAnswer, KeyedRequest
from harken.database.results import to_json
from harken.errors import IntegrityError, StorageError
from harken.server.identities import current
from harken.server.service import Service, for_sender

KEY_HEADER = "idempotency-key"


async def keyed_request(request: Request) -> KeyedRequest | None:
    """The key of a POST, and what it is a key to; None if it has none."""
    key = request.headers.get(KEY_HEADER)
    if key is None or request.method != "POST":
        return None
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return KeyedRequest.of(current.get().name, key, request.method, path, await request.body())


async def transact(
    service: Service, insert: Rows, delete: Rows, keyed: KeyedRequest | None = None
) -> str:
    """Delete rows and insert rows, all or none. A repeated request is answered with the present
    position."""

    def work(db: Database) -> str:
        apply(db, insert, delete)
        return ""

    _, position = await _once(service, work, keyed)
    return to_json({"position": position})


async def raise_signal(service: Service, name: str, keyed: KeyedRequest | None = None) -> str:
    """Raise a signal for the continual queries that wait for it."""

    def work(db: Database) -> str:
        db.signal(name)
        return ""

    _, position = await _once(service, work, keyed)
    return to_json({"position": position})


async def run_sql(
    service: Service,
    text: str,
    values: list[Any] | dict[str, Any] | None,
    keyed: KeyedRequest | None = None,
) -> str:
    """Run statements; those that leave a transaction open are rolled back. With a key, the text is
    one transaction."""

    def work(db: Database) -> str:
        was_open = db.in_transaction
        results = db.sql(text, parameters_from_json(values))
        lines = [line for result in results for line in result.json_lines()]
        if db.in_transaction and not was_open:
            raise IntegrityError(
                "the text leaves a transaction open, so all of it was rolled back",
                code="transaction",
                hint="end it with COMMIT",
            )
        return f"[{','.join(lines)}]"

    results, position = await _once(service, work, keyed)
    return f'{{"results":{results},"position":{position}}}'


async def _once(
    service: Service, work: Callable[[Database], str], keyed: KeyedRequest | None
) -> tuple[str, int]:
    """What the work returns, and the position after it; for a repeated request what it returned
    the first time."""
    if keyed is None:
        return await service.write(work)
    request, do = keyed, for_sender(work)

    def once(db: Database) -> str:
        is_first = [False]

        def done() -> KeptAnswer:
            is_first[0] = True
            return KeptAnswer(200, "=" + do(db))

        found = db.keyed_requests.once(request, done)
        if not found.text and not is_first[0]:
            raise too_large_to_keep()
        return found.text.removeprefix("=")

    return await service.write_raw(once)


def too_large_to_keep() -> StorageError:
    return StorageError(
        "the request was carried out before, and its answer was too large to be kept",
        code="too-large",
        hint="ask for what you need with a new request",
    )
