"""Inline relations that stand for a condition: their rules are written out where they are used.

`.decl near(x: number, y: number) inline` with `near(x, y) :- x - y < 3.` has infinitely many rows,
and a meaning wherever x and y have values. Inline relations whose rules give all variables a value
stay what they are. Law: what is written out has the solutions that the rules have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harken.errors import LanguageError, Span, TypeFault, counted
from harken.lang.datalog import syntax
from harken.lang.datalog.bound_variables import bound_variables
from harken.lang.datalog.normal_form import alternatives
from harken.lang.datalog.parser import Program
from harken.lang.datalog.tree_walk import rebuild

Clauses = Mapping[str, Sequence[tuple[syntax.Atom, syntax.Formula | None]]]


def write_out(program: Program) -> Program:
    """The program without inline relations that have no rows of their own."""
    conditions = conditions_of(program.statements)
    if not conditions:
        return program
    found = (_without(each, conditions) for each in program.statements)
    kept = tuple(each for each in found if each is not None)
    return replace(program, statements=tuple(_Writing(conditions).statement(each) for each in kept))


def written_out(statements: Sequence[syntax.Statement]) -> list[Span]:
    """The declarations for which `inline` means something."""
    conditions = conditions_of(statements)
    return [
        each.span
        for each in statements
        if isinstance(each, syntax.Declaration) and each.name in conditions
    ]


def conditions_of(statements: Sequence[syntax.Statement]) -> Clauses:
    """The rules of the inline relations that stand for conditions."""
    wanted = {
        each.name
        for each in statements
        if isinstance(each, syntax.Declaration) and "inline" in dict(each.qualifiers)
    }
    if not wanted:
        return {}
    wanted -= set(_with_rows(statements))
    clauses: dict[str, list[tuple[syntax.Atom, syntax.Formula | None]]] = {}
    for each in statements:
        if isinstance(each, syntax.Rule):
            for head in each.heads:
                if head.name in wanted:
                    clauses.setdefault(head.name, []).append((head, each.body))
    return _open(clauses)


def _with_rows(statements: Sequence[syntax.Statement]) -> Iterator[str]:
    """The relations whose rows someone asks for."""
    for each in statements:
        match each:
            case syntax.Directive() | syntax.Monitor():
                yield each.relation
            case syntax.Change():
                yield each.atom.name


def _open(clauses: Clauses) -> Clauses:
    """Those with a rule that gives a variable no value, and all that are made of them. One that is
    made of itself is none."""
    left = {name: rules for name, rules in clauses.items() if not _reaches(name, name, clauses)}
    while True:
        closed = {name for name, rules in left.items() if _has_values(rules, left)}
        if not closed:
            return left
        left = {name: rules for name, rules in left.items() if name not in closed}


def _reaches(start: str, goal: str, clauses: Clauses) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for _, body in clauses.get(waiting.pop(), ()):
            names = _mentioned(body)
            if goal in names:
                return True
            waiting += names - seen
            seen |= names
    return False


def _mentioned(body: syntax.Formula | None) -> set[str]:
    found: set[str] = set()

    def note(node: Any) -> Any:
        if isinstance(node, syntax.Atom):
            found.add(node.name)
        return node

    rebuild(body, note)
    return found


def _has_values(
    rules: Sequence[tuple[syntax.Atom, syntax.Formula | None]], conditions: Clauses
) -> bool:
    for head, body in rules:
        for conjunction in alternatives(body):
            given = tuple(
                each
                for each in conjunction
                if not (isinstance(each, syntax.Atom) and each.name in conditions)
            )
            parts = (
                *head.arguments,
                *(e for each in conjunction for e in syntax.expressions(each)),
            )
            if not syntax.direct_variables(parts).keys() <= bound_variables(given):
                return False
    return True


def _without(statement: syntax.Statement, conditions: Clauses) -> syntax.Statement | None:
    """What is left of a statement when the relations themselves are gone."""
    match statement:
        case syntax.Declaration() if statement.name in conditions:
            return None
        case syntax.Rule():
            heads = tuple(each for each in statement.heads if each.name not in conditions)
            if not heads:
                return None
            return statement if heads == statement.heads else replace(statement, heads=heads)
    return statement


@dataclass(slots=True)
class _Writing:
    conditions: Clauses
    names: set[str] = field(default_factory=set)
    """The variables of the statement that is being written."""

    def statement(self, statement: syntax.Statement) -> syntax.Statement:
        if not isinstance(statement, syntax.Rule | syntax.Query | syntax.ProductionRule):
            return statement
        self.names = _variables(statement)
        if isinstance(statement, syntax.ProductionRule):
            held = None if statement.body is None else self._formula(statement.body, False)
            return replace(statement, body=held)
        made: syntax.Statement
        if isinstance(statement, syntax.Query):
            written = frozenset(self.names)
            asked = self._formula(statement.body, False)
            made = replace(statement, body=asked, made=frozenset(self.names - written))
        else:
            body = None if statement.body is None else self._formula(statement.body, False)
            heads = tuple(
                replace(head, arguments=tuple(map(self._expression, head.arguments)))
                for head in statement.heads
            )
            made = replace(statement, heads=heads, body=body)
            if made != statement:
                made = replace(made, made=True)
        return made

    def _formula(self, formula: syntax.Formula, negated: bool) -> syntax.Formula:
        match formula:
            case syntax.Atom():
                given = tuple(map(self._expression, formula.arguments))
                atom = replace(formula, arguments=given)
                return self._atom(atom, negated) if atom.name in self.conditions else atom
            case syntax.Constraint():
                left, right = self._expression(formula.left), self._expression(formula.right)
                return replace(formula, left=left, right=right)
            case syntax.Not():
                return replace(formula, part=self._formula(formula.part, not negated))
            case syntax.And() | syntax.Or():
                parts = tuple(self._formula(each, negated) for each in formula.parts)
                return replace(formula, parts=parts)
        return formula

    def _expression(self, expression: syntax.Expression) -> syntax.Expression:
        match expression:
            case syntax.Functor():
                given = tuple(map(self._expression, expression.arguments))
                return replace(expression, arguments=given)
            case syntax.Cast():
                return replace(expression, value=self._expression(expression.value))
            case syntax.Aggregate():
                value = None if expression.value is None else self._expression(expression.value)
                return replace(expression, value=value, body=self._formula(expression.body, False))
        return expression

    def _atom(self, atom: syntax.Atom, negated: bool) -> syntax.Formula:
        """What an argument generates, or an aggregate gives, has a name first: the rules may
        mention it repeatedly, and mean the same value."""
        named: list[syntax.Formula] = []
        given = list(atom.arguments)
        for place, each in enumerate(given):
            if any(map(_has_several_values, syntax.subexpressions(each))):
                name = self._fresh(syntax.Named("given", each.span))
                named.append(syntax.Constraint("=", name, each, each.span))
                given[place] = name
        atom = replace(atom, arguments=tuple(given))
        made = [self._clause(atom, *rule, negated) for rule in self.conditions[atom.name]]
        found = made[0] if len(made) == 1 else syntax.Or(tuple(made), atom.span)
        return self._with(named, self._formula(found, negated), negated)

    def _with(
        self, named: Sequence[syntax.Formula], found: syntax.Formula, negated: bool
    ) -> syntax.Formula:
        """Both hold. Where the negation is asked for, the names are given all the same."""
        if not named:
            return found
        if not negated:
            return syntax.And((*named, found), found.span)
        return syntax.Or((*(syntax.Not(each, each.span) for each in named), found), found.span)

    def _clause(
        self, atom: syntax.Atom, head: syntax.Atom, body: syntax.Formula | None, negated: bool
    ) -> syntax.Formula:
        """A rule with the arguments of an atom for those of its head."""
        if len(atom.arguments) != len(head.arguments):
            raise TypeFault(
                f"{atom.name} has {counted(len(head.arguments), 'attribute')}, and "
                f"{counted(len(atom.arguments), 'argument')} here",
                code="arity",
                span=atom.span,
            )
        meaning: dict[str, syntax.Expression] = {}
        equal: list[tuple[syntax.Expression, syntax.Expression]] = []
        for given, wanted in zip(atom.arguments, head.arguments, strict=True):
            if isinstance(wanted, syntax.Named) and wanted.name not in meaning:
                is_open = isinstance(given, syntax.Unnamed)
                meaning[wanted.name] = self._fresh(wanted) if is_open else given
            elif not isinstance(given, syntax.Unnamed):
                equal.append((given, wanted))
        own = _variables(body, *head.arguments) - meaning.keys()
        if negated and (own or any(isinstance(each, syntax.Unnamed) for each in atom.arguments)):
            raise LanguageError(
                f"`!` cannot stand before {atom.name}: its rules have variables of their own",
                code="unsupported",
                span=atom.span,
                hint="let it be a relation with rows, each variable of a rule with a value",
            )
        for name in sorted(own):
            meaning[name] = self._fresh(syntax.Named(name, atom.span))

        def instead(node: Any) -> Any:
            return meaning[node.name] if isinstance(node, syntax.Named) else node

        parts = [syntax.Constraint("=", a, rebuild(b, instead), atom.span) for a, b in equal]
        if body is not None:
            parts.append(rebuild(body, instead))
        return syntax.And(tuple(parts), atom.span) if parts else syntax.Truth(True, atom.span)

    def _fresh(self, variable: syntax.Named) -> syntax.Named:
        number, name = 1, variable.name
        while name in self.names:
            number += 1
            name = f"{variable.name}_{number}"
        self.names.add(name)
        return replace(variable, name=name)


def _has_several_values(expression: syntax.Expression) -> bool:
    """Does it stand for something else wherever it stands, or is it dear?"""
    return isinstance(expression, syntax.Aggregate) or (
        isinstance(expression, syntax.Functor) and expression.name == "range"
    )


def _variables(*nodes: Any) -> set[str]:
    found: set[str] = set()

    def note(node: Any) -> Any:
        if isinstance(node, syntax.Named):
            found.add(node.name)
        return node

    rebuild(nodes, note)
    return found
