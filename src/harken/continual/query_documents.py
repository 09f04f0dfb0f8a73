"""Continual queries as plain data, for YAML: a mapping of names to clauses.

    queries:
      bayer:
        query: SELECT symbol, price FROM stock WHERE company = 'Bayer AG'
        trigger: EVERY MONDAY AT '08:00'
        stop: AFTER 2 WEEKS
        notify: [EMAIL 'me@example.org' TEMPLATE 'stock_alert']

Law: what is exported and imported is the same query; only its id and its history are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harken.continual import clause_texts
from harken.continual.clause_texts import Part
from harken.continual.continual_queries import ContinualQueries
from harken.continual.installed_queries import InstalledQuery, State
from harken.continual.query_alterations import Alterations
from harken.continual.query_clauses import Clauses, recipient_text
from harken.continual.words import quoted
from harken.database.arguments import check_text
from harken.errors import HarkenError, TypeFault, offered

TEXTS = ("query", "trigger", "stop", "deliver", "zone", "owner", "strategy", "deadline", "coupling")
KEYS = (*TEXTS, "notify", "priority", "paused", "muted")
SECTION = "queries"


@dataclass(frozen=True, slots=True)
class Described:
    """A query as a document describes it."""

    name: str
    clauses: Clauses
    paused: bool = False
    muted: bool = False


def document_of(query: InstalledQuery) -> dict[str, Any]:
    """The clauses of a query as plain data, those included that it was not asked to say."""
    clauses, texts = query.clauses, query.clauses.texts()
    found: dict[str, Any] = {"query": clauses.query}
    for key in ("trigger", "stop", "deliver", "strategy", "deadline", "coupling"):
        if key.upper() in texts:
            found[key] = texts[key.upper()]
    if clauses.notify:
        found["notify"] = [recipient_text(each) for each in clauses.notify]
    if clauses.priority:
        found["priority"] = clauses.priority
    found |= {"zone": query.zone_name, "owner": query.owner}
    if query.state is State.PAUSED:
        found["paused"] = True
    if query.muted:
        found["muted"] = True
    return found


def described(name: str, document: Any, continual: ContinualQueries) -> Described:
    """What a document says about one query."""
    if not isinstance(document, Mapping):
        raise _wrong(name, "it must have clauses", "query: SELECT ...")
    for key in document:
        if key not in KEYS:
            raise _wrong(name, f"there is no clause {key}", offered(str(key), KEYS, "clauses"))
    parts = [_part(name, key, document[key]) for key in TEXTS if document.get(key) is not None]
    for each in _recipients(name, document.get("notify") or []):
        parts.append(Part("NOTIFY", each, 0))
    if document.get("priority") is not None:
        parts.append(Part("PRIORITY", _number(name, document["priority"]), 0))
    flags = {}
    for key in ("paused", "muted"):
        flags[key] = document.get(key, False)
        if not isinstance(flags[key], bool):
            raise _wrong(name, f"{key} must be true or false", None)
    try:
        clauses = clause_texts.clauses_of(parts, continual.kinds)
    except HarkenError as error:
        error.message = f"in the continual query {name}: {error.message}"
        error.span = None
        raise
    return Described(name, clauses, flags["paused"], flags["muted"])


def make_so(continual: ContinualQueries, wanted: Described) -> str:
    """In a transaction: install a query, or alter it to what is wanted; says what was done:
    `installed`, `altered` or `unchanged`."""
    alterations, known = Alterations(continual), continual.queries.named(wanted.name)
    if known is None or not known.is_live:
        if known is not None:
            continual.drop(known)
        query, done = continual.install(wanted.name, wanted.clauses), "installed"
    else:
        before = document_of(known)
        query = alterations.apply(known, _complete(wanted.clauses, known))
        done = "unchanged" if document_of(query) == before else "altered"
    if query.is_live and wanted.paused != (query.state is State.PAUSED):
        query = alterations.pause(query) if wanted.paused else alterations.resume(query)
        done = "altered" if done == "unchanged" else done
    if wanted.muted != query.muted:
        alterations.mute(query, wanted.muted)
        done = "altered" if done == "unchanged" else done
    return done


def difference(continual: ContinualQueries, wanted: Described) -> str:
    """What `make_so` would do."""
    known = continual.queries.named(wanted.name)
    if known is None or not known.is_live:
        return "installed"
    is_same = (
        _complete(wanted.clauses, known).texts() == known.clauses.texts()
        and wanted.clauses.query == known.clauses.query
        and (wanted.clauses.owner or known.owner) == known.owner
        and wanted.paused == (known.state is State.PAUSED)
        and wanted.muted == known.muted
    )
    return "unchanged" if is_same else "altered"


def _complete(clauses: Clauses, known: InstalledQuery) -> Clauses:
    """What is not said about the zone and the owner stays."""
    zone, owner = clauses.zone or known.zone_name, clauses.owner or known.owner
    return replace(clauses, zone=zone, owner=owner)


def _part(name: str, key: str, value: Any) -> Part:
    if not isinstance(value, str):
        raise _wrong(name, f"{key} must be a text", None)
    check_text(value, key)
    said = quoted(value) if key in ("zone", "owner") else value.strip()
    return Part(key.upper(), said, 0)


def _number(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**9:
        raise _wrong(name, "priority must be a whole number", "as 5")
    return str(value)


def _recipients(name: str, value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise _wrong(name, "notify must be a list of texts", "as [EMAIL 'me@example.org']")
    for each in listed:
        check_text(each, "notify")
    return listed


def _wrong(name: str, what: str, hint: str | None) -> TypeFault:
    return TypeFault(f"in the continual query {name}: {what}", code="bad-value", hint=hint)
