"""Examples of answers, for the description of the API. A test checks that they have its members."""

from __future__ import annotations

from typing import Any

AT = "2026-03-02T07:00:00+00:00"
NAME = "low_stock"


def page_with(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "next": None}


CONTINUAL_QUERY: dict[str, Any] = {
    "name": NAME,
    "id": "cq-3f9a6c",
    "owner": "ann",
    "state": "active",
    "muted": False,
    "snoozed": None,
    "clauses": {
        "query": "SELECT item FROM stock WHERE quantity < 10",
        "trigger": "EVERY DAY AT '07:00'",
        "stop": "AFTER 2 WEEKS",
        "notify": ["EMAIL 'ann@example.org'"],
        "zone": "UTC",
    },
    "statement": "CREATE CONTINUAL QUERY low_stock AS\nSELECT item FROM stock WHERE quantity < 10",
    "reads": ["stock"],
    "installed": AT,
    "executed": AT,
    "executions": 1,
    "rows": 1,
    "failures": 0,
    "problem": "",
    "next": "2026-03-03T07:00:00+00:00",
    "stops": "2026-03-16T07:00:00+00:00",
}
EXECUTION = {
    "execution": 1,
    "at": AT,
    "event": "installed",
    "cause": {},
    "outcome": "done",
    "strategy": "naive",
    "inserted": 1,
    "deleted": 0,
    "rows": 1,
    "seconds": 0.002,
    "error": "",
    "result": {"inserted": [["pen"]]},
}
DELIVERY = {
    "number": 17,
    "id": "5b1c-17",
    "query": NAME,
    "kind": "results",
    "at": AT,
    "channel": "email",
    "address": "ann@example.org",
    "state": "delivered",
    "attempts": 1,
    "due": AT,
    "error": "",
    "payload": {"inserted": [["pen"]]},
}
SAMPLE = {
    "channel": "email",
    "address": "ann@example.org",
    "payload": {"inserted": [["pen"]]},
    "subject": "low_stock: 1 new row",
    "text": "pen",
}
SAMPLES = {"samples": [SAMPLE], "sent": False}
QUERY_PLAN = {
    "columns": [{"name": "item", "type": "STRING"}],
    "key": ["item"],
    "delivery": "INSERTED",
    "plan": ["Triggered by the time: EVERY DAY AT '07:00'."],
}
PREVIEW = {"query": CONTINUAL_QUERY, **QUERY_PLAN, "due": [AT], "samples": [SAMPLE]}
ANSWER = {
    "columns": ["item"],
    "types": ["STRING"],
    "rows": [["pen"]],
    "count": 1,
    "position": 17,
}
SOURCE = {
    "name": "weather",
    "kind": "json",
    "state": "ok",
    "since": AT,
    "why": "",
    "what_to_do": "",
    "rows": 24,
    "read_at": AT,
    "changed_at": AT,
    "next_try": "2026-03-02T07:05:00+00:00",
    "capture": "poll",
    "key": ["station"],
    "set_aside": {},
    "offered": [],
    "statement": "CREATE SOURCE weather KIND json OPTIONS (url 'https://example.org/w.json')",
}
SOURCE_CHECK = {
    "columns": [{"name": "station", "type": "STRING"}],
    "key": [],
    "key_candidates": [["station"]],
    "rows": [["Oslo"]],
    "count": 24,
    "capture": "poll",
    "why": "the document is compared with that of the reading before",
    "set_aside": {},
}
REFRESHED = {
    "name": "weather",
    "state": "ok",
    "plus": 2,
    "minus": 1,
    "why": "",
    "recovered": False,
}
ACCOUNT = {
    "name": "ann",
    "email": "ann@example.org",
    "role": "author",
    "state": "active",
    "created": AT,
    "until": None,
}
KEY = {
    "id": "2c26b46b68ffc68ff99b453c1d304134",
    "label": "nightly report",
    "scopes": ["read"],
    "created": AT,
    "used": AT,
    "until": None,
    "agent": "",
    "address": "",
}
GRANT = {"object": "low", "grantee": "ann", "privilege": "SELECT"}
TEMPLATE = {
    "name": "stock_alert",
    "subject": "{{ inserted | length }} items are low",
    "text": "{% for row in inserted %}{{ row.item }} {% endfor %}",
    "html": "",
    "fields": {"item": "text"},
}
RUNNING_QUERY = {
    "id": "8f0c2b7d11aa44e0",
    "user": "ann",
    "language": "sql",
    "text": "SELECT count(*) FROM stock, stock AS other",
    "started": AT,
    "seconds": 1.5,
}
QUERY_RESULTS = {
    "id": "8f0c2b7d11aa44e0",
    "results": [
        {
            "kind": "rows",
            "columns": ["item"],
            "types": ["charstring"],
            "rows": [["pen"]],
            "count": 1,
        }
    ],
    "position": 17,
    "seconds": 0.001,
}
RELATION = {
    "name": "low",
    "kind": "view",
    "columns": [{"name": "item", "type": "charstring", "nullable": False}],
    "key": [],
    "text": "CREATE VIEW low AS SELECT item FROM stock WHERE quantity < 10",
}
RELATION_DETAILS = {
    **RELATION,
    "reads": ["stock"],
    "readers": [],
    "warnings": [],
}
RULE = {"name": "order_more", "text": "create rule order_more() as when ..."}
PLAN = {"name": "low", "text": "low: a view of stock.", "details": {"kind": "function"}}
SETTING = {
    "name": "row_limit",
    "value": 5_000_000,
    "default": 0,
    "unit": "rows",
    "about": "Rows that one query may give, before LIMIT; 0 is no limit.",
    "fixed": False,
    "secret": False,
}
AUDIT_ENTRY = {
    "number": 12,
    "at": AT,
    "account": "ann",
    "action": "make token",
    "object": "ann",
    "detail": "nightly report",
}
VIEW_COLUMNS = [
    {"name": "item", "type": "charstring", "nullable": False},
    {"name": "quantity", "type": "integer", "nullable": True},
]
VIEWS = {"views": [{"name": "low", "kind": "derived", "columns": VIEW_COLUMNS}], "position": 17}
SNAPSHOT = {
    "kind": "snapshot",
    "view": "low",
    "where": None,
    "columns": VIEW_COLUMNS,
    "rows": [["pen", 5]],
    "position": 17,
    "warnings": [],
}
CHANGES = {
    "columns": VIEW_COLUMNS,
    "changes": [
        {
            "kind": "change",
            "view": "low",
            "plus": [["ink", 3]],
            "minus": [],
            "position": 18,
            "fresh": False,
            "at": AT,
        }
    ],
    "position": 18,
}
OUTBOXES = {
    "outboxes": [
        {
            "kind": "outbox",
            "name": "reports",
            "view": "low",
            "changes": 3,
            "bytes": 412,
            "waiting_since": AT,
            "filled": 0.01,
            "lost": 0,
            "dropped_at": None,
            "alarm": None,
        }
    ]
}
RESULTS = {
    "results": [{"kind": "rows", "columns": ["item"], "types": ["charstring"], "rows": [["pen"]]}],
    "position": 17,
}
