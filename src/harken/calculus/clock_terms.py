"""Comparisons solved for the data: `now() - at > 60` says `at < now() - 60`.

What is computed of the moment and of data together tells neither which rows a passing moment
concerns nor when the next one comes. Where the arithmetic is exact, a comparison is turned so that
one side has the data and the other the moment.

Law: a solved comparison has the same outcome as the one that was written, for every row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import count

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Literal,
    literal_terms,
    literal_variables,
)
from harken.ir.operations import COMPARISONS
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import DATE, INTEGER, NUMBER, TIMESTAMP

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
LONGEST = 10_000_000_000
"""Seconds, about 300 years: up to here a difference in seconds is exact to the microsecond."""
DAY_SIDES = {
    "<": (("<", 0),),
    ">=": ((">=", 0),),
    "<=": (("<", 1),),
    ">": ((">=", 1),),
    "=": ((">=", 0), ("<", 1)),
}
"""What a comparison of days says of timestamps: an operator, and which midnight to compare with."""
BY_CHANCE = frozenset({"rand", "uuid"})


def binders(variable: Variable, body: Iterable[Literal]) -> list[Literal]:
    """The literals that give a variable its value, without equations."""
    return [each for each in body if _gives(each, variable)]


def _gives(literal: Literal, variable: Variable) -> bool:
    match literal:
        case Atom():
            return not literal.negated and variable in literal.terms
        case Computation() | Aggregation():
            return literal.result == variable
    return False


def is_pure(computation: Computation, known: Collection[Term]) -> bool:
    """Whether a computation makes a value of values of the moment alone."""
    used = [each for each in computation.arguments if isinstance(each, Variable)]
    return (
        bool(used)
        and isinstance(computation.result, Variable)
        and all(each in known for each in used)
        and all(isinstance(each, Variable | Constant) for each in computation.arguments)
        and computation.operation not in BY_CHANCE
    )


@dataclass(frozen=True, slots=True)
class Solved:
    """`data operator moment`, with what the moment's side is computed by."""

    operator: str
    data: Term
    moment: Term
    made: tuple[Computation, ...] = ()


