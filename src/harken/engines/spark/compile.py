"""ObjectLog into Spark SQL: one clause, one SELECT.

Spark allows few correlated sub-queries, so there are none. Positive atoms are joined, negated atoms
anti-joined, aggregates computed for all groups and joined to those who ask. Where a relation cannot
be evaluated for all values, or may fail for values that nobody asks about, it is first joined with
what is asked: the distinct keys of the body so far (a magic set).

Law: the statement returns the rows of the goal, each once if it is a set, and as often as it is
derived if it is a bag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harken.engines.spark import aggregates, literal_order, ordered
from harken.engines.spark.body import Body, Environment, compare
from harken.engines.spark.grouping import Grouped, grouped
from harken.engines.spark.magic_keys import MagicKeys, fixed
from harken.engines.spark.sql_expressions import (
    LONG,
    Risk,
    Sql,
    after,
    constant,
    operation,
    placeholder,
    spark_type,
)
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    ambiguities,
    literal_terms,
    unread_results,
)
from harken.ir.dependencies import may_repeat
from harken.ir.relations import COPIES, Kind, Relation
from harken.ir.safety import Needs, order
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.values.types import BOOLEAN, INTEGER, Type

Known = Mapping[int, Sql]
"""What is known of some columns of a relation before its rows are."""


@dataclass(slots=True)
class Compiler:
    """Compiles one statement. `tables` has the FROM item of each relation that is not derived, or
    whose rows are already there."""

    definitions: Mapping[str, Definition]
    needs: Needs
    tables: Mapping[str, str]
    parameters: dict[str, tuple[int, Type]] = field(default_factory=dict)
    foreign: dict[str, Relation] = field(default_factory=dict)
    """The foreign relations in use, by the name of the Python function in SQL."""
    _parts: dict[str, str] = field(default_factory=dict)
    """The WITH clause: name and text."""
    _shared: dict[tuple[str, tuple[tuple[int, str], ...]], str] = field(default_factory=dict)
    _magic_keys: MagicKeys = field(init=False)
    _alias: int = 0

    def __post_init__(self) -> None:
        self._magic_keys = MagicKeys(self.definitions, self.needs, self.tables)

    def statement(self, relation: Relation) -> str:
        """The rows of a relation."""
        if relation.id in self.tables or relation.id not in self.definitions:
            columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "true AS c0"
            return f"SELECT {columns} FROM {self._table(relation)}"
        return self.rows_of(self.definitions[relation.id])

    def rows_of(self, definition: Definition) -> str:
        rows = self._rows(definition, {}, nested=False)
        if not self._parts:
            return rows
        parts = ", ".join(f"{name} AS ({text})" for name, text in self._parts.items())
        return f"WITH {parts} {rows}"

    # --- relations -------------------------------------------------------------------------

    def _rows(
        self, definition: Definition, known: Known, start: str | None = None, nested: bool = True
    ) -> str:
        """The rows that agree with what is known; `start` is where the known values come from."""
        relation = definition.relation
        if not definition.clauses:
            return _nothing(relation)
        natively = self._in_order(definition, known) if start is None else None
        if natively is not None:
            return natively
        unique = relation.is_set and may_repeat(definition)
        selects = []
        for clause in definition.clauses:
            body = self._body(clause, known, start)
            values = [self.term(term, body.environment).checked() for term in clause.head.terms]
            columns = ", ".join(
                f"{_column(value, nested)} AS c{position}" for position, value in enumerate(values)
            )
            distinct = unique and len(definition.clauses) == 1
            selects.append(body.select(columns or "true AS c0", distinct))
        return (" UNION " if unique else " UNION ALL ").join(selects)

    def _in_order(self, definition: Definition, known: Known) -> str | None:
        """The first rows of a relation, or its rows with their numbers, as Spark does it; None if
        it does not."""
        wanted = definition.first or definition.numbered
        if wanted is None or self.needs.get(wanted.relation):
            return None
        source = self._definition_of(self.definitions[wanted.relation].relation)
        if source is None or (definition.first is not None and definition.first.captured):
            return None
        rows = self._part(self._rows(source, {}))
        part = self._part(ordered.counted_off(wanted, source.relation, rows))
        columns = definition.relation.columns
        shown = ", ".join(f"c{i}" for i in range(len(columns))) or "true AS c0"
        tests = [
            compare("=", Sql(f"c{i}", columns[i].type), value).text for i, value in known.items()
        ]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"SELECT {shown} FROM {part}{where}"

    def _source(self, atom: Atom) -> str:
        """The rows of a relation as a FROM item, with the constants of the atom pushed into it."""
        relation = atom.relation
        definition = self._definition_of(relation)
        if definition is None:
            return self._table(relation)
        known = {i: self.term(atom.terms[i], {}) for i in sorted(fixed(atom))}
        key = (relation.id, tuple((position, sql.text) for position, sql in known.items()))
        if key not in self._shared:
            self._shared[key] = self._part(self._rows(definition, known))
        return self._shared[key]

    def _restricted(self, atom: Atom, body: Body, live: set[Variable], keys: set[int]) -> str:
        """The rows of a relation for the values that the body so far has in some columns."""
        self._stage(body, live)
        known = {i: self.term(atom.terms[i], body.environment) for i in sorted(keys)}
        asked = {i: sql for i, sql in known.items() if sql.sources}
        alias = self._next("k")
        columns = ", ".join(f"{sql.text} AS k{i}" for i, sql in asked.items()) or "true AS k"
        start = f"(SELECT DISTINCT {columns} FROM {body.sources[0]}) AS {alias}"
        for i, sql in asked.items():
            known[i] = Sql(f"{alias}.k{i}", sql.type, sources=frozenset({alias}))
        if atom.relation.kind is Kind.FOREIGN:
            return self._part(self._foreign_rows(atom.relation, known, start))
        return self._part(self._rows(self.definitions[atom.relation.id], known, start))

    def _foreign_rows(self, relation: Relation, known: Known, start: str) -> str:
        """The rows that a Python function gives for each of the keys."""
        inputs = range(relation.inputs)
        given = [known[i].text for i in inputs]
        if relation.id == COPIES.id:
            return f"SELECT {given[0]} AS c0, {_copies(given[0])} AS c1 FROM {start}"
        name = f"harken_foreign_{hashlib.sha1(relation.id.encode()).hexdigest()}"
        self.foreign[name] = relation
        arguments = ", ".join(f"{text} AS c{i}" for i, text in zip(inputs, given, strict=True))
        shown = f"{arguments}, " if arguments else ""
        called = self._part(f"SELECT {shown}{name}({', '.join(given)}) AS r FROM {start}")
        carried = "".join(f"c{i}, " for i in inputs)
        rows = "CASE WHEN r.e IS NULL THEN r.v ELSE raise_error(r.e) END"
        return f"SELECT {carried}inline({rows}) FROM {called}"

    def _definition_of(self, relation: Relation) -> Definition | None:
        return None if relation.id in self.tables else self.definitions.get(relation.id)

    def _table(self, relation: Relation) -> str:
        return self.tables[relation.id]

    def _part(self, text: str) -> str:
        name = f"w{len(self._parts) + 1}"
        self._parts[name] = text
        return name

    def _next(self, letter: str) -> str:
        self._alias += 1
        return f"{letter}{self._alias}"

    # --- clauses ---------------------------------------------------------------------------

    def _body(self, clause: Clause, known: Known, start: str | None) -> Body:
        clause, groupings = grouped(clause, self.definitions, self.needs)
        body = Body([start] if start else [], asked=start is not None, groupings=groupings)
        equations: list[tuple[Term, Sql]] = []
        for position, value in known.items():
            term = clause.head.terms[position]
            if isinstance(term, Variable) and term not in body.environment:
                body.environment[term] = value
            else:
                equations.append((term, value))
        for number, (_, value) in enumerate(equations):
            # Under a name of its own it outlives a stage.
            body.environment[Variable(f"equal#{number}", value.type)] = value
        forced = {*unread_results(clause), *ambiguities(clause)}
        waiting = list(order(clause.body, body.environment, self.needs))
        while waiting:
            literal = waiting.pop(
                literal_order.next_literal(waiting, body, self._magic_keys, self.term)
            )
            live = _live(clause, [literal, *waiting]) | forced
            live |= {Variable(f"equal#{n}", v.type) for n, (_, v) in enumerate(equations)}
            if isinstance(literal, Aggregation):
                others = [each for each in waiting if _goes_with(literal, each)]
                waiting = [each for each in waiting if each not in others]
                self._aggregation([literal, *others], body, live)  # type: ignore[list-item]
            elif isinstance(literal, Atom) and literal.relation.id in groupings:
                self._grouped(literal, groupings[literal.relation.id], body, live)
            else:
                self._literal(literal, body, live)
        for variable in sorted(forced, key=str):
            value = body.environment[variable].checked()
            if not value.type.nullable:
                body.demand(Sql(f"{value.text} IS NOT NULL", BOOLEAN, risk=value.risk))
        for number, (term, value) in enumerate(equations):
            now = body.environment[Variable(f"equal#{number}", value.type)]
            body.demand(compare("=", self.term(term, body.environment), now))
        return body

    def _literal(self, literal: Literal, body: Body, live: set[Variable]) -> None:
        match literal:
            case Atom(negated=True):
                self._negation(literal, body, live)
            case Atom():
                self._atom(literal, body, live)
            case Comparison():
                self._comparison(literal, body)
            case Computation():
                self._computation(literal, body, live)

    def _stage(self, body: Body, live: set[Variable]) -> None:
        """Close the SELECT so far, so that its values are columns and its rows can be named."""
        alias = self._next("s")
        text, known = body.staged(live, alias)
        body.sources = [f"{self._part(text)} AS {alias}"]
        body.conditions = []
        body.environment = known

    def _columns(self, terms: Sequence[Term], body: Body, live: set[Variable]) -> None:
        """Let values that can fail be columns before something is joined to them."""
        risky = (body.environment.get(t) for t in terms if isinstance(t, Variable))
        if any(value is not None and value.risk is not Risk.NONE for value in risky):
            self._stage(body, live)

    # --- atoms -----------------------------------------------------------------------------

    def _atom(self, atom: Atom, body: Body, live: set[Variable]) -> None:
        if atom.relation.id == COPIES.id:
            self._copies(atom, body, live)
            return
        if self._magic_keys.is_asked_in(atom, body):
            source = self._restricted(atom, body, live, self._magic_keys.keys(atom, body))
        else:
            source = self._source(atom)
        alias = self._next("t")
        body.cross(f"{source} AS {alias}")
        for position, term in enumerate(atom.terms):
            self._bind(term, self._column_of(atom, alias, position), body)

    def _copies(self, atom: Atom, body: Body, live: set[Variable]) -> None:
        """The rows so far, each as often as its count says."""
        count, which = atom.terms
        hidden = Variable("which#", INTEGER)
        self._stage(body, live)
        body.environment[hidden] = Sql(
            _copies(self.term(count, body.environment).text), INTEGER, sources=frozenset({"-"})
        )
        self._stage(body, live | {hidden})
        self._bind(which, body.environment.pop(hidden), body)

    def _negation(self, atom: Atom, body: Body, live: set[Variable]) -> None:
        self._columns(atom.terms, body, live)
        if self._magic_keys.is_asked(atom):
            source = self._restricted(atom, body, live, set(range(atom.relation.arity)))
        else:
            source = self._source(atom)
        alias = self._next("t")
        body.join("LEFT ANTI", f"{source} AS {alias}", self._equations(atom, alias, body))

    def _equations(self, atom: Atom, alias: str, body: Body) -> list[tuple[Sql, Sql]]:
        return [
            (self._column_of(atom, alias, position), self.term(term, body.environment))
            for position, term in enumerate(atom.terms)
        ]

    def _column_of(self, atom: Atom, alias: str, position: int) -> Sql:
        type_ = atom.relation.columns[position].type
        return Sql(f"{alias}.c{position}", type_, sources=frozenset({alias}))

    # --- tests and values ------------------------------------------------------------------

    def _comparison(self, literal: Comparison, body: Body) -> None:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            if isinstance(left, Variable) and left not in body.environment:
                left, right = right, left
            self._bind(right, self.term(left, body.environment), body)
        else:
            one, other = self.term(left, body.environment), self.term(right, body.environment)
            body.demand(compare(literal.operator, one, other))

    def _computation(self, literal: Computation, body: Body, live: set[Variable]) -> None:
        given = [self.term(term, body.environment) for term in literal.arguments]
        if sum(len(each.text) for each in given) > LONG and any(g.sources for g in given):
            self._stage(body, live)
            given = [self.term(term, body.environment) for term in literal.arguments]
        value = operation(literal.operation, tuple(given), literal.result.type)
        self._bind(literal.result, value, body)

    def term(self, term: Term, environment: Environment) -> Sql:
        match term:
            case Variable():
                return environment[term]
            case Parameter():
                text = placeholder(term)
                self.parameters[text] = (term.index, term.type)
                return Sql(text, term.type)
            case Constant():
                return constant(term)

    def _bind(self, term: Term, value: Sql, body: Body) -> None:
        if isinstance(term, Variable) and term not in body.environment:
            body.environment[term] = value
            return
        known = self.term(term, body.environment)
        links = bool(known.sources and value.sources) and not known.sources & value.sources
        body.demand(compare("=", value, known), links)

    # --- aggregates ------------------------------------------------------------------------

    def _grouped(self, atom: Atom, found: Grouped, body: Body, live: set[Variable]) -> None:
        """Groups with their aggregates; where some groups are known to be wanted, of those."""
        first = found.aggregates[0]
        groups = aggregates.groups(first)
        known = {i for term, places in groups.items() if term in body.environment for i in places}
        if known and (found.narrow or self._magic_keys.is_fallible(first.atom.relation)):
            self._columns(list(groups), body, live)
            source = self._restricted(first.atom, body, live, known | fixed(first.atom))
        else:
            source = self._source(first.atom)
        alias = self._next("g")
        body.cross(f"({self._totals(found.aggregates, source)}) AS {alias}")
        for number, (term, places) in enumerate(groups.items()):
            type_ = _group_type(first.atom, places)
            self._bind(term, Sql(f"{alias}.g{number}", type_, sources=frozenset({alias})), body)
        totals = atom.terms[found.width :]
        for number, (total, each) in enumerate(zip(totals, found.aggregates, strict=True)):
            self._bind(total, aggregates.value(each, alias, number), body)

    def _aggregation(
        self, literals: Sequence[Aggregation], body: Body, live: set[Variable]
    ) -> None:
        """Aggregates that are alike, together."""
        first = literals[0]
        atom, groups = first.atom, aggregates.groups(first)
        self._columns(list(groups), body, live)
        if self._magic_keys.is_asked(atom):
            keys = {i for places in groups.values() for i in places} | fixed(atom)
            source = self._restricted(atom, body, live, keys)
        else:
            source = self._source(atom)
        alias = self._next("a")
        totals = self._totals(literals, source)
        kind = "INNER" if aggregates.needs_rows(first) else "LEFT"
        equal = [
            (Sql(f"{alias}.g{number}", _group_type(atom, places)), body.environment[term])
            for number, (term, places) in enumerate(groups.items())
        ]
        if groups:
            body.join(kind, f"({totals}) AS {alias}", equal)
        else:
            body.cross(f"({totals}) AS {alias}")
        for number, literal in enumerate(literals):
            self._bind(literal.result, aggregates.value(literal, alias, number), body)

    def _totals(self, literals: Sequence[Aggregation], source: str) -> str:
        return aggregates.totals(literals, source, lambda term: self.term(term, {}).text)


def _goes_with(literal: Aggregation, other: Literal) -> bool:
    return isinstance(other, Aggregation) and aggregates.alike(literal, other)


def _group_type(atom: Atom, places: Sequence[int]) -> Type:
    return atom.relation.columns[places[0]].type


def _copies(count: str) -> str:
    return f"explode(CASE WHEN {count} > 0L THEN sequence(1L, {count}) ELSE array() END)"


def _column(value: Sql, nested: bool) -> str:
    return after(value.text) if nested and value.risk is not Risk.NONE else value.text


def _nothing(relation: Relation) -> str:
    columns = [
        f"CAST(NULL AS {spark_type(column.type)}) AS c{position}"
        for position, column in enumerate(relation.columns)
    ]
    return f"SELECT {', '.join(columns) or 'true AS c0'} WHERE false"


def _live(clause: Clause, waiting: Sequence[Literal]) -> set[Variable]:
    """The variables that the rest of the clause reads."""
    terms = list(clause.head.terms)
    for literal in waiting:
        terms += literal_terms(literal)
        if isinstance(literal, Aggregation):
            terms += literal.atom.terms
    return {term for term in terms if isinstance(term, Variable)}
