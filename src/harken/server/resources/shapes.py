"""The members of answers that are not simply an object of the Python API, for the description of
the API."""

from __future__ import annotations

import datetime
from typing import Any, Literal

from pydantic import BaseModel

from harken.api.continual_handles import PastExecution
from harken.server.models import JsonRow, ViewColumn

Moment = datetime.datetime


class TypedColumn(BaseModel):
    name: str
    type: str
    """As SQL calls it."""


class QueryShape(BaseModel):
    """A continual query: its clauses, and how far it is."""

    name: str
    id: str
    owner: str
    state: Literal["active", "paused", "stopped"]
    muted: bool
    snoozed: Moment | None
    clauses: dict[str, Any]
    """As they are written in SQL; `notify` is a list."""
    statement: str
    """CREATE CONTINUAL QUERY, as it would be written now."""
    reads: list[str]
    installed: Moment
    executed: Moment | None
    executions: int
    rows: int
    failures: int
    problem: str
    next: Moment | None
    """When there is something to do for it next because of the time."""
    stops: Moment | None


class AnswerShape(BaseModel):
    columns: list[str]
    types: list[str]
    rows: list[JsonRow]
    count: int
    """All rows that there are."""
    position: int


class QueryPlanShape(BaseModel):
    columns: list[TypedColumn]
    key: list[str]
    delivery: str
    plan: list[str]


class SampleShape(BaseModel):
    channel: str
    address: str
    payload: dict[str, Any]
    subject: str
    text: str


class PreviewShape(QueryPlanShape):
    query: QueryShape
    due: list[Moment]
    samples: list[SampleShape]


class SamplesShape(BaseModel):
    samples: list[SampleShape]
    sent: bool


class CheckedShape(BaseModel):
    zone: str
    due: list[Moment]


class RunShape(BaseModel):
    execution: PastExecution | None
    query: QueryShape


class NumberShape(BaseModel):
    number: int


class NumbersShape(BaseModel):
    numbers: list[int]


class OptionShape(BaseModel):
    name: str
    about: str
    type: str
    default: Any
    required: bool
    secret: bool
    choices: list[str]


class KindShape(BaseModel):
    """A kind of source, and what it is told."""

    name: str
    options: list[OptionShape]
    captures: list[str]


class AccountShape(BaseModel):
    name: str
    email: str
    role: Literal["guest", "reader", "author", "operator"]
    state: Literal["invited", "unconfirmed", "active", "disabled"]
    created: Moment
    until: Moment | None
    """When the subscription ends; null means never."""


class KeyShape(BaseModel):
    """A session or an API token. `id` identifies it without giving it away."""

    id: str
    label: str
    scopes: list[str]
    created: Moment
    used: Moment
    until: Moment | None
    agent: str
    address: str


class NewTokenShape(KeyShape):
    token: str
    """Shown this once."""


class InvitationShape(BaseModel):
    name: str
    key: str
    link: str
    """The page on which the password is set, once."""


class MeShape(BaseModel):
    name: str
    role: Literal["guest", "reader", "author", "operator"]
    account: AccountShape | None
    """Null for the operator without an account, and for guests."""
    scopes: list[str]


class GrantShape(BaseModel):
    object: str
    grantee: str
    privilege: str


class ChannelShape(BaseModel):
    name: str


class TemplateShape(BaseModel):
    name: str
    subject: str
    text: str
    html: str
    fields: dict[str, str]


class RunningQueryShape(BaseModel):
    id: str
    user: str
    language: str
    text: str
    started: Moment
    seconds: float


class ResultShape(BaseModel):
    """One result of a text: rows with their columns, or what was printed."""

    kind: str
    columns: list[str] | None = None
    types: list[str] | None = None
    rows: list[JsonRow] | None = None
    count: int | None = None
    values: list[Any] | None = None


class QueryResultsShape(BaseModel):
    id: str
    results: list[ResultShape]
    position: int
    seconds: float


class RelationShape(BaseModel):
    """A table, view, source, relation or function."""

    name: str
    kind: str
    columns: list[ViewColumn]
    key: list[str]
    text: str
    """What defines it."""


class RelationDetailsShape(RelationShape):
    reads: list[str]
    readers: list[str]
    """Each with what it is: `view low`."""
    warnings: list[str]


class RuleShape(BaseModel):
    name: str
    text: str


class PlanShape(BaseModel):
    name: str
    text: str
    details: dict[str, Any]


class SettingShape(BaseModel):
    name: str
    value: Any
    default: Any
    unit: str
    about: str
    fixed: bool
    secret: bool


class AuditShape(BaseModel):
    number: int
    at: Moment
    account: str
    action: str
    object: str
    detail: str
