"""ObjectLog into SQLite's SQL: one clause, one SELECT.

Positive atoms become FROM items, variables become column references, negated atoms and aggregates
become correlated sub-queries. The order of the joins is left to SQLite, unless they start from a
change (`driving`).

Law: the statement returns the rows of the goal, each once if it is a set, and as often as it is
derived if it is a bag.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harken.calculus.rederivation import is_marked
from harken.engines.sqlite.driving import RECENT, SETTLED, Driving
from harken.engines.sqlite.expressions import Risk, Sql, constant, operation, quote
from harken.engines.sqlite.grouping import GroupBy, Grouping
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
    literal_variables,
    unread_results,
)
from harken.ir.dependencies import may_repeat
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Kind, Relation, is_extent
from harken.ir.safety import Needs, is_bound, order
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.ir.types import BOOLEAN, INTEGER, NUMBER, Type, decimal_digits, is_decimal

Environment = dict[Variable, Sql]

EXACT_SUM = (
    "coalesce((sum(v >> 32) + (sum(v & 4294967295) >> 32)) * 4294967296"
    " + (sum(v & 4294967295) & 4294967295), 0)"
)
"""The sum of integers by halves: SQLite's own sum fails when a part of the rows overflows, so it
would depend on their order. This one overflows only if the whole sum does."""


@dataclass(slots=True)
class Slots:
    """The parameters of a statement in the order of their `?n`: (index, type as it is used)."""

    used: list[tuple[int, Type]] = field(default_factory=list)

    def text(self, parameter: Parameter) -> str:
        slot = (parameter.index, parameter.type)
        if slot not in self.used:
            self.used.append(slot)
        return f"?{self.used.index(slot) + 1}"

    def bound_in(self, sql: str) -> tuple[tuple[int, Type], ...]:
        """The slots a statement binds: those up to the last that occurs in it.

        A value that was computed and then not needed leaves its slot unused.
        """
        numbers = [int(number) for number in _SLOT.findall(_QUOTED.sub("", sql))]
        return tuple(self.used[: max(numbers, default=0)])


FROM_ROW = Parameter(-1, INTEGER)
"""Behind which row the recent rows of a table are."""


def last_row(table: int) -> Parameter:
    """The row up to which the table of this number is read."""
    return Parameter(-2 - table, INTEGER)


def last_row_of(index: int) -> int:
    """The number of the table, by the index of that parameter."""
    return -2 - index


VALUE = re.compile(r"\bv\b")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_SLOT = re.compile(r"\?(\d+)")


class Apart(enum.Enum):
    """When a SELECT in FROM may be joined with its neighbours, as if it were not there."""

    NEVER = enum.auto()
    IF_NOTHING_FAILS = enum.auto()
    """It may hold the conditions without which something outside it fails."""
    ALWAYS = enum.auto()
    """An old state: as a whole it would be a whole table."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a SELECT reads: a table, or the rows of another SELECT."""

    rows: str
    alias: str
    apart: Apart | None = None
    """May SQLite take the SELECT apart? None for a table."""

    def text(self, risky: bool) -> str:
        """SQLite moves conditions into a SELECT in FROM, before its own, and computes its columns
        above it. With a limit it leaves it as it is."""
        if self.apart is None:
            return f"{self.rows} AS {self.alias}"
        whole = self.apart is Apart.NEVER or (risky and self.apart is Apart.IF_NOTHING_FAILS)
        return f"({self.rows}{' LIMIT -1' if whole else ''}) AS {self.alias}"


