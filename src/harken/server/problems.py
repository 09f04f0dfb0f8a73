"""Errors as answers: problem details (RFC 9457) with the members of every Harken error.

    {"kind": "error", "code": "unknown-table", "message": "there is no table lw", "line": null,
     "column": null, "hint": "did you mean low?",
     "type": "https://harken.dev/errors#unknown-table", "title": "Not Found", "status": 404,
     "detail": "there is no table lw", "request": "8f0c2b..."}

Programs match on `code`, which never changes its meaning. `request` is in the server's log, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from harken.database.results import to_json
from harken.errors import HarkenError, IntegrityError, StorageError
from harken.server import models
from harken.server.access import Refused
from harken.server.request_ids import request_id
from harken.server.server_sent_events import API, error_json

MEDIA_TYPE = "application/problem+json"
TYPES = "https://harken.dev/errors#"
NOT_FOUND = frozenset(
    {
        *("unknown-function", "unknown-table", "unknown-relation", "unknown-type"),
        *("unknown-user", "unknown-source", "unknown-rule", "unknown-id"),
    }
)
BUSY = {"locked", "too-many"}
STOPPED = {"timeout", "cancelled", "memory-limit"}
STATUS_OF_CODE = {
    "too-large": 413,
    "too-slow": 408,
    "not-allowed": 403,
    "changed-meanwhile": 412,
    "key-reused": 409,
    "exists": 409,
    "internal": 500,
    **dict.fromkeys(NOT_FOUND, 404),
    **dict.fromkeys(BUSY | STOPPED, 503),
}
SAID: dict[int | str, str] = {
    400: "The request is invalid.",
    401: "The token is missing or wrong.",
    403: "The service does not allow it.",
    404: "There is nothing of this name.",
    409: "The present data or schema does not allow it.",
    413: "The request is too large.",
    503: "The database is busy, or the request exceeded a limit.",
    "4XX": "Any other error.",
    "5XX": "The service failed.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": said,
        "content": {
            MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{models.Problem.__name__}"}}
        },
    }
    for status, said in SAID.items()
}


def status_of(error: HarkenError) -> int:
    if error.code == "not-permitted" and isinstance(error, Refused | IntegrityError):
        return 403
    if isinstance(error, Refused):
        return 401
    if error.code in STATUS_OF_CODE:
        return STATUS_OF_CODE[error.code]
    if isinstance(error, IntegrityError):
        return 409
    return 500 if isinstance(error, StorageError) else 400


def problem_json(error: HarkenError, status: int) -> dict[str, Any]:
    """The members of an error, and those of problem details."""
    return {
        **error_json(error),
        "type": TYPES + error.code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "request": request_id.get(),
    }


def problem_answer(error: HarkenError, status: int | None = None) -> Response:
    status = status_of(error) if status is None else status
    text = to_json(problem_json(error, status))
    answer = Response(text, status, {"cache-control": "no-store"}, MEDIA_TYPE)
    if isinstance(error, Refused) and status == 401:
        answer.headers["www-authenticate"] = "Bearer"
    return answer


async def answer_harken_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HarkenError)
    request.app.state.counts.errors[error.code] += 1
    return problem_answer(error)


async def answer_wrong_request(request: Request, error: Exception) -> Response:
    """What does not fit the description of the API."""
    assert isinstance(error, RequestValidationError)
    return problem_answer(validation_fault(error.errors()), 400)


def validation_fault(errors: Sequence[Any]) -> HarkenError:
    """The first of what is wrong with a request."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return HarkenError(f"the body is not JSON: {first['ctx']['error']}", code="bad-value")
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    said = {"missing": f"{place} is missing", "extra_forbidden": f"unknown field {place}"}
    wrong = f"{place} is invalid: {first['msg'][:1].lower()}{first['msg'][1:]}"
    hint = f"see {API}/openapi.json"
    return HarkenError(said.get(first["type"], wrong), code="bad-value", hint=hint)


async def answer_bug(request: Request, error: Exception) -> Response:
    return bug_answer(error)


def bug_answer(error: Exception) -> Response:
    """The traceback is in the server's log."""
    fault = HarkenError(
        f"{type(error).__name__}: {error}",
        code="internal",
        hint="this is a bug in Harken: please report it with the server's log",
    )
    return problem_answer(fault, 500)


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    unknown = error.status_code in (404, 405)
    fault = HarkenError(
        f"no such endpoint: {request.method} {request.url.path}"
        if unknown
        else "the body cannot be read as JSON: it is nested too deeply, or a number in it has "
        "too many digits",
        code="bad-value",
        hint=f"see {API}/openapi.json",
    )
    answer = problem_answer(fault, error.status_code)
    if error.headers is not None and "Allow" in error.headers:
        answer.headers["allow"] = error.headers["Allow"]
    return answer
