"""A database with a random schema and random data, and random transactions on it.

A transaction changes several relations at once, undoes some of what it did, replaces whole tables,
empties groups and fills them again, creates and deletes objects and moves them between types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import harken
from harken import LanguageError, Object
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.relations import Relation, extent_relation, is_extent
from harken.values.types import Type
from tests.generators.expressions import Schema, Signature
from tests.generators.shapes import Shapes
from tests.harness.twins import update
from tests.harness.watching import Weights

OBJECTS = 5
"""So many objects are enough."""


class Scenario:
    def __init__(self, random: Random) -> None:
        self.db = harken.connect()
        self.maker = Shapes(random)
        self.script: list[str] = []
        self.derived: list[str] = []
        """The names of the functions whose changes can be asked for."""
        self._names: list[str] = []

    @property
    def schema(self) -> Schema:
        return self.maker.schema

    def run(self, text: str) -> None:
        self.script.append(text)
        self.db.amosql(text)

    # --- building --------------------------------------------------------------------------

    def build(self, derived: int) -> None:
        maker = self.maker
        for _ in range(1 + maker.below(3)):
            self.run(maker.type_statement())
        for _ in range(2 + maker.below(3)):
            self.create_object()
        self._define(maker.link())
        for _ in range(2 + maker.below(3)):
            self._define(maker.stored_function())
        for function in self.stored():
            for _ in range(maker.below(7)):
                self._run_all(self.insertion(function))
        for _ in range(derived):
            self._make_derived()

    def _make_derived(self) -> None:
        known = set(self.schema.functions)
        recursive = self.maker.recursive_function() if self.maker.one_in(8) else []
        for text in recursive or [self.maker.monitored_function()]:
            self._define(text)
        made = (f for name, f in self.schema.functions.items() if name not in known)
        self.derived += [full_name(function) for function in made]

    def _define(self, text: str) -> None:
        """Create a function, if the database agrees that it has a meaning."""
        try:
            self.run(text)
        except LanguageError:
            self.script.pop()
            existing = {f.id for f in self.db.internals.catalog.functions()}
            for name in self.schema.functions.keys() - existing:
                del self.schema.functions[name]

    def stored(self) -> list[Signature]:
        return [f for f in self.schema.functions.values() if f.stored]

    # --- transactions ----------------------------------------------------------------------

    def transaction(self) -> None:
        changes: list[Callable[[], list[str]]] = [
            *(self.change_rows,) * 6,
            self.cancel_rows,
            self.replace_all,
            self.empty_group,
            self.move_object,
            self.delete_object,
            self.make_object,
        ]
        for _ in range(1 + self.maker.below(3)):
            self._run_all(self.maker.choose(changes)())

    def _run_all(self, texts: list[str]) -> None:
        for text in texts:
            self.run(text)
        self.refresh()

    def change_rows(self) -> list[str]:
        function = self.maker.choose(self.stored())
        rows = self.rows(function)
        if rows and self.maker.below(2):
            return [update("remove", function, self.maker.choose(rows))]
        return self.insertion(function)

    def insertion(self, function: Signature) -> list[str]:
        row = self.maker.row(function)
        return [update(adding(function), function, row)] if row is not None else []

    def cancel_rows(self) -> list[str]:
        """Remove and put back, or put in and take out, or change and change back."""
        function = self.maker.choose(self.stored())
        rows = self.rows(function)
        row = self.maker.choose(rows) if rows else self.maker.row(function)
        if row is None:
            return []
        add, remove = update(adding(function), function, row), update("remove", function, row)
        if rows and not function.bag and self.maker.one_in(2):
            other = (*row[: len(function.takes)], *map(self.maker.constant, function.gives))
            return [update("set", function, other), add] if None not in other else []
        return [remove, add] if rows else [add, remove]

    def replace_all(self) -> list[str]:
        """Change every row there is, and more: a Δ-set larger than the table."""
        function = self.maker.choose(self.stored())
        texts = [update("remove", function, row) for row in self.rows(function)]
        for _ in range(self.maker.below(4)):
            texts += self.insertion(function)
        return texts

    def empty_group(self) -> list[str]:
        """Remove all values of one argument, or all arguments of one value; perhaps refill."""
        function = self.maker.choose(self.stored())
        rows = self.rows(function)
        if not rows:
            return self.insertion(function)
        position = self.maker.below(len(rows[0]))
        value = self.maker.choose(rows)[position]
        texts = [update("remove", function, row) for row in rows if row[position] == value]
        return texts + (self.insertion(function) if self.maker.one_in(3) else [])

    def make_object(self) -> list[str]:
        if len(self.schema.objects) < OBJECTS:
            self.create_object()
        return self.change_rows()

    def create_object(self) -> None:
        name = self.maker.fresh("o")
        self._names.append(name)
        self.run(f"create {self.maker.choose(list(self.schema.supertypes))} instances :{name}")
        self.refresh()

    def delete_object(self) -> list[str]:
        if len(self.schema.objects) < 2:
            return self.make_object()
        return [f"delete :{self.maker.choose(list(self.schema.objects))}"]

    def move_object(self) -> list[str]:
        """Give an object a type, or take one away; sometimes both, which may change nothing."""
        if not self.schema.objects:
            return self.make_object()
        name = self.maker.choose(list(self.schema.objects))
        type_ = self.maker.choose(list(self.schema.supertypes))
        texts = [f"add {type_} to :{name}", f"remove {type_} from :{name}"]
        if type_ in self.schema.objects[name]:
            texts.reverse()
        return texts if self.maker.one_in(4) else texts[:1]

    # --- what there is ---------------------------------------------------------------------

    def refresh(self) -> None:
        """Learn from the database which objects there are, and their types."""
        self.schema.objects = {
            name: set().union(*(self.schema.ancestors(type_) for type_ in types))
            for name in self._names
            if name in self.db.variables  # not if it was made in what was rolled back
            and (types := self.db.internals.runtime.objects.types_of(self.db.variables[name].oid))
        }

    def objects(self) -> dict[Object, set[str]]:
        return {self.db.variables[name]: types for name, types in self.schema.objects.items()}

    def rows(self, function: Signature) -> list[tuple[Any, ...]]:
        """The rows of a stored function, with objects as the variables that hold them."""
        relation = self.relation(function)
        names = {self.db.variables[name].oid: f":{name}" for name in self.schema.objects}
        columns = ", ".join(f"c{i}" for i in range(relation.arity))
        found = self.db.internals.connection.rows(
            f"SELECT {columns} FROM {quote(table_name(relation))}"
        )
        return [
            tuple(
                names[value] if column.type.surrogate else as_python(value, column.type.name)
                for value, column in zip(row, relation.columns, strict=True)
            )
            for row in found
        ]

    def relation(self, function: Signature) -> Relation:
        found = self.db.internals.function(full_name(function)).relation
        assert found is not None
        return found

    def relations(self) -> list[Relation]:
        """Everything that a transaction can change."""
        types = ("object", *self.schema.supertypes)
        extents = [extent_relation(Type(name)) for name in types]
        return [*extents, *(self.relation(function) for function in self.stored())]

    # --- undoing ---------------------------------------------------------------------------

    def undo(self, deltas: Mapping[str, Weights], relations: Mapping[str, Relation]) -> None:
        """Change the tables back by what their Δ-sets say; what refers to an object that is to
        go is gone before it, and one that is to be comes before what refers to it."""
        self.script.append("/* undo */")
        engine = self.db.internals.engine
        extents = [name for name in deltas if is_extent(relations[name])]
        hierarchy = self.db.internals.catalog.hierarchy
        extents.sort(key=lambda n: len(hierarchy.ancestors(relations[n].columns[0].type.name)))
        others = [name for name in deltas if name not in extents]
        for name in (*others, *reversed(extents)):
            for row, weight in deltas[name].items():
                for _ in range(weight):
                    engine.remove_row(relations[name], row)
        for name in (*extents, *others):
            for row, weight in deltas[name].items():
                engine.insert_many(relations[name], [row] * -weight)
        self.db.internals.runtime.objects.forget()
        self.refresh()


def as_python(value: Any, type_: str) -> Any:
    return bool(value) if type_ == "boolean" else value


def full_name(function: Signature) -> str:
    return f"{function.takes[0]}.{function.name}" if function.takes else function.name


def adding(function: Signature) -> str:
    return "add" if function.bag else "set"
