"""Which relations of the monitored conditions become nodes of the propagation network.

Conditions are expanded as far as they can be (thesis, sections 4.2 and 8.2), so most networks have
two levels: stored relations and conditions. A derived relation between them gets a node, and with
it a Δ-set of its own, for one of four reasons: a late-bound call would multiply the clauses of
everything above it; a recursive relation cannot be expanded at all; what several conditions mention
is computed once for all of them; and where what is looked at again, a group say, is made of things
that are looked at again, each would be looked at in both states of the other, and so on.

Law: a relation with a node is looked at only through its Δ-set by what lies above it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from harken.calculus.clock import separate_clock
from harken.calculus.counting import Derivations, count_derivations, may_have_many
from harken.calculus.totals import Summary, with_totals
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Program, atoms, canonical
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import required_inputs
from harken.ir.strata import reachable, stratify
from harken.ir.terms import Variable
from harken.planner.expand import expand
from harken.planner.specialize import specialize
from harken.values.types import Hierarchy


class Reason(enum.Enum):
    CONDITION = "condition"
    LATE_BOUND = "late-bound call"
    RECURSIVE = "recursive"
    SHARED = "shared"
    NESTED = "nested"
    TOTALS = "kept totals"
    COUNTED = "counted derivations"


@dataclass(frozen=True, slots=True)
class Part:
    """What a node monitors: the goal of a program in which the nodes below are not expanded.

    `influents` are the stored relations and nodes that it mentions itself; `stored` are all stored
    relations below it; `nodes` are the ids of all nodes in the program; `below` are the parts of
    the recursive ones among its influents.
    """

    relation: Relation
    program: Program
    reason: Reason
    influents: Mapping[str, Relation]
    stored: Mapping[str, Relation]
    nodes: frozenset[str]
    below: tuple[Part, ...] = ()
    totals: tuple[Summary, ...] = ()
    """The kept totals and first rows that the program reads; they are among the influents."""


@dataclass(slots=True)
class Sharing:
    """Who mentions what: keeps, for every condition, the derived relations that have nodes."""

    programs: dict[str, Program] = field(default_factory=dict)
    """The conditions by name, with all their definitions, none of them expanded."""
    users: dict[str, set[str]] = field(default_factory=dict)
    """For each derived relation the conditions that reach it."""

    def add(self, name: str, program: Program) -> set[str]:
        """Take a condition in; the names of the others whose nodes are now different."""
        before = self._shared_among(program)
        self.programs[name] = program
        for each in _inner(program):
            self.users.setdefault(each, set()).add(name)
        return self._users_of(before ^ self._shared_among(program)) - {name}

    def remove(self, name: str) -> set[str]:
        before = self._shared_among(self.programs[name])
        program = self.programs.pop(name)
        for each in _inner(program):
            self.users[each].discard(name)
            if not self.users[each]:
                del self.users[each]
        return self._users_of(before ^ self._shared_among(program)) - {name}

    def _users_of(self, relations: Collection[str]) -> set[str]:
        return {user for each in relations for user in self.users.get(each, ())}

    def nodes(self, name: str) -> dict[str, Reason]:
        """The late-bound and the shared relations of a condition."""
        program = self.programs[name]
        found = dict.fromkeys(nested(program), Reason.NESTED)
        found |= dict.fromkeys(late_bound(program), Reason.LATE_BOUND)
        return found | dict.fromkeys(self._shared_among(program), Reason.SHARED)

    def _shared_among(self, program: Program) -> frozenset[str]:
        return frozenset(each for each in _inner(program) if self._is_shared(each))

    def _is_shared(self, name: str) -> bool:
        """Do several conditions mention it, and not all of them through one relation above it?

        A relation above it that as many mention is in each of their programs: one will do.
        """
        users = self.users.get(name, ())
        if len(users) < 2:
            return False
        program = self.programs[next(iter(users))]
        hidden = any(
            len(self.users[each]) == len(users) and name in reachable(above, program.definitions)
            for each in _inner(program)
            if each != name and (above := program.definitions[each].relation)
        )
        definition = program.definitions[name]
        return (
            not hidden
            and _can_be_node(definition, required_inputs(program))
            and not _is_plain(definition)
        )


def _inner(program: Program) -> Iterator[str]:
    return (name for name in program.definitions if name != program.goal.id)


def _can_be_node(definition: Definition, needs: Mapping[str, Collection[int]]) -> bool:
    """Its rows can be listed without a caller's values, and each counts once."""
    return definition.relation.is_set and not needs.get(definition.relation.id)


def _is_plain(definition: Definition) -> bool:
    """Another name for one relation: nothing would be saved."""
    clauses = definition.clauses
    body = clauses[0].body if len(clauses) == 1 else ()
    mentioned = list(atoms(body))
    return len(mentioned) == 1 and not any(isinstance(each, Aggregation) for each in body)


def late_bound(program: Program) -> frozenset[str]:
    """A call whose function depends on the object has a clause for each candidate, and only one
    of them holds."""
    needs = required_inputs(program)
    return frozenset(
        name
        for name, definition in program.definitions.items()
        if name != program.goal.id
        and definition.exclusive
        and len(definition.clauses) > 1
        and _can_be_node(definition, needs)
    )


def nested(program: Program) -> frozenset[str]:
    """Relations that are looked at again rather than differentiated, below others that are. The
    topmost ones are left to the condition itself."""
    hard = {name for name, each in program.definitions.items() if _is_looked_at(each, program)}
    if len(hard) < 2:
        return frozenset()
    needs = required_inputs(program)
    below: set[str] = set()
    for name in hard:
        relation = program.definitions[name].relation
        below |= reachable(relation, program.definitions).keys() - {name}
    return frozenset(
        name
        for name in (hard & below) - {program.goal.id}
        if not needs.get(name) and not program.definitions[name].relation.past
    )


