"""A database whose views are all watched: after each commit their changes are checked.

Law: the change of a view is the difference of its rows before and after, as bags; what a client
that applies it holds, and what a materialized copy holds, is what the query gives.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import harken

Row = tuple[Any, ...]


class Watched:
    def __init__(self, schema: str, views: dict[str, str], strategy: str = "adaptive") -> None:
        self.db = harken.connect()
        self.db.monitoring(strategy)
        self.db.sql(schema)
        self.held: dict[str, Counter[Row]] = {}
        for name, query in views.items():
            self.db.sql(f"CREATE VIEW {name} AS {query}")
            self.db.sql(f"CREATE MATERIALIZED VIEW kept_{name} AS {query}")
            self.held[name] = self.rows(name)
        self.monitors = {name: self.db.monitor(name) for name in views}

    def rows(self, name: str) -> Counter[Row]:
        return Counter(self.db.sql(f"SELECT * FROM {name}").rows)

    def run(self, text: str) -> dict[str, tuple[Counter[Row], Counter[Row]]]:
        """Run one transaction; what each view gained and lost, checked."""
        self.db.sql(f"BEGIN; {text}; COMMIT")
        found = {}
        for name, monitor in self.monitors.items():
            plus: Counter[Row] = Counter()
            minus: Counter[Row] = Counter()
            for change in monitor.changes():
                plus.update(change.plus)
                minus.update(change.minus)
            assert not plus & minus, name
            before, now = self.held[name], self.rows(name)
            assert plus == now - before, name
            assert minus == before - now, name
            assert self.rows(f"kept_{name}") == now, name
            self.held[name] = now
            found[name] = (plus, minus)
        return found