class Solver:
    """Solves the comparisons of one clause."""

    def __init__(self, now: Variable) -> None:
        self._now = now
        self._pure: dict[Variable, Computation | None] = {}
        self._made: dict[Variable, Computation] = {}
        self._numbers = count(1)

    def isolated(self, clause: Clause) -> Clause:
        body = self._named_apart(list(clause.body))
        self._made = {
            each.result: each
            for each in body
            if isinstance(each, Computation) and isinstance(each.result, Variable)
        }
        found: list[Literal] = []
        for each in body:
            found += self._solved(each)
        return Clause(clause.head, self._without_unread(found, clause.head))

    def _fresh(self, like: Term, operation: str = "+") -> Variable:
        """A variable for a value of the moment: what is tried may have none, the others have."""
        may_lack = operation.startswith("try_") and like.type.nullable
        return Variable(f"MOMENT#{next(self._numbers)}", like.type.or_null(may_lack))

    def _named_apart(self, body: list[Literal]) -> list[Literal]:
        """Values of the moment get variables of their own, and are compared with what they were
        equated to."""
        self._pure = {self._now: None}
        waiting = list(body)
        while found := next(
            (
                each
                for each in waiting
                if isinstance(each, Computation) and self._is_of_moment(each)
            ),
            None,
        ):
            waiting.remove(found)
            name = found.result
            others = [each for each in body if each is not found]
            if isinstance(name, Variable) and not binders(name, others):
                self._pure[name] = found
                continue
            own = self._fresh(name, found.operation)
            place = body.index(found)
            changed = Computation(own, found.operation, found.arguments, span=found.span)
            body[place : place + 1] = [changed, Comparison("=", name, own, span=found.span)]
            self._pure[own] = changed
        return body

    def _is_of_moment(self, each: Computation) -> bool:
        used = [term for term in each.arguments if isinstance(term, Variable)]
        is_test = not isinstance(each.result, Variable) and each.operation.startswith("is ")
        return (
            bool(used)
            and all(term in self._pure for term in used)
            and all(isinstance(term, Variable | Constant) for term in each.arguments)
            and each.operation not in BY_CHANCE
            and not is_test
        )

    def _solved(self, literal: Literal) -> list[Literal]:
        """A literal, or the same comparison solved for the data, after what it needs."""
        match literal:
            case Comparison():
                by_day = self._by_day(literal)
                if by_day:
                    return by_day
                found = self._either(literal.operator, literal.left, literal.right)
                if found is not None:
                    solved = Comparison(found.operator, found.data, found.moment, literal.span)
                    return [*found.made, solved]
            case Computation() if literal.operation.removeprefix("is ") in COMPARISONS:
                operator = literal.operation.removeprefix("is ")
                found = self._either(operator, literal.arguments[0], literal.arguments[1])
                if found is not None:
                    sides = (found.data, found.moment)
                    test = Computation(literal.result, f"is {found.operator}", sides, literal.span)
                    return [*found.made, test]
        return [literal]

    def _either(self, operator: str, left: Term, right: Term) -> Solved | None:
        if self._is_moment(left) and not self._is_moment(right):
            operator, left, right = FLIPPED[operator], right, left
        if self._is_moment(right) and not self._is_moment(left):
            return self._shifted(operator, left, right)
        if isinstance(left, Constant):
            operator, left, right = FLIPPED[operator], right, left
        if isinstance(right, Constant) and self._is_mixed(left):
            return self._unfolded(operator, left, right)
        return None

    def _by_day(self, literal: Comparison) -> list[Literal]:
        """The day of a timestamp, compared with a day of the moment, as the range of timestamps:
        an index finds that. Nothing if it is something else."""
        operator, data, moment = literal.operator, literal.left, literal.right
        if self._is_moment(data):
            operator, data, moment = FLIPPED[operator], moment, data
        step = self._made.get(data) if isinstance(data, Variable) else None
        if step is None or step.operation != "to_date" or not self._is_moment(moment):
            return []
        (given,) = step.arguments
        is_of_data = given.type.or_null(False) == TIMESTAMP and not self._depends(given)
        if not is_of_data or operator == "!=":
            return []
        found: list[Literal] = []
        for side, offset in DAY_SIDES[operator]:
            day = self._moment("+", (moment, Constant(offset, INTEGER)), moment)
            begins = Computation(
                Variable(f"MOMENT#{next(self._numbers)}", TIMESTAMP), "to_timestamp", (day.result,)
            )
            assert isinstance(begins.result, Variable)
            self._pure[begins.result] = begins
            found += [day, begins, Comparison(side, given, begins.result, literal.span)]
        return found

    def _is_moment(self, term: Term) -> bool:
        return isinstance(term, Variable) and term in self._pure

    def _is_mixed(self, term: Term) -> bool:
        """Whether a value is computed of the moment and of data."""
        made = self._made.get(term) if isinstance(term, Variable) else None
        if made is None or self._is_moment(term):
            return False
        return any(self._is_moment(each) or self._is_mixed(each) for each in made.arguments)

    def _shifted(self, operator: str, data: Term, moment: Term) -> Solved | None:
        """`at + 60 < F` is `at < F - 60`, so that an index on `at` is of use."""
        made: tuple[Computation, ...] = ()
        while isinstance(data, Variable) and data.type.or_null(False) == TIMESTAMP:
            step = self._made.get(data)
            if step is None or step.operation not in ("+", "-"):
                break
            given, by = step.arguments
            if given.type.or_null(False) != TIMESTAMP or not _is_exact(by):
                break
            assert isinstance(by, Constant)
            back = _negated(by) if step.operation == "+" else by
            shifted = self._moment("+", (moment, back), moment)
            data, moment, made = given, shifted.result, (*made, shifted)
        return Solved(operator, data, moment, made) if made else None

    def _moment(self, operation: str, arguments: tuple[Term, ...], like: Term) -> Computation:
        own = self._fresh(like)
        made = Computation(own, operation, arguments)
        self._pure[own] = made
        return made

    def _unfolded(self, operator: str, value: Term, bound: Constant) -> Solved | None:
        """`value operator bound`, where the value is computed of the moment and of data."""
        step = self._made.get(value) if isinstance(value, Variable) else None
        if step is None or not isinstance(bound.value, int | float):
            return None
        match step.operation, step.arguments:
            case "to_integer", (given,) if given.type.or_null(False) == NUMBER:
                operator, limit = _of_truncated(operator, int(bound.value))
                return None if limit is None else self._unfolded(operator, given, limit)
            case "/", (given, Constant(value=float(by))) if by > 0:
                return self._unfolded(operator, given, Constant(bound.value * by, NUMBER))
            case "-", (first, second):
                return self._difference(operator, first, second, bound)
        return None

    def _difference(
        self, operator: str, first: Term, second: Term, bound: Constant
    ) -> Solved | None:
        """`first - second operator bound`, one of them of the moment and one of data."""
        kinds = {first.type.or_null(False), second.type.or_null(False)}
        is_whole = kinds in ({DATE}, {INTEGER}) and isinstance(bound.value, int)
        if not (is_whole or (kinds == {TIMESTAMP} and _is_exact(bound))):
            return None
        if self._is_moment(first) and not self._depends(second):
            made = self._moment("+", (first, _negated(bound)), first)
            return Solved(FLIPPED[operator], second, made.result, (made,))
        if self._is_moment(second) and not self._depends(first):
            made = self._moment("+", (second, bound), second)
            return Solved(operator, first, made.result, (made,))
        return None

    def _depends(self, term: Term) -> bool:
        return self._is_moment(term) or self._is_mixed(term)

    def _without_unread(self, body: list[Literal], head: Atom) -> tuple[Literal, ...]:
        """Without values that were computed of moment and data, and that nobody reads any more."""
        kept = list(body)
        while True:
            read = set(head.terms)
            for each in kept:
                own = {each.result} if isinstance(each, Computation) else set[Term]()
                read |= set(_read_by(each)) - own
            unread = [
                each
                for each in kept
                if isinstance(each, Computation)
                and isinstance(each.result, Variable)
                and each.result not in read
                and (each.operation == "to_date" or self._depends(each.result))
            ]
            if not unread:
                return tuple(kept)
            kept = [each for each in kept if each not in unread]


