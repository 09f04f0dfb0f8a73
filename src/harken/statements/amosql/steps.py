"""Steps: compiled statements, at the top level and in procedures alike.

A step holds compiled queries and the sources of its values; running it reads no text. A loop reads
all its rows before its body runs, so a body that changes what it ranges over does not change the
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from harken import limits
from harken.database.actions import RollbackRequest
from harken.database.evaluation import Evaluation, Frame, decode_rows
from harken.database.objects import Object
from harken.database.prefetch import prefetched
from harken.database.runtime import CALL_DEPTH, Runtime
from harken.engines.foreign_calls import call as call_python
from harken.engines.foreign_calls import stored_rows
from harken.errors import EvaluationError, IntegrityError, ValueFault
from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql.overload_resolution import Argument, resolve
from harken.stack import room_for
from harken.statements.amosql import updates
from harken.statements.amosql.foreign import no_python
from harken.values.types import BOOLEAN, Type

PYTHON_FRAMES = 40 * CALL_DEPTH
"""Enough stack for nested procedure calls, each with its statements nested a few levels deep."""


class CompiledStep(Protocol):
    def run(self, runtime: Runtime, frame: Frame) -> None: ...


class TrialOver(Exception):
    """A statement was tried as far as it can be: all that it did is undone."""


class ReturnRequest(Exception):
    """Raised by `return`; unwinds to the call of the procedure."""


@dataclass(frozen=True, slots=True)
class ShowRows:
    evaluation: Evaluation
    columns: tuple[str, ...]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        runtime.emit("rows", self.columns, self.evaluation.rows(frame), self.evaluation.types)


@dataclass(frozen=True, slots=True)
class PrintValues:
    evaluation: Evaluation

    def run(self, runtime: Runtime, frame: Frame) -> None:
        runtime.emit("print", (), self.evaluation.rows(frame), self.evaluation.types)


@dataclass(frozen=True, slots=True)
class ChangeFunction:
    """`set`, `add` or `remove`. Among several candidates the types of the objects choose the
    target."""

    verb: str
    name: str
    candidates: tuple[Function, ...]
    arguments: Evaluation
    value: Evaluation
    find_target: Callable[[Function], updates.Target]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        values = self.value.stored(frame)
        given = self.arguments.stored(frame)
        self._expect(runtime, given)
        for arguments in given:
            target = self.find_target(self._choose(runtime, arguments))
            updates.apply(runtime.engine, self.verb, target, arguments, values)

    def foresee(self, runtime: Runtime, frames: Sequence[Frame]) -> None:
        if self.arguments.query is None:
            self._expect(runtime, [self.arguments.stored(frame)[0] for frame in frames])

    def _expect(self, runtime: Runtime, given: list[tuple[Any, ...]]) -> None:
        """Fetch lake rows for all tuples at once."""
        if len(given) > 1 and len(self.candidates) == 1:
            target = self.find_target(self.candidates[0])
            if target.is_direct:
                runtime.engine.expect(target.relation, given)

    def _choose(self, runtime: Runtime, arguments: tuple[Any, ...]) -> Function:
        if len(self.candidates) == 1:
            return self.candidates[0]
        return choose_by_object(runtime, self.name, arguments, self.arguments.types)


def choose_by_object(
    runtime: Runtime, name: str, arguments: tuple[Any, ...], types: tuple[Type, ...]
) -> Function:
    """Late binding of a call whose arguments are known (objects as their numbers)."""
    known = [
        Argument(tuple(Type(t) for t in sorted(runtime.objects.types_of(value))), exact=True)
        if type_.surrogate
        else Argument((type_,), exact=True)
        for value, type_ in zip(arguments, types, strict=True)
    ]
    return resolve(runtime.catalog, name, known)[0]


@dataclass(frozen=True, slots=True)
class NewObject:
    """The variable that will hold the object, if any, and its initial properties."""

    variable: str | None
    local: bool
    properties: tuple[tuple[updates.Target, Evaluation], ...]


@dataclass(frozen=True, slots=True)
class CreateObjects:
    """`create T(p, ...) instances :a(v, ...)`."""

    type: Type
    instances: tuple[NewObject, ...]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        for new in self.instances:
            values = [(target, evaluation.stored(frame)) for target, evaluation in new.properties]
            created = runtime.objects.create(self.type)
            for target, rows in values:
                updates.apply(runtime.engine, "set", target, (created.oid,), rows)
            if new.local and new.variable is not None:
                frame.locals[new.variable] = created
            elif new.variable is not None:
                runtime.assign(new.variable, created)


@dataclass(frozen=True, slots=True)
class ChangeTypes:
    """`add T to` (added) or `remove T from`."""

    type: Type
    objects: Evaluation
    added: bool

    def run(self, runtime: Runtime, frame: Frame) -> None:
        for row in self.objects.stored(frame):
            for oid in row:
                if self.added:
                    runtime.objects.add_type(oid, self.type)
                else:
                    runtime.objects.remove_type(oid, self.type)


@dataclass(frozen=True, slots=True)
class DeleteObjects:
    objects: tuple[Evaluation, ...]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        doomed = {oid: None for each in self.objects for row in each.stored(frame) for oid in row}
        for oid in doomed:
            runtime.objects.delete(oid)


@dataclass(frozen=True, slots=True)
class Assign:
    """`set :x = e` or `set v = e`: exactly one value."""

    name: str
    slot: int | None
    interface: bool
    produce: Produce

    def run(self, runtime: Runtime, frame: Frame) -> None:
        rows = self.produce.rows(runtime, frame)
        name = self.name if self.slot is None else frame.variables[self.slot]
        if len(rows) != 1 or len(rows[0]) != 1:
            raise ValueFault(
                f"{':' if self.interface else ''}{name} takes one value, but this gives "
                f"{len(rows) or 'none'}",
                code="many-values" if rows else "no-value",
                hint="use an aggregate such as min(...) to make it one"
                if rows
                else "give the function a value first, or ask `some(...)` whether it has one",
            )
        if self.interface:
            runtime.assign(name, rows[0][0])
        else:
            frame.locals[name] = rows[0][0]


class Produce(Protocol):
    """Something that yields rows: an evaluation, or a procedure call."""

    def rows(self, runtime: Runtime, frame: Frame) -> list[tuple[Any, ...]]: ...


@dataclass(frozen=True, slots=True)
class Evaluate:
    evaluation: Evaluation

    def rows(self, runtime: Runtime, frame: Frame) -> list[tuple[Any, ...]]:
        return self.evaluation.rows(frame)


@dataclass(frozen=True, slots=True)
class CallProcedure:
    """Calls a procedure once for each row of its arguments."""

    name: str
    candidates: tuple[Function, ...]
    arguments: Evaluation
    body: Callable[[Function], Procedure]

    def rows(self, runtime: Runtime, frame: Frame) -> list[tuple[Any, ...]]:
        returned: list[tuple[Any, ...]] = []
        for stored in self.arguments.stored(frame):
            function = self._choose(runtime, stored)
            returned += self._call(runtime, frame, function, stored)
        return returned

    def call(self, runtime: Runtime, frame: Frame, stored: tuple[Any, ...]) -> None:
        """Call it with stored values."""
        self._call(runtime, frame, self._choose(runtime, stored), stored)

    def _choose(self, runtime: Runtime, stored: tuple[Any, ...]) -> Function:
        if len(self.candidates) == 1:
            return self.candidates[0]
        return choose_by_object(runtime, self.name, stored, self.arguments.types)

    def _call(
        self, runtime: Runtime, frame: Frame, function: Function, stored: tuple[Any, ...]
    ) -> list[tuple[Any, ...]]:
        (values,) = decode_rows([stored], self.arguments.types)
        if function.kind is FunctionKind.FOREIGN:
            return call_foreign(runtime, function, values)
        if runtime.depth >= CALL_DEPTH:
            raise EvaluationError(
                f"procedures call each other {CALL_DEPTH} deep, {function.name} the last of them",
                code="no-fixpoint",
                hint="a procedure that calls itself must stop at some point",
            )
        with _deeper(runtime):
            return self.body(function).call(runtime, frame, values)

    def run(self, runtime: Runtime, frame: Frame) -> None:
        """As a statement: show what the procedure returned, if anything."""
        rows = self.rows(runtime, frame)
        if rows:
            results = self.candidates[0].results
            names, types = tuple(c.name for c in results), tuple(c.type for c in results)
            runtime.emit("rows", names, rows, types)


@contextmanager
def _deeper(runtime: Runtime) -> Iterator[None]:
    """One call deeper; the outermost call reserves enough of Python's stack for all."""
    runtime.depth += 1
    try:
        with room_for(PYTHON_FRAMES if runtime.depth == 1 else 0):
            yield
    finally:
        runtime.depth -= 1


