"""Templates, and how values, times and numbers are written for people.

Law: every value that comes from a database is escaped, whatever is in it.
"""

from __future__ import annotations

import datetime
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harken.database.json_values import json_value
from harken.errors import HarkenError
from harken.ir.relations import Column

LONGEST_CELL = 200
"""Characters of a value that a table shows before it is cut."""
LONGEST_LINK = 60
ADDRESS = re.compile(r"https?://[^\s<>\"']{1,2000}")
IMAGE = re.compile(r"\.(png|jpe?g|gif|webp|svg)([?#]|$)", re.IGNORECASE)
NUMBERS = frozenset({"integer", "real", "decimal", "number"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https: http:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What a page may load and do: its own script and style, and requests to this service. Images of
others are loaded when somebody clicks on one."""


@dataclass(frozen=True, slots=True)
class Navigation:
    """An entry of the menu. `alarm` says what is wrong there."""

    title: str
    path: str
    icon: str
    count: int | None = None
    alarm: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What every page shows around its own part."""

    title: str
    place: str
    """The path of the entry of the menu that it belongs to."""
    navigation: Sequence[Navigation] = ()
    position: int = 0
    database: str = ""
    user: str = ""
    csrf: str = ""


def html_answer(
    text: str, status: int = 200, headers: dict[str, str] | None = None
) -> HTMLResponse:
    own = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return HTMLResponse(text, status, {**own, **(headers or {})})


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("harken.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        cell=cell,
        thousands=thousands,
        moment=moment,
        plural=plural,
        segment=segment,
        sql_name=sql_name,
        is_number=is_number,
    )
    made.globals.update(asset=asset, is_number=is_number)
    return made


def render(template: str, page: Page, **values: Any) -> str:
    return environment().get_template(template).render(page=page, **values)


def segment(name: str) -> str:
    """A name as one part of a path.

    >>> segment("a/b c")
    'a%2Fb%20c'
    """
    return quote(name, safe="")


def sql_name(name: str) -> str:
    """
    >>> sql_name("stock"), sql_name("a b")
    ('stock', '`a b`')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else f"`{name.replace('`', '``')}`"


@cache
def asset_text(name: str) -> bytes:
    return files("harken.console").joinpath("static", name).read_bytes()


@cache
def asset(name: str) -> str:
    """The address of a script or style; it changes with the text, so that browsers may keep it."""
    digest = b64encode(sha256(asset_text(name)).digest(), b"-_").decode()[:12]
    return f"/static/{name}?{digest}"


def is_number(column: Column) -> bool:
    return column.type.name.partition("(")[0] in NUMBERS


def cell(value: Any) -> Markup:
    """A value in a table."""
    if value is None:
        return Markup('<span class="null">null</span>')
    shown = json_value(value, repr)
    text = str(shown).lower() if isinstance(shown, bool) else str(shown)
    if ADDRESS.fullmatch(text):
        return _linked(text)
    if len(text) <= LONGEST_CELL:
        return escape(text)
    return Markup('<details class="long"><summary>{}…</summary>{}</details>').format(
        text[:LONGEST_CELL], text
    )


def _linked(address: str) -> Markup:
    """An address; an image is loaded when somebody clicks."""
    shown = address if len(address) <= LONGEST_LINK else f"{address[:LONGEST_LINK]}…"
    link = Markup('<a href="{}" target="_blank" rel="noopener noreferrer">{}</a>')
    image = Markup(' <button type="button" class="link" data-image="{}">show</button>')
    more = image.format(address) if IMAGE.search(address) else Markup("")
    return link.format(address, shown) + more


def thousands(number: int) -> str:
    """
    >>> thousands(18204)
    '18,204'
    """
    return f"{number:,}"


def plural(number: int, word: str) -> str:
    """
    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def moment(at: datetime.datetime | None) -> Markup:
    """A time, which the page's script shows relative to now."""
    if at is None:
        return Markup('<span class="muted">never</span>')
    aware = at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)
    exact = aware.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        aware.isoformat(), exact, exact
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a page shows it: what was wrong, where in the text, and what to do."""

    message: str
    code: str = ""
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str = ""
    details: Sequence[str] = field(default=())

    @classmethod
    def of(cls, error: HarkenError, text: str = "") -> Problem:
        excerpt = ""
        lines = text.splitlines()
        if error.line is not None and 0 < error.line <= len(lines):
            column = max((error.column or 1) - 1, 0)
            excerpt = f"{lines[error.line - 1]}\n{' ' * column}^"
        return cls(error.message, error.code, error.hint, error.line, error.column, excerpt)