@dataclass(slots=True)
class Select:
    """A SELECT under construction: what joins its sources, and what tests their rows.

    A condition that can fail runs only where the less risky ones hold. One that merely might
    overflow does not wait for the joins, so that they stay free to use it early.
    """

    sources: list[Source] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    """A column of each source, to say that a row of it has been found."""
    joins: list[Sql] = field(default_factory=list)
    tests: list[Sql] = field(default_factory=list)
    late: list[Sql] = field(default_factory=list)
    """Costly tests, of the old state as a rule: they run where the cheap ones hold."""
    lenient: bool = False
    """Does a row pass where a number grows too large, instead of failing?"""
    driven: bool = False
    """Are the sources joined in the order they have?"""

    def text(self, columns: str, distinct: bool = False) -> str:
        parts = [f"SELECT {'DISTINCT ' if distinct else ''}{columns}"]
        if self.sources:
            sources = (each.text(self.risk >= Risk.PRESENCE) for each in self.sources)
            parts.append("FROM " + (" CROSS JOIN " if self.driven else ", ").join(sources))
        where = self.conditions()
        if where:
            parts.append("WHERE " + " AND ".join(where))
        return " ".join(parts)

    def conditions(self) -> list[str]:
        conditions = [*self.joins, *self.tests]
        if self.lenient:
            conditions = [each.or_passed() for each in conditions]
        safe, growing, present, failing = (
            [each.text for each in conditions if each.risk is risk] for risk in Risk
        )
        tests = [each.text for each in self.tests if each.risk is Risk.NONE]
        # These always hold. They are there to make a condition wait until every source has a row.
        found = [f"{column} IS {column}" for column in self.columns]
        before = [*safe, *growing]
        cheap = [each.text for each in self.tests if each.risk is Risk.NONE and not each.asks]
        late = [each.text for each in self.late if each.risk is Risk.NONE]
        risky = [each.text for each in self.late if each.risk is not Risk.NONE]
        return [
            *safe,
            *_guarded(tests, growing),
            *_guarded(before + found, present),
            *_guarded(cheap + found, late),
            *_guarded(before + found + present + late, failing),
            *_guarded(cheap + found + late, risky),
        ]

    def guarded(self, value: Sql) -> str:
        """A column that is computed for rows that pass, wherever SQLite computes it: it moves a
        condition on the column of a subquery into the subquery, before the subquery's own."""
        where = self.conditions()
        if value.risk is Risk.NONE or (not where and not self.sources):
            return value.text
        found = [f"{column} IS {column}" for column in self.columns]
        return f"CASE WHEN {' AND '.join([*where, *found])} THEN {value.text} END"

    @property
    def risk(self) -> Risk:
        conditions = (*self.joins, *self.tests, *self.late)
        return max((each.risk for each in conditions), default=Risk.NONE)


def _guarded(guards: list[str], conditions: list[str]) -> list[str]:
    if not guards:
        return conditions
    return [f"CASE WHEN {' AND '.join(guards)} THEN {text} ELSE 0 END" for text in conditions]


