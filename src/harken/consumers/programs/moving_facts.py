"""What a program that does not settle was doing: the rules that took turns, and their facts.

The last firings before the limit are remembered with a number that stands for the state: each fact
that comes or goes changes it in the same way. If it comes back, the firings in between are a cycle.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence

from harken.errors import EvaluationError, counted
from harken.ir.relations import Relation
from harken.values.rows import Row

REMEMBERED = 1_000
"""How many firings before the limit are remembered."""
SHOWN = 5
"""How many facts the error names."""

Change = tuple[bool, Relation, Row]


class History:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._first = max(0, limit - REMEMBERED)
        self._firings: deque[tuple[str, Sequence[Change], int]] = deque(maxlen=REMEMBERED)
        self._state = 0

    def wants(self, number: int) -> bool:
        return number >= self._first

    def note(self, rule: str, changes: Sequence[Change]) -> None:
        for _, relation, row in changes:
            self._state ^= hash((relation.id, row))
        self._firings.append((rule, changes, self._state))

    def _cycle(self) -> list[tuple[str, Sequence[Change], int]]:
        """The last firings after which the state was what it had been; all if it never was."""
        firings = list(self._firings)
        for length in range(1, len(firings)):
            if firings[-1][2] == firings[-1 - length][2]:
                return firings[-length:]
        return firings

    def never_settles(self, shown: Callable[[Relation, Row], str]) -> EvaluationError:
        cycle = self._cycle()
        repeats = len(cycle) < len(self._firings)
        rules = list(dict.fromkeys(rule for rule, _, _ in cycle))
        moving = Counter((each.id, row) for _, changes, _ in cycle for _, each, row in changes)
        relations = {each.id: each for _, changes, _ in cycle for _, each, _ in changes}
        facts = [shown(relations[name], row) for (name, row), _ in moving.most_common(SHOWN)]
        more = [f"and {len(moving) - SHOWN} more"] if len(moving) > SHOWN else []
        who = f"the rule {rules[0]} fires" if len(rules) == 1 else f"{_listed(rules)} take turns"
        how = f"every {counted(len(cycle), 'firing')} the same state is back" if repeats else ""
        moved = f"facts that keep moving: {', '.join([*facts, *more])}" if facts else ""
        detail = "; ".join(each for each in (how, moved) if each)
        return EvaluationError(
            f"the program did not settle within {counted(self.limit, 'firing')}: {who} without "
            f"end{f' ({detail})' if detail else ''}",
            code="no-fixpoint",
            hint="make a head turn its own body false, order the rules by priority, or raise the "
            "limit: .run limit N",
        )


def _listed(rules: Sequence[str]) -> str:
    shown = ", ".join(rules[:10])
    return f"the rules {shown}{f' and {len(rules) - 10} more' if len(rules) > 10 else ''}"
