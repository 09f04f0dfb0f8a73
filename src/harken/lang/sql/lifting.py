"""Constants that the plan of a statement does not depend on: they become parameters of the plan.

A constant is lifted if it is compared, assigned by SET, or written in VALUES, on its own. All
others stay in the tree: LIMIT, ordinals, patterns, intervals, arguments of functions, and constants
that name a result column or must match another expression.

Law: a plan with parameters gives the same result as the plan with the constants. If the translation
depends on the value of a constant, it defers a known conversion until the statement runs, or raises
`NotLifted`: then the constant stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from harken.ir.terms import Constant, Parameter, Value
from harken.values.types import Type


class Lifted(exp.Expression):
    """The value in place `slot` of a statement, of the type `kind`."""

    arg_types: ClassVar[dict[str, bool]] = {"slot": True, "kind": True}


class NotLifted(Exception):
    """The translation depends on the value in this slot."""

    def __init__(self, slot: int) -> None:
        super().__init__(slot)
        self.slot = slot


Convert = Callable[[Constant], Constant | None]
Conversion = tuple[int, Type, Convert]
"""The index and type of the given value, and the function that converts it."""


@dataclass(slots=True)
class Conversions:
    """Parameters that are converted from others when a statement runs: the text '2024-05-06'
    compared with a date becomes a date. The values of the statement come first, then the converted
    ones."""

    width: int
    """The number of values of the statement."""
    made: list[Conversion] = field(default_factory=list)
    _known: dict[tuple[int, Type], Parameter] = field(default_factory=dict)

    def converted(self, given: Parameter, wanted: Type, convert: Convert) -> Parameter:
        key = given.index, wanted
        if key not in self._known:
            self._known[key] = Parameter(self.width + len(self.made), wanted)
            self.made.append((given.index, given.type, convert))
        return self._known[key]

    def refuse(self, given: Parameter) -> NotLifted:
        index = given.index
        while index >= self.width:
            index = self.made[index - self.width][0]
        return NotLifted(index)


class NotConverted(Exception):
    """A value cannot be converted to the type of its parameter. Planning it as a constant raises
    the right error."""


def values_with(made: Sequence[Conversion], values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values of a statement, followed by the converted ones."""
    if not made:
        return values
    found = list(values)
    for source, type_, convert in made:
        constant = convert(Constant(found[source], type_))
        if constant is None:
            raise NotConverted
        found.append(constant.value)
    return tuple(found)


# --- where a constant may be lifted ---------------------------------------------------------

COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
MOMENTS = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
OPEN: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({"where", "from_", "joins", "with_"}),
    exp.SetOperation: frozenset({"this", "expression", "with_"}),
    exp.Subquery: frozenset({"this", "with_"}),
    exp.Insert: frozenset({"expression", "with_"}),
    exp.Update: frozenset({"where", "from_", "with_"}),
    exp.Delete: frozenset({"where", "using", "with_"}),
    exp.Merge: frozenset({"on", "using", "whens"}),
}
"""The parts of a statement that neither name columns nor must match other expressions."""


def may_vary(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether this constant may become a parameter."""
    whole = _whole(node)
    around = whole.parent
    if isinstance(around, exp.Tuple) and whole.arg_key == "expressions":
        return _is_row(around) and _is_open(around, root)
    if _is_set(whole):
        return around is not None and around.parent is not None and _is_inside(around.parent, root)
    return isinstance(around, COMPARING) and _is_open(around, root)


def _whole(node: exp.Expr) -> exp.Expr:
    """The constant with its sign and parentheses, or the cast to a date around it."""
    while node.parent is not None:
        around = node.parent
        as_moment = isinstance(around, exp.Cast) and around.to.this in MOMENTS
        if not (isinstance(around, exp.Neg | exp.Paren) or (as_moment and node.arg_key == "this")):
            break
        node = around
    return node


def _is_row(given: exp.Tuple) -> bool:
    """Whether a tuple is a row of VALUES or the values of an INSERT in MERGE."""
    around = given.parent
    in_merge = isinstance(around, exp.Insert) and isinstance(around.parent, exp.When)
    return isinstance(around, exp.Values) or (in_merge and given.arg_key == "expression")


def _is_set(whole: exp.Expr) -> bool:
    """Whether a constant is the value in `SET column = constant`."""
    around = whole.parent
    return (
        isinstance(around, exp.EQ)
        and isinstance(around.parent, exp.Update)
        and around.arg_key == "expressions"
        and whole.arg_key == "expression"
    )


def _is_inside(node: exp.Expr, root: exp.Expr) -> bool:
    return node is root or _is_open(node, root)


def _is_open(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether no other part of the statement depends on the text of this part."""
    while node is not root:
        around = node.parent
        if around is None or isinstance(around, exp.Window | exp.AggFunc):
            return False
        parts = next((keys for kind, keys in OPEN.items() if isinstance(around, kind)), None)
        if parts is None and isinstance(around, exp.Query):
            return False
        in_merge = isinstance(around, exp.Insert) and isinstance(around.parent, exp.When)
        if parts is not None and node.arg_key not in parts and not in_merge:
            return False
        node = around
    return True


def lift(root: exp.Expr, slots: Mapping[int, tuple[int, Type]]) -> tuple[exp.Expr, frozenset[int]]:
    """A copy of a statement in which the constants at these places are replaced by typed slots, and
    the slots whose constants have a minus sign."""
    made = root.copy()
    negative = set()
    for node in list(made.find_all(exp.Literal, exp.Placeholder)):
        slot, kind = slots.get(int(node.meta.get("start", -1)), (-1, None))
        if slot < 0:
            continue
        lifted = Lifted(slot=slot, kind=kind)
        lifted.meta.update(node.meta)
        is_number = isinstance(node, exp.Literal) and not node.is_string
        if is_number and isinstance(node.parent, exp.Neg):
            negative.add(slot)
            node.parent.replace(lifted)
        else:
            node.replace(lifted)
    return made, frozenset(negative)
