"""`db.function("quantity")`: a function as a Python mapping, without parsing.

    quantity = db.function("quantity")
    quantity[item] = 130          # set quantity(item) = 130
    quantity[item]                # 130
    db.function("delivery_time")[item, supplier] = 2

Law: each operation does what the statement of the same meaning does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from harken.database.arguments import shown
from harken.database.evaluation import decode_rows
from harken.database.exclusive import SessionLock, exclusive
from harken.database.results import rows_as_values
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.engines.protocol import Query
from harken.errors import SafetyFault, TypeFault, ValueFault, counted
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Kind, Relation, Role
from harken.ir.schema import Function, FunctionKind
from harken.ir.terms import Parameter, Variable
from harken.planner.prepare import Plan, prepare
from harken.statements.amosql import updates
from harken.statements.records import is_record
from harken.values.encoding import decoder
from harken.values.types import Type

Encoder = Callable[[Any], Any]


class NoValue(ValueFault, KeyError):
    """The function has no value for these arguments."""

    def __str__(self) -> str:
        return self.message


class FunctionHandle:
    """One function. It stays valid when the schema changes: it looks itself up again."""

    def __init__(
        self,
        runtime: Runtime,
        transactions: Transactions,
        function: Function,
        session_lock: SessionLock,
    ) -> None:
        self.session_lock = session_lock
        self._runtime = runtime
        self._transactions = transactions
        self._id = function.id
        self._connection = runtime.engine.connection
        self._epoch = -1
        self._prepare()

    def _prepare(self) -> None:
        catalog = self._runtime.catalog
        if not catalog.has_function(self._id):
            raise TypeFault(f"the function {self._id} was deleted", code="unknown-function")
        function = catalog.function(self._id)
        if function.kind is FunctionKind.PROCEDURE or function.relation is None:
            raise TypeFault(
                f"{self._id} is a procedure, not a mapping",
                code="side-effect",
                hint="call it: db.amosql(...) with a call statement",
            )
        self._function = function
        self._relation: Relation = function.relation
        self._inputs = self._relation.inputs
        encoder = self._runtime.objects.encoder
        self._encoders: list[Encoder] = [encoder(c.type) for c in self._relation.columns]
        self._types: tuple[Type, ...] = tuple(c.type for c in self._relation.columns)
        self._plain = (
            function.kind is FunctionKind.STORED
            and not function.system
            and not is_record(function)
            and not self._runtime.engine.is_in_lake(self._relation)
        )
        direct = self._runtime.engine.direct(self._relation)
        self._set_row, self._get_rows = direct.set, direct.get
        self._raised, self._fault = direct.raised, direct.fault
        self._one_to_one = self._plain and self._inputs == 1 and self._relation.arity == 2
        self._keyed = self._relation.key is not None and not function.is_set_valued
        results = self._types[self._inputs :]
        self._single = self._one_to_one and self._keyed and not _needs_decoding(results)
        self._decode = _needs_decoding(results)
        self._query: Query | None = None
        self._epoch = catalog.epoch

    # --- reading ---------------------------------------------------------------------------

    def __getitem__(self, arguments: Any) -> Any:
        """The value; for a bag, or a function with several, all of them."""
        if not self.session_lock.acquire(False):
            with self.session_lock:
                return self._get(arguments)
        try:
            return self._get(arguments)
        finally:
            self.session_lock.release()

    def _get(self, arguments: Any) -> Any:
        if self._single and type(arguments) is not tuple:
            value = self._read_one(arguments)
            if value is not None and self._transactions.saw_known_state:
                return value
        rows = self._results(arguments)
        if not self._keyed:
            return rows_as_values(self._decoded(rows))
        if not rows:
            raise NoValue(f"{self._function.name} has no value for {arguments!r}", code="no-value")
        return rows_as_values(self._decoded(rows))[0]

    def _read_one(self, arguments: Any) -> Any:
        """The fast path for one argument and one result stored as it is. None if it does not apply:
        another process may have deleted the function, which the slow path finds out."""
        if self._epoch != self._runtime.catalog.epoch:
            self._prepare()
        try:
            return self._get_rows((self._encoders[0](arguments),)).get
        except self._raised:
            return None

    @exclusive
    def get(self, arguments: Any, default: Any = None) -> Any:
        rows = self._results(arguments)
        if not rows and self._keyed:
            return default
        values = rows_as_values(self._decoded(rows))
        return values[0] if self._keyed else values

    @exclusive
    def __contains__(self, arguments: Any) -> bool:
        return bool(self._results(arguments))

    @exclusive
    def __call__(self, *arguments: Any) -> list[Any]:
        """All values for the arguments, as a list."""
        return rows_as_values(self._decoded(self._results(arguments)))

    def __iter__(self) -> Iterator[Any]:
        """The arguments that have a value, like the keys of a mapping."""
        return iter(dict.fromkeys(arguments for arguments, _ in self.items()))

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Every row, as (arguments, value)."""
        with self.session_lock:
            self._refresh()
            rows = decode_rows(self._all_rows(), self._types, self._runtime.catalog.home)
        for row in rows:
            (arguments,) = rows_as_values([row[: self._inputs]])
            (value,) = rows_as_values([row[self._inputs :]])
            yield arguments, value

    def _results(self, arguments: Any) -> list[tuple[Any, ...]]:
        self._refresh()
        given = self._encode(arguments)
        try:
            if self._plain:
                return self._get_rows(given).fetchall()
        except self._raised as error:
            raise self._fault(error) from error
        return self._derived_rows(arguments)

    def _derived_rows(self, arguments: Any) -> list[tuple[Any, ...]]:
        """The rows of a derived function, with its arguments as parameters."""
        if self._query is None:
            self._query = compile_call(self._runtime, self._relation)
        return self._query.rows(arguments if isinstance(arguments, tuple) else (arguments,))

    def _all_rows(self) -> list[tuple[Any, ...]]:
        if self._relation.kind is Kind.FOREIGN and self._inputs:
            raise SafetyFault(
                f"{self._id} has a value for any argument, so its rows cannot be listed",
                code="unsafe",
                hint="call it with arguments",
            )
        program = assemble(self._relation, (), self._runtime.catalog)
        plan = prepare(program, self._runtime.catalog.hierarchy)
        return self._runtime.engine.compile(plan).rows(())

    def _decoded(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if not self._decode:
            return rows
        return decode_rows(rows, self._types[self._inputs :], self._runtime.catalog.home)

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of a whole row: its arguments, then its results."""
        return self._types

    # --- changing --------------------------------------------------------------------------

    def __setitem__(self, arguments: Any, value: Any) -> None:
        if not self.session_lock.acquire(False):
            with self.session_lock:
                self._set(arguments, value)
                return
        try:
            self._set(arguments, value)
        finally:
            self.session_lock.release()

    def _set(self, arguments: Any, value: Any) -> None:
        connection = self._connection
        slow = self._runtime.immediate_rules or connection.asking or value is None
        is_open = connection.in_transaction
        if slow or not (self._plain and self._keyed) or (is_open and connection.only_reads):
            self._change("set", arguments, value)
        elif is_open:
            self._set_in_transaction(arguments, value)
        elif self._transactions.in_block:
            self._change("set", arguments, value)
        else:
            self._transactions.alone(partial(self._set_in_transaction, arguments, value))

    def _set_in_transaction(self, arguments: Any, value: Any) -> None:
        """One value, in place of the one that is there: the fast path, without a savepoint."""
        if self._epoch != self._runtime.catalog.epoch:
            self._prepare()
            if not (self._plain and self._keyed):
                self._apply("set", arguments, value)
                return
        row: tuple[Any, ...]
        if self._one_to_one and type(arguments) is not tuple and type(value) is not tuple:
            turn_argument, turn_value = self._encoders
            row = (turn_argument(arguments), turn_value(value))
        elif type(value) is tuple and len(value) == self._relation.arity - self._inputs:
            turns = self._encoders[self._inputs :]
            encoded = [turn(each) for turn, each in zip(turns, value, strict=True)]
            row = (*self._encode(arguments), *encoded)
        else:
            (values,) = self._encode_values(value)
            row = (*self._encode(arguments), *values)
        try:
            self._set_row(row)
        except self._raised as error:
            raise self._fault(error) from error

    @exclusive
    def update(self, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """Set many values in one statement: `quantity.update({item: 5, other: 7})`."""
        pairs = _pairs(values)
        self._refresh()
        target = updates.find_target(self._function, self._runtime.catalog, None)
        changes = [(self._encode(given), self._encode_values(value)) for given, value in pairs]
        if not changes:
            return
        block = self._transactions.statement if self._transactions.active else self._in_block
        with block():
            engine = self._runtime.engine
            if target.is_direct:
                engine.expect(target.relation, [given for given, _ in changes])
            for given, rows in changes:
                updates.apply(engine, "set", target, given, rows)

    @contextmanager
    def _in_block(self) -> Iterator[None]:
        with self._transactions.block(), self._transactions.statement():
            yield

    @exclusive
    def __delitem__(self, arguments: Any) -> None:
        """Remove the value for the arguments."""
        self._change("set", arguments, None)

    @exclusive
    def add(self, *row: Any) -> None:
        """`add f(...) = value`: the arguments, then the value."""
        self._change("add", row[: self._inputs], row[self._inputs :])

    @exclusive
    def put(self, *row: Any) -> None:
        """Make sure the row is there; for a single-valued function this sets the value."""
        self._change("set" if self._keyed else "add", row[: self._inputs], row[self._inputs :])

    @exclusive
    def remove(self, *row: Any) -> None:
        self._change("remove", row[: self._inputs], row[self._inputs :])

    def _change(self, verb: str, arguments: Any, value: Any) -> None:
        if self._transactions.active:
            self._apply(verb, arguments, value)
            return
        with self._transactions.block():
            self._apply(verb, arguments, value)

    def _apply(self, verb: str, arguments: Any, value: Any) -> None:
        self._refresh()
        target = updates.find_target(self._function, self._runtime.catalog, None)
        given = self._encode(arguments)
        with self._transactions.statement():
            values = self._encode_values(value)
            updates.apply(self._runtime.engine, verb, target, given, values)

    def _encode(self, arguments: Any) -> tuple[Any, ...]:
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        if len(given) != self._inputs:
            raise TypeFault(
                f"{self._function.name} takes {counted(self._inputs, 'argument')}, "
                f"not {len(given)}",
                code="arity",
            )
        return tuple(turn(value) for turn, value in zip(self._encoders, given, strict=False))

    def _encode_values(self, value: Any) -> list[tuple[Any, ...]]:
        """None removes the value; for a bag, a list gives all its values."""
        if value is None:
            return []
        several = value if isinstance(value, list) and not self._keyed else [value]
        width = self._relation.arity - self._inputs
        rows = [item if isinstance(item, tuple) else (item,) for item in several]
        for row in rows:
            if len(row) != width:
                raise TypeFault(
                    f"{self._function.name} has {counted(width, 'result column')}, not {len(row)}",
                    code="arity",
                )
        turns = self._encoders[self._inputs :]
        return [tuple(t(v) for t, v in zip(turns, row, strict=True)) for row in rows]

    def _refresh(self) -> None:
        self._transactions.look()
        if self._epoch != self._runtime.catalog.epoch:
            self._prepare()

    def __repr__(self) -> str:
        return f"<function {self._id}>"


def _pairs(values: Any) -> list[tuple[Any, Any]]:
    """The arguments of `update` as pairs of arguments and value."""
    given = values.items() if isinstance(values, Mapping) else values
    found = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in found):
        raise TypeFault(
            "the values must be a mapping, or pairs of arguments and value, not" + shown(values),
            hint="as {item: 5, other: 7}",
        )
    return [(arguments, value) for arguments, value in found]


def compile_call(runtime: Runtime, relation: Relation) -> Query:
    return runtime.engine.compile(plan_call(runtime, relation))


def plan_call(runtime: Runtime, relation: Relation) -> Plan:
    """A plan for the results of a relation whose arguments are parameters."""
    given = tuple(
        Parameter(position, column.type)
        for position, column in enumerate(relation.columns[: relation.inputs])
    )
    results = tuple(
        Variable(f"R{position}", column.type)
        for position, column in enumerate(relation.columns[relation.inputs :])
    )
    goal = relation.variant(
        Role.AUXILIARY,
        "call",
        columns=relation.columns[relation.inputs :],
        inputs=0,
        kind=Kind.DERIVED,
        key=None,
    )
    clause = Clause(Atom(goal, results), (Atom(relation, (*given, *results)),))
    program = assemble(goal, [Definition(goal, (clause,))], runtime.catalog)
    return prepare(program, runtime.catalog.hierarchy)


def _needs_decoding(types: tuple[Type, ...]) -> bool:
    return any(type_.surrogate or decoder(type_) is not None for type_ in types)
