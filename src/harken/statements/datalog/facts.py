"""Adding and removing facts.

Law: adding a fact that is there, or removing one that is not, changes nothing. Facts stated for a
derived relation are stored separately from its rules: a removed fact may still follow from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harken.database.language_names import DATALOG
from harken.database.runtime import Runtime
from harken.database.set_rows import add_rows
from harken.errors import HarkenError, Span, TypeFault
from harken.ir.relations import Relation
from harken.ir.schema import Function, FunctionKind
from harken.ir.terms import Constant
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import NUMBER_KIND, SYMBOL, Kind
from harken.lang.datalog.known_relations import KnownRelation, relation_named, relation_of
from harken.lang.datalog.translate import LARGEST, SMALLEST, Translator
from harken.statements.datalog.declarations import Schema
from harken.statements.datalog.reading import Reading
from harken.statements.datalog.relation_clauses import facts_relation
from harken.values.encoding import encode
from harken.values.rows import Row


class Facts:
    def __init__(self, runtime: Runtime, schema: Schema, reading: Reading) -> None:
        self._runtime = runtime
        self._schema = schema
        self._reading = reading
        self.stated: list[tuple[Relation, Row]] = []
        """The facts of the program in the order of the text."""

    def row(self, atom: syntax.Atom) -> Row:
        """A fact in stored form."""
        known = relation_of(self._schema.relations, atom)
        values = _written(atom.arguments, known.kinds)
        if values is not None:
            return stored_row(known, values)
        translator = Translator(self._schema.relations, self._schema.types, "fact")
        (clause,) = translator.clauses(atom, None)
        constants = [term for term in clause.head.terms if isinstance(term, Constant)]
        if clause.body or len(constants) < len(clause.head.terms):
            with located(atom.span):
                return self._reading.fact(atom)
        return tuple(encode(each.value, each.type) for each in constants)

    def change(self, node: syntax.Change) -> None:
        row = self.row(node.atom)
        relation = self._target(node.atom.name, node.span)
        if node.adds:
            self._add(relation, [row])
        else:
            self._runtime.engine.remove_row(relation, row)

    def add(self, name: str, rows: Sequence[Row], span: Span) -> None:
        """Add rows with their attributes in the order of declaration."""
        if rows:
            known = relation_named(self._schema.relations, name, span)
            self._add(self._target(name, span), [stored_row(known, row) for row in rows])

    def remove(self, name: str, rows: Sequence[Row], span: Span) -> None:
        """Remove rows with their attributes in the order of declaration."""
        if rows:
            known = relation_named(self._schema.relations, name, span)
            relation = self._target(name, span)
            self._runtime.engine.remove_many(relation, [stored_row(known, row) for row in rows])

    def state(self, atoms: Sequence[syntax.Atom]) -> None:
        """Add the facts of a program."""
        rows: dict[str, list[Row]] = {}
        places: dict[str, Span] = {}
        order: list[tuple[str, Row]] = []
        for atom in atoms:
            row = self.row(atom)
            rows.setdefault(atom.name, []).append(row)
            places.setdefault(atom.name, atom.span)
            order.append((atom.name, row))
        targets = {name: self._target(name, places[name]) for name in rows}
        for name, found in rows.items():
            self._add(targets[name], found)
        self.stated = [(targets[name], row) for name, row in order]

    def _target(self, name: str, span: Span) -> Relation:
        """The stored relation that holds the facts of this one."""
        function = self._schema.relations.function(name)
        assert function is not None
        assert function.relation is not None
        if function.kind is FunctionKind.STORED and not function.materialized:
            return function.relation
        if function.language != DATALOG:
            raise _not_a_table(function, span)
        self._schema.ensure_facts(name)
        found = facts_relation(name, self._runtime.catalog)
        assert found is not None
        return found

    def _add(self, relation: Relation, rows: Sequence[Row]) -> None:
        add_rows(self._runtime.engine, relation, rows, "remove that row first")


@contextmanager
def located(span: Span) -> Iterator[None]:
    """Give an error without a position this one."""
    try:
        yield
    except HarkenError as error:
        if error.span is None and error.text is None:
            error.span = span
        raise


def stored_row(known: KnownRelation, row: Row) -> Row:
    """Reorder a row from the order of declaration to the order of the columns."""
    if not known.attributes:
        return (1,)
    made: list[object] = [None] * len(row)
    for position, value in zip(known.positions, row, strict=True):
        made[position] = value
    return tuple(made)


def _written(arguments: Sequence[syntax.Expression], kinds: Sequence[Kind]) -> Row | None:
    """The fast path: stored values of literal arguments, as in nearly all facts; None if one must
    be computed, or is wrong."""
    found = []
    for argument, kind in zip(arguments, kinds, strict=True):
        match argument:
            case syntax.Text() if kind is SYMBOL:
                found.append(encode(argument.value, kind.type))
            case syntax.Number(form="integer") if kind is NUMBER_KIND and _fits(argument.value):
                found.append(encode(argument.value, kind.type))
            case _:
                return None
    return tuple(found)


def _fits(value: float) -> bool:
    return SMALLEST <= value <= LARGEST


def _not_a_table(function: Function, span: Span) -> TypeFault:
    return TypeFault(
        f"{function.name} is derived, and only facts can be added and removed",
        code="not-updatable",
        span=span,
        hint="change what it is derived from",
    )