@dataclass(slots=True)
class Compiler:
    """`tables` names the table that holds a relation where it is not the relation's own id."""

    definitions: Mapping[str, Definition]
    needs: Needs
    slots: Slots = field(default_factory=Slots)
    tables: Mapping[str, str] = field(default_factory=dict)
    aliases: dict[str, Relation] = field(default_factory=dict)
    lookups: list[tuple[Relation, tuple[int, ...]]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """The numbers of the tables that grow, by the ids of the relations that read their rows."""
    lenient: bool = False
    grouping: Grouping = field(init=False)
    driving: Driving = field(init=False)
    _alias: int = 0

    def __post_init__(self) -> None:
        self.grouping = Grouping(self.definitions, self.needs)
        self.driving = Driving(self.grouping)

    # --- selects ---------------------------------------------------------------------------

    def definition(
        self,
        definition: Definition,
        known: Mapping[int, Sql] | None = None,
        nested: bool = False,
    ) -> str:
        """The rows of a definition whose columns agree with the values `known` from outside."""
        columns = [(position, f"c{position}") for position in range(definition.relation.arity)]
        return self._rows(definition, known or {}, columns, nested)

    def _rows(
        self,
        definition: Definition,
        known: Mapping[int, Sql],
        columns: Sequence[tuple[int, str]],
        nested: bool = False,
        counted: bool = False,
    ) -> str:
        if not definition.clauses:
            nothing = ", ".join(f"NULL AS {name}" for _, name in columns) or "NULL AS c0"
            return f"SELECT {nothing} WHERE 0"
        first = definition.first
        if first is not None and all(i in known for i in range(first.captured)):
            return self._first_rows(first, known, columns)
        if definition.numbered is not None:
            return self._numbered_rows(definition.numbered, known, columns)
        unique = definition.relation.is_set and may_repeat(definition)
        single = len(definition.clauses) == 1
        selects = []
        for clause, select, environment in self.branches(definition, known):
            if counted:
                self._force_ambiguity(clause, select, environment)
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

    def _first_rows(
        self, first: First, known: Mapping[int, Sql], columns: Sequence[tuple[int, str]]
    ) -> str:
        """The first rows of a relation. What is known of them is asked of the first ones only."""
        captured = {i: value for i, value in known.items() if i < first.captured}
        source = self._definition_named(first.relation)
        rows = self.definition(source, captured)
        order = order_by(first.order)
        count = -1 if first.count is None else first.count
        found = f"SELECT * FROM ({rows}) ORDER BY {order} LIMIT {count} OFFSET {first.offset}"
        shown = ", ".join(f"c{i} AS {name}" for i, name in columns) or "1 AS c0"
        tests = [
            _compare("=", Sql(f"c{i}", source.relation.columns[i].type), value).text
            for i, value in known.items()
            if i >= first.captured
        ]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"SELECT {shown} FROM ({found}){where}"

    def _numbered_rows(
        self, numbered: Numbered, known: Mapping[int, Sql], columns: Sequence[tuple[int, str]]
    ) -> str:
        """The rows of a relation with their numbers; what is known of the partition is asked of the
        rows, the rest of the numbered ones."""
        inside = {*range(numbered.captured), *numbered.partition}
        source = self._definition_named(numbered.relation)
        rows = self.definition(source, {i: v for i, v in known.items() if i in inside})
        by = ", ".join(f"c{i}" for i in sorted(inside))
        order = order_by(numbered.order)
        last = source.relation.arity
        over = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {order}"
        found = f"SELECT *, row_number() OVER ({over}) AS c{last} FROM ({rows})"
        types = [*(column.type for column in source.relation.columns), INTEGER]
        tests = [
            _compare("=", Sql(f"c{i}", types[i]), value).text
            for i, value in known.items()
            if i not in inside
        ]
        shown = ", ".join(f"c{i} AS {name}" for i, name in columns) or "1 AS c0"
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"SELECT {shown} FROM ({found}){where}"

    def _definition_named(self, name: str) -> Definition:
        definition = self.definitions.get(name)
        assert definition is not None, name
        return definition

    def branches(
        self, definition: Definition, known: Mapping[int, Sql]
    ) -> Iterator[tuple[Clause, Select, Environment]]:
        """Each clause as a SELECT, its head variables bound to what is known outside.

        A head term that is a constant, or a variable met before, gives an equation instead.
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
            self._note_lookups(grouped.body, outer)
            joins = None if outer else self.driving.ordered(grouped.body)
            select.driven = joins is not None
            self._note_driven(joins or ())
            for literal in order(joins or grouped.body, environment, self.needs):
                self._literal(literal, select, environment, outer)
            for unread in unread_results(grouped):
                self._force(unread, select, environment)
            for term, value in equations:
                select.joins.append(_compare("=", self.term(term, environment), value))
            yield grouped, select, environment

    def _force(self, variable: Variable, select: Select, environment: Environment) -> None:
        """Let a value be computed though nothing reads it, for it may fail."""
        value = environment[variable].checked()
        test = "IS NOT NULL"
        if value.type.nullable:
            test = "IS NOT x''"  # no value is this one
        select.tests.append(Sql(f"{value.text} {test}", BOOLEAN, risk=value.risk))

    def _force_ambiguity(self, clause: Clause, select: Select, environment: Environment) -> None:
        """For a reader that asks only whether there is a row: an ambiguous call is none."""
        for literal in clause.body:
            if (
                isinstance(literal, Computation)
                and literal.operation == "ambiguous"
                and isinstance(literal.result, Variable)  # else it is tested already
            ):
                self._force(literal.result, select, environment)

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
        alias = f"t{self._alias}"
        relation = atom.relation
        if relation.kind is Kind.FOREIGN:
            self._foreign(atom, alias, select, environment)
            return
        definition = self._definition_of(relation)
        if definition is not None and self._is_asked(atom, definition, select, environment):
            found = self._existence(atom, environment)
            exists = " OR ".join(f"EXISTS ({each.text})" for each in found)
            risk = max((each.risk for each in found), default=Risk.NONE)
            select.tests.append(Sql(f"({exists or '0'})", BOOLEAN, risk=risk, asks=True))
            return
        if definition is None:
            select.sources.append(Source(self.table(relation), alias))
        else:
            rows = self._derived(atom, definition, outer)
            select.sources.append(Source(rows, alias, self._apart(definition)))
        self.aliases[alias] = relation
        select.columns.append(f"{alias}.c0")
        for position, term in enumerate(atom.terms):
            column = Sql(f"{alias}.c{position}", relation.columns[position].type)
            self._bind(term, column, select, environment)

    def _is_asked(
        self, atom: Atom, definition: Definition, select: Select, environment: Environment
    ) -> bool:
        """Is it only asked whether there is this row? Joined, all groups would be listed, or all
        rows of a set beside the few of a change."""
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

    def _note_lookups(self, body: Sequence[Literal], outer: Environment) -> None:
        """Remember which columns are looked up by a value from outside, or by one that such a
        look-up leads to: they want an index."""
        known = set(outer)
        waiting = [
            each
            for each in body
            if isinstance(each, Atom)
            and each.relation.kind is Kind.STORED
            and each.relation.id not in self.tables
        ]
        while waiting:
            atom = max(waiting, key=lambda each: _reach(each, known))
            columns = tuple(i for i, term in enumerate(atom.terms) if is_bound(term, known))
            self.lookups.append((atom.relation, columns))
            waiting.remove(atom)
            if columns and outer and not atom.negated:
                known.update(literal_variables(atom))

    def _note_driven(self, joins: Sequence[Literal]) -> None:
        """Remember by which columns the rules of a recursion look tables up, in the order of their
        joins: SQLite does not know that there will be many rounds."""
        known: set[Variable] = set()
        if not any(isinstance(each, Atom) and _is_recent(each) for each in joins):
            return
        for literal in joins:
            if isinstance(literal, Atom):
                bound = tuple(i for i, t in enumerate(literal.terms) if is_bound(t, known))
                if bound and (literal.relation.kind is Kind.STORED or self._is_table(literal)):
                    self.lookups.append((literal.relation, bound))
                known.update(() if literal.negated else literal_variables(literal))

    def _is_table(self, atom: Atom) -> bool:
        return atom.relation.id in self.tables

    def _foreign(self, atom: Atom, alias: str, select: Select, environment: Environment) -> None:
        inputs = atom.relation.inputs
        given = ", ".join(self.term(t, environment).checked().text for t in atom.terms[:inputs])
        select.sources.append(Source(f"{quote(foreign_module(atom.relation))}({given})", alias))
        select.columns.append(f"{alias}.c{inputs}")
        for position, term in enumerate(atom.terms[inputs:], start=inputs):
            column = Sql(f"{alias}.c{position}", atom.relation.columns[position].type)
            self._bind(term, column, select, environment)

    def _derived(self, atom: Atom, definition: Definition, outer: Environment) -> str:
        """A derived relation in FROM, with what is known outside this SELECT pushed into it.

        SQL cannot hand it values of its neighbours in the same FROM; a relation that needs those
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
        grouped = self.grouping.natively.get(definition.relation.id)
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
        """SELECTs, one of which has a row iff a row of the relation agrees with the known terms."""
        definition = self._definition_of(atom.relation)
        if definition is not None and (definition.first or definition.numbered):
            rows = self._rows(definition, self._known(atom, environment), [])
            return [Sql(rows, BOOLEAN, risk=Risk.FAILURE)]
        if definition is not None:
            found = []
            for clause, select, inner in self.branches(definition, self._known(atom, environment)):
                self._force_ambiguity(clause, select, inner)
                found.append(Sql(select.text("1"), BOOLEAN, risk=select.risk))
            return found
        select = Select()
        self._note_lookups((replace(atom, negated=False),), environment)
        self._atom(atom, select, dict(environment), environment)
        return [Sql(select.text("1"), BOOLEAN, risk=select.risk)]

    def _is_costly(self, relation: Relation) -> bool:
        """A derived relation in its old state stands behind many clauses."""
        return relation.past and self._definition_of(relation) is not None

    def _definition_of(self, relation: Relation) -> Definition | None:
        if relation.id in self.tables:
            return None
        return self.definitions.get(relation.id) or self.grouping.made.get(relation.id)

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(self, literal: Aggregation, environment: Environment) -> Sql:
        result = literal.type
        if literal.aggregate in ("some", "notany"):
            found = self._existence(literal.atom, environment)
            exists = " OR ".join(f"EXISTS ({each.text})" for each in found)
            text = f"({exists or '0'})"
            risk = max((each.risk for each in found), default=Risk.NONE)
            return Sql(text if literal.aggregate == "some" else f"(NOT {text})", result, risk=risk)
        rows = self._group_rows(literal, environment)
        if literal.aggregate == "sum":
            whole = "total(v)" if result == NUMBER else EXACT_SUM
            if result.nullable:
                whole = f"CASE WHEN count(v) > 0 THEN {whole} END"
            total = Sql("s", result, raw=True).checked()
            rows = f"SELECT {whole} AS s FROM ({rows})"
            return Sql(f"(SELECT {total.text} FROM ({rows}))", result, risk=Risk.FAILURE)
        if literal.aggregate == "avg" and is_decimal(result):
            return Sql(
                f"(SELECT {_average(literal, 'v')} FROM ({rows}))", result, risk=Risk.FAILURE
            )
        if literal.aggregate == "single value":
            text = "CASE WHEN count(*) > 1 THEN harken_many_rows() ELSE max(v) END"
            return Sql(f"(SELECT {text} FROM ({rows}))", result, risk=Risk.FAILURE)
        value = "v" if literal.value is not None else "*"
        text = f"(SELECT {literal.aggregate}({value}) FROM ({rows}))"
        return Sql(text, result, risk=Risk.FAILURE)

    def _group_by(self, grouped: GroupBy, known: Mapping[int, Sql]) -> str:
        """All aggregates of the members, for each group; `known` are values of the group."""
        width = grouped.groups
        rows = self.definition(
            grouped.members, {i: value for i, value in known.items() if i < width}
        )
        groups = [f"c{i}" for i in range(width)]
        raw, shown = list(groups), list(groups)
        for number, (literal, column) in enumerate(grouped.aggregates, start=width):
            value = "*" if column is None else f"c{column}"
            type_ = literal.type
            text = f"{literal.aggregate}({value})"
            total = Sql(f"c{number}", type_)
            if literal.aggregate == "avg" and is_decimal(type_):
                text = _average(literal, value)
            if literal.aggregate == "sum":
                whole = "total(v)" if type_ == NUMBER else EXACT_SUM
                text = VALUE.sub(value, whole)
                if type_.nullable:
                    text = f"CASE WHEN count({value}) > 0 THEN {text} END"
                total = Sql(f"c{number}", type_, raw=True).checked()
            raw.append(f"{text} AS c{number}")
            shown.append(f"{total.text} AS c{number}")
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        inner = f"SELECT {', '.join(raw)} FROM ({rows}){by}"
        return f"SELECT {', '.join(shown)} FROM ({inner})"

    def _group_rows(self, literal: Aggregation, environment: Environment) -> str:
        """The rows of the group: the value as `v`, and the other private columns beside it."""
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
            kind.append(_compare("=", value, self.term(term, environment)))

    def _comparison(self, literal: Comparison, select: Select, environment: Environment) -> None:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            if isinstance(left, Variable) and left not in environment:
                left, right = right, left
            self._bind(right, self.term(left, environment), select, environment)
        else:
            select.tests.append(
                _compare(
                    literal.operator, self.term(left, environment), self.term(right, environment)
                )
            )

    def table(self, relation: Relation) -> str:
        table = quote(self.tables.get(relation.id, table_name(relation)))
        if not relation.name.startswith((RECENT, SETTLED)):
            return table
        tests = [f"rowid <= {self.slots.text(last_row(self.numbers[relation.id]))}"]
        if relation.name.startswith(RECENT):
            tests.insert(0, f"rowid > {self.slots.text(FROM_ROW)}")
        return f"(SELECT * FROM temp.{table} WHERE {' AND '.join(tests)})"


def _compare(operator: str, left: Sql, right: Sql) -> Sql:
    """Whether two values are the same, or not, is asked of NULL as well: see `Comparison`."""
    left, right = left.checked(), right.checked()
    if operator == "=" and left.type.nullable and right.type.nullable:
        operator = "IS"
    elif operator == "!=" and (left.type.nullable or right.type.nullable):
        operator = "IS NOT"
    text = f"{left.text} {operator} {right.text}"
    return Sql(text, BOOLEAN, risk=max(left.risk, right.risk))


def order_by(keys: Sequence[tuple[int, bool, bool]], source: str = "") -> str:
    return ", ".join(
        f"{source}c{i}{' DESC' if down else ''} NULLS {'FIRST' if nulls else 'LAST'}"
        for i, down, nulls in keys
    )


def _is_recent(atom: Atom) -> bool:
    return atom.relation.name.startswith(RECENT) or is_marked(atom.relation)


def _average(literal: Aggregation, value: str) -> str:
    """The average of decimals: exact sum, rounded quotient."""
    assert literal.value is not None
    _, given = decimal_digits(literal.value.type)
    _, wanted = decimal_digits(literal.result.type)
    total = VALUE.sub(value, EXACT_SUM)
    return (
        f"CASE WHEN count({value}) > 0 "
        f"THEN harken_decimal_average({total}, count({value}), {wanted - given}) END"
    )


def _reach(atom: Atom, known: set[Variable]) -> int:
    """How good it is to look an atom up by what is known: by its key, by anything, not at all."""
    bound = {i for i, term in enumerate(atom.terms) if is_bound(term, known)}
    if atom.negated or not bound:
        return 0
    return 2 if atom.relation.key is not None and bound.issuperset(atom.relation.key) else 1


def table_name(relation: Relation) -> str:
    """Extents and functions live in tables named as people would look for them."""
    return relation.name if is_extent(relation) else relation.id


def foreign_module(relation: Relation) -> str:
    """The name under which a foreign relation is registered as a table-valued function."""
    return f"foreign {relation.id}"
