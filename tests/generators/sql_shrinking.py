"""A failing script with everything left out that does not matter to the failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import sqlglot
from sqlglot import exp

from tests.generators.sql_queries import duckdb_text
from tests.generators.sql_scripts import Script, Transaction, View

T = TypeVar("T")
Fails = Callable[[Script], bool]


def shrink(script: Script, fails: Fails, seconds: float = 120) -> Script:
    """Take the first smaller script that fails too, until there is none, or time is up: a failure
    that is told in time is worth more than one that is told in few words."""
    deadline = time.monotonic() + seconds
    while True:
        for smaller in _smaller(script):
            if time.monotonic() > deadline:
                return script
            if fails(smaller):
                script = smaller
                break
        else:
            return script


def text_of(script: Script) -> str:
    lines = [f"-- monitoring: {script.strategy}"]
    lines += ["-- totals are kept of every group"] if script.keeps_totals else []
    lines += [f"{table.definition()};" for table in script.tables]
    lines += [f"{view.definition}; -- monitored: {view.monitored}" for view in script.views]
    for transaction in script.transactions:
        reopened = ", opened again" if transaction.reopens else ""
        lines.append(f"-- session {transaction.session}{reopened}")
        end = "COMMIT" if transaction.commits else "ROLLBACK"
        lines.append("; ".join(("BEGIN", *transaction.statements, end)) + ";")
    return "\n".join(lines)


def _smaller(script: Script) -> Iterator[Script]:
    for views in _fewer(script.views):
        yield replace(script, views=tuple(views))
    for transactions in _fewer(script.transactions):
        yield replace(script, transactions=tuple(transactions))
    for tables in _fewer(script.tables):
        yield replace(script, tables=tuple(tables))
    for i, transaction in enumerate(script.transactions):
        for smaller in _smaller_transactions(transaction):
            changed = (*script.transactions[:i], smaller, *script.transactions[i + 1 :])
            yield replace(script, transactions=changed)
    for i, view in enumerate(script.views):
        for query in smaller_queries(view.query):
            yield replace(script, views=_with_view(script, i, replace(view, query=query)))
        if view.materialized:
            yield replace(script, views=_with_view(script, i, replace(view, materialized=False)))


def _with_view(script: Script, i: int, view: View) -> tuple[View, ...]:
    return (*script.views[:i], view, *script.views[i + 1 :])


def _fewer(parts: Sequence[T]) -> Iterator[list[T]]:
    """Without half of them, a quarter, and so on."""
    size = len(parts)
    while size > 0:
        for start in range(0, len(parts), size):
            yield [*parts[:start], *parts[start + size :]]
        size //= 2


def _smaller_transactions(transaction: Transaction) -> Iterator[Transaction]:
    for statements in _fewer(transaction.statements):
        if statements:
            yield replace(transaction, statements=tuple(statements))
    if transaction.reopens:
        yield replace(transaction, reopens=False)
    if transaction.session:
        yield replace(transaction, session=0)
    for i, statement in enumerate(transaction.statements):
        for smaller in _smaller_statements(statement):
            changed = (*transaction.statements[:i], smaller, *transaction.statements[i + 1 :])
            yield replace(transaction, statements=changed)


def _smaller_statements(statement: str) -> Iterator[str]:
    head, values, rows = statement.partition(" VALUES (")
    if values:
        for fewer in _fewer(rows[:-1].split("), (")):
            if fewer:
                yield f"{head} VALUES ({'), ('.join(fewer)})"
    elif " WHERE " in statement:
        yield statement[: statement.index(" WHERE ")]


def smaller_queries(text: str) -> Iterator[str]:
    """The query with one part less, larger parts first."""
    tree = sqlglot.parse_one(duckdb_text(text), read="duckdb")
    count = len(list(tree.bfs()))
    for position in range(count):
        for choice in range(20):
            copy = tree.copy()
            node = next(each for i, each in enumerate(copy.bfs()) if i == position)
            made = _reduced(node, choice)
            if made is None:
                break
            if made is node:
                result = copy
            elif node is copy:
                result = made.copy()
            else:
                node.replace(made.copy())
                result = copy
            smaller = result.sql("duckdb")
            if len(smaller) < len(text):
                yield smaller


def _reduced(node: exp.Expr, choice: int) -> exp.Expr | None:
    """The node made smaller in one of several ways, or what is to stand in its place."""
    options: list[Callable[[], exp.Expr]] = []

    def without(key: str) -> Callable[[], exp.Expr]:
        def change() -> exp.Expr:
            node.set(key, None)
            return node

        return change

    def without_item(key: str, i: int) -> Callable[[], exp.Expr]:
        def change() -> exp.Expr:
            node.args[key].pop(i)
            return node

        return change

    if isinstance(node, exp.SetOperation | exp.Binary):
        options += [lambda: node.left.unnest(), lambda: node.right.unnest()]
    if isinstance(node, exp.Select):
        keys = ("with_", "where", "having", "group", "distinct", "limit", "offset")
        options += [without(key) for key in keys if node.args.get(key)]
        options += [without_item("joins", i) for i in range(len(node.args.get("joins") or ()))]
        if len(node.expressions) > 1:
            options += [without_item("expressions", i) for i in range(len(node.expressions))]
    if isinstance(node, exp.Group | exp.In | exp.Coalesce) and len(node.expressions) > 1:
        options += [without_item("expressions", i) for i in range(len(node.expressions))]
    if isinstance(node, exp.Join):
        options += [without(key) for key in ("side",) if node.args.get(key)]
    if isinstance(node, exp.Condition) and not isinstance(node, exp.Literal | exp.Column | exp.If):
        options += [
            (lambda child=child: child)  # type: ignore[misc]
            for child in node.iter_expressions()
            if isinstance(child, exp.Condition)
        ]
        if not isinstance(node, exp.Boolean | exp.Null):
            options += [exp.true, lambda: exp.Literal.number(1)]
    return options[choice]() if choice < len(options) else None
