"""The recognise-act cycle of a program (section 2 of the paper, and the procedure of section 3.1).

    while a rule is firable: fire the chosen one; propagate what it changed

A candidate is a firable rule that no other firable rule has priority over. Among candidates the one
that is written first fires; an instance-oriented rule fires for its greatest body tuple. A rule is
matched when it is first tried, so rules below one that always fires are never matched.

Law: the states are those of `tests/models/productions.py`, which computes them from the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.consumers.programs.compiled_programs import CompiledProgram, CompiledRule, RuleView
from harken.consumers.programs.matched_rules import MatchedRule, MatchedState
from harken.consumers.programs.moving_facts import History
from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.database.set_rows import add_rows
from harken.errors import ValueFault
from harken.ir.productions import Firing
from harken.ir.relations import Relation, Semantics
from harken.values.rows import Row
from harken.values.types import Type

ONE_BY_ONE = 50
"""Up to so many changed facts are propagated one relation after another."""
TAKEN = "delete that row in the same rule"
"""What to do about a row whose key is taken."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may fire next: a set-oriented rule, or one instance of a rule."""

    rule: str
    values: tuple[Any, ...] | None
    """The values of the variables, in the order in which the body mentions them."""
    variables: tuple[str, ...]

    def __str__(self) -> str:
        if self.values is None:
            return self.rule
        pairs = zip(self.variables, self.values, strict=True)
        return f"{self.rule}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


Choose = Callable[[Sequence[Candidate]], Candidate]


@dataclass(slots=True)
class Effect:
    """What a firing does: facts by relation. A fact in both stays as it is."""

    inserted: dict[str, dict[Row, None]] = field(default_factory=dict)
    deleted: dict[str, dict[Row, None]] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)

    def add(self, relation: Relation, row: Row, deletes: bool) -> None:
        self.relations[relation.id] = relation
        rows = self.deleted if deletes else self.inserted
        rows.setdefault(relation.id, {})[row] = None

    def net(self) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """What it inserts and does not delete, and the other way round."""
        return _without(self.inserted, self.deleted), _without(self.deleted, self.inserted)


def _without(
    some: dict[str, dict[Row, None]], others: dict[str, dict[Row, None]]
) -> dict[str, list[Row]]:
    found = {}
    for name, rows in some.items():
        opposed = others.get(name)
        kept = list(rows) if not opposed else [row for row in rows if row not in opposed]
        if kept:
            found[name] = kept
    return found


@dataclass(slots=True)
class Firings:
    """What the cycle says of itself."""

    total: int = 0
    of: dict[str, int] = field(default_factory=dict)
    stored_rows: int = 0
    """The rows of memories and of the conflict set, when the run ended."""
    policy: str = ""


