"""Programs that are active: they run to their fixpoint whenever a commit has changed their facts.

Their texts are in the file, and all sessions run them. Their rules are watched all the time.
Between transactions a program is at a fixpoint, so nothing is firable, and the changes of a
transaction alone say what is. It fires in the check phase, as one action.

Law: a committed state is a fixpoint of every active program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from harken.consumers.programs.compiled_programs import CompiledProgram, CompiledRule, RuleView
from harken.consumers.programs.cycle import Cycle
from harken.consumers.programs.matched_rules import MatchedRule, MatchedState
from harken.consumers.programs.rule_network import views_of
from harken.database.runtime import Runtime
from harken.engines.protocol import COUNTERS, Field, RecordKind
from harken.errors import HarkenError, IntegrityError
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import DEFERRED, Consumer, PendingAction
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange

PROGRAMS = RecordKind(
    "harken_programs", (Field("number", "integer"), Field("text", "text")), ("number",), True
)
VERSION = "programs"
"""The counter of changes to them."""

Compile = Callable[[str], CompiledProgram]


@dataclass(slots=True)
class ActiveProgram:
    """A program with the cycle of the open transaction, if its facts have changed in it."""

    number: int
    text: str
    compiled: CompiledProgram
    views: tuple[RuleView, ...]
    cycle: Cycle | None = None

    @property
    def title(self) -> str:
        return f"the program of {', '.join(each.name for each in self.compiled.rules[:3])}"


@dataclass(frozen=True, slots=True)
class _State:
    """A snapshot: the conflict sets of each program."""

    conflicts: dict[int, dict[str, MatchedState]] = field(default_factory=dict)


class ActivePrograms(Consumer):
    def __init__(
        self, runtime: Runtime, network: Network, check_phase: CheckPhase, compile_text: Compile
    ) -> None:
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._compile = compile_text
        self._programs: dict[int, ActiveProgram] = {}
        self._by_view: dict[str, ActiveProgram] = {}
        self._broken: dict[int, HarkenError] = {}
        self._version = -1
        self._epoch = -1

    # --- activating ------------------------------------------------------------------------

    def activate(self, text: str) -> None:
        """Keep a program in the file; the caller has run it to its fixpoint."""
        records = self._runtime.engine.connection.records
        records.make_room(PROGRAMS)
        records.add(PROGRAMS, (None, text))
        records.count_up(VERSION)
        self.synchronise()

    def deactivate(self, rules: Iterable[str] | None) -> int:
        """Deactivate the programs that have one of these rules, or all; returns how many."""
        wanted = None if rules is None else set(rules)
        records = self._runtime.engine.connection.records
        gone = [
            number
            for number, text in self._texts().items()
            if wanted is None or not wanted.isdisjoint(self.rules_of(number, text))
        ]
        for number in gone:
            records.remove(PROGRAMS, {"number": number})
        if gone:
            records.count_up(VERSION)
            self.synchronise()
        return len(gone)

    def rules_of(self, number: int, text: str) -> set[str]:
        known = self._programs.get(number)
        compiled = known.compiled if known is not None else self._compile(text)
        return {each.name for each in compiled.rules}

    def rules(self) -> dict[str, int]:
        """The rules of all active programs, with the numbers of the programs."""
        found: dict[str, int] = {}
        for number, each in self._programs.items():
            found |= {rule.name: number for rule in each.compiled.rules}
        return found

    def _texts(self) -> dict[int, str]:
        records = self._runtime.engine.connection.records
        if not records.exist(PROGRAMS):
            return {}
        return {int(number): str(text) for number, text in records.find(PROGRAMS)}

    # --- the network -----------------------------------------------------------------------

    def synchronise(self) -> None:
        version = self._counter()
        if (version, self._runtime.catalog.epoch) == (self._version, self._epoch):
            return
        self._version, self._epoch = version, self._runtime.catalog.epoch
        texts = self._texts()
        if not (texts or self._programs):
            return
        before, self._programs, self._broken = self._programs, {}, {}
        for number, text in texts.items():
            self._renew(number, text, before.get(number))
        views = [view for each in self._programs.values() for view in each.views]
        self._by_view = {v.name: e for e in self._programs.values() for v in e.views}
        self._network.graph.hold(self, views)

    def _renew(self, number: int, text: str, before: ActiveProgram | None) -> None:
        """Compile a program again. One that cannot be compiled here must not prevent the database
        from being opened."""
        try:
            compiled = self._compile(text)
        except HarkenError as error:
            self._broken[number] = error
            return
        views = tuple(
            view for rule in compiled.rules for view in views_of(rule, compiled, f"active {number}")
        )
        cycle = before.cycle if before is not None else None
        self._programs[number] = ActiveProgram(number, text, compiled, views, cycle)

    def _counter(self) -> int:
        found = self._runtime.engine.connection.records.find(COUNTERS, {"key": VERSION})
        return int(found[0][1]) if found else 0

    def refresh(self) -> None:
        if self._counter() != self._version:
            self.synchronise()

    def after_clearing(self) -> None:
        self._version = -1

    def before_check(self) -> None:
        for number, error in list(self._broken.items()):
            self._version = -1
            self.synchronise()
            if number in self._broken:
                raise IntegrityError(
                    f"an active program cannot run: {error.message}",
                    code="in-use",
                    hint="put back what its rules mention, or end it with .deactivate",
                ) from error

    # --- the open transaction --------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        assert isinstance(change.view, RuleView)
        program = self._by_view.get(change.view.name)
        if program is not None:
            self._cycle_of(program).receive(change.view, change.plus, change.minus)

    def _cycle_of(self, program: ActiveProgram) -> Cycle:
        """Its rules are matched: at the last fixpoint nothing was firable."""
        if program.cycle is None:
            program.cycle = Cycle(
                self._runtime,
                program.compiled,
                _nothing_firable,
                self._check_phase.propagate,
                say=self._check_phase.trace.say if self._check_phase.trace.is_on else None,
            )
            program.cycle.match_all()
        return program.cycle

    def next_action(self, coupling: str) -> PendingAction | None:
        if coupling != DEFERRED:
            return None
        for each in self._programs.values():
            if each.cycle is not None and each.cycle.is_firable:
                return PendingAction(each.title, partial(self._run, each))
        return None

    def _run(self, program: ActiveProgram) -> None:
        assert program.cycle is not None
        program.cycle.run(program.compiled.limit)

    def wants_minus(self, view: str) -> bool:
        return True

    def snapshot(self) -> object:
        return _State(
            {n: each.cycle.state() for n, each in self._programs.items() if each.cycle is not None}
        )

    def restore(self, state: object) -> None:
        kept = state.conflicts if isinstance(state, _State) else {}
        for number, each in self._programs.items():
            if number in kept:
                self._cycle_of(each).restore(kept[number])
            else:
                each.cycle = None

    def forget(self) -> None:
        for each in self._programs.values():
            each.cycle = None


def _nothing_firable(_rule: CompiledRule, _matched: MatchedRule) -> None:
    """What matching finds at a fixpoint."""
