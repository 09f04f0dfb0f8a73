"""A cache of statements that differ only in their constants or the values of their parameters.

The key is the shape of the text (`statement_shapes`), the types of the values, and the values that
the plan depends on. An entry is one `Known`: the tree with the other values lifted out, and its
form, which is planned when it first runs, and again when a table or view that it mentions has
changed.

Law: `find` returns a statement only if parsing its text would give the same tree.
"""

from __future__ import annotations

import datetime
import decimal
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlglot import exp

from harken.errors import HarkenError
from harken.lang.sql.decimals import of_literal
from harken.lang.sql.lifting import lift, may_vary
from harken.lang.sql.parameters import checked, constant, name_of, parameters_of, type_of
from harken.lang.sql.parser import Statement
from harken.lang.sql.random_calls import has_random_call
from harken.lang.sql.statement_shapes import Piece, pieces
from harken.statements.sql.forms import Form
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type

KEPT = (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge)
WORDS = (exp.Transaction, exp.Commit, exp.Rollback)
FAILURES = 3
"""After this many runs for which the fast path failed and the full path succeeded, the statement
always uses the full path."""

Key = tuple[Any, ...]
_TYPES: dict[type, Type] = {
    int: INTEGER,
    str: TEXT,
    float: NUMBER,
    bool: BOOLEAN,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}


@dataclass(slots=True, eq=False)
class Known:
    """One statement with its values lifted out. It has no form until it is planned."""

    statement: Statement
    picks: tuple[int, ...]
    """The indexes of the given values that fill its slots."""
    negative: frozenset[int] = frozenset()
    form: Form | None = None
    epoch: int = -1
    failures: int = 0
    is_query: bool = field(init=False)
    is_word: bool = field(init=False)
    """Whether it is BEGIN, COMMIT or ROLLBACK."""

    def __post_init__(self) -> None:
        self.is_query = isinstance(self.statement.node, exp.Query | exp.Values)
        self.is_word = isinstance(self.statement.node, WORDS)

    def values(self, given: Sequence[Any]) -> tuple[Any, ...]:
        found = tuple([given[i] for i in self.picks])
        if not self.negative:
            return found
        return tuple(-each if i in self.negative else each for i, each in enumerate(found))


@dataclass(slots=True)
class Shape:
    """The cached statements of one shape, by the types of the values that may vary and by the
    values of the others; `pinned` are the positions of the others."""

    pinned: set[int] = field(default_factory=set)
    known: OrderedDict[Key, Known | None] = field(default_factory=OrderedDict)
    """None for a statement that cannot be cached."""
    names: tuple[str, ...] | None = None
    """The names of its parameters, if they have names."""


class Job(NamedTuple):
    """A cached statement with its values, and its position in the text."""

    known: Known
    values: tuple[Any, ...]
    start: int
    end: int