def _is_looked_at(definition: Definition, program: Program) -> bool:
    """Only SQL nests them so: a function of AMOSQL is asked for its arguments."""
    if definition.relation.inputs:
        return False
    if definition.first is not None or definition.numbered is not None:
        return True
    return any(
        isinstance(literal, Aggregation)
        or (isinstance(literal, Atom) and literal.negated and _is_derived(literal, program))
        for clause in definition.clauses
        for literal in clause.body
    )


def _is_derived(atom: Atom, program: Program) -> bool:
    return atom.relation.id in program.definitions


def plan_part(
    program: Program,
    goal: Relation,
    reason: Reason,
    kept: Collection[str],
    hierarchy: Hierarchy,
) -> Part:
    """The part of one node, given which derived relations have nodes of their own."""
    own = Program(goal, reachable(goal, program.definitions))
    others = frozenset(kept) - {goal.id}
    expanded = expand(own, hierarchy, required_inputs(own), others)
    return _part(separate_clock(_renumbered(specialize(expanded))), reason, others)


def _renumbered(program: Program) -> Program:
    """Made-up variables numbered as they appear: people read these clauses."""
    return Program(
        program.goal,
        {
            name: replace(d, clauses=tuple(canonical(clause, "_G") for clause in d.clauses))
            for name, d in program.definitions.items()
        },
    )


def _part(program: Program, reason: Reason, kept: frozenset[str]) -> Part:
    cycles = {
        name: stratum.names
        for stratum in stratify(program)
        if stratum.recursive
        for name in stratum.names
    }
    entries = {
        atom.relation.id: atom.relation
        for name, definition in program.definitions.items()
        for atom in _mentioned(definition)
        if atom.relation.id in cycles and name not in cycles[atom.relation.id]
    }
    goals = frozenset(
        name
        for name, relation in entries.items()
        if relation.is_set or (relation.in_rounds and len(cycles[name]) == 1)
    )
    nodes = kept.intersection(program.definitions) | goals
    influents = _influents(program, nodes)
    return Part(
        program.goal,
        program,
        reason,
        influents,
        _stored(program),
        nodes - {program.goal.id},
        _recursive_parts(influents, goals, program, nodes),
    )


def _recursive_parts(
    influents: Mapping[str, Relation],
    recursive: frozenset[str],
    program: Program,
    nodes: frozenset[str],
) -> tuple[Part, ...]:
    parts = []
    for name in recursive & influents.keys():
        own = Program(influents[name], reachable(influents[name], program.definitions))
        cycle = next(stratum.names for stratum in stratify(own) if name in stratum.names)
        others = (nodes - cycle).intersection(own.definitions)
        below = _influents(own, others)
        parts.append(
            Part(
                influents[name],
                own,
                Reason.RECURSIVE,
                below,
                _stored(own),
                others,
                _recursive_parts(below, recursive - cycle, program, nodes),
            )
        )
    return tuple(parts)


def with_kept_totals(part: Part) -> Part | None:
    """The same part reading kept totals of its aggregates; None if it has none to keep."""
    program, totals = with_totals(part.program, required_inputs(part.program))
    if not totals:
        return None
    return replace(part, program=program, influents=_influents(program, part.nodes), totals=totals)


def with_counted_derivations(part: Part) -> Part | None:
    """The same part reading its rows from where their derivations are counted; None if they cannot
    be."""
    found = count_derivations(part.program, required_inputs(part.program))
    if found is None:
        return None
    program, derivations = found
    influents = {derivations.relation.id: derivations.relation}
    return replace(part, program=program, influents=influents, totals=(derivations,))


def is_worth_counting(part: Part) -> bool:
    """May a row have several derivations, so that differentials look for others?"""
    return part.relation.is_set and may_have_many(part.program)


def members_part(totals: Summary, part: Part) -> Part:
    """What kept totals follow: the members, as far as the nodes of the part that reads them."""
    nodes = part.nodes.intersection(totals.members.definitions)
    program = totals.members
    if program.goal.id in nodes:
        program = _each_of(program)
    influents = _influents(program, nodes)
    return Part(
        program.goal,
        program,
        Reason.COUNTED if isinstance(totals, Derivations) else Reason.TOTALS,
        influents,
        _stored(program),
        nodes,
        tuple(each for each in part.below if each.relation.id in influents),
    )


def _each_of(program: Program) -> Program:
    """Another name for a goal that is a node: its changes are then those of the node."""
    goal = program.goal
    relation = goal.variant(Role.AUXILIARY, f"each of {goal.name}")
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(goal.columns))
    definition = Definition(relation, (Clause(Atom(relation, row), (Atom(goal, row),)),))
    return Program(relation, {relation.id: definition, **program.definitions})


def _mentioned(definition: Definition) -> Iterator[Atom]:
    for clause in definition.clauses:
        yield from atoms(clause.body)


def _influents(program: Program, nodes: Collection[str]) -> dict[str, Relation]:
    """The stored relations and the nodes that a goal mentions, nothing of them below a node."""
    found: dict[str, Relation] = {}
    seen = {program.goal.id}
    waiting = [program.definitions[program.goal.id]]
    while waiting:
        for atom in _mentioned(waiting.pop()):
            name = atom.relation.id
            if name in nodes or atom.relation.kind is Kind.STORED:
                found[name] = atom.relation
            elif name in program.definitions and name not in seen:
                seen.add(name)
                waiting.append(program.definitions[name])
    return found


def _stored(program: Program) -> dict[str, Relation]:
    return {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for atom in _mentioned(definition)
        if atom.relation.kind is Kind.STORED
    }
