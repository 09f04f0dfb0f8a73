"""`db.program(text)`: production rules that can be run from Python, as often as wanted.

program = db.program("rule r: a(x), !b(x) -> b(x).")
program.run(limit=1000)                           # until no rule is firable
program.run(choose=lambda candidates: candidates[-1])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harken.api.internals import Internals
from harken.api.program_explanation import explain_program
from harken.api.program_networks import (
    COSMA,
    NetworkNode,
    comparison,
    network_of,
    network_picture,
    network_text,
    stored_by_cosma,
)
from harken.calculus.rule_annotations import RuleAnnotation
from harken.consumers.programs.cycle import Candidate, Choose
from harken.database.arguments import check_callable, check_flag, check_text, check_whole
from harken.database.exclusive import SessionLock, exclusive
from harken.errors import NameFault
from harken.maintenance.materialisation import CHOICES, POLICIES, Parts
from harken.statements.datalog.session import DatalogSession, ProgramWishes, SourceProgram


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a run did: the number of `firings`, how many `by_rule`, the lines of its `trace` if
    that was asked for, the `policy` that chose what to store, and how many rows were stored at the
    end, those of the conflict set included."""

    firings: int
    by_rule: Mapping[str, int]
    trace: Sequence[str] = field(default=(), repr=False)
    policy: str = ""
    stored_rows: int = 0


class RuleProgram:
    """Production rules. Their facts are the rows of the database."""

    def __init__(
        self,
        internals: Internals,
        session: DatalogSession,
        source: SourceProgram,
        session_lock: SessionLock,
    ) -> None:
        self.session_lock = session_lock
        self._internals = internals
        self._session = session
        self._source = source

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of its rules, in the order of the text."""
        return tuple(self._source.written.rules)

    @exclusive
    def explain(self) -> str:
        """What its rules do to each other, and what COSMA would store for each of them, in the
        layout of the paper; then what the other policies would store."""
        self._internals.check_open()
        annotated, bases = self._session.annotated(self._source)
        lines = [explain_program(annotated, bases), "", "What each policy stores:"]
        for rule in annotated.rules:
            stored = {each: self._parts(rule, each) for each in POLICIES}
            lines += [f"  {line}" for line in comparison(rule, stored)]
        return "\n".join(lines)

    @exclusive
    def network(self, materialise: str = "cosma", format: str = "text") -> str:
        """The discrimination network of each rule under a policy (`rete`, `treat`, `atreat` or
        `cosma`): what is stored and what is computed from it. `format` is `text` or `svg`."""
        _check_one_of(materialise, POLICIES, "the policy")
        _check_one_of(format, ("text", "svg"), "the format")
        self._internals.check_open()
        annotated, _ = self._session.annotated(self._source)
        networks: dict[str, list[NetworkNode]] = {}
        for rule in annotated.rules:
            name = rule.name if rule.name not in networks else f"{rule.name} ({len(networks)})"
            networks[name] = network_of(rule, materialise, self._parts(rule, materialise))
        return network_picture(networks) if format == "svg" else network_text(networks)

    def _parts(self, rule: RuleAnnotation, policy: str) -> Parts:
        if policy == COSMA:
            return stored_by_cosma(rule.subexpressions)
        return CHOICES[policy](rule, self._session.estimates())

    @exclusive
    def run(
        self,
        choose: Callable[[Sequence[Candidate]], Candidate] | None = None,
        limit: int | None = None,
        *,
        materialise: str = "auto",
        trace: bool = False,
    ) -> ProgramRun:
        """Fire rules until none is firable, all or nothing: in the open transaction, or in one of
        its own, which is committed.

        `choose` is called in each cycle with the candidates that no priority orders, and returns
        one of them. By default the rule that is written first fires, for its greatest body tuple.
        A program that makes more firings than its `limit` is rolled back with an error.

        `materialise` says what is stored while it runs, which changes nothing but the time it
        takes: `rete`, `treat`, `atreat`, `cosma`, or `auto`, which lets measurements decide.
        """
        if choose is not None:
            check_callable(choose, "choose")
        if limit is not None:
            check_whole(limit, "the limit", least=1)
        check_flag(trace, "trace")
        check_text(materialise, "the policy")
        self._internals.check_open()
        lines: list[str] = []
        picked: Choose | None = choose
        wishes = ProgramWishes(limit, picked, lines.append if trace else None, materialise)
        found = self._session.fire(self._source, wishes)
        return ProgramRun(found.total, dict(found.of), lines, found.policy, found.stored_rows)


def _check_one_of(value: object, allowed: Sequence[str], what: str) -> None:
    check_text(value, what)
    if value not in allowed:
        raise NameFault(f"{what} is one of {', '.join(allowed)}, not {value!r}", code="bad-value")