class KnownStatements:
    def __init__(self) -> None:
        self._shapes: OrderedDict[tuple[str, int], Shape] = OrderedDict()
        self._count = 0
        self.most = 0
        """The largest number of cached statements."""

    def clear(self) -> None:
        self._shapes.clear()
        self._count = 0

    # --- finding ---------------------------------------------------------------------------

    def find(self, text: str, values: Any) -> list[Job] | None:
        """The statements of a text, if all of them are cached."""
        if values is not None:
            return self._find_with(text, values)
        cut = pieces(text)
        if not cut:
            return None
        jobs = []
        for piece in cut:
            job = self._find_piece(piece)
            if job is None:
                return None
            jobs.append(job)
        return jobs

    def _find_piece(self, piece: Piece) -> Job | None:
        shape = self._shapes.get((piece.shape, -1))
        if shape is None:
            return None
        constants = piece.constants
        known = shape.known.get(tuple([constants[i] for i in shape.pinned]))
        if known is None:
            return None
        return Job(known, known.values(constants), piece.start, piece.end)

    def _find_with(self, text: str, values: Any) -> list[Job] | None:
        """A text of one statement, with values for its parameters."""
        shape = self._shapes.get((text, 0))
        if shape is None:
            return None
        given = in_order(shape, values)
        found = None if given is None else key_of(shape, given)
        known = None if found is None or given is None else shape.known.get(found)
        if known is None or given is None:
            return None
        span = known.statement.span
        return [Job(known, known.values(flat(given)), span.start, span.end)]

    # --- learning --------------------------------------------------------------------------

    def learn(self, text: str, parsed: Sequence[Statement], values: Any) -> list[Job | None]:
        """The statements of a text that was parsed. Those that can be are cached."""
        nothing: list[Job | None] = [None for _ in parsed]
        if not self.most:
            return nothing
        if values is not None:
            return [self._learn_with(text, parsed[0], values)] if len(parsed) == 1 else nothing
        cut = pieces(text)
        if cut is None or [each.start for each in cut] != [each.offset for each in parsed]:
            return nothing
        return [self._learn_piece(each, piece) for each, piece in zip(parsed, cut, strict=True)]

    def _learn_piece(self, statement: Statement, piece: Piece) -> Job | None:
        if isinstance(statement.node, WORDS):
            known = self._keep(self._shape(piece.shape, -1), (), Known(statement, ()))
            return Job(known, (), piece.start, piece.end)
        if not _is_kept(statement) or statement.node.find(exp.Placeholder):
            return None
        shape = self._shapes.get((piece.shape, -1))
        if shape is None:
            shape = self._shape(piece.shape, -1)
            shape.pinned = _pinned(statement, piece)
        pinned = shape.pinned
        picks = tuple(i for i in range(len(piece.constants)) if i not in pinned)
        slots = {
            piece.starts[i] - piece.start: (slot, _type_of_constant(piece.constants[i]))
            for slot, i in enumerate(picks)
        }
        node, negative = lift(statement.node, slots)
        known = Known(_planned(statement, node, len(picks)), picks, negative)
        known = self._keep(shape, tuple([piece.constants[i] for i in pinned]), known)
        return Job(known, known.values(piece.constants), piece.start, piece.end)

    def _learn_with(self, text: str, statement: Statement, values: Any) -> Job | None:
        if not _is_kept(statement):
            return None
        nodes = parameters_of(statement)
        shape = self._shapes.get((text, 0))
        if shape is None:
            shape = self._shape(text, 0)
            vary = [may_vary(each, statement.node) for each in nodes]
            shape.pinned = {i for i, each in enumerate(vary) if not each}
            names = tuple(map(name_of, nodes))
            shape.names = names if any(names) else None
        given = in_order(shape, values)
        key = None if given is None or len(given) != len(nodes) else key_of(shape, given)
        if key is None or given is None:
            return None
        node, slots = _with_pinned(statement, nodes, given, shape.pinned)
        made, _ = lift(node, dict(slots))
        picks = _picks(given, shape.pinned)
        known = self._keep(shape, key, Known(_planned(statement, made, len(picks)), picks))
        span = statement.span
        return Job(known, known.values(flat(given)), span.start, span.end)

    def pin(self, text: str, values: Any, known: Known, slot: int) -> None:
        """A plan turned out to depend on a value: the statements of this shape are cached again,
        with that value in the key."""
        places = [(text, 0)] if values is not None else [(p.shape, -1) for p in pieces(text) or ()]
        for place in places:
            shape = self._shapes.get(place)
            if shape is not None and known in shape.known.values():
                self._count -= len(shape.known)
                shape.known.clear()
                shape.pinned.add(known.picks[slot])

    def forget(self, known: Known) -> None:
        """The statement cannot be cached."""
        for shape in self._shapes.values():
            for key, each in shape.known.items():
                if each is known:
                    shape.known[key] = None

    def _shape(self, text: str, place: int) -> Shape:
        return self._shapes.setdefault((text, place), Shape())

    def _keep(self, shape: Shape, key: Key, known: Known) -> Known:
        self._count += key not in shape.known
        shape.known[key] = known
        while self._count > self.most and len(self._shapes) > 1:
            _, oldest = self._shapes.popitem(last=False)
            self._count -= len(oldest.known)
        while self._count > self.most and len(shape.known) > 1:
            shape.known.popitem(last=False)
            self._count -= 1
        return known


def _is_kept(statement: Statement) -> bool:
    node = statement.node
    return isinstance(node, KEPT) and not statement.explained and not has_random_call(node)


def _planned(statement: Statement, node: exp.Expr, width: int) -> Statement:
    return replace(statement, node=node, values=(None,) * width, queries={})


def _type_of_constant(value: Any) -> Type:
    if isinstance(value, decimal.Decimal):
        return of_literal(f"{value:f}")
    return TEXT if isinstance(value, str) else INTEGER


