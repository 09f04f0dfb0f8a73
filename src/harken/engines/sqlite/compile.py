"""ObjectLog into SQLite's SQL: one clause, one SELECT.

Positive atoms become FROM items, variables become column references, negated atoms and aggregates
become correlated sub-queries. The order of the joins is left to SQLite, unless they start from a
change (`driving`).

Law: the statement returns the rows of the goal, each once if it is a set, and as often as it is
derived if it is a bag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harken.engines.sqlite import aggregates, faults, lookups, ordered
from harken.engines.sqlite.driving import Driving
from harken.engines.sqlite.existence import independent_parts
from harken.engines.sqlite.foreign_functions import foreign_module
from harken.engines.sqlite.grouping import Grouping
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.lookups import Lookup
from harken.engines.sqlite.native_grouping import GroupBy
from harken.engines.sqlite.select import Apart, FromItem, Select
from harken.engines.sqlite.slots import FROM_ROW, Slots, last_row
from harken.engines.sqlite.sql_expressions import Risk, Sql, compare, constant, operation, quote
from harken.errors import SafetyFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    First,
    Literal,
    Numbered,
    ambiguities,
    unread_results,
)
from harken.ir.dependencies import may_repeat
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import Needs, order
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.values.types import BOOLEAN

MANY_ITEMS = 2_000
"""FROM items in one statement. Larger statements take SQLite seconds to prepare."""

Environment = dict[Variable, Sql]
Known = Mapping[int, Sql]
"""Values known for some columns of a relation before its rows are read."""


@dataclass(slots=True)
class Compiler:
    """`tables` names a relation's table where that is not the relation's own id."""

    definitions: Mapping[str, Definition]
    needs: Needs
    slots: Slots = field(default_factory=Slots)
    tables: Mapping[str, str] = field(default_factory=dict)
    aliases: dict[str, Relation] = field(default_factory=dict)
    lookups: list[Lookup] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of the growing tables, by the ids of the relations that read them."""
    lenient: bool = False
    grouping: Grouping = field(init=False)
    driving: Driving = field(init=False)
    _alias: int = 0
    _last: int | None = None
    """The last alias the statement may use."""

    def __post_init__(self) -> None:
        self.grouping = Grouping(self.definitions, self.needs)
        self.driving = Driving(self.grouping)

    # --- selects ---------------------------------------------------------------------------

    def goal(self, definition: Definition, most: int | None) -> str:
        """A SELECT of the definition's rows with at most `most` items in FROM."""
        self._last = None if most is None else self._alias + most
        try:
            return self.definition(definition)
        finally:
            self._last = None

    def definition(
        self,
        definition: Definition,
        known: Known | None = None,
        nested: bool = False,
        into_set: bool = False,
    ) -> str:
        """A SELECT of the definition's rows whose columns agree with the values `known` outside
        it."""
        columns = [(position, f"c{position}") for position in range(definition.relation.arity)]
        return self._rows(definition, known or {}, columns, nested, into_set=into_set)

    def _rows(
        self,
        definition: Definition,
        known: Known,
        columns: Sequence[tuple[int, str]],
        nested: bool = False,
        counted: bool = False,
        into_set: bool = False,
    ) -> str:
        if not definition.clauses:
            nothing = ", ".join(f"NULL AS {name}" for _, name in columns) or "NULL AS c0"
            return f"SELECT {nothing} WHERE 0"
        first = definition.first
        if first is not None and first.apart.issubset(known):
            return self._ordered_rows(first, known, columns)
        if definition.numbered is not None:
            return self._ordered_rows(definition.numbered, known, columns)
        unique = definition.relation.is_set and may_repeat(definition)
        single = len(definition.clauses) == 1
        selects = []
        is_set = (definition.relation.is_set or into_set) and not counted
        for clause, select, environment in self.branches(definition, known, is_set):
            if counted:
                self._force(ambiguities(clause), select, environment)
            values = [
                self.term(clause.head.terms[position], environment).checked()
                for position, _ in columns
            ]
            shown = ", ".join(
                f"{select.guarded(value) if nested else value.text} AS {name}"
                for value, (_, name) in zip(values, columns, strict=True)
            )
            selects.append(select.text(shown or "1 AS c0", distinct=unique and single))
        return (" UNION " if unique else " UNION ALL ").join(selects)

    def _ordered_rows(
        self, wanted: First | Numbered, known: Known, columns: Sequence[tuple[int, str]]
    ) -> str:
        source = self.definitions[wanted.relation]
        asked = {i: value for i, value in known.items() if i in wanted.apart}
        rows = self.definition(source, asked)
        return ordered.counted_off(wanted, source.relation, rows, known, columns)

    def branches(
        self, definition: Definition, known: Known, is_set: bool = False
    ) -> Iterator[tuple[Clause, Select, Environment]]:
        """One SELECT per clause, its head variables bound to the values known outside.

        A constant in the head, or a variable that occurs in it twice, becomes an equation.
        """
        for clause in definition.clauses:
            outer: Environment = {}
            equations: list[tuple[Term, Sql]] = []
            for position, value in known.items():
                term = clause.head.terms[position]
                if isinstance(term, Variable) and term not in outer:
                    outer[term] = value.checked()
                else:
                    equations.append((term, value))
            select = Select(lenient=self.lenient)
            environment = dict(outer)
            grouped = self.grouping.rewrite(clause, environment)
            if is_set:
                grouped = self._test_apart(grouped, select, environment, outer)
            self.lookups += lookups.from_outside(grouped.body, outer, self.tables)
            joins = None if outer else self.driving.ordered(grouped.body)
            select.driven = joins is not None
            self.lookups += lookups.in_rounds(joins or (), self.tables)
            for literal in order(joins or grouped.body, environment, self.needs):
                self._literal(literal, select, environment, outer)
            self._force(unread_results(grouped), select, environment)
            for term, value in equations:
                select.joins.append(compare("=", self.term(term, environment), value))
            yield grouped, select, environment

    def _test_apart(
        self, clause: Clause, select: Select, environment: Environment, outer: Environment
    ) -> Clause:
        """The clause without the parts that are existence tests, which go into the SELECT."""
        parts = independent_parts(clause, environment, self.grouping.fallibility)
        for part in parts:
            inner = Select(lenient=self.lenient)
            own = dict(environment)
            self.lookups += lookups.from_outside(part, outer, self.tables)
            for literal in order(part, own, self.needs):
                self._literal(literal, inner, own, outer)
            found = Sql(inner.text("1"), BOOLEAN, risk=inner.risk)
            select.tests.append(_exists([found]))
        tested = {id(literal) for part in parts for literal in part}
        body = tuple(each for each in clause.body if id(each) not in tested)
        return replace(clause, body=body) if parts else clause

    def _force(
        self, variables: Iterable[Variable], select: Select, environment: Environment
    ) -> None:
        """Compute values that nothing reads, because computing them may fail."""
        for variable in variables:
            value = environment[variable].checked()
            # No value is ever the empty blob.
            test = "IS NOT x''" if value.type.nullable else "IS NOT NULL"
            select.tests.append(Sql(f"{value.text} {test}", BOOLEAN, risk=value.risk))

    # --- literals --------------------------------------------------------------------------

    def _literal(
        self, literal: Literal, select: Select, environment: Environment, outer: Environment
    ) -> None:
        match literal:
            case Atom(negated=True):
                wanted = select.late if self._is_costly(literal.relation) else select.tests
                wanted += [
                    Sql(f"NOT EXISTS ({found.text})", BOOLEAN, risk=found.risk, asks=True)
                    for found in self._existence(literal, environment)
                ]
            case Atom():
                self._atom(literal, select, environment, outer)
            case Comparison():
                self._comparison(literal, select, environment)
            case Computation():
                arguments = tuple(self.term(term, environment) for term in literal.arguments)
                value = operation(literal.operation, arguments, literal.result.type)
                self._bind(literal.result, value, select, environment)
            case Aggregation():
                value = self._aggregate(literal, environment)
                if AGGREGATES[literal.aggregate].on_nothing is None and not value.type.nullable:
                    present = Sql(f"{value.text} IS NOT NULL", BOOLEAN, risk=Risk.PRESENCE)
                    select.tests.append(present)
                self._bind(literal.result, value, select, environment)

    def _atom(
        self, atom: Atom, select: Select, environment: Environment, outer: Environment
    ) -> None:
        self._alias += 1
        if self._last is not None and self._alias > self._last:
            raise faults.too_complex("there are too many items in FROM")
        alias = f"t{self._alias}"
        relation = atom.relation
        if relation.kind is Kind.FOREIGN:
            self._foreign(atom, alias, select, environment)
            return
        definition = self._definition_of(relation)
        if definition is not None and self._is_asked(atom, definition, select, environment):
            select.tests.append(_exists(self._existence(atom, environment)))
            return
        if definition is None:
            select.sources.append(FromItem(self.table(relation), alias))
        else:
            rows = self._derived(atom, definition, outer)
            select.sources.append(FromItem(rows, alias, self._apart(definition)))
        self.aliases[alias] = relation
        select.columns.append(f"{alias}.c0")
        for position, term in enumerate(atom.terms):
            column = Sql(f"{alias}.c{position}", relation.columns[position].type)
            self._bind(term, column, select, environment)

    def _is_asked(
        self, atom: Atom, definition: Definition, select: Select, environment: Environment
    ) -> bool:
        """Is an existence test enough? A join would list all groups, or all rows of a set beside
        the few of a change."""
        if any(isinstance(t, Variable) and t not in environment for t in atom.terms):
            return False
        if definition.groups:
            return True
        return (
            select.driven
            and definition.relation.is_set
            and not (definition.first or definition.numbered)
            and not self.grouping.is_whole(definition.relation)
            and not self.driving.is_small(definition.relation)
        )

    def _foreign(self, atom: Atom, alias: str, select: Select, environment: Environment) -> None:
        inputs = atom.relation.inputs
        given = ", ".join(self.term(t, environment).checked().text for t in atom.terms[:inputs])
        select.sources.append(FromItem(f"{quote(foreign_module(atom.relation))}({given})", alias))
        select.columns.append(f"{alias}.c{inputs}")
        for position, term in enumerate(atom.terms[inputs:], start=inputs):
            column = Sql(f"{alias}.c{position}", atom.relation.columns[position].type)
            self._bind(term, column, select, environment)

    def _derived(self, atom: Atom, definition: Definition, outer: Environment) -> str:
        """A derived relation in FROM, restricted by the values known outside this SELECT.

        SQL cannot pass it values of its neighbours in the same FROM; a relation that needs those
        should have been expanded.
        """
        known = self._known(atom, outer)
        missing = self.needs.get(definition.relation.id, frozenset()) - set(known)
        if missing:
            raise SafetyFault(
                f"{definition.relation.name} needs its arguments before it can be evaluated here",
                code="unsafe",
                span=atom.span,
                hint="give the function a single definition without `or`, or declare it `bag of`",
            )
        grouped = self.grouping.native.grouped.get(definition.relation.id)
        if grouped is not None:
            return self._group_by(grouped, known)
        nested = not self.grouping.is_whole(definition.relation)
        return self.definition(definition, known, nested)

    def _apart(self, definition: Definition) -> Apart:
        if self.grouping.is_whole(definition.relation):
            return Apart.NEVER
        alternatives = definition.exclusive and len(definition.clauses) > 1
        return Apart.ALWAYS if alternatives else Apart.IF_NOTHING_FAILS

    def _known(self, atom: Atom, environment: Environment) -> dict[int, Sql]:
        return {
            position: self.term(term, environment)
            for position, term in enumerate(atom.terms)
            if not isinstance(term, Variable) or term in environment
        }

    def _existence(self, atom: Atom, environment: Environment) -> list[Sql]:
        """SELECTs of which one has a row iff a row of the relation agrees with the known terms."""
        definition = self._definition_of(atom.relation)
        if definition is not None and (definition.first or definition.numbered):
            rows = self._rows(definition, self._known(atom, environment), [])
            return [Sql(rows, BOOLEAN, risk=Risk.FAILURE)]
        if definition is not None:
            known = self._known(atom, environment)
            found = []
            for clause, select, inner in self.branches(definition, known):
                self._force(ambiguities(clause), select, inner)
                found.append(Sql(select.text("1"), BOOLEAN, risk=select.risk))
            return found
        select = Select()
        wanted = (replace(atom, negated=False),)
        self.lookups += lookups.from_outside(wanted, environment, self.tables)
        self._atom(atom, select, dict(environment), environment)
        return [Sql(select.text("1"), BOOLEAN, risk=select.risk)]

    def _is_costly(self, relation: Relation) -> bool:
        """The old state of a derived relation stands for many clauses."""
        return relation.past and self._definition_of(relation) is not None

    def _definition_of(self, relation: Relation) -> Definition | None:
        if relation.id in self.tables:
            return None
        return self.definitions.get(relation.id) or self.grouping.made.get(relation.id)

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(self, literal: Aggregation, environment: Environment) -> Sql:
        if literal.aggregate in ("some", "notany"):
            found = _exists(self._existence(literal.atom, environment))
            text = found.text if literal.aggregate == "some" else f"(NOT {found.text})"
            return Sql(text, literal.type, risk=found.risk)
        return aggregates.of_one_group(literal, self._group_rows(literal, environment))

    def _group_by(self, grouped: GroupBy, known: Known) -> str:
        """One row per group with all aggregates of its members; `known` are values of the group."""
        inside = {i: value for i, value in known.items() if i < grouped.groups}
        return aggregates.of_each_group(grouped, self.definition(grouped.members, inside))

    def _group_rows(self, literal: Aggregation, environment: Environment) -> str:
        """The rows of the group: the value as `v`, with the other private columns beside it."""
        atom = literal.atom
        groups = set(literal.groups)
        known = {
            position: self.term(term, environment)
            for position, term in enumerate(atom.terms)
            if not isinstance(term, Variable) or term in groups
        }
        private = [
            (position, "v" if term == literal.value else f"p{position}")
            for position, term in enumerate(atom.terms)
            if position not in known
        ]
        return self._rows(self.definitions[atom.relation.id], known, private, counted=True)

    # --- terms -----------------------------------------------------------------------------

    def term(self, term: Term, environment: Environment) -> Sql:
        match term:
            case Variable():
                return environment[term]
            case Parameter():
                return Sql(self.slots.text(term), term.type)
            case Constant():
                return constant(term)

    def _bind(self, term: Term, value: Sql, select: Select, environment: Environment) -> None:
        if isinstance(term, Variable) and term not in environment:
            environment[term] = value
        else:
            kind = select.joins if isinstance(term, Variable) else select.tests
            kind.append(compare("=", value, self.term(term, environment)))

    def _comparison(self, literal: Comparison, select: Select, environment: Environment) -> None:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            if isinstance(left, Variable) and left not in environment:
                left, right = right, left
            self._bind(right, self.term(left, environment), select, environment)
        else:
            one, other = self.term(left, environment), self.term(right, environment)
            select.tests.append(compare(literal.operator, one, other))

    def table(self, relation: Relation) -> str:
        table = quote(self.tables.get(relation.id, table_name(relation)))
        if relation.role not in (Role.RECENT, Role.SETTLED):
            return table
        tests = [f"rowid <= {self.slots.text(last_row(self.numbers[relation.id]))}"]
        if relation.role is Role.RECENT:
            tests.insert(0, f"rowid > {self.slots.text(FROM_ROW)}")
        return f"(SELECT * FROM temp.{table} WHERE {' AND '.join(tests)})"


def _exists(found: Sequence[Sql]) -> Sql:
    """A test that one of the SELECTs has a row."""
    text = " OR ".join(f"EXISTS ({each.text})" for each in found)
    risk = max((each.risk for each in found), default=Risk.NONE)
    return Sql(f"({text or '0'})", BOOLEAN, risk=risk, asks=True)
