"""Constants that the plan of a statement does not depend on: they become parameters of the plan.

A constant is lifted where it is compared, assigned by SET, or written in VALUES, on its own. All
others stay in the tree: LIMIT, ordinals, patterns, intervals, arguments of functions, and whatever
names a column of the result or must match another expression.

Law: a plan with parameters gives what the plan with the constants gives. Where the translation
would look at the value of a constant, it converts the parameter's value instead, when that is
known, or raises `NotLifted`: then the constant stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from harken.ir.terms import Constant, Parameter, Value
from harken.values.types import Type


class Lifted(exp.Expression):
    """The value number `slot` of a statement, of the type `kind`."""

    arg_types: ClassVar[dict[str, bool]] = {"slot": True, "kind": True}


class NotLifted(Exception):
    """The translation depends on the value in this slot."""

    def __init__(self, slot: int) -> None:
        super().__init__(slot)
        self.slot = slot


Convert = Callable[[Constant], Constant | None]
Conversion = tuple[int, Type, Convert]
"""The value that another is made of, its type, and how."""


@dataclass(slots=True)
class Conversions:
    """Parameters that are made of others when a statement runs: the text '2024-05-06' beside a date
    is a date. The values of a statement come first, then those converted."""

    width: int
    """How many values the statement has."""
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
    """A value cannot be converted as its parameter is; planned as a constant it says why."""


def values_with(made: Sequence[Conversion], values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values of a statement, and those converted."""
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
    """May this constant become a parameter?"""
    whole = _whole(node)
    around = whole.parent
    if isinstance(around, exp.Tuple) and whole.arg_key == "expressions":
        return _is_row(around) and _is_open(around, root)
    if _is_set(whole):
        return around is not None and around.parent is not None and _is_inside(around.parent, root)
    return isinstance(around, COMPARING) and _is_open(around, root)


def _whole(node: exp.Expr) -> exp.Expr:
    """The constant with its sign, in its parentheses, or as the date that it is written as."""
    while node.parent is not None:
        around = node.parent
        as_moment = isinstance(around, exp.Cast) and around.to.this in MOMENTS
        if not (isinstance(around, exp.Neg | exp.Paren) or (as_moment and node.arg_key == "this")):
            break
        node = around
    return node


def _is_row(given: exp.Tuple) -> bool:
    """A row of VALUES, or what MERGE inserts."""
    around = given.parent
    in_merge = isinstance(around, exp.Insert) and isinstance(around.parent, exp.When)
    return isinstance(around, exp.Values) or (in_merge and given.arg_key == "expression")


def _is_set(whole: exp.Expr) -> bool:
    """SET column = constant."""
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
    """Does nothing of the statement look at what the text of this part is?"""
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
    """A copy of a statement with the constants that begin at these places as values of its slots,
    each of a type; and the slots whose values are those constants with a minus."""
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
