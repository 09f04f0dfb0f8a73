"""What can fail when a literal is evaluated: a division, a cast, a sum that leaves its range.

Law: a literal that `can_fail` calls safe raises no error on any row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.ir.clauses import Aggregation, Atom, Comparison, Computation, Definition, Literal
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Kind, Relation
from harken.values.types import NUMBER

GROWING = ("+", "-", "*")
"""Operations whose result can leave the range of its type."""


def can_overflow(literal: Aggregation) -> bool:
    """A sum, and SQL's average of doubles, which is infinite where their sum is too large."""
    if literal.aggregate == "avg" and literal.value is not None:
        return literal.type.nullable and literal.value.type == NUMBER
    return literal.aggregate == "sum"


@dataclass(slots=True)
class Fallibility:
    """Which literals of a statement can fail; remembered per relation."""

    definitions: Mapping[str, Definition]
    _failing: dict[tuple[str, bool], bool] = field(default_factory=dict)

    def can_fail(self, literal: Literal, growing: bool = False) -> bool:
        """Can evaluating the literal fail? With `growing`, arithmetic that overflows counts too."""
        match literal:
            case Comparison():
                return False
            case Computation():
                fallible = OPERATIONS[literal.operation].fallible
                return fallible or (growing and literal.operation in GROWING)
            case Atom():
                return self._rows_fail(literal.relation, growing)
            case Aggregation():
                return can_overflow(literal) or self._rows_fail(literal.atom.relation, growing)

    def _rows_fail(self, relation: Relation, growing: bool) -> bool:
        key = (relation.id, growing)
        if key not in self._failing:
            self._failing[key] = False  # a recursive relation meets itself
            definition = self.definitions.get(relation.id)
            clauses = definition.clauses if definition is not None else ()
            self._failing[key] = relation.kind is Kind.FOREIGN or any(
                isinstance(each, Aggregation) or self.can_fail(each, growing)
                for clause in clauses
                for each in clause.body
            )
        return self._failing[key]
