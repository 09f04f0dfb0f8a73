"""All that is kept for a session, in temporary tables: opening, building several in one pass.

Law: `total` is the sum of all that is built and holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from harken.calculus.counting import Derivations
from harken.calculus.first_rows import FirstRows
from harken.calculus.rounds import Rounds
from harken.calculus.totals import Totals
from harken.engines.protocol import (
    AnyKept,
    CopiedRows,
    KeptRecursion,
    KeptRounds,
    KeptSummary,
    Query,
    RecursiveRows,
    Size,
)
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.counts import CountsTable
from harken.engines.sqlite.kept import Ledger
from harken.engines.sqlite.kept_copies import Copy
from harken.engines.sqlite.kept_first_rows import FirstRowsTable
from harken.engines.sqlite.kept_rounds import RoundsTable
from harken.engines.sqlite.kept_totals import TotalsTable, totals_table
from harken.engines.sqlite.recursive_rows import RecursionTables
from harken.engines.sqlite.selectable import selectable
from harken.ir.clauses import Program
from harken.planner.prepare import Plan

if TYPE_CHECKING:
    from harken.engines.sqlite.engine import SQLiteEngine


class Keep:
    def __init__(self, connection: Connection, engine: SQLiteEngine) -> None:
        self._connection = connection
        self._engine = engine
        self._ledger = Ledger()

    def open(self, specification: Any, in_file: bool = False) -> Any:
        match specification:
            case Totals():
                return totals_table(self._connection, self._ledger, specification, in_file)
            case FirstRows():
                return FirstRowsTable(self._connection, self._ledger, specification)
            case Derivations():
                return CountsTable(self._connection, self._ledger, specification)
            case Rounds():
                return RoundsTable(self._connection, self._ledger, specification)
            case CopiedRows():
                return Copy(self._connection, self._ledger, specification)
            case RecursiveRows():
                return RecursionTables(self._connection, self._ledger, specification, self._engine)
        raise TypeError(f"nothing is kept for {specification}")

    def build(
        self,
        wanted: Iterable[tuple[KeptSummary, Program]],
        compile_members: Callable[[Program], Query],
    ) -> None:
        """Totals of the same groups are counted in one pass."""
        together: dict[tuple[object, ...], list[TotalsTable]] = {}
        programs: dict[tuple[object, ...], Program] = {}
        for kept, program in wanted:
            if isinstance(kept, FirstRowsTable):
                kept.build(compile_members(kept.specification.ahead(kept.wanted)))
            elif isinstance(kept, CountsTable):
                query = compile_members(program)
                counted = selectable(query).counted(kept.counted_by, (), None, many=False)
                kept.build(query, counted)
            else:
                assert isinstance(kept, TotalsTable)
                key = (program.goal.id, kept.counted_by, kept.specification.present)
                together.setdefault(key, []).append(kept)
                programs[key] = program
        for alike, tables in together.items():
            _build_together(tables, compile_members(programs[alike]))

    def compile(self, plan: Plan, reading: Iterable[KeptRounds | KeptRecursion]) -> Query:
        known: dict[str, str] = {}
        for each in reading:
            kept = cast(RoundsTable | RecursionTables, each)
            known |= kept.tables if isinstance(kept, RoundsTable) else kept.copies
        return self._engine.compile_reading(plan, known)

    def built(self) -> list[AnyKept]:
        """A rollback may have undone what was built: then it does not hold."""
        return [cast(AnyKept, each) for each in self._ledger.built.values() if each.holds()]

    def total(self) -> Size:
        return sum((each.measure() for each in self.built()), Size())


def _build_together(tables: list[TotalsTable], query: Query) -> None:
    by, present = tables[0].counted_by, tables[0].specification.present
    values = sorted({value for table in tables for value in table.summed})
    counted = selectable(query).counted(by, values, present, many=len(tables) > 1)
    for table in tables:
        if counted is None:
            table.build(query)
            continue
        places = [len(by) + 1 + values.index(value) for value in table.summed]
        rows = ((*row[: len(by) + 1], *(row[place] for place in places)) for row in counted)
        table.build(query, rows)