class Cycle:
    """One run of a program. `match` puts a rule into the network and returns its rows by view,
    `propagate` brings the changes of matched rules to `receive`."""

    def __init__(
        self,
        runtime: Runtime,
        program: CompiledProgram,
        match: Callable[[CompiledRule, MatchedRule], None],
        propagate: Callable[[], None],
        choose: Choose | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._program = program
        self._match = match
        self._propagate = propagate
        self._choose = choose
        self._say = say
        self._rules = {each.name: each for each in program.rules}
        self.matched: dict[str, MatchedRule] = {}
        self.firings = Firings()
        self._fired: dict[str, set[Any]] = {}
        self._clock = 0
        self._times: dict[tuple[str, Row], int] = {}
        for relation, row in program.initial if program.options.timestamps else ():
            self._note_time(relation.id, row)

    # --- the cycle -------------------------------------------------------------------------

    def run(self, limit: int) -> Firings:
        """Fire rules until none is firable; in a run of its own the limit counts from here."""
        self.firings = Firings()
        history = History(limit)
        while (found := self._select()) is not None:
            if self.firings.total >= limit:
                raise history.never_settles(self._shown_fact)
            rule, row = found
            effect = self._effect(rule, row)
            self._tell(rule, row, effect)
            if row is not None and self._program.options.refraction:
                self._fired.setdefault(rule.rule.name, set()).add(row)
                rule.firable.remove([row])
            remembered = history.wants(self.firings.total)
            changes = self._apply(effect, remembered)
            if remembered:
                history.note(rule.rule.name, changes)
            self._call(rule, row)
            self.firings.total += 1
            self.firings.of[rule.rule.name] = self.firings.of.get(rule.rule.name, 0) + 1
            self._propagate()
        return self.firings

    def receive(self, view: RuleView, plus: list[Row], minus: list[Row]) -> None:
        """The network found a change of a rule's view."""
        matched = self.matched[view.rule]
        if self._program.options.timestamps or self._program.options.refraction:
            fired = self._fired.setdefault(view.rule, set())
            if self._program.options.timestamps:
                fired.difference_update(minus)
            plus = [row for row in plus if row not in fired]
        matched.put(view, plus, minus)

    def match_all(self) -> None:
        for each in self._program.rules:
            self._matched(each.name)

    @property
    def is_firable(self) -> bool:
        return any(each.is_firable for each in self.matched.values())

    def state(self) -> dict[str, MatchedState]:
        return {name: each.state() for name, each in self.matched.items()}

    def restore(self, state: dict[str, MatchedState]) -> None:
        for name, each in state.items():
            self.matched[name].restore(each)

    def conflict_size(self) -> int:
        return sum(
            len(each.firable) + len(each.fresh) + sum(map(len, each.tokens.values()))
            for each in self.matched.values()
        )

    # --- recognise -------------------------------------------------------------------------

    def _select(self) -> tuple[MatchedRule, Row | None] | None:
        """The next rule to fire, with its instance if it is instance-oriented."""
        if self._choose is None and self._program.options.resolution == "text":
            first = self._first_candidate()
            return None if first is None else (first, _greatest(first))
        candidates = self._candidates()
        if not candidates:
            return None
        if self._choose is not None:
            return self._chosen(candidates, self._choose)
        best = max(candidates, key=self._urgency)
        return best, _greatest(best)

    def _first_candidate(self) -> MatchedRule | None:
        tried: dict[str, bool] = {}
        for each in self._program.rules:
            if self._is_candidate(each.name, tried):
                return self.matched[each.name]
        return None

    def _candidates(self) -> list[MatchedRule]:
        tried: dict[str, bool] = {}
        rules = self._program.rules
        return [self.matched[r.name] for r in rules if self._is_candidate(r.name, tried)]

    def _is_candidate(self, name: str, tried: dict[str, bool]) -> bool:
        """Whether a rule is firable and none with priority over it is; those are tried first."""
        above = self._program.above.get(name, ())
        blocked = any(self._is_firable(other, tried) for other in above)
        return not blocked and self._is_firable(name, tried)

    def _is_firable(self, name: str, tried: dict[str, bool]) -> bool:
        if name not in tried:
            above = self._program.above.get(name, ())
            if any(self._is_firable(other, tried) for other in above):
                return True  # one that is above it decides, and this one need not be matched
            tried[name] = self._matched(name).is_firable
        return tried[name]

    def _matched(self, name: str) -> MatchedRule:
        if name not in self.matched:
            compiled = self._rules[name]
            found = MatchedRule(compiled, None)
            found = MatchedRule(compiled, self._recency_of(found))
            self.matched[name] = found
            self._match(compiled, found)
        return self.matched[name]

    # --- choose ----------------------------------------------------------------------------

    def _recency_of(self, matched: MatchedRule) -> Callable[[Row], Any] | None:
        """How urgent an instance is among those of its rule, by the times of its facts."""
        resolution = self._program.options.resolution
        if resolution == "text":
            return None

        def recency(row: Row) -> tuple[Any, ...]:
            times = [self._times.get(each, 0) for each in matched.facts_of(row)]
            newest = sorted(times, reverse=True)
            if resolution == "mea":
                return (times[0] if times else 0, newest)
            return (newest[:1],) if resolution == "salience" else (newest,)

        return recency

    def _urgency(self, matched: MatchedRule) -> tuple[Any, ...]:
        """Recency, then how specific the rule is, then the order of the text."""
        row = _greatest(matched)
        recency = self._recency_of(matched)
        rule = matched.rule
        order = () if row is None or recency is None else recency(row)
        specific = 0
        if self._program.options.resolution != "salience":
            specific = sum(len(clause.body) for clause in rule.instances.clauses)
        return (order, specific, -rule.number)

    def _chosen(
        self, candidates: list[MatchedRule], choose: Choose
    ) -> tuple[MatchedRule, Row | None]:
        offered: dict[int, tuple[Candidate, MatchedRule, Row | None]] = {}
        for matched in candidates:
            rows: Sequence[Row | None] = [None]
            if matched.rule.firing is Firing.INSTANCE:
                rows = list(dict.fromkeys([*matched.firable.rows(), *matched.fresh.rows()]))
            for row in rows:
                one = self.candidate(matched, row)
                offered[id(one)] = (one, matched, row)
        answer = choose([each for each, _, _ in offered.values()])
        for one, matched, row in offered.values():
            if one is answer or one == answer:
                return matched, row
        raise ValueFault(
            f"choose returned {answer!r}, which is not one of the candidates",
            code="bad-value",
            hint="return one of the objects in the list that it is called with",
        )

    def candidate(self, matched: MatchedRule, row: Row | None) -> Candidate:
        rule = matched.rule
        names = tuple(each.name for each in rule.variables)
        if row is None:
            return Candidate(rule.name, None, names)
        types = [each.type for each in rule.variables]
        shown = self._decoded(row[: len(types)], types)
        return Candidate(rule.name, shown, names)

    # --- act -------------------------------------------------------------------------------

    def _effect(self, matched: MatchedRule, row: Row | None) -> Effect:
        effect = Effect()
        if row is not None:
            for literal, fact in matched.heads_of(row):
                effect.add(literal.relation, fact, literal.deletes)
            return effect
        for (name, deletes), rows in matched.tokens.items():
            if rows:
                effect.relations[name] = matched.targets[name]
                (effect.deleted if deletes else effect.inserted)[name] = dict(rows)
        return effect

    def _apply(self, effect: Effect, wanted: bool) -> list[tuple[bool, Relation, Row]]:
        """Make the changes; deletions first, so that a key is free. Returns what has changed, if
        that is wanted.

        A few changes are propagated one relation after another: then there is one way for each
        relation to change, and not one for each set of relations, and what loses its facts first
        gains nothing on the way.
        """
        inserted, deleted = effect.net()
        for name, rows in inserted.items():
            self._program.check_rows(effect.relations[name], rows)
        size = sum(map(len, (*inserted.values(), *deleted.values())))
        one_by_one = size <= ONE_BY_ONE
        changes: list[tuple[bool, Relation, Row]] = []
        steps = [(each, deleted, False) for each in deleted]
        steps += [(each, inserted, True) for each in inserted]
        for number, (name, rows_of, inserts) in enumerate(steps, start=1):
            relation, rows = effect.relations[name], rows_of[name]
            if wanted:
                changes += self._changing(relation, rows, inserts)
            self._change(relation, rows, inserts)
            if one_by_one and number < len(steps):
                self._propagate()
        if self._program.options.timestamps:
            self._renew(inserted)
        return changes

    def _changing(
        self, relation: Relation, rows: list[Row], inserts: bool
    ) -> list[tuple[bool, Relation, Row]]:
        contains = self._runtime.engine.contains
        return [(inserts, relation, row) for row in rows if contains(relation, row) != inserts]

    def _change(self, relation: Relation, rows: list[Row], inserts: bool) -> None:
        engine = self._runtime.engine
        if inserts:
            add_rows(engine, relation, rows, TAKEN)
        elif relation.semantics is Semantics.BAG:
            for row in rows:
                engine.clear(relation, row)
        else:
            engine.remove_many(relation, rows)

    def _call(self, matched: MatchedRule, row: Row | None) -> None:
        """Call the procedures of a rule for the instance, or for all new ones."""
        rows = [row] if row is not None else matched.fresh.rows()[::-1]
        for each in rows:
            if each in matched.fresh:
                matched.fresh.remove([each])
                for call, values in matched.calls_of(each):
                    self._program.call(call, values)

    # --- time ------------------------------------------------------------------------------

    def _note_time(self, relation: str, row: Row) -> None:
        self._clock += 1
        self._times[relation, row] = self._clock

    def _renew(self, inserted: dict[str, list[Row]]) -> None:
        """Every inserted fact has a new time, and what it was part of may fire again."""
        renewed = set()
        for name, rows in inserted.items():
            for row in rows:
                if (name, row) in self._times:
                    renewed.add((name, row))
                self._note_time(name, row)
        for matched in self.matched.values() if renewed else ():
            if not any(relation.id in inserted for relation, _ in matched.rule.facts or ()):
                continue
            fired = self._fired.get(matched.rule.name, set())
            rows = [*fired, *matched.firable.rows()]
            again = [row for row in rows if renewed.intersection(matched.facts_of(row))]
            fired.difference_update(again)
            matched.firable.remove(again)
            matched.firable.add(again)

    # --- tell ------------------------------------------------------------------------------

    def _tell(self, matched: MatchedRule, row: Row | None, effect: Effect) -> None:
        if self._say is None:
            return
        number = self.firings.total + 1
        waiting = [self._shown_rule(each) for each in self.matched.values() if each.is_firable]
        self._say(f"cycle {number}: conflict set {'; '.join(waiting)}")
        self._say(f"cycle {number}: fires {self.candidate(matched, row)}")
        inserted, deleted = effect.net()
        engine, shown = self._runtime.engine, []
        for sign, rows_of in (("-", deleted), ("+", inserted)):
            for name, rows in rows_of.items():
                relation = effect.relations[name]
                news = [r for r in rows if engine.contains(relation, r) == (sign == "-")]
                shown += [f"{sign}{self._shown_fact(relation, each)}" for each in news[:10]]
                shown += [f"and {len(news) - 10} more"] if len(news) > 10 else []
        self._say(f"cycle {number}: effect {', '.join(shown)}")

    def _shown_rule(self, matched: MatchedRule) -> str:
        if matched.rule.firing is Firing.SET:
            return matched.rule.name
        rows = list(dict.fromkeys([*matched.firable.rows(), *matched.fresh.rows()]))
        shown = [str(self.candidate(matched, each)) for each in rows[:10]]
        return ", ".join([*shown, *([f"and {len(rows) - 10} more"] if len(rows) > 10 else [])])

    def _shown_fact(self, relation: Relation, row: Row) -> str:
        types = [column.type for column in relation.columns]
        values = self._decoded(row, types)
        return f"{relation.name}({', '.join(map(repr, values))})"

    def _decoded(self, row: Row, types: Sequence[Type]) -> Row:
        return decode_rows([row], types, self._runtime.catalog.home)[0]


def _greatest(matched: MatchedRule) -> Row | None:
    """The greatest body tuple of an instance-oriented rule."""
    if matched.rule.firing is Firing.SET:
        return None
    rows = (matched.firable.greatest, matched.fresh.greatest)
    found = [row for row in rows if row is not None]
    return found[0] if len(found) == 1 else max(found, key=matched.order)
