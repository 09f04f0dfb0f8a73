"""Content triggers, compiled: their leaves are queries, and each query becomes a watched view.

The parameters, the positions of executions, previous values, groups and signals are tables of these
queries that no user can name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp

from harken.continual.trigger_conditions import (
    POSITIONS,
    SIGNALS,
    CompiledLeaf,
    CompiledTrigger,
    ReadRows,
    Reference,
    ReferenceRows,
    RowReading,
    WatchedCondition,
)
from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, table_of
from harken.database.system import parameters_relation
from harken.engines.protocol import Records
from harken.errors import HarkenError, LanguageError, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition, Program
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.schema import FunctionKind, Table
from harken.ir.terms import Parameter, Term, Variable
from harken.lang.continual.condition_leaves import SIGNALS as SIGNAL_TABLE
from harken.lang.continual.condition_leaves import ConditionLeaves, named_tables
from harken.lang.continual.condition_tables import (
    COPIES,
    SINCE_POSITION,
    UNTIL_POSITION,
    WAS_THERE,
    ConditionTable,
    column,
    from_table,
    key_name,
    value_name,
)
from harken.lang.continual.leaf_queries import POSITIONS as POSITION_TABLE
from harken.lang.continual.leaf_queries import LeafQuery
from harken.lang.continual.literal_lifting import PARAMETERS
from harken.lang.continual.trigger_text import is_condition, read_trigger
from harken.lang.continual.triplets import triplets
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import Draft
from harken.lang.sql.queries import new_translation
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.random_calls import number_random_calls
from harken.lang.sql.statement_shapes import pieces
from harken.maintenance.strategies import Strategy
from harken.planner.change_methods import moving
from harken.planner.lift import compared_with
from harken.planner.prepare import prepare
from harken.stack import NESTED, room_for
from harken.statements.sql.row_keys import key_columns
from harken.statements.sql.source_hosts import source_of_host, with_sources
from harken.statements.sql.trigger_shapes import MOST_SHAPES, Places, TriggerShapes
from harken.values.encoding import encoder
from harken.values.types import BOOLEAN, INTEGER

GROUPS = " groups "
PREVIOUS = " previous "


@room_for(NESTED)
def compile_trigger(
    text: str, query: str, catalog: Catalog, records: Records
) -> tuple[CompiledTrigger, list[Places]]:
    """The trigger with this text of the continual query with that query, and where the constants
    of its leaves stand in the text."""
    try:
        trigger = read_trigger(text)
        is_table = SqlTables(catalog).is_table
        tables = _Tables(text, with_sources(records, query, is_table), catalog, records)
        found = ConditionLeaves(tables, trigger)
        leaves = tuple(_Leaf(each, tables, text).compiled() for each in found.leaves)
    except HarkenError as error:
        raise error.locate(text, "trigger") from error.__cause__
    made = CompiledTrigger(found.tree, leaves, trigger.repeats, frozenset(tables.mentioned))
    types = [[type_ for _, type_ in each.constants] for each in found.leaves]
    pairs = zip(found.leaves, types, strict=True)
    return made, [tuple(zip(leaf.places, each, strict=True)) for leaf, each in pairs]


class SqlTriggers:
    """The language of content triggers, over the tables of SQL (`TriggerFrontEnd`)."""

    def __init__(self, catalog: Catalog, records: Records) -> None:
        self._catalog = catalog
        self._records = records
        self._read = set[str]()
        """The shapes of the triggers that were read."""
        self._shapes = TriggerShapes(
            catalog, lambda text, query: compile_trigger(text, query, catalog, records)
        )

    def reads(self, text: str) -> bool:
        if not is_condition(text):
            return False
        read_trigger(text)
        cut = pieces(text)
        if cut is not None and len(cut) == 1 and len(self._read) < MOST_SHAPES:
            self._read.add(cut[0].shape)
        return True

    def knows(self, text: str) -> bool:
        cut = pieces(text)
        return cut is not None and len(cut) == 1 and cut[0].shape in self._read

    def named(self, text: str) -> frozenset[str]:
        tables = SqlTables(self._catalog)
        names = named_tables(read_trigger(text).condition)
        hosts = {each: source_of_host(self._records, each) for each in names if "." in each}
        found = [tables.function(hosts.get(each) or each) for each in names]
        return frozenset(each.name for each in found if each is not None)

    def rows_read(self, text: str, query: str) -> list[ReadRows]:
        tables = _Tables("", "", self._catalog, self._records)
        found = []
        for name in sorted({*self.named(text), *(name for _, name in tables_of(query))}):
            label = f"`{name}`"
            with suppress(HarkenError):  # a view may lack the same function
                node = statements(f"SELECT * FROM {label}")[0].node
                rows, draft = tables.translate(node, label)
                program = tables.watched(rows, draft, label, rows.columns)
                found.append(ReadRows(program=program, label=label))
        return found

    def events(self, text: str) -> list[str]:
        def key_of(name: str) -> tuple[str, ...]:
            function = SqlTables(self._catalog).function(name)
            return () if function is None else key_columns(function, self._catalog) or ()

        return [str(each) for each in triplets(read_trigger(text).condition, key_of)]

    def compile(self, text: str, query: str) -> CompiledTrigger:
        return self._shapes.compile(text, query)


@dataclass(slots=True)
class _Made:
    """A relation that a condition made, with its definitions."""

    table: ConditionTable
    relation: Relation
    columns: tuple[Column, ...]
    definitions: dict[str, Definition] = field(default_factory=dict)


class _Tables:
    """The tables of the conditions of one trigger (`ConditionTables`)."""

    def __init__(self, text: str, query: str, catalog: Catalog, records: Records) -> None:
        self.catalog = catalog
        self._records = records
        self._text = text
        self._sql = SqlTables(catalog)
        self._made: dict[str, _Made] = {}
        self._references: dict[str, Reference] = {}
        self.mentioned: set[str] = set()
        self._defaults = tables_of(query)

    @property
    def defaults(self) -> Sequence[tuple[str, str]]:
        return self._defaults

    def names(self) -> Iterable[str]:
        return self._sql.table_names()

    def table(self, name: str) -> ConditionTable | None:
        function = self._sql.function(name)
        if function is None and "." in name:
            name = source_of_host(self._records, name) or name
            function = self._sql.function(name)
        if function is None:
            return None
        table = self._sql.table(name)
        assert table is not None
        columns = tuple(Column(each.name.lower(), each.type) for each in table.columns)
        key = key_columns(function, self.catalog)
        names = tuple(each.name for each in columns)
        return ConditionTable(name, name, columns, names if key is None else key, key is not None)

    def predicate(self, name: str, arguments: int) -> Sequence[str] | None:
        function = self._sql.function(name)
        if function is None or function.kind is not FunctionKind.FOREIGN:
            return None
        if len(function.parameters) != arguments or len(function.results) != 1:
            return None
        return [each.name.lower() for each in table_of(function).columns]

    def groups(self, query: exp.Select, key: Sequence[str]) -> ConditionTable:
        name = GROUPS + _digest(query.sql("spark"))
        if name not in self._made:
            rows, draft = self.translate(query, name.strip())
            columns = _named(rows)
            table = ConditionTable(name, "the groups", columns, tuple(key))
            definitions = {**draft.definitions}
            self._made[name] = _Made(table, rows.relation, columns, definitions)
        return self._made[name].table

    def counted(self, table: ConditionTable) -> ConditionTable:
        names = [each.name for each in table.columns]
        columns = [exp.alias_(column(n, "it"), n, quoted=True) for n in names]
        copies = exp.alias_(exp.Count(this=exp.Star()), COPIES, quoted=True)
        query = exp.select(*columns, copies).from_(from_table(table.name, "it"))
        query = query.group_by(*(column(each, "it") for each in names))
        made = self.groups(query, names)
        return replace(made, title=table.title, has_key=False)

    # --- previous values -------------------------------------------------------------------

    def previous(self, table: ConditionTable) -> str:
        self.reference(table)
        return PREVIOUS + table.name

    def reference(self, table: ConditionTable) -> Reference:
        known = self._references.get(table.name)
        if known is None:
            known = self._references[table.name] = self._reference(table)
        return known

    def _reference(self, table: ConditionTable) -> Reference:
        keys = [(n, table.type_of(n)) for n in table.key]
        ordered = [*table.key, *(each.name for each in table.values)]
        query = exp.select(*(column(each, "it") for each in ordered))
        query = query.from_(from_table(table.name, "it"))
        rows, draft = self.translate(query, f"rows of {table.name.strip()}")
        types = [(c.name, c.type) for c in rows.columns]
        label = f"{table.name.strip()} {_digest(repr((ordered, types)))}"
        program = self.watched(rows, draft, f"rows of {label}", columns=rows.columns)
        if any(each.type.surrogate for each in rows.columns):
            raise LanguageError(
                f"{table.title} refers to objects, whose previous values are not kept",
                code="unsupported",
                hint="watch a view of its other columns",
            )
        columns = (
            *(Column(key_name(n), c.type) for n, c in zip(table.key, rows.columns, strict=False)),
            Column(SINCE_POSITION, INTEGER),
            Column(UNTIL_POSITION, INTEGER),
            Column(WAS_THERE, BOOLEAN),
            *(
                Column(value_name(each.name), c.type.or_null(True))
                for each, c in zip(table.values, rows.columns[len(keys) :], strict=True)
            ),
        )
        relation = Relation(
            f"previous values of {label}", columns, len(keys), Kind.STORED, role=Role.PREVIOUS
        )
        name = PREVIOUS + table.name
        self._made[name] = _Made(ConditionTable(name, name, columns, ()), relation, columns)
        return Reference(ReferenceRows(program=program, label=label), relation, len(keys))

    # --- translation -----------------------------------------------------------------------

    def translate(
        self, query: exp.Expr, owner: str, parameters: Relation | None = None
    ) -> tuple[QueryRows, Draft]:
        draft = Draft(Statement(query, self._text, 0), owner)
        translation = new_translation(draft, _Names(self._sql, self._made, parameters))
        rows = translation.query(number_random_calls(query))
        self.mentioned |= {e for e in translation.mentioned if self.catalog.named(e)}
        return rows, draft

    def watched(
        self, rows: QueryRows, draft: Draft, name: str, columns: Sequence[Column]
    ) -> Program:
        goal = Relation(
            name,
            tuple(columns),
            0,
            Kind.DERIVED,
            rows.relation.semantics,
            role=Role.CONDITION,
        )
        row = tuple(Variable(f"X{i}", each.type) for i, each in enumerate(rows.columns))
        clause = Clause(Atom(goal, row), (Atom(rows.relation, row),))
        return self.program(goal, clause, draft)

    def program(self, goal: Relation, clause: Clause, draft: Draft) -> Program:
        own = [Definition(goal, (clause,)), *draft.definitions.values()]
        for made in self._made.values():
            own += made.definitions.values()
        program = assemble(goal, own, self.catalog)
        prepare(program, self.catalog.hierarchy)
        return program


class _Names:
    """The names of tables in the queries of conditions."""

    def __init__(self, sql: SqlTables, made: dict[str, _Made], parameters: Relation | None) -> None:
        self._sql = sql
        self._made = made
        self._parameters = parameters

    def table(self, name: str) -> Table | None:
        if name == PARAMETERS and self._parameters is not None:
            names = ["subscription", *(f"c{i}" for i in range(self._parameters.arity - 1))]
            return _as_table(name, self._parameters, names)
        if name == POSITION_TABLE:
            return _as_table(name, POSITIONS, ["subscription", "position"])
        if name == SIGNAL_TABLE:
            return _as_table(name, SIGNALS, ["name", "number"])
        made = self._made.get(name)
        if made is not None:
            return _as_table(name, made.relation, [each.name for each in made.columns])
        return self._sql.table(name)

    def table_names(self) -> Iterable[str]:
        return self._sql.table_names()


def _as_table(name: str, relation: Relation, names: Sequence[str]) -> Table:
    columns = tuple(Column(n, c.type) for n, c in zip(names, relation.columns, strict=True))
    return Table(name, relation, columns, tuple(range(len(columns))))


class _Leaf:
    """Compiles one leaf."""

    def __init__(self, leaf: LeafQuery, tables: _Tables, text: str) -> None:
        self._leaf = leaf
        self._tables = tables
        self._text = text
        types = [type_ for _, type_ in leaf.constants]
        said = (leaf.kind.value, leaf.query.sql("spark"), [t.name for t in types])
        described = [(each.name, each.columns) for each in tables_in(leaf)]
        self._label = _digest(repr((said, described, sorted(leaf.events))))
        self._parameters = parameters_relation(f"trigger {self._label}", types)

    def compiled(self) -> CompiledLeaf:
        leaf, tables = self._leaf, self._tables
        rows, draft = tables.translate(leaf.query, f"trigger {self._label}", self._parameters)
        program = tables.watched(rows, draft, f"trigger {self._label}", rows.columns)
        span = leaf.span
        view = WatchedCondition(
            program=program,
            label=self._label,
            parameters=self._parameters,
            looked_up=self._looked_up(program),
            said=self._text[span.start : span.end],
            is_moving=bool(moving(program)),
            strategy=Strategy.EXTERNAL if leaf.names else "auto",
        )
        constants = tuple(encoder(type_)(value) for value, type_ in leaf.constants)
        return CompiledLeaf(
            leaf.kind.value,
            view,
            constants,
            self._holding(program),
            tuple(tables.reference(each) for each in leaf.referenced),
            tuple(self._readings()),
            self._key_names(),
            leaf.events,
        )

    def _key_names(self) -> tuple[str, ...]:
        if self._leaf.names:
            return self._leaf.names
        return tuple(name for each in self._leaf.sources for name in each.table.key)

    def _looked_up(self, program: Program) -> tuple[int, ...]:
        """The parameters that some clause compares with a column."""
        found: set[int] = set()
        for definition in program.definitions.values():
            for clause in definition.clauses:
                compared = compared_with(clause)
                for each in clause.body:
                    if isinstance(each, Atom) and each.relation.id == self._parameters.id:
                        found |= {i for i, term in enumerate(each.terms) if term in compared and i}
        return tuple(sorted(found))

    def _holding(self, program: Program) -> Program:
        goal = program.goal
        columns = goal.columns[1:]
        name = f"rows of {goal.name}"
        made = Relation(name, columns, 0, Kind.DERIVED, goal.semantics, role=Role.AUXILIARY)
        row: tuple[Term, ...] = tuple(
            Variable(f"X{i}", each.type) for i, each in enumerate(columns)
        )
        given = Parameter(0, INTEGER)
        clause = Clause(Atom(made, row), (Atom(goal, (given, *row)),))
        definitions = {made.id: Definition(made, (clause,)), **program.definitions}
        return Program(made, definitions)

    def _readings(self) -> Iterable[RowReading]:
        for each in self._leaf.sources:
            columns = tuple(c for c in each.table.columns if c.name != COPIES)
            now = self._reading(each.now, f"row of {each.table.name.strip()}")
            past = f"previous row of {each.table.name.strip()}"
            was = None if each.was is None else self._reading(each.was, past)
            types = tuple(t for n in each.table.key if (t := each.table.type_of(n)) is not None)
            yield RowReading(each.alias, columns, types, now, was)

    def _reading(self, query: exp.Expr, name: str) -> Program:
        rows, draft = self._tables.translate(query, name)
        return self._tables.watched(rows, draft, name, rows.columns)


def tables_in(leaf: LeafQuery) -> list[ConditionTable]:
    return [each.table for each in leaf.sources]


def tables_of(query: str) -> tuple[tuple[str, str], ...]:
    """The tables in the FROM of a query, each with its alias."""
    try:
        node = statements(query)[0].node
    except (HarkenError, IndexError):
        return ()
    select = node if isinstance(node, exp.Select) else node.find(exp.Select)
    if select is None:
        return ()
    start = select.args.get("from_") or select.args.get("from")
    items = [start.this] if start is not None else []
    items += [join.this for join in select.args.get("joins") or ()]
    return tuple(
        (each.alias_or_name.lower(), each.name)
        for each in items
        if isinstance(each, exp.Table) and isinstance(each.this, exp.Identifier)
    )


def _named(rows: QueryRows) -> tuple[Column, ...]:
    names = [name.lower() for name in rows.names]
    if len(set(names)) < len(names):
        raise TypeFault("two columns have the same name", code="exists")
    return tuple(Column(n, c.type) for n, c in zip(names, rows.columns, strict=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
