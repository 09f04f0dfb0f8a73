"""Rules as clauses of ObjectLog.

A nested expression becomes computations with intermediate variables, an aggregate an auxiliary
relation of all variables in its braces (so that every solution counts once), a negated atom with
`_` in it the negation of its projection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from harken.errors import SafetyFault, Span, SyntaxFault, TypeFault
from harken.ir import clauses as ir
from harken.ir.operations import AGGREGATES
from harken.ir.relations import RANGES, Column, Kind, Relation, Role
from harken.ir.terms import Constant, Term, Variable
from harken.lang.datalog import functors, syntax
from harken.lang.datalog.grounding import check_grounded
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.known_relations import KnownRelation, Relations, relation_of
from harken.lang.datalog.normal_form import alternatives
from harken.lang.datalog.scopes import Scope, scope_of_clause
from harken.lang.datalog.witnesses import with_witnesses
from harken.values.datalog_patterns import compiled
from harken.values.types import BOOLEAN, INTEGER, NUMBER, Type

SMALLEST, LARGEST = -(2**63), 2**63 - 1
PRESENT = Constant(True, BOOLEAN)
"""What stands in the one column of a relation without attributes."""
_NAMES = {"mean": "avg"}


@dataclass(slots=True)
class Translator:
    """`owner` is what auxiliary relations are named after."""

    relations: Relations
    types: Types
    owner: str
    auxiliaries: dict[str, ir.Definition] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    """The names of the relations that the rules are about."""
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def definition(
        self,
        known: KnownRelation,
        rules: Iterable[syntax.Rule],
        *,
        base: Relation | None = None,
        limit: int | None = None,
    ) -> ir.Definition:
        """A derived relation: the clauses of its rules, and the rows of `base` if there is one."""
        found: list[ir.Clause] = []
        if base is not None:
            row = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(base.columns))
            found.append(ir.Clause(ir.Atom(known.relation, row), (ir.Atom(base, row),)))
        for rule in rules:
            for head in rule.heads:
                if head.name == known.name:
                    found += self.clauses(head, rule.body)
        return ir.Definition(known.relation, tuple(found), tabled=True, limit=limit)

    def clauses(self, head: syntax.Atom, body: syntax.Formula | None) -> list[ir.Clause]:
        known = relation_of(self.relations, head)
        found = []
        for written in alternatives(body):
            conjunction = with_witnesses((head,), written)
            scope = scope_of_clause((head,), conjunction, self.relations, self.types)
            check_grounded(scope)
            draft = _Draft(self, scope)
            draft.conjunction()
            terms = draft.arguments(head, known)
            made = ir.Atom(known.relation, terms, span=head.span)
            found.append(ir.Clause(made, tuple(draft.body)))
        return found

    def query(self, node: syntax.Query) -> tuple[ir.Definition, tuple[str, ...]]:
        """The solutions of a body, with a column for each of its variables."""
        body, names = node.body, node.variables
        parts: list[tuple[Scope, _Draft]] = []
        for written in alternatives(body):
            conjunction = with_witnesses((), written)
            scope = scope_of_clause((), conjunction, self.relations, self.types)
            check_grounded(scope)
            _check_alternatives(names, scope, parts[0][0] if parts else scope, body.span)
            draft = _Draft(self, scope)
            draft.conjunction()
            parts.append((scope, draft))
        types = [parts[0][0].inference.variable(name).type for name in names] if parts else []
        columns = tuple(Column(n, t) for n, t in zip(names, types, strict=False))
        relation = Relation(self.owner, columns, 0, Kind.DERIVED, role=Role.PART)
        made = [
            ir.Clause(ir.Atom(relation, tuple(draft.variable(n) for n in names)), tuple(draft.body))
            for _, draft in parts
        ]
        return ir.Definition(relation, tuple(made)), names

    def bodies(
        self, heads: tuple[syntax.Atom, ...], body: syntax.Formula, names: Iterable[str]
    ) -> list[RuleBody]:
        """The alternatives of a production rule, each with all variables in `names`."""
        found: list[RuleBody] = []
        names = tuple(names)
        for written in alternatives(body):
            conjunction = with_witnesses(heads, written)
            scope = scope_of_clause(heads, conjunction, self.relations, self.types)
            check_grounded(scope)
            _check_alternatives(names, scope, found[0].scope if found else scope, body.span)
            draft = _Draft(self, scope)
            draft.conjunction()
            found.append(RuleBody(scope, draft, tuple(draft.body)))
        return found

    def fresh(self, type_: Type, name: str = "_G") -> Variable:
        return Variable(f"{name}#{next(self._numbers)}", type_)

    def define(self, what: str, row: Sequence[Variable], body: Sequence[ir.Literal]) -> Relation:
        """An auxiliary relation with these columns and one clause."""
        columns = tuple(Column(f"a{i}", each.type) for i, each in enumerate(row))
        name = f"{self.owner} {what} {next(self._numbers)}"
        relation = Relation(name, columns, 0, Kind.DERIVED, role=Role.PART)
        clause = ir.Clause(ir.Atom(relation, tuple(row)), tuple(body))
        self.auxiliaries[relation.id] = ir.Definition(relation, (clause,))
        return relation


def _check_alternatives(names: Iterable[str], scope: Scope, first: Scope, span: Span) -> None:
    """All alternatives of a query have the same variables, of the same kinds."""
    for name in names:
        if name not in scope.names:
            raise SafetyFault(
                f"the variable {name} is not in every alternative of the query",
                code="unsafe",
                span=span,
                hint="ask for the alternatives one by one",
            )
        one, other = first.inference.variable(name), scope.inference.variable(name)
        if one != other:
            raise TypeFault(
                f"{name} is {one} in one alternative and {other} in another",
                code="type-mismatch",
                span=span,
                hint="ask for the alternatives one by one",
            )


def _check_pattern(node: syntax.Text) -> None:
    """An invalid pattern in the data matches nothing; one in a rule is an error."""
    if compiled(node.value) is None:
        raise SyntaxFault(
            f'"{node.value}" is no pattern',
            code="bad-value",
            span=node.span,
            hint="patterns are those of Python's `re`",
        )


@dataclass(slots=True)
class _Draft:
    """The body of a clause under construction."""

    translator: Translator
    scope: Scope
    body: list[ir.Literal] = field(default_factory=list)
    unnamed: list[Variable] = field(default_factory=list)
    """What stands for each `_` in a positive atom."""

    def conjunction(self) -> None:
        for literal in self.scope.conjunction:
            match literal:
                case syntax.Atom():
                    self._atom(literal)
                case syntax.Constraint():
                    self._constraint(literal, True)
                case syntax.Not(part=syntax.Atom() as atom):
                    self._negated(atom)
                case syntax.Not(part=syntax.Constraint() as constraint):
                    self._constraint(constraint, False)

    # --- literals --------------------------------------------------------------------------

    def arguments(self, atom: syntax.Atom, known: KnownRelation) -> tuple[Term, ...]:
        """The terms of an atom in the order of the columns of its relation."""
        if not known.attributes:
            return (PRESENT,)
        row: list[Term] = [PRESENT] * len(known.positions)
        for argument, position in zip(atom.arguments, known.positions, strict=True):
            if isinstance(argument, syntax.Unnamed):
                variable = self.translator.fresh(known.relation.columns[position].type)
                self.unnamed.append(variable)
                row[position] = variable
            else:
                row[position] = self.term(argument)
        return tuple(row)

    def _known(self, atom: syntax.Atom) -> KnownRelation:
        self.translator.mentioned.add(atom.name)
        known = relation_of(self.translator.relations, atom)
        self.translator.mentioned.add(known.relation.name)
        return known

    def _atom(self, atom: syntax.Atom) -> None:
        known = self._known(atom)
        terms = self.arguments(atom, known)
        self.body.append(ir.Atom(known.relation, terms, span=atom.span))
        for term, column in zip(terms, known.relation.columns, strict=True):
            if column.type.nullable and isinstance(term, Variable) and term not in self.unnamed:
                null = Constant(None, term.type.or_null())
                self.body.append(ir.Comparison("!=", term, null, span=atom.span))

    def _negated(self, atom: syntax.Atom) -> None:
        known = self._known(atom)
        before = len(self.unnamed)
        terms = self.arguments(atom, known)
        hidden = self.unnamed[before:]
        del self.unnamed[before:]
        relation = known.relation
        if hidden:
            shown = [i for i, term in enumerate(terms) if term not in hidden]
            row = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(relation.columns))
            kept = [row[i] for i in shown]
            relation = self.translator.define("any", kept, (ir.Atom(relation, row),))
            terms = tuple(terms[i] for i in shown)
        self.body.append(ir.Atom(relation, terms, negated=True, span=atom.span))

    def _constraint(self, node: syntax.Constraint, holds: bool) -> None:
        left, right = self.term(node.left), self.term(node.right)
        if node.operator in ("match", "contains"):
            if node.operator == "match" and isinstance(node.left, syntax.Text):
                _check_pattern(node.left)
            operation = "matches_pattern" if node.operator == "match" else "contains"
            given = (left, right) if node.operator == "match" else (right, left)
            wanted = Constant(holds, BOOLEAN)
            self.body.append(ir.Computation(wanted, operation, given, span=node.span))
        else:
            self.body.append(ir.Comparison(node.operator, left, right, span=node.span))

    # --- terms -----------------------------------------------------------------------------

    def variable(self, name: str) -> Variable:
        """The names of variables that rewrites make begin with `_G`."""
        shown = f"v{name}" if name.startswith("_G") else name
        return Variable(shown, self.scope.inference.variable(name).type)

    def term(self, expression: syntax.Expression) -> Term:
        match expression:
            case syntax.Named():
                return self.variable(expression.name)
            case syntax.Number():
                return self._number(expression)
            case syntax.Text():
                return Constant(expression.value, self.scope.inference.kind(expression).type)
            case syntax.Cast():
                return self.term(expression.value)
            case syntax.Functor():
                return self._functor(expression)
            case syntax.Aggregate():
                return self._aggregate(expression)
        raise ValueError(f"{expression} has no value")

    def _number(self, node: syntax.Number) -> Constant:
        type_ = self.scope.inference.kind(node).type
        if type_ == NUMBER:
            return Constant(float(node.value), NUMBER)
        if not SMALLEST <= node.value <= LARGEST:
            raise TypeFault(
                f"{node.value} does not fit in 64 bits", code="overflow", span=node.span
            )
        return Constant(node.value, type_)

    def _functor(self, node: syntax.Functor) -> Term:
        given = [self.term(each) for each in node.arguments]
        kinds = [self.scope.inference.kind(each) for each in node.arguments]

        def add(operation: str, arguments: Sequence[Term], type_: Type) -> Term:
            result = self.translator.fresh(type_)
            made = ir.Computation(result, operation, tuple(arguments), span=node.span)
            self.body.append(made)
            return result

        if node.name == "range":
            return self._range(node, given, add)
        return functors.compute(node.name, given, kinds, add)

    def _range(self, node: syntax.Functor, given: list[Term], add: functors.Compute) -> Variable:
        """Without a step it goes by one, up or down."""
        relation = RANGES[self.scope.inference.kind(node).type]
        type_ = relation.columns[0].type
        if len(given) == 2:
            is_up = add("is <=", given, BOOLEAN)
            by = [Constant(float(n) if type_ == NUMBER else n, type_) for n in (1, -1)]
            given = [*given, add("choose", (is_up, *by), type_)]
        result = self.translator.fresh(type_)
        self.body.append(ir.Atom(relation, (*given, result), span=node.span))
        return result

    def _aggregate(self, node: syntax.Aggregate) -> Term:
        """`aux(G, P) ← body`, and the aggregate over aux with the groups G bound outside."""
        scope = self.scope.inner[id(node)]
        inside = _Draft(self.translator, scope)
        inside.conjunction()
        groups = [self.variable(name) for name in self.scope.injected(node)]
        own = [inside.variable(name) for name in scope.own] + inside.unnamed
        value = None if node.value is None else inside.term(node.value)
        if isinstance(value, Constant) or (value is not None and value in groups):
            copy = self.translator.fresh(value.type)
            inside.body.append(ir.Comparison("=", copy, value))
            value = copy
        row = [*groups, *own]
        if isinstance(value, Variable) and value not in row:
            row.append(value)
        relation = self.translator.define(node.name, row, inside.body)
        return self._over(node, relation, groups, row, value)

    def _over(
        self,
        node: syntax.Aggregate,
        relation: Relation,
        groups: Sequence[Variable],
        row: Sequence[Variable],
        value: Term | None,
    ) -> Variable:
        private = {each: self.translator.fresh(each.type, each.name) for each in row[len(groups) :]}
        over = private[value] if isinstance(value, Variable) else None
        aggregate = _NAMES.get(node.name, node.name)
        type_ = AGGREGATES[aggregate].result_type(over.type if over is not None else INTEGER)
        result = self.translator.fresh(type_)
        terms = (*groups, *private.values())
        atom = ir.Atom(relation, terms, span=node.span)
        self.body.append(
            ir.Aggregation(result, aggregate, over, atom, tuple(groups), span=node.span)
        )
        return result


@dataclass(frozen=True, slots=True)
class RuleBody:
    """One alternative of the body of a production rule, translated."""

    scope: Scope
    draft: _Draft
    literals: tuple[ir.Literal, ...]

    def variable(self, name: str) -> Variable:
        return self.draft.variable(name)

    def term(self, expression: syntax.Expression) -> Term:
        """A variable or a constant of a head."""
        return self.draft.term(expression)

    def head(self, atom: syntax.Atom) -> tuple[Relation, tuple[Term, ...]]:
        """The relation of a head, and its terms in the order of the columns."""
        known = relation_of(self.draft.translator.relations, atom)
        return known.relation, self.draft.arguments(atom, known)
