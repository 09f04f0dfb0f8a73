"""A plain model of content triggers: it looks at all rows after each transaction.

The model keeps the rows, the rows at the last execution, and for which rows the condition was true
at the last look. It knows nothing of views, differences or the network.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Values = dict[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Condition:
    """A condition as text, and what it is of a row as it was and as it is."""

    text: str
    holds: Callable[[Values | None, Values | None], Truth]
    columns: frozenset[str]
    sees_deleted: bool = False


def comparison(random: random.Random) -> Condition:
    column, sign = random.choice("xy"), random.choice(["<", "<=", ">", ">=", "=", "<>"])
    bound = random.randint(-3, 6)

    def holds(old: Values | None, new: Values | None) -> Truth:
        value = (new or old or {})[column]
        return None if value is None else _compared(value, sign, bound)

    return Condition(f"{column} {sign} {bound}", holds, frozenset(column))


def _compared(value: Any, sign: str, bound: Any) -> bool:
    return {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "=": value == bound,
        "<>": value != bound,
    }[sign]


def between_columns(random: random.Random) -> Condition:
    def holds(old: Values | None, new: Values | None) -> Truth:
        row = new or old or {}
        return None if None in (row["x"], row["y"]) else row["x"] < row["y"]

    return Condition("x < y", holds, frozenset("xy"))


def is_null(random: random.Random) -> Condition:
    return Condition("y IS NULL", lambda old, new: (new or old or {})["y"] is None, frozenset("y"))


def changes(random: random.Random) -> Condition:
    column = random.choice("xy")

    def holds(old: Values | None, new: Values | None) -> Truth:
        if old is None or new is None:
            return True
        return bool(old[column] != new[column])

    return Condition(f"{column} CHANGES", holds, frozenset(column), sees_deleted=True)


def moves(random: random.Random) -> Condition:
    column, amount = random.choice("xy"), random.choice([1, 2, 3, 50, 100])
    operator = random.choice(["INCBY", "DECBY", "INCBYP", "DECBYP"])

    def holds(old: Values | None, new: Values | None) -> Truth:
        if old is None or new is None or None in (old[column], new[column]):
            return False
        was, now = old[column], new[column]
        difference = now - was if operator.startswith("INC") else was - now
        if not operator.endswith("P"):
            return bool(difference >= amount)
        return bool(was != 0 and difference * 100 >= abs(was) * amount)

    return Condition(f"{column} {operator} {amount}", holds, frozenset(column))


ATOMS = (comparison, between_columns, is_null, changes, moves)


def condition_of(random: random.Random, depth: int = 2) -> Condition:
    if depth == 0 or random.random() < 0.4:
        return random.choice(ATOMS)(random)
    one, other = condition_of(random, depth - 1), condition_of(random, depth - 1)
    columns, sees = one.columns | other.columns, one.sees_deleted or other.sees_deleted
    match random.choice(["AND", "OR", "NOT"]):
        case "AND":
            both = _and(one.holds, other.holds)
            return Condition(f"({one.text} AND {other.text})", both, columns, sees)
        case "OR":
            either = _not(_and(_not(one.holds), _not(other.holds)))
            return Condition(f"({one.text} OR {other.text})", either, columns, sees)
    return Condition(f"NOT ({one.text})", _not(one.holds), one.columns, one.sees_deleted)


Holds = Callable[[Values | None, Values | None], Truth]


def _and(one: Holds, other: Holds) -> Holds:
    def holds(old: Values | None, new: Values | None) -> Truth:
        sides = one(old, new), other(old, new)
        return False if False in sides else None if None in sides else True

    return holds


def _not(one: Holds) -> Holds:
    def holds(old: Values | None, new: Values | None) -> Truth:
        truth = one(old, new)
        return None if truth is None else not truth

    return holds


def restricted(random: random.Random, test: Condition) -> Condition:
    """With a WHERE."""
    group = random.choice("ab")

    def holds(old: Values | None, new: Values | None) -> Truth:
        return (new or old or {})["g"] == group

    both = _and(test.holds, holds)
    text = f"{test.text} WHERE g = '{group}'"
    return Condition(text, both, test.columns | {"g"}, test.sees_deleted)


@dataclass
class RowModel:
    """A trigger on the rows of one table."""

    test: Condition
    repeats: bool = False
    minutes: int | None = None
    """FOR MORE THAN so many minutes."""
    rows: dict[int, Values] = field(default_factory=dict)
    reference: dict[int, Values] = field(default_factory=dict)
    true: dict[int, Values] = field(default_factory=dict)
    """The values of the rows for which the condition was true at the last look."""
    waiting: list[int] = field(default_factory=list)
    fired: bool = False
    since: dict[int, datetime.datetime] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)

    @property
    def text(self) -> str:
        lasting = f" FOR MORE THAN {self.minutes} MINUTES" if self.minutes else ""
        return f"{'WHILE' if self.repeats else 'WHEN'} {self.test.text}{lasting}"

    def _now_true(self) -> dict[int, Values]:
        found = {}
        for key in self.rows.keys() | self.reference.keys():
            old, new = self.reference.get(key), self.rows.get(key)
            if new is None and not self.test.sees_deleted:
                continue
            if self.test.holds(old, new):
                values = new or old or {}
                found[key] = {name: values[name] for name in self.test.columns}
        return found

    def look(self, now: datetime.datetime) -> None:
        """At the end of a transaction."""
        true, before = self._now_true(), self.true
        self.true = true
        if self.minutes is not None:
            self._keep_times(now)
            return
        new = [k for k in true if k not in before or (self.repeats and true[k] != before[k])]
        if new:
            self._fire(new)

    def _keep_times(self, now: datetime.datetime) -> None:
        for key in self.since.keys() - self.true.keys():
            del self.since[key]
            self.told.discard(key)
        for key in self.true.keys() - self.since.keys():
            self.since[key] = now

    def _fire(self, keys: list[int]) -> None:
        self.fired = True
        self.waiting += [key for key in sorted(keys) if key not in self.waiting]

    def run(self, now: datetime.datetime) -> list[int] | None:
        """Do what is due: the keys of the rows that the execution was triggered by."""
        if self.minutes is not None:
            length = datetime.timedelta(minutes=self.minutes)
            due = [k for k, at in self.since.items() if at + length < now and k not in self.told]
            self.told.update(due)
            if due:
                self._fire(due)
        if not self.fired:
            return None
        found = sorted(self.waiting)
        self.fired, self.waiting = False, []
        self.execute(now)
        return found

    def execute(self, now: datetime.datetime) -> None:
        self.reference = {key: dict(row) for key, row in self.rows.items()}
        self.true = self._now_true()
        if self.minutes is not None:
            self._keep_times(now)


def history(random: random.Random, length: int) -> Iterator[list[tuple[str, int, Values]]]:
    """Transactions: what each does to the rows."""
    keys: set[int] = set()
    for _ in range(length):
        steps: list[tuple[str, int, Values]] = []
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            key = random.randint(1, 4)
            values = {
                "g": random.choice("ab"),
                "x": random.choice([None, 0, *range(-3, 7)]),
                "y": random.choice([None, 0, *range(-3, 7)]),
            }
            if key not in keys:
                steps.append(("insert", key, values))
                keys.add(key)
            elif random.random() < 0.2:
                steps.append(("delete", key, {}))
                keys.discard(key)
            else:
                name = random.choice(["g", "x", "x", "y"])
                steps.append(("update", key, {name: values[name]}))
        yield steps
