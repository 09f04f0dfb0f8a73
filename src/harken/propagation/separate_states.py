"""The rows of a view in each state separately, for when its change cannot be found otherwise.

Differentials, and statements that compare two states, also evaluate expressions where no reader
would: in the old state, or for rows of the two states together. Such an expression can fail (a
division, a cast, a scalar subquery). Then each state is evaluated separately, by the ordinary query
of the view.

Law: only an error in the new state is raised. If the old state has no value, its rows are unknown
(None), unless they are stored.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from harken.calculus.states import in_old_state
from harken.engines.protocol import CapturedDelta, Query
from harken.errors import HarkenError, is_of_data
from harken.ir.clauses import Program, stored_relations
from harken.ir.relations import Role
from harken.maintenance.nodes import Planning, ViewNode
from harken.propagation.evaluation_times import Moments
from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class States:
    planning: Planning
    captures: Mapping[str, CapturedDelta]
    moments: Moments

    def now(self, node: ViewNode) -> list[Row]:
        return node.whole(self.planning).rows(())

    def before(self, node: ViewNode, changed: frozenset[str]) -> list[Row] | None:
        """The rows before these stored relations changed; None if they cannot be computed."""
        if node.old_state is not None:
            return self.planning.engine.matching(node.old_state, {})
        try:
            if node.view.depends_on_time:
                with self.planning.engine.connection.at(self.moments.last(node.view.name)):
                    return node.rows_before(changed, self.planning).rows(())
            if self.can_take_back(node.part.program, changed):
                return self.taken_back(node.whole(self.planning), changed)
            return node.rows_before(changed, self.planning).rows(())
        except HarkenError as error:
            if not is_of_data(error):
                raise
            return None

    def rows_before(self, program: Program, changed: frozenset[str]) -> list[Row] | None:
        """The rows of another program before these stored relations changed; None if they cannot be
        computed."""
        try:
            if self.can_take_back(program, changed):
                return self.taken_back(self.planning.compile(program), changed)
            return self.planning.compile(in_old_state(program, changed), as_whole=True).rows(())
        except HarkenError as error:
            if not is_of_data(error):
                raise
            return None

    def can_take_back(self, program: Program, changed: frozenset[str]) -> bool:
        stored = stored_relations(program)
        past = (each for each in stored.values() if each.role is Role.BEFORE)
        return self.planning.can_take_back((*(stored[name] for name in changed), *past))

    def taken_back(self, query: Query, changed: frozenset[str]) -> list[Row]:
        with self.planning.engine.capture.before(self.captures[name] for name in sorted(changed)):
            return query.rows(())

    def last_evaluation(self, view: str) -> datetime.datetime:
        return self.moments.last(view)

    def note_evaluation(self, view: str) -> None:
        self.moments.note(view)
