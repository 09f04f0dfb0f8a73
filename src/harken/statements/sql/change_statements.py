"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE.

A statement first finds all of its rows by a query over the state at its start; then it deletes and
inserts them. Rows are in stored form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp

from harken.errors import LanguageError, NameFault
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import Table
from harken.statements.sql.conflicts import Conflicts, written
from harken.statements.sql.lifted_queries import Found
from harken.statements.sql.row_changes import Chosen
from harken.values.rows import Row
from harken.values.types import Type


class Changes(Conflicts):
    def run(self, statement: Statement) -> Found | None:
        """Run a statement; returns the rows of its RETURNING, if it has one."""
        match statement.node:
            case exp.Insert():
                return self._insert(statement, statement.node)
            case exp.Update():
                return self._update(statement, statement.node)
            case exp.Delete():
                return self._delete(statement, statement.node)
            case exp.TruncateTable():
                for each in statement.node.expressions:
                    table = self._target(each, statement)
                    gone = self._all(table)
                    self._apply(table, gone, [])
                    self._count(len(gone))
            case exp.Merge():
                self._merge(statement, statement.node)
        return None

    def _insert(self, statement: Statement, node: exp.Insert) -> Found | None:
        target = node.this
        names = None
        if isinstance(target, exp.Schema):
            names = [each.name.lower() for each in target.expressions]
            target = target.this
        table = self._target(target, statement)
        if node.args.get("default"):
            rows = self._placed(table, [], Found((), (), [()]), statement)
            return self._inserted(table, node, rows, statement)
        if node.expression is None:
            raise LanguageError(
                "INSERT takes VALUES or a query", code="syntax", span=statement.span
            )
        source = node.expression
        if isinstance(source, exp.Values):
            names = names or [column.name for column in table.columns]
            source = self._with_defaults(table, names, source)
        source = _under(node, source.this if isinstance(source, exp.Subquery) else source)
        found = self._reading.rows(statement, source)
        if node.args.get("by_name"):
            names = self._called(found, names, statement)
        rows = self._placed(table, names, found, statement)
        if node.args.get("overwrite"):
            self._apply(table, self._all(table), rows)
            self._count(len(rows))
            return None
        return self._inserted(table, node, rows, statement)

    def _called(self, found: Found, names: list[str] | None, statement: Statement) -> list[str]:
        """The columns of INSERT ... BY NAME: the names of its query's columns."""
        if names is not None:
            raise LanguageError(
                "BY NAME takes the columns from the query",
                code="syntax",
                span=statement.span,
                hint="leave out the columns after the table, or BY NAME",
            )
        return [name.lower() for name in found.names]

    def _inserted(
        self, table: Table, node: exp.Insert, rows: list[Row], statement: Statement
    ) -> Found | None:
        """Insert rows, or change those that they conflict with."""
        gone: list[Row] = []
        changed: list[Row] = []
        conflict = node.args.get("conflict")
        if conflict is not None:
            rows, met = self._conflicts(table, conflict, rows, statement)
            gone, changed = self._settled(table, node, met, statement)
        self._count(len(rows) + _different(gone, changed))
        rows = [*rows, *changed]
        self._apply(table, gone, rows)
        return self._returned(table, node, rows, statement)

    def _settled(
        self, table: Table, node: exp.Insert, met: Sequence[Row], statement: Statement
    ) -> tuple[list[Row], list[Row]]:
        """What ON CONFLICT DO UPDATE makes of the existing rows."""
        conflict = node.args["conflict"]
        if not conflict.expressions:
            return [], []
        names, values = self.assignments(table, conflict.expressions, statement)
        where = conflict.args.get("where")
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        query = self.choosing(table, target, where, values)
        excluded, own = written(table, met, "excluded", statement)
        query = query.join(excluded, join_type="cross")
        same = (
            exp.EQ(
                this=exp.column(name, table=target.alias_or_name),
                expression=exp.column(name, table="excluded"),
            )
            for name in self._conflict_columns(table, conflict, statement)[0]
        )
        chosen, types = self._chosen(table, query.where(*same), own)
        self._check_matches(table, Counter(old for old, _ in chosen), statement, "ON CONFLICT")
        return self._rewriting(table, names, chosen, types, statement)

    def _delete(self, statement: Statement, node: exp.Delete) -> Found | None:
        table = self._target(node.this, statement)
        where = node.args.get("where")
        if node.args.get("using"):  # a row is deleted once, however often it matches
            first, *rest = node.args["using"]
            match = exp.select("1").from_(first.copy())
            for each in rest:
                match = match.join(each.copy())
            where = exp.Where(this=exp.Exists(this=match.where(where.this.copy() if where else "")))
        query = self.choosing(table, node.this, where, [])
        chosen, _ = self._chosen(table, _under(node, query), statement)
        gone = [old for old, _ in chosen]
        self._apply(table, gone, [])
        self._count(len(gone))
        return self._returned(table, node, gone, statement)

    def _update(self, statement: Statement, node: exp.Update) -> Found | None:
        table = self._target(node.this, statement)
        names, values = self.assignments(table, node.expressions, statement)
        query = self.choosing(table, node.this, node.args.get("where"), values)
        source = node.args.get("from_")
        if source is not None:
            query = query.join(source.this.copy())
        chosen, types = self._chosen(table, _under(node, query), statement)
        if source is not None:
            chosen = self._matched_once(table, chosen, statement)
        gone, come = self._rewriting(table, names, chosen, types, statement)
        self._apply(table, gone, come)
        self._count(_different(gone, come))
        return self._returned(table, node, come, statement)

    def _matched_once(
        self, table: Table, chosen: Sequence[Chosen], statement: Statement
    ) -> list[Chosen]:
        """Each row once with the values computed for it and its copies, however often it
        matches."""
        different = dict.fromkeys(chosen)
        taken = Counter(old for old, _ in different)
        self._check_matches(table, taken, statement, "UPDATE", once=True)
        there = self._times(table, [old for old, _ in different])
        return [(old, values) for old, values in different for _ in range(there[old])]

    def _rewriting(
        self,
        table: Table,
        names: Sequence[str],
        chosen: Sequence[Chosen],
        types: Sequence[Type],
        statement: Statement,
    ) -> tuple[list[Row], list[Row]]:
        """The rows to delete, and the replacement for each."""
        places = self._converters(table, names, types, statement)
        gone, come = [], []
        for old, values in chosen:
            new = list(old)
            for (position, convert), value in zip(places, values, strict=True):
                new[position] = convert(value)
            gone.append(old)
            come.append(tuple(new))
        self._check_values(table, come)
        return gone, come

    def _merge(self, statement: Statement, node: exp.Merge) -> None:
        """For each row the first WHEN of its kind whose condition holds applies."""
        table = self._target(node.this, statement)
        gone: list[Row] = []
        come: list[Row] = []
        taken: Counter[Row] = Counter()
        earlier: dict[tuple[bool, bool], list[exp.Expr]] = {}
        changed = 0
        for when in node.args["whens"].expressions:
            kind = (bool(when.args.get("matched")), bool(when.args.get("source")))
            condition = when.args.get("condition") or exp.true()
            others = earlier.setdefault(kind, [])
            tests: list[exp.Expr] = [condition.copy()]
            tests += [exp.not_(exp.func("coalesce", each.copy(), exp.false())) for each in others]
            others.append(condition)
            if when.args["then"].name.upper() == "DO NOTHING":
                continue
            if kind == (False, False):
                rows = self._unmatched(table, node, when.args["then"], tests, statement)
                come += rows
                changed += len(rows)
                continue
            old, new = self._rewritten(table, node, when, tests, statement)
            taken.update(old)
            gone += old
            come += new
            changed += _different(old, new) if new else len(old)
        self._check_matches(table, taken, statement)
        self._check_values(table, come)
        self._apply(table, gone, come)
        self._count(changed)

    def _rewritten(
        self,
        table: Table,
        node: exp.Merge,
        when: exp.Expr,
        tests: Sequence[exp.Expr],
        statement: Statement,
    ) -> tuple[list[Row], list[Row]]:
        """The rows of the table that a WHEN applies to, and their replacements; none if it deletes
        them."""
        source, on, then = node.args["using"], node.args["on"], when.args["then"]
        names: list[str] = []
        values: list[exp.Expr] = []
        if isinstance(then, exp.Update) and isinstance(then.expressions[0], exp.Star):
            names, values = self._same_names(table, source, statement)
        elif isinstance(then, exp.Update):
            names, values = self.assignments(table, then.expressions, statement)
        alias = node.this.alias_or_name
        columns = [exp.column(column.name, table=alias) for column in table.columns]
        query = exp.select(*columns, *(each.copy() for each in values)).from_(node.this.copy())
        if when.args.get("matched"):
            query = query.join(source.copy(), on=on.copy())
        else:
            match = exp.select("1").from_(source.copy()).where(on.copy())
            query = query.where(exp.not_(exp.Exists(this=match)))
        found = self._reading.rows(statement, query.where(*tests))
        width = len(columns)
        old = [self._stored(table, row[:width]) for row in found.rows]
        if not names:
            return old, []
        places = self._converters(table, names, found.types[width:], statement)
        new = []
        for before, row in zip(old, found.rows, strict=True):
            made = list(before)
            for (position, convert), value in zip(places, row[width:], strict=True):
                made[position] = convert(value)
            new.append(tuple(made))
        return old, new

    def _same_names(
        self, table: Table, source: exp.Expr, statement: Statement
    ) -> tuple[list[str], list[exp.Expr]]:
        """All columns of the table, and the columns of the source with the same names."""
        star = exp.select("*").from_(source.copy()).limit(0)
        there = [name.lower() for name in self._reading.rows(statement, star).names]
        names = [column.name for column in table.columns]
        missing = next((name for name in names if name not in there), None)
        if missing is not None:
            raise NameFault(
                f"the source has no column {missing}",
                code="unknown-column",
                span=statement.span,
                hint="* takes all columns of the table: name the columns instead",
            )
        alias = source.alias_or_name
        return names, [exp.column(name, table=alias or None) for name in names]

    def _unmatched(
        self,
        table: Table,
        node: exp.Merge,
        then: exp.Expr,
        tests: Sequence[exp.Expr],
        statement: Statement,
    ) -> list[Row]:
        """The rows to insert for source rows without a match."""
        source, on = node.args["using"], node.args["on"]
        names: list[str] | None
        if isinstance(then.this, exp.Star):
            names, values = self._same_names(table, source, statement)
        else:
            names = [each.name.lower() for each in then.this.expressions] if then.this else None
            values = list(then.expression.expressions)
        matched = exp.select("1").from_(node.this.copy()).where(on.copy())
        query = exp.select(*(each.copy() for each in values)).from_(source.copy())
        query = query.where(exp.not_(exp.Exists(this=matched)), *tests)
        return self._placed(table, names, self._reading.rows(statement, query), statement)


def _different(old: Sequence[Row], new: Sequence[Row]) -> int:
    """How many rows have other values afterwards."""
    return sum(before != after for before, after in zip(old, new, strict=True))


def _under(change: exp.Expr, query: exp.Expr) -> exp.Expr:
    """The query of a change with the WITH of that change."""
    common = change.args.get("with_")
    if common is None:
        return query
    query, common = query.copy(), common.copy()
    own = query.args.get("with_")
    if own is not None:
        common.set("recursive", common.args.get("recursive") or own.args.get("recursive"))
        common.set("expressions", [*common.expressions, *own.expressions])
    query.set("with_", common)
    return query
