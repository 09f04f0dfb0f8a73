"""Split a SELECT with window functions: the query below them, and the expressions above them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from harken.lang.sql.aggregate_nodes import unfiltered
from harken.lang.sql.expression_text import canonical_text
from harken.lang.sql.group_aggregates import folded_values, is_fold, keys_of
from harken.lang.sql.intervals import interval_of
from harken.lang.sql.normalization import windows_of
from harken.lang.sql.window_rewrites import rewrite_window


@dataclass(slots=True)
class WindowSplit:
    """What windows are computed of, as columns; the windows; and expressions over both."""

    columns: dict[str, exp.Expr] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)

    def take(self, node: exp.Expr) -> exp.Expr:
        """A column that has the value of an expression without windows."""
        text = canonical_text(node)
        if text not in self.names:
            self.names[text] = f"column {len(self.columns)}"
            self.columns[self.names[text]] = node.unalias().copy()
        return exp.column(self.names[text], table="rows")

    def outer(self, node: exp.Expr) -> exp.Expr:
        """The expression over the columns, its windows columns as well."""
        if isinstance(node, exp.Window):
            said = rewrite_window(node)
            return self._window(node) if said is None else self.outer(said)
        if isinstance(node, exp.DataType | exp.Var | exp.IntervalSpan):
            return node.copy()
        # An interval cannot be a column, but its operands can.
        if not windows_of(node) and interval_of(node) is None:
            constant = isinstance(node, exp.Literal | exp.Null | exp.Boolean)
            return node.copy() if constant else self.take(node)
        made = node.copy()
        if isinstance(made, exp.Case):  # a branch is no expression, though it looks like IF
            for each in made.args["ifs"]:
                each.set("this", self.outer(each.this))
                each.set("true", self.outer(each.args["true"]))
        for key, value in list(made.args.items()):
            if key == "ifs":
                continue
            if isinstance(value, exp.Expr) and key != "query":
                made.set(key, self.outer(value))
            elif isinstance(value, list):
                made.set(key, [self.outer(v) if isinstance(v, exp.Expr) else v for v in value])
        return made

    def _window(self, node: exp.Window) -> exp.Expr:
        """A column for a window; one that is written twice is computed once."""
        text = canonical_text(node)
        if text not in self.names:
            self.names[text] = f"window {len(self.windows)}"
            self.windows[self.names[text]] = self._taken(node)
        return exp.column(self.names[text], table="rows")

    def _taken(self, node: exp.Window) -> exp.Window:
        made = node.copy()
        made.set("this", unfiltered(made.this))
        function = made.this.this if isinstance(made.this, exp.IgnoreNulls) else made.this
        value = function.this
        if is_fold(function):
            for each in [*folded_values(function), *keys_of(function)]:
                each.replace(self.take(each))
        elif isinstance(value, exp.Distinct):
            value.set("expressions", [self.take(each) for each in value.expressions])
        elif isinstance(value, exp.Expr) and not isinstance(value, exp.Star):
            function.set("this", self.take(value))
        parts = made.args.get("partition_by") or []
        made.set("partition_by", [self.take(each) for each in parts])
        order = made.args.get("order")
        for each in order.expressions if order is not None else ():
            each.set("this", self.take(each.this))
        return made
