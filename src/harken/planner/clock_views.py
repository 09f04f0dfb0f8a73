"""Which views over the clock are followed: whose next change can be computed from the data.

A view is followed if every effect that the moment has on it is a comparison whose next outcome is
known (`calculus.clock_steps`). Of the others, changes by time alone are reported with the next
change of data, and a warning says so.
"""

from __future__ import annotations

from harken.calculus.clock import clauses_with_clock, reads_clock, separate_clock, with_clock
from harken.calculus.clock_steps import is_followed, paces
from harken.ir.clauses import Program
from harken.ir.safety import required_inputs
from harken.planner.expand import expand
from harken.planner.specialize import specialize
from harken.values.types import Hierarchy

UNTOLD = (
    "it depends on now() in a way whose next change cannot be computed, such as showing the time "
    "itself: what only passing time changes is reported with the next transaction that changes a "
    "table it reads, and not before"
)


def untold(program: Program, hierarchy: Hierarchy) -> tuple[str, ...]:
    """The changes of a view that its watchers do not see, in sentences: for the warnings of
    `db.monitor` and of explanations."""
    own = with_clock(program)
    if not reads_clock(own):
        return ()
    expanded = separate_clock(specialize(expand(own, hierarchy, required_inputs(own))))
    return () if _is_followed(expanded) else (UNTOLD,)


def _is_followed(program: Program) -> bool:
    for _, uses in clauses_with_clock(program):
        known = paces(uses)
        if not all(is_followed(test, known) for test in uses.tests):
            return False
    return True
