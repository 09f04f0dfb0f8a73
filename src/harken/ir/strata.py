"""Stratification: the order in which derived relations are evaluated.

Relations that depend on each other form one stratum; a stratum comes after all it depends on.
Negation and aggregation inside a stratum have no meaning in this language and are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harken.errors import EvaluationError, SafetyFault
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Program, atoms
from harken.ir.relations import Relation


@dataclass(frozen=True, slots=True)
class Stratum:
    definitions: tuple[Definition, ...]
    recursive: bool

    @property
    def names(self) -> frozenset[str]:
        return frozenset(definition.relation.id for definition in self.definitions)

    @property
    def in_rounds(self) -> bool:
        """Has each row as often as it is derived?"""
        return self.recursive and any(each.relation.in_rounds for each in self.definitions)


def stratify(program: Program) -> tuple[Stratum, ...]:
    """The strata of everything the goal needs, lowest first."""
    strata = components(program)
    for stratum in strata:
        _refuse_negative_cycles(stratum)
    return strata


def components(program: Program) -> tuple[Stratum, ...]:
    """The same, also where relations depend on each other through what is not there."""
    strata = []
    for component in _components(program):
        definitions = tuple(program.definitions[name] for name in component)
        strata.append(Stratum(definitions, _is_recursive(definitions)))
    return tuple(strata)


def depends_on(definition: Definition) -> dict[str, None]:
    """The ids of the relations a definition mentions, in the order in which it does. Its clauses
    may come to read totals of the rows that it chooses from, and it still does."""
    found = {atom.relation.id: None for clause in definition.clauses for atom in atoms(clause.body)}
    chosen_from = [each.relation for each in (definition.first, definition.numbered) if each]
    return {**found, **dict.fromkeys(chosen_from)}


def reachable(goal: Relation, definitions: Mapping[str, Definition]) -> dict[str, Definition]:
    """Only what the goal needs, in the order in which it is met."""
    reached: dict[str, Definition] = {}
    waiting = [goal.id]
    while waiting:
        name = waiting.pop(0)
        if name in definitions and name not in reached:
            reached[name] = definitions[name]
            waiting += depends_on(definitions[name])
    return reached


def _is_recursive(definitions: tuple[Definition, ...]) -> bool:
    names = {definition.relation.id for definition in definitions}
    return any(name in names for definition in definitions for name in depends_on(definition))


def _components(program: Program) -> list[list[str]]:
    """Strongly connected components in dependency order (Tarjan), without Python recursion."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    components: list[list[str]] = []
    if program.goal.id not in program.definitions:
        return components

    def open_node(name: str) -> tuple[str, list[str]]:
        number[name] = low[name] = len(number)
        path.append(name)
        on_path.add(name)
        below = [n for n in depends_on(program.definitions[name]) if n in program.definitions]
        return name, below

    work = [open_node(program.goal.id)]
    while work:
        name, below = work[-1]
        if below:
            child = below.pop(0)
            if child not in number:
                work.append(open_node(child))
            elif child in on_path:
                low[name] = min(low[name], number[child])
            continue
        work.pop()
        if work:
            parent = work[-1][0]
            low[parent] = min(low[parent], low[name])
        if low[name] == number[name]:
            cut = path.index(name)
            component = path[cut:]
            del path[cut:]
            on_path.difference_update(component)
            components.append(component)
    return components


def no_fixpoint(names: Iterable[str], limit: str, in_rounds: bool) -> EvaluationError:
    """Relations that depend on each other had more and more rows, until they were stopped."""
    hint = "a recursive function must not make new values for ever"
    if in_rounds:
        hint = "UNION ALL goes round a cycle for ever: write UNION, or count the rounds and stop"
    what = " and ".join(names)
    return EvaluationError(f"{what} did not settle after {limit}", code="no-fixpoint", hint=hint)


def _refuse_negative_cycles(stratum: Stratum) -> None:
    for definition in stratum.definitions:
        for clause in definition.clauses:
            _refuse_in_clause(clause, stratum.names)


def _refuse_in_clause(clause: Clause, cycle: frozenset[str]) -> None:
    for literal in clause.body:
        if isinstance(literal, Atom) and literal.negated and literal.relation.id in cycle:
            what, span = "not", literal.span
        elif isinstance(literal, Aggregation) and literal.atom.relation.id in cycle:
            what, span = literal.aggregate, literal.span
        else:
            continue
        raise SafetyFault(
            f"{clause.head.relation.name} depends on itself through `{what}`, "
            "which has no well-defined answer",
            code="not-stratified",
            span=span,
            hint="compute the inner part with a function that does not use the outer one",
        )
