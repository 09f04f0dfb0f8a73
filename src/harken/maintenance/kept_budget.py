"""The budget for everything that is kept so that changes cost less: rows, totals, counts, rounds,
first rows and copies, in bytes.

When it is exceeded, what saves the least time per byte is dropped, and not built again before there
is room for it, or the data has changed a good deal. It is looked at after something was built, and
when twice as many waves have run as the last time, since what is kept grows.

Law: whatever is dropped, changes stay exact; only the time that they take differs.
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
    """One thing that is kept."""

    relation: str
    """What it is kept of."""
    kind: str
    """`totals`, `first rows`, `counts`, `rounds`, `rows` or `copy`."""
    rows: int
    bytes: int
    """An estimate."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    items: tuple[KeptItem, ...]
    """The largest first."""
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
    """What was dropped, by its name, with its bytes."""
    _total: int = 0
    _waves: int = 0
    _is_due: bool = False

    def allows(self, kept: AnyKept) -> bool:
        """May it be built?"""
        needed = self._refused.get(kept.name)
        if needed is None:
            return True
        limit = self.limit()
        return not limit or self._total + needed <= limit

    def note_built(self) -> None:
        self._is_due = True

    def is_due(self) -> bool:
        """A wave has ended: is it time to look at the sizes?"""
        self._waves += 1
        has_doubled = not self._waves & (self._waves - 1)
        due = bool(self.limit()) and (self._is_due or has_doubled)
        self._is_due = False
        return due

    def enforce(
        self, nodes: Iterable[DerivedNode], worth: Callable[[DerivedNode], float]
    ) -> list[str]:
        """Drop what saves the least per byte until the rest fits; what was dropped."""
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
