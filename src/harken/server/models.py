"""The JSON of requests and answers, for the description of the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

JsonRow = Annotated[
    list[Any],
    Field(
        description="The values in the order of the columns. Values that JavaScript would "
        "round are strings: decimals, and integers beyond 2^53."
    ),
]


class ViewColumn(BaseModel):
    name: str
    type: str
    nullable: bool


class View(BaseModel):
    name: str
    kind: str
    columns: list[ViewColumn]


class Views(BaseModel):
    views: list[View]
    position: int


class Snapshot(BaseModel):
    """All rows of a view. Ask for `changes` since its position to learn what came after."""

    kind: Literal["snapshot"]
    view: str
    where: str | None
    columns: list[ViewColumn]
    rows: list[JsonRow]
    position: int
    warnings: list[str]
    """What the changes do not include: for a view that uses the clock, what time alone does to
    it."""


class ViewChange(BaseModel):
    """What a transaction did to a view. A fresh change replaces everything before it: `plus` has
    all rows."""

    kind: Literal["change"]
    view: str
    plus: list[JsonRow]
    minus: list[JsonRow]
    position: int
    fresh: bool
    at: str | None
    """When it was committed, as ISO 8601 in UTC, if that is known."""


class Changes(BaseModel):
    columns: list[ViewColumn]
    changes: list[ViewChange]
    position: int


class Outbox(BaseModel):
    """The changes that the subscriber of a durable monitor has not acknowledged yet. `lost` changes
    were dropped; `alarm` says in words what needs attention."""

    kind: Literal["outbox"]
    name: str
    view: str
    changes: int
    bytes: int
    waiting_since: str | None
    filled: float
    lost: int
    dropped_at: str | None
    alarm: str | None


class Outboxes(BaseModel):
    outboxes: list[Outbox]


class Transaction(BaseModel):
    """Rows to delete and then rows to insert, by table, as one transaction."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"insert": {"edge": [["h", "d"]]}, "delete": {"edge": [["b", "c"]]}}
        },
    )

    insert: dict[str, list[JsonRow]] = Field(default_factory=dict)
    delete: dict[str, list[JsonRow]] = Field(default_factory=dict)


class Kept(BaseModel):
    """Which changes of a view to keep: all, or those of the rows that meet an SQL condition."""

    model_config = ConfigDict(extra="forbid")

    where: str | None = None


class Committed(BaseModel):
    position: int


class Sql(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    values: Annotated[
        list[Any] | dict[str, Any] | None,
        Field(
            description="The values of the parameters: a list for ?, an object for :name. A "
            "list within the list is a list of values, for IN."
        ),
    ] = None


class Results(BaseModel):
    """The result of each query in a text."""

    results: list[dict[str, Any]]
    position: int


class Problem(BaseModel):
    """An error, as problem details (RFC 9457). Programs match on `code`, which never changes its
    meaning."""

    kind: Literal["error"]
    code: str
    message: str
    line: int | None
    """In the text that was sent."""
    column: int | None
    hint: str | None
    """What to do."""
    type: str
    title: str
    status: int
    detail: str
    request: str
    """The id of the request, which is in the log of the service, too."""
