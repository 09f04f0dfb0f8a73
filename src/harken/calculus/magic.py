"""Supplementary magic sets: derive of a recursive relation only what is asked for.

For a relation p and a binding pattern, b for each argument that is known and f for each that is
not, `m_p^bf` holds the values that are asked for. A clause p(X, Y) ← r₁ ∧ ... ∧ rₙ becomes

    sup₁ ← m_p^bf(X) ∧ r₁        supᵢ ← supᵢ₋₁ ∧ rᵢ        p(X, Y) ← supₙ₋₁ ∧ rₙ

and before a relation rᵢ that is derived on demand, too, its own values are asked for:
m_rᵢ ← supᵢ₋₁. Values are passed on from what is known and from rows that are there, never by
computing new ones: so there are finitely many questions, and nothing is computed that could fail.
All patterns of p share its one table: a row of it is a row of p, whichever question asked for it.

Negation and aggregates come last in a clause, behind everything that is asked for because of them.
The questions make relations depend on each other that did not before, so what is returned is not
stratified. Instead each relation has a layer, that of its stratum before: a rule of one layer may
only be run when nothing in the layers below is waiting (`engines.sqlite.recursion`). What other
relations ask is kept apart from what a recursion asks itself: where all arguments are known and all
such questions are answered, there is no need to go on.

Law: the goal has the same rows, and p holds of its rows those that were asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harken.calculus.affected import is_keys
from harken.calculus.states import is_delta
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Definition,
    Literal,
    Program,
    literal_variables,
)
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.safety import Needs, input_columns, is_bound
from harken.ir.strata import depends_on, reachable, stratify
from harken.ir.terms import Variable

UNKNOWN = 5
"""The rank of a literal of which nothing is known."""

Pattern = tuple[int, ...]
"""The positions of the arguments that are known."""


@dataclass(frozen=True, slots=True)
class OnDemand:
    """A program that asks, the layers of its relations, and those that are tables."""

    program: Program
    layers: Mapping[str, int]
    tables: frozenset[str]
    patterns: Mapping[str, frozenset[Pattern]]
    questions: Mapping[str, tuple[Relation, bool]]
    """For each relation that holds what others ask, the one that is asked, and whether for rows of
    which all arguments are known."""
    adornments: Mapping[str, str]
    """For each magic relation and each question, which arguments are known: `bf`."""


def magic(program: Program, needs: Needs, driven: Collection[str] = ()) -> OnDemand | None:
    """The program with its recursive relations derived on demand, and with them all that is
    defined by them; None if it would ask for all of their rows, or if there is something in it
    that cannot be asked for.

    Relations that are `driven` are recursive because a change goes on in them: they are derived as
    a whole, and are as small as the change.
    """
    strata = stratify(program)
    recursive = {name for stratum in strata if stratum.recursive for name in stratum.names}
    demanded = _above(program, recursive - set(driven)) - {program.goal.id, *driven}
    if program.goal.id in recursive or not all(
        _can_be_asked(program.definitions[name], needs) for name in demanded
    ):
        return None
    layers = {name: 2 * level + 1 for level, each in enumerate(strata) for name in each.names}
    whole: frozenset[str] = frozenset()
    while True:
        rewriting = _Rewriting(
            program, needs, frozenset(demanded), frozenset(driven), layers, whole
        )
        made = rewriting.run()
        asked_whole = frozenset(name for name, each in made.patterns.items() if () in each)
        if driven or asked_whole <= whole:
            return made
        if recursive <= asked_whole:
            return None
        whole |= asked_whole


def pattern_text(relation: Relation, pattern: Pattern) -> str:
    """`bf` for a relation of two arguments of which the first is known."""
    return "".join("b" if i in pattern else "f" for i in range(relation.arity))


def magic_relation(relation: Relation, pattern: Pattern) -> Relation:
    return Relation(
        f"m_{relation.name}^{pattern_text(relation, pattern)}",
        tuple(Column(f"k{i}", relation.columns[i].type) for i in pattern),
        len(pattern),
        Kind.DERIVED,
        past=True,
        role=Role.MAGIC,
        of=relation,
    )


def question_relation(relation: Relation, pattern: Pattern) -> Relation:
    """What other layers ask the magic relation for."""
    name = f"ask_{relation.name}^{pattern_text(relation, pattern)}"
    return replace(magic_relation(relation, pattern), name=name, role=Role.QUESTION)


def _above(program: Program, names: Collection[str]) -> set[str]:
    """These relations and all that are defined by them."""
    found = set(names)
    size = -1
    while size != len(found):
        size = len(found)
        for name, definition in program.definitions.items():
            if not found.isdisjoint(depends_on(definition)):
                found.add(name)
    return found


def _can_be_asked(definition: Definition, needs: Needs) -> bool:
    """Is it a set that can be a table, with nothing in it that counts or chooses its rows?"""
    relation = definition.relation
    return (
        relation.is_set
        and definition.limit is None
        and not needs.get(relation.id)
        and not (definition.first or definition.numbered or definition.groups)
    )


class _Rewriting:
    def __init__(
        self,
        program: Program,
        needs: Needs,
        demanded: frozenset[str],
        driven: frozenset[str],
        layers: Mapping[str, int],
        whole: frozenset[str],
    ) -> None:
        self.program = program
        self.needs = needs
        self.demanded = demanded
        self.driven = driven
        self.whole = whole
        """Relations of which someone asks for all rows: then nobody need ask for some."""
        self.before = layers
        self.layers: dict[str, int] = {}
        self.made: dict[str, list[Clause]] = {}
        self.relations: dict[str, Relation] = {}
        self.patterns: dict[str, set[Pattern]] = {}
        self.waiting: list[tuple[Relation, Pattern]] = []
        self.names: dict[str, str] = {}
        self.listed: dict[str, Definition] = {}
        self.questions: dict[str, tuple[Relation, bool]] = {}
        self.adornments: dict[str, str] = {}
        self.supplements = 0

    def run(self) -> OnDemand:
        goal = self.program.goal
        kept = dict(self.program.definitions)
        kept[goal.id] = self._goal(kept[goal.id])
        for name in sorted(self.driven):
            definition = kept.pop(name)
            self._take(definition.relation, name)
            for clause in definition.clauses:
                self._clause(clause, [], self.before[name])
        while self.waiting:
            relation, pattern = self.waiting.pop()
            definition = self.program.definitions[relation.id]
            for clause in definition.clauses:
                asked = Atom(
                    self._magic(relation, pattern), tuple(clause.head.terms[i] for i in pattern)
                )
                self._clause(clause, [asked], self.before[relation.id])
        for name in self.demanded:
            kept.pop(name)
        for name, clauses in self.made.items():
            kept[name] = Definition(self.relations[name], tuple(dict.fromkeys(clauses)))
        kept |= self.listed
        program = Program(goal, reachable(goal, kept))
        tables = frozenset(self.made.keys() & program.definitions.keys())
        patterns = {name: frozenset(each) for name, each in self.patterns.items()}
        return OnDemand(program, self.layers, tables, patterns, self.questions, self.adornments)

    # --- clauses ---------------------------------------------------------------------------

    def _goal(self, definition: Definition) -> Definition:
        """It is read when all is there, so it stays as it is, and only asks."""
        clauses = []
        for clause in definition.clauses:
            prefix: list[Literal] = []
            ordered, last = self._in_order(clause.body, set())
            for literal in ordered:
                self._ask(literal, prefix)
                prefix.append(literal)
            for literal in last:
                self._ask(literal, prefix)
            body = tuple(self._reading(literal) for literal in clause.body)
            clauses.append(Clause(clause.head, body))
        return replace(definition, clauses=tuple(clauses))

    def _clause(self, clause: Clause, prefix: list[Literal], layer: int) -> None:
        """Rewrite a clause of a table; it begins with what asks for it, if anything does."""
        ordered, last = self._in_order(clause.body, _variables(prefix))
        rest: list[Literal] = [*ordered, *last]
        for position, literal in enumerate(ordered):
            if self._is_demanded(literal):
                prefix = self._supplement(prefix, rest[position:], clause, layer)
                self._ask(literal, prefix, layer)
            prefix = [*prefix, literal]
        if any(map(self._is_demanded, last)):
            prefix = self._supplement(prefix, last, clause, layer)
            for literal in last:
                self._ask(literal, prefix, layer)
        self._take(clause.head.relation, clause.head.relation.id)
        body = (*prefix, *(self._reading(each) for each in last))
        self._add(Clause(clause.head, body), layer)

    def _supplement(
        self, prefix: list[Literal], rest: Sequence[Literal], clause: Clause, layer: int
    ) -> list[Literal]:
        """What was found so far, as a relation with the variables that are still wanted."""
        if len(prefix) <= 1:
            return prefix
        wanted = {term for term in clause.head.terms if isinstance(term, Variable)}
        wanted.update(each for literal in rest for each in literal_variables(literal))
        terms = tuple(
            dict.fromkeys(
                each
                for literal in prefix
                for each in literal_variables(literal)
                if each in wanted and each in _variables(prefix)
            )
        )
        self.supplements += 1
        relation = Relation(
            f"sup_{self.supplements}",
            tuple(Column(f"k{i}", term.type) for i, term in enumerate(terms)),
            len(terms),
            Kind.DERIVED,
            past=True,
            role=Role.SUPPLEMENTARY,
        )
        self._take(relation, relation.id)
        head = Atom(relation, terms)
        self._add(Clause(head, tuple(prefix)), layer)
        return [head]

    def _in_order(
        self, body: Sequence[Literal], known: set[Variable]
    ) -> tuple[list[Literal], list[Literal]]:
        """The literals that pass values on, each when as much of it as possible is known; and the
        rest, which comes last."""
        bound = set(known)
        last = list(body)
        ordered: list[Literal] = []
        while able := [each for each in last if self._passes_on(each, bound)]:
            chosen = min(able, key=lambda each: (self._rank(each, bound), *_unknown(each, bound)))
            if self._rank(chosen, bound) >= UNKNOWN:
                break  # all of its rows would be asked about
            last.remove(chosen)
            ordered.append(chosen)
            bound.update(literal_variables(chosen))
        return ordered, last

    def _passes_on(self, literal: Literal, bound: set[Variable]) -> bool:
        """Can it pass values on, without computing any?"""
        match literal:
            case Atom(negated=False):
                return not input_columns(literal.relation, self.needs)
            case Atom():  # what is stored can be asked at once
                stored = literal.relation.kind is Kind.STORED
                return stored and all(is_bound(term, bound) for term in literal.terms)
            case Comparison(operator="="):
                return is_bound(literal.left, bound) or is_bound(literal.right, bound)
            case Comparison():
                return is_bound(literal.left, bound) and is_bound(literal.right, bound)
        return False

    def _rank(self, literal: Literal, bound: set[Variable]) -> int:
        if not isinstance(literal, Atom) or literal.negated:
            return 0
        joined = any(isinstance(term, Variable) and term in bound for term in literal.terms)
        name = literal.relation.id
        if is_delta(literal.relation) or is_keys(literal.relation) or name in self.driven:
            return 1 if joined or not bound else 4
        known = joined or any(not isinstance(term, Variable) for term in literal.terms)
        if name in self.demanded:
            return 3 if known else UNKNOWN
        if joined:
            return 2
        return 4 if known else UNKNOWN

    # --- questions -------------------------------------------------------------------------

    def _is_demanded(self, literal: Literal) -> bool:
        atom = _atom_of(literal)
        return atom is not None and atom.relation.id in self.demanded

    def _ask(self, literal: Literal, prefix: Sequence[Literal], layer: int | None = None) -> None:
        """Ask for the rows of a literal, in a rule of this layer."""
        atom = _atom_of(literal)
        if atom is None or atom.relation.id not in self.demanded:
            return
        name = atom.relation.id
        known = _variables(prefix)
        if isinstance(literal, Aggregation):
            known = known.intersection(literal.groups)
        pattern = tuple(i for i, term in enumerate(atom.terms) if is_bound(term, known))
        if name in self.whole:
            pattern = ()
        if pattern not in self.patterns.setdefault(name, set()):
            self.patterns[name].add(pattern)
            self.waiting.append((atom.relation, pattern))
        terms = tuple(atom.terms[i] for i in pattern)
        head = Atom(self._magic(atom.relation, pattern), terms)
        if layer != self.before[name]:
            head = Atom(self._question(atom.relation, pattern), terms)
            self._add(Clause(head, tuple(prefix)), self.before[name] - 1)
        elif tuple(prefix) != (head,):
            self._add(Clause(head, tuple(prefix)), self.before[name])

    def _magic(self, relation: Relation, pattern: Pattern) -> Relation:
        asked = self._unique(magic_relation(relation, pattern), relation)
        self.adornments[asked.id] = pattern_text(relation, pattern)
        self._take(asked, asked.id)
        self.layers[asked.id] = self.before[relation.id]
        return asked

    def _question(self, relation: Relation, pattern: Pattern) -> Relation:
        """What others ask, and the rule by which it is asked of the relation."""
        asked = self._magic(relation, pattern)
        question = self._unique(question_relation(relation, pattern), relation)
        if question.id not in self.questions:
            self.adornments[question.id] = pattern_text(relation, pattern)
            self.questions[question.id] = (relation, len(pattern) == relation.arity)
            self._take(question, question.id)
            row = tuple(Variable(f"X{i}", each.type) for i, each in enumerate(asked.columns))
            self._add(Clause(Atom(asked, row), (Atom(question, row),)), self.before[relation.id])
        return question

    def _unique(self, made: Relation, relation: Relation) -> Relation:
        while self.names.setdefault(made.id, relation.id) != relation.id:
            made = replace(made, name=f"{made.name}'")
        return made

    def _reading(self, literal: Literal) -> Literal:
        """An aggregate ranges over the rows of a table by another name: they are listed there, and
        not derived once more."""
        if not isinstance(literal, Aggregation) or not self._is_demanded(literal):
            return literal
        relation = literal.atom.relation
        listed = relation.variant(Role.AUXILIARY, f"listed {relation.name}", kind=Kind.DERIVED)
        row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
        clause = Clause(Atom(listed, row), (Atom(relation, row),))
        self.listed[listed.id] = Definition(listed, (clause,))
        return replace(literal, atom=replace(literal.atom, relation=listed))

    def _take(self, relation: Relation, name: str) -> None:
        self.made.setdefault(name, [])
        self.relations[name] = relation
        self.layers.setdefault(name, self.before.get(name, 0))

    def _add(self, clause: Clause, layer: int) -> None:
        name = clause.head.relation.id
        self.made[name].append(clause)
        self.layers[name] = layer


def _atom_of(literal: Literal) -> Atom | None:
    if isinstance(literal, Aggregation):
        return literal.atom
    return literal if isinstance(literal, Atom) else None


def _unknown(literal: Literal, bound: set[Variable]) -> tuple[int, int]:
    """Fewer variables without a value come first, then more with one. Rows of which little is known
    would be paired with all that was asked, before another literal says which belong together."""
    variables = set(literal_variables(literal))
    return len(variables - bound), -len(variables & bound)


def _variables(literals: Iterable[Literal]) -> set[Variable]:
    return {each for literal in literals for each in literal_variables(literal)}
