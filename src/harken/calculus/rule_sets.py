"""The rules that find the change of a recursive relation, in the layout of the paper (figure 3).

    edge^del, edge^ins    what a relation has lost and gained       closure      its old state
    closure^minus, ^plus  the same, when it is known for sure       closure^new  its new state
    m_closure^bf          what is asked of closure, the first argument being known

Law: the rules are those of `rederivation` with the questions of `magic`, under other names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harken.calculus.affected import Affected
from harken.calculus.differentials import differentials_of
from harken.calculus.magic import OnDemand, magic
from harken.calculus.rederivation import cycle_of, is_rederivable, marked, rederive
from harken.calculus.states import ADDED, affected_relations, is_delta, is_old, made_from, old
from harken.ir.clauses import (
    Atom,
    Clause,
    Literal,
    Program,
    stored_relations,
)
from harken.ir.printer import print_literal
from harken.ir.relations import Relation, Role
from harken.ir.safety import required_inputs
from harken.ir.strata import reachable, stratify

ASKING = frozenset({Role.MAGIC, Role.SUPPLEMENTARY})


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules under a title; each group has a label, or none."""

    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.groups), default=0)
        lines = [f"{self.title}:"]
        for label, rules in self.groups:
            for number, rule in enumerate(rules):
                shown = f"({label}) ⇒" if label and not number else ""
                lines.append(f"  {shown:<{width + 5}}{rule}")
        return "\n".join(lines)


def all_rule_sets(program: Program) -> list[RuleSet]:
    """Those of all recursive relations that a goal depends on."""
    found = []
    for stratum in stratify(program):
        names = stratum.names
        first = program.goal if program.goal.id in names else stratum.definitions[0].relation
        own = Program(first, reachable(first, program.definitions))
        if stratum.recursive and is_rederivable(own) is None:
            found += rule_sets(own)
    return found


def rule_sets(program: Program) -> list[RuleSet]:
    """The rules for the goal and what it depends on in a cycle, when all below has changed."""
    changed = frozenset(stored_relations(program))
    made = rederive(program, changed, ())
    asked = magic(made.program, required_inputs(made.program), made.driven)
    if asked is None:
        return []
    return list(_Layout(program, changed, asked).sets())


class _Layout:
    def __init__(self, program: Program, changed: frozenset[str], asked: OnDemand) -> None:
        self.program = program
        self.cycle = sorted(cycle_of(program))
        self.affected = affected_relations(program, changed)
        self.finder = Affected(
            program, {*changed, *self.cycle}, self.affected, required_inputs(program)
        )
        self.definitions = asked.program.definitions
        self.adornments = asked.adornments
        self.questions = [
            clause
            for name in asked.questions
            if name in self.definitions
            for clause in self.definitions[name].clauses
        ]
        self.told: set[Clause] = set()

    def sets(self) -> Iterator[RuleSet]:
        number = 0
        for name in self.cycle:
            definition = self.program.definitions[name]
            for clause in definition.clauses:
                number += 1
                title = f"maintenance rules generated from R_{number}"
                yield RuleSet(title, tuple(self._generated(clause)))
            title = f"maintenance rules for {self._name(old(definition.relation))}"
            yield RuleSet(title, tuple(self._checks(definition.relation)))
        for name in self.cycle:
            relation = self.program.definitions[name].relation
            for state in (old(relation), relation):
                yield self._query_rules(state)

    def _generated(self, clause: Clause) -> Iterator[tuple[str, tuple[str, ...]]]:
        places = [
            i
            for i, each in enumerate(clause.body)
            if self.finder.reaches(each)
            or (isinstance(each, Atom) and each.relation.id in self.finder.changed)
        ]
        found = list(differentials_of(clause, self.finder))
        by_sign = {sign: [each for each in found if each.sign == sign] for sign in (-1, 1)}
        for sign, letter, mark in ((-1, "D", "del"), (1, "I", "ins")):
            target = marked(clause.head.relation, mark)
            for place, each in zip(places, by_sign[sign], strict=True):
                body = tuple(self._own(literal) for literal in each.clause.body)
                rule = Clause(Atom(target, each.clause.head.terms), body)
                yield f"{letter}_{place + 1}", (self._rule(rule), *self._asked_for(body))

    def _own(self, literal: Literal) -> Literal:
        """What a relation of the cycle has gained or lost is followed once it is known for sure."""
        if isinstance(literal, Atom) and is_delta(literal.relation):
            relation = made_from(literal.relation)
            if relation.id in self.cycle:
                mark = "plus" if literal.terms[-1] == ADDED else "minus"
                return Atom(marked(relation, mark), literal.terms[:-1])
        return literal

    def _checks(self, relation: Relation) -> Iterator[tuple[str, tuple[str, ...]]]:
        for label, mark in (("E_1", "plus"), ("E_2", "minus")):
            (clause,) = self.definitions[marked(relation, mark).id].clauses
            yield label, (self._rule(clause), *self._asked_for(clause.body))

    def _asked_for(self, body: tuple[Literal, ...]) -> Iterator[str]:
        """The questions that a rule asks: those that begin as it does."""
        known = set(map(print_literal, body))
        for clause in self.questions:
            if clause not in self.told and known.issuperset(map(print_literal, clause.body)):
                self.told.add(clause)
                yield self._rule(clause)

    def _query_rules(self, relation: Relation) -> RuleSet:
        rules = list(self.definitions[relation.id].clauses)
        waiting, seen = [*rules], {relation.id}
        while waiting:
            for literal in waiting.pop().body:
                if isinstance(literal, Atom) and self._is_made(literal.relation):
                    name = literal.relation.id
                    if name not in seen:
                        seen.add(name)
                        found = [c for c in self.definitions[name].clauses if not _copies(c)]
                        rules += found
                        waiting += found
        title = f"query rules for {self._name(relation)}"
        return RuleSet(title, (("", tuple(dict.fromkeys(map(self._rule, rules)))),))

    def _is_made(self, relation: Relation) -> bool:
        return relation.id in self.definitions and relation.role in ASKING

    # --- as text ---------------------------------------------------------------------------

    def _rule(self, clause: Clause) -> str:
        head = self._literal(clause.head)
        body = ", ".join(map(self._literal, clause.body))
        return f"{head} :- {body}." if body else f"{head}."

    def _literal(self, literal: Literal) -> str:
        if not isinstance(literal, Atom):
            return print_literal(literal)
        name, terms = self._name(literal.relation), literal.terms
        if is_delta(literal.relation):
            name = f"{name}^{'ins' if terms[-1] == ADDED else 'del'}"
            terms = terms[:-1]
        return f"{'¬' if literal.negated else ''}{name}({', '.join(map(str, terms))})"

    def _name(self, relation: Relation) -> str:
        if relation.role in (Role.MAGIC, Role.QUESTION):
            asked = made_from(relation)
            state = "" if is_old(asked) else "^new"
            return f"m_{_state_free(asked).name}{state}^{self.adornments[relation.id]}"
        shown = _state_free(relation)
        return f"{shown.name}^new" if relation.id in self.affected else shown.name


def _copies(clause: Clause) -> bool:
    """Does it hand on what others ask?"""
    first = clause.body[0] if clause.body else None
    return isinstance(first, Atom) and first.relation.role is Role.QUESTION


def _state_free(relation: Relation) -> Relation:
    """The relation whose change or old state this is, if it is one."""
    return made_from(relation) if is_old(relation) or is_delta(relation) else relation
