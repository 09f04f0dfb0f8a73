"""How a resource stands in the description of the API: its errors, examples and pages."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Header, Path
from pydantic import BaseModel, ConfigDict

from harken.database.kept_answers import LONGEST_KEY
from harken.server.problems import PROBLEMS

T = TypeVar("T")
LONGEST_NAME = 1_000
LONGEST_TEXT = 1_000_000
"""Characters of a statement or a program."""
Name = Annotated[str, Path(max_length=LONGEST_NAME)]
Number = Annotated[int, Path(ge=0, lt=2**53)]
NO_CONTENT: dict[int | str, dict[str, Any]] = {204: {"description": "It is done."}}
CHANGED_MEANWHILE: dict[int | str, dict[str, Any]] = {
    412: {**PROBLEMS[400], "description": "If-Match names another state of the resource."}
}
IfMatch = Annotated[
    str | None, Header(description="Make the change only if the resource still has this ETag.")
]
IfNoneMatch = Annotated[
    str | None, Header(description="Answer 304 without a body if the resource has this ETag.")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=LONGEST_KEY,
        description="A text of your choice, new for each request: a request that is sent again "
        "under its key is carried out once, and gets the same answer for a day.",
    ),
]


class Body(BaseModel):
    """What a request sends: unknown members are errors."""

    model_config = ConfigDict(extra="forbid")


class PageOf(BaseModel, Generic[T]):
    """One page of a list. `next` is the cursor of the page after it; null on the last."""

    items: list[T]
    next: str | None


def router(tag: str, route_class: Any = None) -> APIRouter:
    given: dict[str, Any] = {"responses": PROBLEMS, "tags": [tag]}
    return APIRouter(**given, **({} if route_class is None else {"route_class": route_class}))


_EXAMPLES: list[Any] = []
_PLACE = "example number"


def with_examples(described: Any) -> Any:
    """The description with its examples in place: FastAPI would leave out what is null in them."""
    match described:
        case {"example number": int(number)}:
            return _EXAMPLES[number]
        case dict():
            return {name: with_examples(each) for name, each in described.items()}
        case list():
            return [with_examples(each) for each in described]
    return described


def example(value: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route, by an example."""
    _EXAMPLES.append(value)
    place = {_PLACE: len(_EXAMPLES) - 1}
    said = {200: "What was asked for.", 201: "It is made.", 202: "It is on its way."}[status]
    return {
        status: {"description": said, "content": {"application/json": {"example": place}}},
        **({304: {"description": "It is still the one with this ETag."}} if status == 200 else {}),
    }
