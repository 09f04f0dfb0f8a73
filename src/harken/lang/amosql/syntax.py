"""The syntax tree of AMOSQL: what the parser saw, before any name means anything.

Every node carries the span of text it came from; spans do not take part in equality. Literals
and interface variables stand as they were written; whether a name is a type, a function or a
variable is decided later, by the translation.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TypeAlias

from harken.errors import Span
from harken.ir.event_trees import Length, Tree

NOWHERE = Span(0, 0)

LiteralValue: TypeAlias = int | float | str | bool | datetime.date | datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- expressions ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant. `slot` numbers it where the statement is a shape whose constants are cut out."""

    value: LiteralValue
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: a variable, or (as an argument of a higher-order function) a function."""

    name: str


@dataclass(frozen=True, slots=True)
class InterfaceVariable(Node):
    """`:x`, a value of the session; `name` is without the colon."""

    name: str
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`f(a, b)` or `employee.netincome(e)`, where `qualifier` chooses the overload by hand."""

    function: str
    arguments: tuple[Expression, ...]
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class FunctionReference(Node):
    """`#'f'` or `#'employee.netincome'`: the function itself, not its value."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x` or `not p`; `operator` is `-` or `not`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`operator` is one of + - * / || = != < <= > >= in and or."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """`<a, b>`: the value of a function with several result columns."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """`T v` in a parameter list, a result or after `for each`; `name` is None if left out."""

    type: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    """`select [distinct] e, ... [for each T v, ...] [where p]`."""

    items: tuple[Expression, ...]
    variables: tuple[Declaration, ...] = ()
    where: Expression | None = None
    distinct: bool = False


Expression: TypeAlias = (
    Literal | Name | InterfaceVariable | Call | FunctionReference | Unary | Binary | Tuple | Query
)

# --- statements ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateType(Node):
    """`create type T [subtype of S, ...] [properties (name type, ...)]`."""

    name: str
    supertypes: tuple[str, ...] = ()
    properties: tuple[Declaration, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteType(Node):
    name: str


@dataclass(frozen=True, slots=True)
class StoredBody(Node):
    """`as stored`, or nothing; `stored in lake` says where."""

    in_lake: bool = False


@dataclass(frozen=True, slots=True)
class ForeignBody(Node):
    """`as foreign "module:function"`; `target` is None for `as foreign` alone."""

    target: str | None


FunctionBody: TypeAlias = "StoredBody | ForeignBody | Query | Statement"


@dataclass(frozen=True, slots=True)
class CreateFunction(Node):
    """A stored, derived (`as select`), foreign or procedural (`as` a statement) function.

    `as f(x)` with a bare expression arrives as ExpressionStatement: only names tell whether it
    is a query or a procedure call.
    """

    name: str
    parameters: tuple[Declaration, ...]
    results: tuple[Declaration, ...]
    bag: bool
    body: FunctionBody
    set_valued: bool = False


@dataclass(frozen=True, slots=True)
class DeleteFunction(Node):
    """`delete function f` or, for one overload, `delete function employee.f`."""

    name: str
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class Instance(Node):
    """One object to create and its values.

    `variable` is the interface variable that is to hold it, in a procedure a local one (then
    `local` is set), or None for an anonymous object.
    """

    variable: str | None
    values: tuple[Expression, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class CreateInstances(Node):
    """`create T [(p1, p2)] instances :a [(v1, v2)], ...`."""

    type: str
    properties: tuple[str, ...]
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class AddType(Node):
    """`add T to e, ...`."""

    type: str
    objects: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RemoveType(Node):
    """`remove T from e, ...`."""

    type: str
    objects: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DeleteObjects(Node):
    """`delete :x, ...`, or in a procedure `delete e`."""

    objects: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Update(Node):
    """`set | add | remove  f(...) = value`; `verb` is the keyword in lower case."""

    verb: str
    target: Call
    value: Expression


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`set :x = e` or, in a procedure, `set v = e`."""

    target: InterfaceVariable | Name
    value: Expression


@dataclass(frozen=True, slots=True)
class ExpressionStatement(Node):
    """A query, a call (with or without `call`), or any expression whose value is wanted."""

    expression: Expression
    called: bool = False


@dataclass(frozen=True, slots=True)
class Print(Node):
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Block(Node):
    """`begin [declare T v, ...;] statements end`."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class DeclareLocals(Node):
    """`declare T v, ...`, anywhere in a block."""

    variables: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    condition: Expression
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class ForEach(Node):
    """`for each T v, ... [where p] [do] statement`."""

    variables: tuple[Declaration, ...]
    where: Expression | None
    body: Statement


@dataclass(frozen=True, slots=True)
class Event(Node):
    """`added(f)`, `removed(f)`, `updated(f)`, `created(t)`, `deleted(t)`, `signal(s)`, `every`,
    `at` or `after`; `kind` is the keyword in lower case, and `function` what stands in brackets."""

    kind: str
    function: str = ""
    qualifier: str | None = None
    length: Length | None = None
    """Of `every` and `after`."""
    moment: datetime.datetime | None = None
    """Of `at`."""
    time: datetime.time | None = None
    """Of `every day at`."""

    @property
    def is_of_data(self) -> bool:
        return self.kind in DATA_EVENTS


DATA_EVENTS = frozenset({"added", "removed", "updated", "created", "deleted"})


@dataclass(frozen=True, slots=True)
class EventTree(Node):
    """Events joined by `or`, `and`, `then` or `not`; `after` is its part after a time without
    anything that would prevent it. `within` is an interval for all of it."""

    operator: str
    parts: tuple[Event | EventTree, ...]
    within: Length | None = None


@dataclass(frozen=True, slots=True)
class CreateRule(Node):
    """`create rule r(T p, ...) [on ...] as [for each T v, ...] when condition do action`.

    `condition` is None where only events count, or where all values of the variables do.
    `coupling` is deferred, immediate, before, detached or decoupled.
    """

    name: str
    parameters: tuple[Declaration, ...]
    variables: tuple[Declaration, ...]
    condition: Expression | None
    action: Statement
    events: tuple[Event, ...] = ()
    tree: Tree | None = None
    """How the events are joined, by their numbers; None if any of them will do."""
    sensitivity: str | None = None
    """strict, nervous or patient, if it says so."""
    coupling: str = "deferred"


@dataclass(frozen=True, slots=True)
class DeleteRule(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Activate(Node):
    """`activate r(e, ...) [priority n]`. The rule is named, or a variable holds it."""

    rule: Name | InterfaceVariable
    arguments: tuple[Expression, ...]
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Deactivate(Node):
    rule: Name | InterfaceVariable
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Return(Node):
    value: Expression


@dataclass(frozen=True, slots=True)
class Commit(Node):
    pass


@dataclass(frozen=True, slots=True)
class Check(Node):
    """Rules are checked now, as before a commit."""


@dataclass(frozen=True, slots=True)
class Rollback(Node):
    pass


Statement: TypeAlias = (
    CreateType
    | DeleteType
    | CreateFunction
    | DeleteFunction
    | CreateInstances
    | AddType
    | RemoveType
    | DeleteObjects
    | Update
    | Assign
    | ExpressionStatement
    | Print
    | Block
    | DeclareLocals
    | If
    | ForEach
    | CreateRule
    | DeleteRule
    | Activate
    | Deactivate
    | Return
    | Commit
    | Rollback
    | Check
)