def _pinned(statement: Statement, piece: Piece) -> set[int]:
    """The constants of a statement that a plan depends on."""
    literals: dict[int, list[exp.Literal]] = {}
    for node in statement.node.find_all(exp.Literal):
        literals.setdefault(int(node.meta.get("start", -1)), []).append(node)
    pinned = set()
    for i, (start, value) in enumerate(zip(piece.starts, piece.constants, strict=True)):
        found = literals.get(start - piece.start, [])
        vary = all(may_vary(each, statement.node) and _says(each, value) for each in found)
        if not found or not vary:
            pinned.add(i)
    return pinned


def _says(node: exp.Literal, value: Any) -> bool:
    """Whether the parser reads the same value."""
    if node.is_string or isinstance(value, str):
        return bool(node.is_string and node.this == value)
    return bool(decimal.Decimal(node.this) == value)


# --- values of parameters ------------------------------------------------------------------


def in_order(shape: Shape, values: Any) -> Sequence[Any] | None:
    """The values of the parameters in the order of the text; None if some are missing, or their
    types need the full checks."""
    if isinstance(values, Mapping):
        names = shape.names
        if names is None or len(values) != len(set(names)):
            return None
        if not all(map(values.__contains__, names)):
            return None
        return [values[name] for name in names]
    return None if shape.names is not None else values


def key_of(shape: Shape, given: Sequence[Any]) -> Key | None:
    """The types of values that may vary, and the values of the others."""
    found = []
    pinned = shape.pinned
    try:
        for i, value in enumerate(given):
            kind: Any = type(value)
            if kind is list:
                kind = tuple([_kind(each) for each in value])
            elif kind not in _TYPES:
                kind = _kind(value)
            found.append((kind, str(value), value) if i in pinned else kind)
        key = tuple(found)
        hash(key)
    except (HarkenError, TypeError):
        return None
    return key


def _kind(value: Any) -> Any:
    kind = type(value)
    if kind in _TYPES or value is None:
        return kind
    if kind is decimal.Decimal:
        return type_of(value)
    raise TypeError(kind)


def flat(given: Sequence[Any]) -> Sequence[Any]:
    """The values, with lists flattened."""
    if list not in map(type, given):
        return given
    return [item for each in given for item in (each if type(each) is list else (each,))]


def _picks(given: Sequence[Any], pinned: set[int]) -> tuple[int, ...]:
    """The positions of the values that may vary among those of `flat`."""
    picks, at = [], 0
    for i, each in enumerate(given):
        width = len(each) if type(each) is list else 1
        if i not in pinned and each is not None:
            picks += [at + j for j in range(width) if type(each) is not list or each[j] is not None]
        at += width
    return tuple(picks)


def _with_pinned(
    statement: Statement, nodes: Sequence[exp.Placeholder], given: Sequence[Any], pinned: set[int]
) -> tuple[exp.Expr, list[tuple[int, tuple[int, Type]]]]:
    """The statement with the pinned values filled in, and the slots of the others by their
    positions."""
    root = statement.node.copy()
    slots: list[tuple[int, tuple[int, Type]]] = []
    for i, node in enumerate(parameters_of(replace(statement, node=root))):
        value = given[i]
        if type(value) is list:
            if node.arg_key != "expressions" or not isinstance(node.parent, exp.In):
                raise TypeError
            _spread(node, value, i in pinned, slots)
        elif value is None or i in pinned:
            made = constant(checked(value, "a value"))
            made.meta.update(node.meta)
            node.replace(made)
        else:
            slots.append((int(node.meta["start"]), (len(slots), _type(value))))
    return root, slots


def _spread(node: exp.Placeholder, values: list[Any], is_pinned: bool, slots: list[Any]) -> None:
    """Expand x IN (?) for a list: one placeholder for each of its values."""
    items: list[exp.Expr] = []
    for number, value in enumerate(values, start=1):
        if value is None or is_pinned:
            items.append(constant(checked(value, "a value")))
            continue
        item = exp.Placeholder()
        # Places in the text are whole numbers, of which these are parts.
        item.meta.update(node.meta, start=int(node.meta["start"]) * -1000 - number)
        slots.append((item.meta["start"], (len(slots), _type(value))))
        items.append(item)
    around = node.parent
    assert around is not None
    listed = around.expressions
    place = next(i for i, each in enumerate(listed) if each is node)
    around.set("expressions", [*listed[:place], *items, *listed[place + 1 :]])


def _type(value: Any) -> Type:
    return _TYPES.get(type(value)) or type_of(value)
