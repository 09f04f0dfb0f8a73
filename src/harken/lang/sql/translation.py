"""The context of one translation, which every function of it is given.

Queries contain expressions and expressions contain queries. Both go through the context, so that
the module of a construct imports neither `queries` nor `expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from harken.ir.terms import Term
from harken.lang.sql.program_draft import Body, Draft, Tables
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.scope import Scope


@dataclass(slots=True)
class Translation:
    """The state of the translation of one statement."""

    draft: Draft
    tables: Tables
    translate_query: Callable[[Translation, exp.Expr, Scope | None], QueryRows]
    translate_value: Callable[[Translation, exp.Expr, Scope, Body], Term]
    with_items: list[dict[str, QueryRows]] = field(default_factory=list)
    """The items of each WITH around the query, by name; the innermost last."""
    mentioned: set[str] = field(default_factory=set)
    """The tables and views that were named."""
    computed: dict[int, tuple[Body, Term]] = field(default_factory=dict)
    """The values of `Once` nodes, with the body that computes each."""
    using_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def query(self, node: exp.Expr, scope: Scope | None = None) -> QueryRows:
        """The rows of a query. It may mention columns of the scope, which it captures."""
        return self.translate_query(self, node, scope)

    def value(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """The term that holds the value of an expression; the body computes it."""
        return self.translate_value(self, node, scope, body)
