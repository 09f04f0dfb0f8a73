"""A plain model of stored functions: which objects are of which types, and which rows there are.

`Plain` says what each change does, in dictionaries and lists; `copy.deepcopy` of it is a
transaction's way back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]

SUPERTYPES = {
    "thing": ("object",),
    "person": ("object",),
    "student": ("person",),
    "teacher": ("person",),
    "assistant": ("student", "teacher"),
}


@dataclass(frozen=True)
class Stored:
    name: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    bag: bool = False
    set_valued: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.takes)})"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.takes + self.gives

    @property
    def statement(self) -> str:
        gives = ", ".join(self.gives)
        gives = f"<{gives}>" if len(self.gives) > 1 else gives
        bag = "bag of " if self.bag else "set of " if self.set_valued else ""
        return f"create function {self.name}({', '.join(self.takes)}) -> {bag}{gives}"


FUNCTIONS = {
    function.id: function
    for function in (
        Stored("name", ("person",), ("charstring",)),
        Stored("age", ("person",), ("integer",)),
        Stored("weight", ("thing",), ("number",)),
        Stored("awake", ("person",), ("boolean",)),
        Stored("boss", ("person",), ("person",)),
        Stored("owner", ("thing",), ("student",)),
        Stored("likes", ("person",), ("thing",), bag=True),
        Stored("friends", ("person",), ("person",), set_valued=True),
        Stored("scores", ("student",), ("integer",), bag=True),
        Stored("grade", ("student", "thing"), ("integer",)),
        Stored("met", ("person", "person"), ("integer", "charstring")),
        Stored("seen", ("person", "integer"), ("thing", "number"), bag=True),
        Stored("at", ("integer",), ("thing",)),
        Stored("called", ("charstring",), ("person",)),
        Stored("first", (), ("thing",)),
        Stored("words", (), ("charstring",), bag=True),
        Stored("rank", ("student",), ("integer",)),
        Stored("rank", ("teacher",), ("integer",)),
    )
}

DERIVED = (
    "create function nickname(person p) -> charstring as select name(p)",
    "create function held_by(student s, thing t) -> integer as select grade(s, t)",
    'create function greeting(person p) -> charstring as select name(p) || "!"',
)
SYNONYMS = {"nickname": "name(person)", "held_by": "grade(student,thing)"}
"""Derived functions that are updated through: their rows are those of a stored one."""


def ancestors(type_name: str) -> set[str]:
    return {type_name}.union(*(ancestors(above) for above in SUPERTYPES.get(type_name, ())))


class Clash(Exception):
    """The change is not possible, and nothing of it may happen."""


@dataclass
class Plain:
    objects: dict[int, set[str]] = field(default_factory=dict)
    rows: dict[str, Counter[Row]] = field(
        default_factory=lambda: {name: Counter() for name in FUNCTIONS}
    )

    def create(self, oid: int, type_name: str) -> None:
        self.objects[oid] = ancestors(type_name)

    def extent(self, type_name: str) -> list[int]:
        return [oid for oid, types in self.objects.items() if type_name in types]

    def add_type(self, oid: int, type_name: str) -> None:
        self.objects[oid] |= ancestors(type_name)

    def remove_type(self, oid: int, type_name: str) -> None:
        """Subtypes go too, and every row that needs the object to be of what it no longer is."""
        types = self.objects[oid]
        types -= {name for name in types if type_name in ancestors(name)}
        for name, rows in self.rows.items():
            self.rows[name] = Counter({r: n for r, n in rows.items() if self.fits(name, r)})

    def delete(self, oid: int) -> None:
        self.remove_type(oid, "object")
        del self.objects[oid]

    def fits(self, name: str, row: Row) -> bool:
        """Are the objects of a row of the types that the function names?"""
        return all(
            type_ in self.objects.get(value, ())
            for value, type_ in zip(row, FUNCTIONS[name].columns, strict=True)
            if type_ in SUPERTYPES
        )

    def set(self, name: str, arguments: Row, values: Iterable[Row]) -> None:
        """The values of the function for the arguments are these and no others."""
        function = FUNCTIONS[name]
        wanted = Counter((*arguments, *value) for value in values)
        if not function.bag:
            wanted = Counter(wanted.keys())
            if len(wanted) > 1 and not function.set_valued:
                raise Clash("many values")
        if not all(self.fits(name, row) for row in wanted):
            raise Clash("wrong object")
        width = len(arguments)
        kept = {r: n for r, n in self.rows[name].items() if r[:width] != arguments}
        self.rows[name] = Counter(kept) + wanted

    def add(self, name: str, row: Row) -> None:
        function = FUNCTIONS[name]
        if not self.fits(name, row):
            raise Clash("wrong object")
        width = len(function.takes)
        if not function.bag:
            there = [known for known in self.rows[name] if known[:width] == row[:width]]
            if row in there:
                return
            if there and not function.set_valued:
                raise Clash("many values")
        self.rows[name][row] += 1

    def remove(self, name: str, row: Row) -> None:
        """One copy; nothing if there is none."""
        if self.rows[name][row] > 1:
            self.rows[name][row] -= 1
        else:
            del self.rows[name][row]