def call_foreign(
    runtime: Runtime, function: Function, values: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    """A foreign procedure yields no rows; a foreign function called as a statement yields its
    own."""
    python = runtime.python.get(function.id)
    if python is None:
        raise no_python(function)
    if runtime.is_trial:
        raise TrialOver
    given = [
        runtime.objects.handle(value.oid) if isinstance(value, Object) else value
        for value in values
    ]
    produced = call_python(function.name, python, given)
    if function.relation is None or _is_done(function, produced):
        return []
    types = tuple(column.type for column in function.results)
    return decode_rows(stored_rows(function.relation, produced), types, runtime.catalog.home)


def _is_done(function: Function, produced: Any) -> bool:
    """A procedure written in Python usually returns None; that is not a missing boolean."""
    return produced is None and tuple(column.type for column in function.results) == (BOOLEAN,)


@dataclass(frozen=True, slots=True)
class Procedure:
    """The compiled body of a procedure."""

    function: Function
    steps: tuple[CompiledStep, ...]

    def call(
        self, runtime: Runtime, frame: Frame, values: tuple[Any, ...]
    ) -> list[tuple[Any, ...]]:
        names = (column.name for column in self.function.parameters)
        inner = Frame(runtime.interface, locals=dict(zip(names, values, strict=True)))
        try:
            for step in self.steps:
                step.run(runtime, inner)
        except ReturnRequest:
            pass
        return inner.returned or []


@dataclass(frozen=True, slots=True)
class Block:
    steps: tuple[CompiledStep, ...]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        """Immediate rules act after each statement of a block, also in a procedure. In a loop, and
        in the action of a rule, they wait for its end."""
        for step in self.steps:
            step.run(runtime, frame)
            if runtime.immediate_rules and not runtime.held_back:
                runtime.reactions.after_statement()


@dataclass(frozen=True, slots=True)
class If:
    condition: Evaluation
    then: CompiledStep
    otherwise: CompiledStep | None

    def run(self, runtime: Runtime, frame: Frame) -> None:
        if self.condition.stored(frame):
            self.then.run(runtime, frame)
        elif self.otherwise is not None:
            self.otherwise.run(runtime, frame)


@dataclass(frozen=True, slots=True)
class ForEach:
    names: tuple[str, ...]
    rows: Evaluation
    body: CompiledStep

    def run(self, runtime: Runtime, frame: Frame) -> None:
        outside = dict(frame.locals)

        def frame_of(row: tuple[Any, ...]) -> Frame:
            return replace(frame, locals={**outside, **dict(zip(self.names, row, strict=True))})

        with runtime.holding_back():
            for row in prefetched(runtime, self.body, self.rows.rows(frame), frame_of):
                limits.check()
                frame.locals.update(zip(self.names, row, strict=True))
                self.body.run(runtime, frame)
        for name in self.names:
            frame.locals.pop(name, None)
            if name in outside:
                frame.locals[name] = outside[name]


@dataclass(frozen=True, slots=True)
class Return:
    produce: Produce

    def run(self, runtime: Runtime, frame: Frame) -> None:
        frame.returned = self.produce.rows(runtime, frame)
        raise ReturnRequest


@dataclass(frozen=True, slots=True)
class CheckRules:
    def run(self, runtime: Runtime, frame: Frame) -> None:
        if runtime.held_back:
            raise IntegrityError(
                "rules are not checked in a loop or in the action of a rule",
                code="transaction",
                hint="write `check` between statements",
            )
        runtime.reactions.check_now()


@dataclass(frozen=True, slots=True)
class Rollback:
    def run(self, runtime: Runtime, frame: Frame) -> None:
        raise RollbackRequest