def _read_by(literal: Literal) -> tuple[Term, ...]:
    if isinstance(literal, Aggregation):
        return (*literal_variables(literal), *literal.atom.terms)
    return literal_terms(literal)


def _is_exact(term: Term) -> bool:
    """Whether a constant is a whole number of microseconds."""
    if not isinstance(term, Constant) or not isinstance(term.value, int | float):
        return False
    return abs(term.value) < LONGEST and Decimal(repr(term.value)) * 1_000_000 % 1 == 0


def _negated(constant: Constant) -> Constant:
    assert isinstance(constant.value, int | float)
    return Constant(-constant.value, constant.type)


def _of_truncated(operator: str, bound: int) -> tuple[str, Constant | None]:
    """What a comparison of a number, cut off to an integer, says of the number itself."""
    match operator:
        case ">" | "<=":
            is_up = bound >= 0
            if operator == ">":
                return (">=", _number(bound + 1)) if is_up else (">", _number(bound))
            return ("<", _number(bound + 1)) if is_up else ("<=", _number(bound))
        case ">=":
            return (">=", _number(bound)) if bound > 0 else (">", _number(bound - 1))
        case "<":
            return ("<", _number(bound)) if bound > 0 else ("<=", _number(bound - 1))
    return operator, None


def _number(value: int) -> Constant:
    return Constant(float(value), NUMBER)
