"""A view that stays up to date in the output of a notebook cell.

    from harken.notebook import live
    shown = live(db, "total", chart=("city", "amount"))

Law: the output shows the rows that the view has after the last commit of this session; while
`follow` runs, after the last commit of any process.
"""

from __future__ import annotations

from typing import Any

import harken
from harken.database.changes import Change
from harken.database.frames import SHOWN_ROWS, library
from harken.database.results import Result
from harken.errors import NameFault, TypeFault, offered
from harken.notebook.charts import chart_svg


def live(
    database: harken.Database,
    view: str,
    *,
    where: Any = None,
    chart: tuple[str, str] | None = None,
    rows: int = SHOWN_ROWS,
) -> LiveView:
    """Show a view, or the rows of it that meet a condition, and keep it up to date. `chart` names
    the columns of a chart above the table: labels and numbers. `rows` is how many are shown."""
    shown = LiveView(database, view, where=where, chart=chart, rows=rows)
    shown.show()
    return shown


class LiveView:
    def __init__(
        self,
        database: harken.Database,
        view: str,
        *,
        where: Any = None,
        chart: tuple[str, str] | None = None,
        rows: int = SHOWN_ROWS,
    ) -> None:
        self._columns = [column.name for column in database.describe(view).columns]
        self._types = tuple(column.type for column in database.describe(view).columns)
        self._chart = None if chart is None else self._places(view, chart)
        self._most = rows
        self._copy = harken.Copy()
        self._handle: Any = None
        self.subscription = database.monitor(view, self._take, where=where)
        self._copy.apply(self.subscription.snapshot())

    def show(self) -> None:
        """In the output of the cell that calls this."""
        self._handle = library("IPython.display").display(self, display_id=True)

    def follow(self, timeout: float | None = None) -> None:
        """Show what other processes commit as well, until the kernel is interrupted, or nothing
        came for `timeout` seconds."""
        try:
            for change in self.subscription.follow(timeout):
                self._take(change)
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """Leave the output as it is."""
        self.subscription.close()

    def _take(self, change: Change) -> None:
        self._copy.apply(change)
        if self._handle is not None:
            self._handle.update(self)

    def _repr_html_(self) -> str:
        rows = sorted(self._copy, key=lambda row: tuple((v is not None, str(v)) for v in row))
        shown = Result("rows", tuple(self._columns), rows, types=self._types)
        table = shown.to_html(self._most)
        if self._chart is None:
            return table
        label, value = self._chart
        return chart_svg([(row[label], row[value]) for row in rows]) + table

    def _places(self, view: str, chart: tuple[str, str]) -> tuple[int, int]:
        if not isinstance(chart, tuple | list) or len(chart) != 2:
            raise TypeFault(
                "a chart has two columns, labels and numbers",
                code="arity",
                hint='chart=("city", "amount")',
            )
        for name in chart:
            if name not in self._columns:
                raise NameFault(
                    f"{view} has no column {name}",
                    code="unknown-column",
                    hint=offered(str(name), self._columns, "columns"),
                )
        return self._columns.index(chart[0]), self._columns.index(chart[1])
