"""Which table each column of a condition belongs to.

stock.price                 the column of that table
price                       of a table that the condition names, else of one of the query's
OLD.price, NEW.price        as it was at the last execution, and as it is
Stock.price(IBM)            the price in the row whose key is IBM
qty_on_hand(item)           the column, as the thesis writes functions of one object
weather CHANGES             any column of the table
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from harken.errors import HarkenError, NameFault, Span, TypeFault, offered
from harken.lang.continual.condition_tables import (
    ConditionTable,
    ConditionTables,
    column,
    from_table,
)
from harken.lang.continual.row_tests import place
from harken.lang.continual.syntax import CHANGES

OLD, NEW, ROW = "old ", "new ", "row "
"""Functions around a column, or around a table that stands for all its columns."""


@dataclass(slots=True)
class Resolved:
    """Tests whose columns have found their tables: `sources` has the tables by alias, and
    `restrictions` what keys in the text ask for."""

    span: Span
    sources: dict[str, ConditionTable] = field(default_factory=dict)
    restrictions: list[exp.Expr] = field(default_factory=list)


class ColumnNames:
    def __init__(self, tables: ConditionTables, span: Span, others: Sequence[str] = ()) -> None:
        """`others` are tables that other parts of the condition name."""
        self._tables = tables
        self._others = others
        self._defaults = {alias.lower(): name for alias, name in tables.defaults}
        self.found = Resolved(span)

    def note(self, node: exp.Expr) -> None:
        """The tables that an expression names: its columns without a table are theirs first."""
        for each, inner in _columns(node):
            qualifier = _qualifier(each).lower()
            if qualifier and qualifier not in inner and qualifier not in ("old", "new"):
                self._source(qualifier, each)

    def resolve(self, node: exp.Expr) -> exp.Expr:
        """The expression with the table of each column."""
        return self._resolved(node.copy())

    def use(self, name: str, span: Span) -> str:
        """A table that a clause names; its alias."""
        return self._source(name, None, span)

    def use_default(self, span: Span) -> None:
        """A test that names no column, as COUNT(*) does, is about the table of the query."""
        if self.found.sources:
            return
        if len(self._defaults) != 1:
            raise TypeFault(
                "COUNT(*) does not say of which table",
                code="ambiguous",
                span=span,
                hint="name a column: COUNT(table.column), or GROUP BY table.column",
            )
        (alias,) = self._defaults
        self._source(alias, None, span)

    # --- expressions -----------------------------------------------------------------------

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        made = self._of_row(node)
        if made is not None:
            return made
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier):
                node.set(key, self._resolved(value))
            elif isinstance(value, list):
                node.set(key, [self._resolved(e) if isinstance(e, exp.Expr) else e for e in value])
        return node

    def _of_row(self, node: exp.Expr) -> exp.Expr | None:
        match node:
            case exp.Anonymous(this=name, expressions=[exp.Column() as one]) if name == CHANGES:
                whole = self._whole_row(one)
                if whole is not None:
                    return exp.Anonymous(this=CHANGES, expressions=[whole])
            case exp.Column():
                return self._column(node)
            case exp.Dot(this=exp.Identifier() | exp.Column() as table, expression=call) if (
                isinstance(call, exp.Anonymous)
            ):
                return self._by_key(table.name, call)
            case exp.Anonymous(this=str() as name, expressions=[exp.Column(table="")]) if (
                self._has_default(name)
            ):
                named = exp.column(name)
                named.meta.update(node.meta)
                return self._column(named)
            case exp.Anonymous(this=str() as name, expressions=given) if given:
                return self._call(name, given)
        return None

    def _call(self, name: str, given: Sequence[exp.Expr]) -> exp.Expr | None:
        """A user's Python function: SQL has it as a table of its arguments and its result."""
        columns = self._tables.predicate(name, len(given))
        if columns is None:
            return None
        *parameters, result = columns
        alias = f"{name} of"
        equal = [
            exp.EQ(this=column(each, alias), expression=self._resolved(value.copy()))
            for each, value in zip(parameters, given, strict=True)
        ]
        query = exp.select(column(result, alias)).from_(from_table(name, alias))
        return exp.Subquery(this=query.where(*equal))

    def _has_default(self, name: str) -> bool:
        return any(table.type_of(name.lower()) is not None for _, table in self._candidates())

    def _whole_row(self, node: exp.Column) -> exp.Expr | None:
        """A table in place of a column."""
        name = node.name.lower()
        if node.table or self._has_default(name):
            return None
        if name not in self._defaults and self._tables.table(name) is None:
            return None
        alias = self._source(name, node)
        return exp.Anonymous(this=ROW, expressions=[exp.Literal.string(alias)])

    def _column(self, node: exp.Column) -> exp.Expr:
        name, qualifier = node.name.lower(), node.table.lower()
        if qualifier in ("old", "new") and qualifier not in self._defaults:
            found = self._bare(name, node)
            version = OLD if qualifier == "old" else NEW
            return exp.Anonymous(this=version, expressions=[found])
        if not qualifier:
            return self._bare(name, node)
        alias = self._source(qualifier, node)
        return self._checked(alias, name, node)

    def _checked(self, alias: str, name: str, node: exp.Expr) -> exp.Expr:
        table = self.found.sources[alias]
        if table.type_of(name) is None:
            raise self._unknown_column(table, name, node)
        return _at(column(name, alias), node)

    def _bare(self, name: str, node: exp.Expr) -> exp.Expr:
        candidates = list(self._candidates())
        having = {a: t for a, t in candidates if t.type_of(name) is not None}
        named = {a: t for a, t in having.items() if a in self.found.sources}
        choice = named or having or self._elsewhere(name)
        if len(choice) > 1:
            raise TypeFault(
                f"the column {name} is in {' and in '.join(sorted(choice))}",
                code="ambiguous",
                span=self._place(node),
                hint=f"say which: {min(choice)}.{name}",
            )
        if not choice:
            known = [c.name for _, table in candidates for c in table.columns]
            hint = offered(name, known, "columns") if known else "name its table: table.column"
            message = f"there is no column {name}"
            raise NameFault(message, code="unknown-column", span=self._place(node), hint=hint)
        ((alias, table),) = choice.items()
        self.found.sources.setdefault(alias, table)
        return _at(column(name, alias), node)

    def _elsewhere(self, name: str) -> dict[str, ConditionTable]:
        tables = {each: self._tables.table(each) for each in self._others}
        return {a: t for a, t in tables.items() if t is not None and t.type_of(name) is not None}

    def _candidates(self) -> Iterator[tuple[str, ConditionTable]]:
        yield from self.found.sources.items()
        for alias, name in self._defaults.items():
            if alias not in self.found.sources:
                table = self._tables.table(name)
                if table is not None:
                    yield alias, table

    def _by_key(self, table: str, call: exp.Anonymous) -> exp.Expr:
        """Stock.price(IBM)."""
        alias = self._source(table.lower(), call)
        source = self.found.sources[alias]
        if not source.has_key or len(source.key) != len(call.expressions):
            what = f"the key of {source.title} has {len(source.key)} columns"
            raise TypeFault(
                what if source.has_key else f"{source.title} has no key",
                code="no-key",
                span=self._place(call),
                hint=f"say which row with WHERE {source.title}.column = value",
            )
        for name, given in zip(source.key, call.expressions, strict=True):
            is_word = isinstance(given, exp.Column) and not given.table
            value = exp.Literal.string(given.name) if is_word else given
            equal = exp.EQ(this=column(name, alias), expression=value)
            self.found.restrictions.append(equal)
        return self._checked(alias, call.name.lower(), call)

    # --- tables ----------------------------------------------------------------------------

    def _source(self, name: str, node: exp.Expr | None, span: Span | None = None) -> str:
        alias = name.lower()
        if alias in self.found.sources:
            return alias
        table = self._tables.table(self._defaults.get(alias, name))
        if table is None:
            raise NameFault(
                f"there is no table or view {name}",
                code="unknown-table",
                span=span or (self._place(node) if node is not None else self.found.span),
                hint=offered(name, sorted(self._tables.names()), "tables and views"),
            )
        self.found.sources[alias] = table
        return alias

    def _unknown_column(self, table: ConditionTable, name: str, node: exp.Expr) -> HarkenError:
        return NameFault(
            f"{table.title} has no column {name}",
            code="unknown-column",
            span=self._place(node),
            hint=offered(name, [each.name for each in table.columns], "columns"),
        )

    def _place(self, node: exp.Expr) -> Span:
        return place(node) or self.found.span


def _at(made: exp.Expr, node: exp.Expr) -> exp.Expr:
    made.meta.update(node.meta)
    found = place(node)
    if found is not None:
        made.meta.update(start=found.start, end=found.end - 1)
    return made


def _qualifier(node: exp.Expr) -> str:
    if isinstance(node, exp.Dot):
        return str(node.this.name)
    return str(node.args["table"].name) if node.args.get("table") is not None else ""


def _columns(
    node: exp.Expr, inner: frozenset[str] = frozenset()
) -> Iterator[tuple[exp.Expr, frozenset[str]]]:
    """The columns of an expression, with the tables of the subqueries around each."""
    if isinstance(node, exp.Query):
        own = {each.alias_or_name.lower() for each in node.find_all(exp.Table, exp.Subquery)}
        inner = inner | own
    if isinstance(node, exp.Column):
        yield node, inner
        return
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        yield node, inner
        return
    for child in node.iter_expressions():
        yield from _columns(child, inner)
