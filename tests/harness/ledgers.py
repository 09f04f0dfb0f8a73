"""A database and a plain model of it: every change is made to both, and both must then agree.

A change that the model says is impossible must fail in the database, and leave it as it was.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import harken
from harken import HarkenError, Object
from tests.generators.choices import Choices
from tests.generators.expressions import literal
from tests.models.plain_model import (
    DERIVED,
    FUNCTIONS,
    SUPERTYPES,
    SYNONYMS,
    Clash,
    Plain,
    Row,
    Stored,
)

POOLS: dict[str, tuple[Any, ...]] = {
    "integer": (0, 1, -7, 2**63 - 1, -(2**63)),
    "number": (0.0, 1.5, -2.25, 1e300),
    "charstring": ("", "a", "it's", 'say "hi"\\', "å\n;", "a;b"),
    "boolean": (True, False),
}
SCHEMA = [
    *(f"create type {name} subtype of {', '.join(above)}" for name, above in SUPERTYPES.items()),
    *(function.statement for function in FUNCTIONS.values()),
    *DERIVED,
]
WRONG = [
    'set age({person}) = "old"',
    "set age({person}) = 1.5",
    "set weight({thing}) = true",
    "set grade({person}, {thing}) = 9223372036854775807 + {one}",
    "set nobody({person}) = 1",
    'set greeting({person}) = "x"',
    "set first() = (select t for each thing t, person p"
    " where 1 / {zero} > age(p) or 1 / {zero} = 1)",
    "add integer to {person}",
    "create thing instances :new; delete :never",
    'set age({person}) = 77; set age({person}) = "x"',
    'create person instances :new; set age(:new) = 1; add name(:new) = "a"; add name(:new) = "b"',
    "create function name(person) -> charstring",
    "create type person",
    "delete type person",
    'create thing(weight) instances :new("heavy")',
    "this is not AMOSQL",
]


class Stop(Exception):
    """Raised by a block of Python code that wants its transaction undone."""


class Ledger(Choices):
    """The database, the model, and the model as it was at the last commit."""

    def __init__(self, random: Random, path: str = ":memory:") -> None:
        super().__init__(random)
        self.path = path
        self.db = self.connect()
        self.db.amosql(";\n".join([*SCHEMA, "commit"]))
        self.plain = Plain()
        self.committed = copy.deepcopy(self.plain)
        self.open = False
        self.names: dict[int, str] = {}
        self.log: list[str] = []

    def connect(self) -> harken.Database:
        return harken.connect(self.path)

    # --- choices ---------------------------------------------------------------------------

    def value(self, type_: str) -> Any:
        """A value; of an object its number, or None if there is none to take.

        Now and then an object that is not of the type: then the change must be refused.
        """
        if type_ in POOLS:
            return self.choose(POOLS[type_])
        fitting = self.plain.extent(type_)
        if self.random.randrange(12) == 11:
            fitting = list(self.plain.objects)
        return self.choose(fitting) if fitting else None

    def row(self, function: Stored) -> Row | None:
        """Rather one that is there, where the function has rows."""
        present = list(self.plain.rows[function.id])
        if present and self.random.randrange(3) == 2:
            return self.choose(present)
        values = tuple(self.value(type_) for type_ in function.columns)
        return None if None in values else values

    def written(self, value: Any, type_: str) -> str:
        if type_ in SUPERTYPES:
            return f":{self.names[value]}"
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        return literal(value)

    def text_of(self, verb: str, function: Stored, row: Row, name: str | None = None) -> str:
        parts = [self.written(v, t) for v, t in zip(row, function.columns, strict=True)]
        width = len(function.takes)
        values = ", ".join(parts[width:])
        values = f"<{values}>" if len(function.gives) > 1 else values
        dot = f"{function.takes[0]}." if name is None and function.takes else ""
        return f"{verb} {dot}{name or function.name}({', '.join(parts[:width])}) = {values}"

    def handle(self, function: Stored, name: str | None = None) -> harken.FunctionHandle:
        dot = f"{function.takes[0]}." if function.takes else ""
        return self.db.function(name or dot + function.name)

    def python(self, values: Row, types: Sequence[str]) -> Any:
        """Values as a handle takes them."""
        given = tuple(
            Object(value) if type_ in SUPERTYPES else value
            for value, type_ in zip(values, types, strict=True)
        )
        return given[0] if len(given) == 1 else given

    # --- doing it twice --------------------------------------------------------------------

    def text(self, text: str, change: Callable[[], None]) -> bool:
        """Run a text; it opens a transaction, or fails exactly if the model says so."""
        done = self._both(text, lambda: self.db.amosql(text), change)
        self.open = self.open or done
        return done

    def call(self, shown: str, run: Callable[[], Any], change: Callable[[], None]) -> bool:
        """A change from Python; it commits at once unless a transaction is open."""
        done = self._both(shown, run, change)
        if done and not self.open:
            self.committed = copy.deepcopy(self.plain)
        return done

    def _both(self, shown: str, run: Callable[[], Any], change: Callable[[], None]) -> bool:
        self.log.append(shown)
        before = copy.deepcopy(self.plain)
        clash = None
        try:
            change()
        except Clash as error:
            clash, self.plain = error, before
        try:
            run()
        except HarkenError as error:
            assert clash is not None, self.complaint(f"fails: [{error.code}] {error}")
            assert error.code != "storage", self.complaint(str(error))
            return False
        assert clash is None, self.complaint(f"should fail: {clash}")
        return True

    def complaint(self, what: str) -> str:
        return ";\n".join([*SCHEMA, *self.log]) + f";\n/* {what} */"

    # --- steps -----------------------------------------------------------------------------

    def step(self) -> None:
        steps = [
            self.create,
            self.set_text,
            self.set_handle,
            self.add_text,
            self.remove_text,
            self.add_handle,
            self.remove_handle,
            self.create_with_properties,
            self.set_through_synonym,
            self.set_by_query,
            self.clear,
            self.load,
            self.add_type,
            self.remove_type,
            self.delete,
            self.commit,
            self.rollback,
            self.wrong,
            self.block,
            self.procedure,
        ]
        self.choose(steps)()
        self.check()

    def create(self) -> None:
        type_ = self.choose(list(SUPERTYPES))
        name = self.fresh("v")
        assert self.text(f"create {type_} instances :{name}", lambda: None)
        self.know(name, type_)

    def know(self, name: str, type_: str) -> None:
        oid = self.db.variables[name].oid
        assert oid not in self.names, self.complaint("a number is given twice")
        self.names[oid] = name
        self.plain.create(oid, type_)

    def create_with_properties(self) -> None:
        one, other = self.fresh("v"), self.fresh("v")
        texts = [self.choose(POOLS["charstring"]) for _ in range(2)]
        ages = [self.choose(POOLS["integer"]) for _ in range(2)]
        shown = ", ".join(
            f":{name}({self.written(text, 'charstring')}, {age})"
            for name, text, age in zip((one, other), texts, ages, strict=True)
        )
        assert self.text(f"create student(name, age) instances {shown}", lambda: None)
        for name, text, age in zip((one, other), texts, ages, strict=True):
            self.know(name, "student")
            oid = self.db.variables[name].oid
            self.plain.set("name(person)", (oid,), [(text,)])
            self.plain.set("age(person)", (oid,), [(age,)])

    def load(self) -> None:
        rows = [
            (self.choose((*POOLS["charstring"], None)), self.choose((*POOLS["integer"], None)))
            for _ in range(self.random.randrange(4))
        ]
        type_ = self.choose(("person", "assistant"))
        self.log.append(f"/* db.load({type_!r}, {rows}, ['name', 'age']) */")
        for thing, (name, age) in zip(
            self.db.load(type_, rows, ["name", "age"]), rows, strict=True
        ):
            self.db.assign(variable := self.fresh("v"), thing)
            self.know(variable, type_)
            self.plain.set("name(person)", (thing.oid,), [] if name is None else [(name,)])
            self.plain.set("age(person)", (thing.oid,), [] if age is None else [(age,)])
        if not self.open:
            self.committed = copy.deepcopy(self.plain)

    def some_row(self) -> tuple[Stored, Row] | None:
        function = self.choose(list(FUNCTIONS.values()))
        row = self.row(function)
        return None if row is None else (function, row)

    def set_text(self) -> None:
        if found := self.some_row():
            function, row = found
            arguments, value = self.split(function, row)
            self.text(
                self.text_of("set", function, row),
                lambda: self.plain.set(function.id, arguments, [value]),
            )

    def set_handle(self) -> None:
        if found := self.some_row():
            function, row = found
            arguments, value = self.split(function, row)

            def run() -> None:
                given = self.python(arguments, function.takes)
                self.handle(function)[given] = self.python(value, function.gives)

            self.call(
                f"/* handle */ {self.text_of('set', function, row)}",
                run,
                lambda: self.plain.set(function.id, arguments, [value]),
            )

    def split(self, function: Stored, row: Row) -> tuple[Row, Row]:
        return row[: len(function.takes)], row[len(function.takes) :]

    def set_through_synonym(self) -> None:
        name = self.choose(list(SYNONYMS))
        function = FUNCTIONS[SYNONYMS[name]]
        row = self.row(function)
        if row is None:
            return
        arguments, value = self.split(function, row)
        if self.random.randrange(2):
            self.text(
                self.text_of("set", function, row, name),
                lambda: self.plain.set(function.id, arguments, [value]),
            )
            return

        def run() -> None:
            given = self.python(arguments, function.takes)
            self.handle(function, name)[given] = self.python(value, function.gives)

        self.call(
            f"/* handle */ {self.text_of('set', function, row, name)}",
            run,
            lambda: self.plain.set(function.id, arguments, [value]),
        )

    def set_by_query(self) -> None:
        """`set f(x) = (select ...)`: a set of values, so a bag gets each once; one that holds a
        single value takes no more than one."""
        people, things = self.plain.extent("person"), self.plain.extent("thing")
        if not people:
            return
        person = self.choose(people)
        if self.random.randrange(2):
            self.text(
                f"set likes(:{self.names[person]}) = (select t for each thing t)",
                lambda: self.plain.set("likes(person)", (person,), [(t,) for t in things]),
            )
        else:
            ages = {row[1] for row in self.plain.rows["age(person)"]}
            self.text(
                f"set age(:{self.names[person]}) = (select age(p) for each person p)",
                lambda: self.plain.set("age(person)", (person,), [(age,) for age in ages]),
            )

    def add_text(self) -> None:
        if found := self.some_row():
            function, row = found
            self.text(self.text_of("add", function, row), lambda: self.plain.add(function.id, row))

    def remove_text(self) -> None:
        if found := self.some_row():
            function, row = found
            if self.plain.fits(function.id, row):
                self.text(
                    self.text_of("remove", function, row),
                    lambda: self.plain.remove(function.id, row),
                )

    def add_handle(self) -> None:
        if found := self.some_row():
            function, row = found
            self.call(
                f"/* handle */ {self.text_of('add', function, row)}",
                lambda: self.handle(function).add(*self.objects(function, row)),
                lambda: self.plain.add(function.id, row),
            )

    def remove_handle(self) -> None:
        if found := self.some_row():
            function, row = found
            self.call(
                f"/* handle */ {self.text_of('remove', function, row)}",
                lambda: self.handle(function).remove(*self.objects(function, row)),
                lambda: self.plain.remove(function.id, row),
            )

    def objects(self, function: Stored, row: Row) -> Row:
        return tuple(
            Object(value) if type_ in SUPERTYPES else value
            for value, type_ in zip(row, function.columns, strict=True)
        )

    def clear(self) -> None:
        if found := self.some_row():
            function, row = found
            arguments, _ = self.split(function, row)

            def run() -> None:
                del self.handle(function)[self.python(arguments, function.takes)]

            self.call(
                f"/* del handle({function.id})[{arguments}] */",
                run,
                lambda: self.plain.set(function.id, arguments, []),
            )

    def add_type(self) -> None:
        if self.plain.objects:
            oid, type_ = self.choose(list(self.plain.objects)), self.choose(list(SUPERTYPES))
            self.text(f"add {type_} to :{self.names[oid]}", lambda: self.plain.add_type(oid, type_))

    def remove_type(self) -> None:
        if self.plain.objects:
            oid, type_ = self.choose(list(self.plain.objects)), self.choose(list(SUPERTYPES))
            self.text(
                f"remove {type_} from :{self.names[oid]}",
                lambda: self.plain.remove_type(oid, type_),
            )

    def delete(self) -> None:
        doomed = {self.choose(list(self.plain.objects)) for _ in range(2) if self.plain.objects}
        if doomed:
            shown = ", ".join(f":{self.names[oid]}" for oid in sorted(doomed))
            self.text(
                f"delete {shown}", lambda: [self.plain.delete(oid) for oid in doomed] and None
            )

    def procedure(self) -> None:
        """A loop over what it changes: every person is one year older, or has no thing left."""
        ages = self.plain.rows["age(person)"]

        def change() -> None:
            for oid, age in list(ages):
                if age == POOLS["integer"][3]:
                    raise Clash("overflow")
                self.plain.set("age(person)", (oid,), [(age + 1,)])

        self.text("for each person p where some(age(p)) do set age(p) = age(p) + 1", change)

    # --- transactions ----------------------------------------------------------------------

    def commit(self) -> None:
        self.log.append("commit")
        if self.random.randrange(2):
            self.db.amosql("commit")
        else:
            self.db.commit()
        self.committed = copy.deepcopy(self.plain)
        self.open = False

    def rollback(self) -> None:
        self.log.append("rollback")
        if self.random.randrange(2):
            self.db.amosql("rollback")
        else:
            self.db.rollback()
        self.plain = copy.deepcopy(self.committed)
        self.open = False

    def block(self) -> None:
        """`with db.transaction()`: commits, or undoes just the block if it raises."""
        before = copy.deepcopy(self.plain)
        was_open, self.open = self.open, True
        stops = bool(self.random.randrange(2))
        self.log.append("/* with db.transaction(): */")
        try:
            with self.db.transaction():
                for _ in range(1 + self.random.randrange(3)):
                    self.choose(
                        [self.set_handle, self.add_handle, self.create, self.delete, self.set_text]
                    )()
                if stops:
                    raise Stop
        except Stop:
            self.plain, self.open = before, was_open
            self.log.append("/* the block raised */")
            return
        self.log.append("/* the block ended */")
        self.committed, self.open = copy.deepcopy(self.plain), False

    def wrong(self) -> None:
        """A text that fails, perhaps after statements that do not: nothing of it happens."""
        people, things = self.plain.extent("person"), self.plain.extent("thing")
        if not people or not things:
            return
        text = self.choose(WRONG).format(
            person=f":{self.names[self.choose(people)]}",
            thing=f":{self.names[self.choose(things)]}",
            zero="0",
            one="1",
        )
        self.log.append(f"/* {text} */")
        try:
            self.db.amosql(text)
        except HarkenError as error:
            assert error.code != "storage", self.complaint(str(error))
        else:
            raise AssertionError(self.complaint("the last text should fail"))
        assert "new" not in self.db.variables, self.complaint("a failed text left a variable")

    def reopen(self) -> None:
        """Closing commits."""
        self.log.append("/* close and open again */")
        self.db.close()
        self.db = self.connect()
        self.committed, self.open = copy.deepcopy(self.plain), False
        for oid, name in self.names.items():
            if oid in self.plain.objects:
                self.db.assign(name, Object(oid))

    # --- checks ----------------------------------------------------------------------------

    def check(self) -> None:
        assert self.db.in_transaction == self.open, self.complaint(
            f"in_transaction is {self.db.in_transaction}"
        )
        for function in FUNCTIONS.values():
            found = Counter(self.table(function.id, len(function.columns)))
            wanted = +self.plain.rows[function.id]
            assert found == wanted, self.complaint(
                f"{function.id} has {found - wanted} too much, lacks {wanted - found}"
            )
        for type_ in SUPERTYPES:
            objects = sorted(oid for (oid,) in self.table(f"extent {type_}", 1))
            assert objects == sorted(self.plain.extent(type_)), self.complaint(
                f"{type_} has {objects}, not {self.plain.extent(type_)}"
            )

    def table(self, name: str, width: int) -> list[Row]:
        columns = ", ".join(f"c{i}" for i in range(width))
        quoted = name.replace('"', '""')
        return self.db.internals.connection.rows(f'SELECT {columns} FROM "{quoted}"')

    def check_by_language(self) -> None:
        """Queries and handles see what the tables hold, and SQLite finds nothing broken."""
        for function in FUNCTIONS.values():
            seen = Counter()
            for arguments, value in self.handle(function).items():
                seen[flat(arguments) + flat(value)] += 1
            assert seen == +self.plain.rows[function.id], self.complaint(f"{function.id}.items()")
        for type_ in SUPERTYPES:
            rows = self.db.amosql(f"select x for each {type_} x").rows
            assert sorted(x.oid for (x,) in rows) == sorted(self.plain.extent(type_))
        problems = self.db.internals.connection.rows("PRAGMA foreign_key_check")
        assert problems == [], self.complaint(f"broken references {problems}")
        assert self.db.internals.connection.rows("PRAGMA integrity_check") == [("ok",)]


def flat(value: Any) -> Row:
    values = value if isinstance(value, tuple) else (value,)
    return tuple(each.oid if isinstance(each, Object) else each for each in values)
