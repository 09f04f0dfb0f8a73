"""The budget in bytes for all state that makes changes cheaper: rows, totals, counts, rounds, first
rows and copies.

When the budget is exceeded, the state that saves the least time per byte is dropped. It is not
built again until there is room for it or the data has changed considerably. The sizes are checked
after something was built, and whenever the number of waves has doubled, since kept state grows.

Law: dropping state never changes the changes that are found, only the time to find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harken.engines.protocol import AnyKept
from harken.maintenance.nodes import DerivedNode, TotalsNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode


@dataclass(frozen=True, slots=True)
class KeptItem:
    """One piece of kept state, with its size."""

    relation: str
    """The relation that the state belongs to."""
    kind: str
    """`totals`, `first rows`, `counts`, `rounds`, `rows` or `copy`."""
    rows: int
    bytes: int
    """An estimate."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    items: tuple[KeptItem, ...]
    """All pieces, largest first."""
    limit: int
    """The setting `kept_bytes`; 0 is no limit."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.items)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.items)

    def __str__(self) -> str:
        of = f" of {self.limit:,}" if self.limit else ""
        lines = [f"{each.bytes:>12,}  {each.kind} of {each.relation}" for each in self.items]
        return "\n".join([f"{self.bytes:,}{of} bytes are kept", *lines])


@dataclass(slots=True)
class KeptBudget:
    limit: Callable[[], int]
    """In bytes; 0 is no limit."""
    _refused: dict[str, int] = field(default_factory=dict)
    """The size of each piece that was dropped, by its name."""
    _total: int = 0
    _waves: int = 0
    _is_due: bool = False

    def allows(self, kept: AnyKept) -> bool:
        """Whether the budget allows building this state."""
        needed = self._refused.get(kept.name)
        if needed is None:
            return True
        limit = self.limit()
        return not limit or self._total + needed <= limit

    def note_built(self) -> None:
        self._is_due = True

    def is_due(self) -> bool:
        """Called after each wave: whether to check the sizes now."""
        self._waves += 1
        has_doubled = not self._waves & (self._waves - 1)
        due = bool(self.limit()) and (self._is_due or has_doubled)
        self._is_due = False
        return due

    def enforce(
        self, nodes: Iterable[DerivedNode], worth: Callable[[DerivedNode], float]
    ) -> list[str]:
        """Drop the state that saves the least time per byte until the rest fits. Returns the names
        of all that has been dropped."""
        sized = [
            (node, kept, kept.measure().bytes) for node, kept, _ in _kept_by(nodes) if kept.holds()
        ]
        self._total = sum(each for _, _, each in sized)
        for _, kept, size in sorted(sized, key=lambda each: worth(each[0]) / max(1, each[2])):
            if self._total <= self.limit():
                break
            kept.drop()
            self._refused[kept.name] = size
            self._total -= size
        return [kept.name for _, kept, _ in sized if kept.name in self._refused]

    def report(self, nodes: Iterable[DerivedNode]) -> KeptReport:
        items = []
        for node, kept, kind in _kept_by(nodes):
            if kept.holds():
                size = kept.measure()
                items.append(KeptItem(node.part.relation.label, kind, size.rows, size.bytes))
        items.sort(key=lambda each: (-each.bytes, each.relation, each.kind))
        return KeptReport(tuple(items), self.limit())


def _kept_by(nodes: Iterable[DerivedNode]) -> Iterator[tuple[DerivedNode, AnyKept, str]]:
    for node in nodes:
        if isinstance(node, TotalsNode):
            yield node, node.table, node.kind
        elif isinstance(node, RoundsNode):
            yield node, node.table, "rounds"
        elif isinstance(node, RecursiveNode):
            yield node, node.kept_rows, "rows"
        if node.copy is not None:
            yield node, node.copy, "copy"
