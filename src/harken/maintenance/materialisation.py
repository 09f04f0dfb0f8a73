"""What is stored for the rules of a program: four policies, and one that learns.

    rete     every selection, and the joins of the first two, three, ... literals
    treat    every selection
    atreat   the selections that leave few rows; the others are read through indexes
    cosma    the maximal profitable relations, by what the program can do to its data
    auto     begins as cosma does, without what would be large, and goes on with what was faster

All of them keep the conflict set. A literal without a selection is the stored relation itself.
Nothing here changes what a program does, only how its conflict set is found.

Law: a program has the same firings and the same states under every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harken.calculus.profitable_relations import Selectivity
from harken.calculus.rule_annotations import AnnotatedProgram, RuleAnnotation
from harken.calculus.rule_formulas import Formula, Occurrence, RuleFormulas, tests_within
from harken.ir.terms import Constant, Variable
from harken.maintenance import tuning
from harken.maintenance.capacities import MOST_PROGRAMS

POLICIES = ("rete", "treat", "atreat", "cosma")
AUTO = "auto"

Parts = tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Estimates:
    """What the statistics of the engine say."""

    literal: Selectivity
    """The rows of a literal, after its selection."""
    whole: Selectivity
    """The rows of its relation."""


def has_selection(formula: Formula, occurrence: Occurrence) -> bool:
    """Whether a literal leaves out rows by itself: by a constant, a variable that is repeated, or a
    test on its variables alone."""
    terms = occurrence.terms
    if any(isinstance(term, Constant) for term in terms):
        return True
    if len({t for t in terms if isinstance(t, Variable)}) < len(terms):
        return True
    return bool(tests_within(formula, occurrence.variables))


def alpha_nodes(formulas: RuleFormulas) -> Parts:
    """The positive literals that select rows, each as a formula. A negative literal is only looked
    up, and stays what it is."""
    body = formulas.body
    return tuple(
        Formula((each,), body.tests)
        for each in body.positive
        if not each.opaque and has_selection(body, each)
    )


def beta_nodes(formulas: RuleFormulas) -> Parts:
    """The joins of the first literals in the order of the text, each with the negative literals
    that it binds. The last one is the conflict set. No cartesian product is stored."""
    body, found = formulas.body, list[Formula]()
    joined: list[Occurrence] = []
    for each in body.positive[:-1]:
        bound = frozenset[Variable]().union(*(one.variables for one in joined))
        is_connected = not joined or bool(bound & each.variables)
        joined.append(each)
        if not is_connected:
            break
        if len(joined) > 1:
            found.append(Formula(_with_negative(joined, body), body.tests))
    return tuple(found)


def _with_negative(joined: Sequence[Occurrence], body: Formula) -> tuple[Occurrence, ...]:
    bound = frozenset[Variable]().union(*(one.variables for one in joined))
    negative = [o for o in body.literals if o.negated and not o.opaque and o.variables <= bound]
    return (*joined, *negative)


def rete(annotation: RuleAnnotation, _: Estimates) -> Parts:
    return (*alpha_nodes(annotation.formulas), *beta_nodes(annotation.formulas))


def treat(annotation: RuleAnnotation, _: Estimates) -> Parts:
    return alpha_nodes(annotation.formulas)


def atreat(annotation: RuleAnnotation, estimates: Estimates) -> Parts:
    """A selection that leaves many rows is a virtual alpha memory."""
    return tuple(
        each
        for each in alpha_nodes(annotation.formulas)
        if estimates.literal(each.literals[0])
        <= tuning.BULK_SHARE * max(estimates.whole(each.literals[0]), 1.0)
    )


def cosma(annotation: RuleAnnotation, _: Estimates) -> Parts:
    """The producers of the maximal profitable relations. Their flags are looked up. A rule that
    fires at most once stores nothing."""
    body = annotation.formulas.body
    inside = (_within(body, each.producer) for each in annotation.subexpressions)
    return tuple(each for each in inside if len(each.literals) > 1)


def _within(body: Formula, part: Formula) -> Formula:
    """The literals of a subexpression that the body has: the one that asks for a net change is not
    stored with them."""
    shared = body.of(part.literals)
    bound = shared.variables
    return Formula(tuple(each for each in shared.literals if each.variables <= bound), body.tests)


CHOICES: Mapping[str, Callable[[RuleAnnotation, Estimates], Parts]] = {
    "rete": rete,
    "treat": treat,
    "atreat": atreat,
    "cosma": cosma,
}


@dataclass(slots=True)
class Trial:
    """What runs of a program have cost under a policy."""

    seconds: float = 0.0
    firings: int = 0

    @property
    def cost(self) -> float:
        return self.seconds / max(self.firings, 1)


@dataclass(slots=True)
class Materialisation:
    """Chooses what is stored for programs, and remembers what it cost."""

    trials: dict[str, dict[str, Trial]] = field(default_factory=dict)
    """By program and policy; the load of a program is what its last runs were."""

    def policy(self, program: str, requested: str) -> str:
        """The policy of the next run. `auto` takes the one that the analysis suggests first, tries
        its opposite once, and then the one whose runs were faster; a load that changes shows in
        the averages, which forget."""
        if requested != AUTO:
            return requested
        known = self.trials.get(program, {})
        for each in ("cosma", "atreat"):
            if each not in known:
                return each
        return min(known, key=lambda name: known[name].cost)

    def note(self, program: str, policy: str, seconds: float, firings: int) -> None:
        """A run has ended."""
        if not firings:
            return
        if len(self.trials) >= MOST_PROGRAMS:
            self.trials.pop(next(iter(self.trials)))
        trial = self.trials.setdefault(program, {}).setdefault(policy, Trial())
        trial.seconds = trial.seconds / tuning.DOUBLED + seconds
        trial.firings = round(trial.firings / tuning.DOUBLED) + firings

    def parts(
        self,
        policy: str,
        program: AnnotatedProgram,
        estimates: Estimates,
        room: float,
    ) -> dict[str, list[Parts]]:
        """For each rule and each of its alternatives what is stored, within a number of rows."""
        choose, found = CHOICES[policy], dict[str, list[Parts]]()
        left = room
        for annotation in program.rules:
            kept: list[Formula] = []
            for part in choose(annotation, estimates):
                rows = min(estimates.literal(each) for each in part.positive)
                if rows > left:
                    continue
                left -= rows
                kept.append(part)
            found.setdefault(annotation.name, []).append(tuple(kept))
        return found
