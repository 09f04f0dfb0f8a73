"""The consumer of programs: puts their rules into the network, and runs their cycles.

A run belongs to the statement that starts it. Its views are in the network for as long as it runs;
what it changes reaches all other consumers by the same waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from harken.consumers.programs.compiled_programs import CompiledProgram, CompiledRule, RuleView
from harken.consumers.programs.cycle import Choose, Cycle, Firings
from harken.consumers.programs.matched_rules import MatchedRule
from harken.database.runtime import Runtime
from harken.ir.clauses import Program
from harken.ir.productions import Firing
from harken.ir.relations import Relation
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange


class Programs(Consumer):
    def __init__(self, runtime: Runtime, network: Network, check_phase: CheckPhase) -> None:
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._cycles: dict[str, Cycle] = {}
        """The running cycle that each view belongs to."""
        self._numbers = count(1)

    def run(
        self,
        program: CompiledProgram,
        limit: int | None = None,
        choose: Choose | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Firings:
        """Fire rules until none is firable. The caller rolls back if that fails."""
        trace = self._check_phase.trace
        telling = say or (trace.say if trace.is_on else None)
        views: list[RuleView] = []
        number = next(self._numbers)

        def match(compiled: CompiledRule, matched: MatchedRule) -> None:
            for view in _views_of(compiled, program, number):
                self._cycles[view.name] = cycle
                views.append(view)
                self._network.graph.insert(view, self)
                cycle.receive(view, self._network.rows_now(view.name), [])

        def propagate() -> None:
            self._check_phase.propagate()
            self._network.compiled.settle_new()

        cycle = Cycle(self._runtime, program, match, propagate, choose, telling)
        with self._between_waves():
            try:
                self._check_phase.propagate()
                return cycle.run(limit or program.limit)
            finally:
                self._release(views)

    @contextmanager
    def _between_waves(self) -> Iterator[None]:
        """Other consumers must know that waves come before the end of the transaction."""
        before, self._runtime.immediate_rules = self._runtime.immediate_rules, True
        try:
            yield
        finally:
            self._runtime.immediate_rules = before

    def _release(self, views: list[RuleView]) -> None:
        for view in views:
            self._cycles.pop(view.name, None)
            if view.name in self._network.graph:
                self._network.graph.remove(view.name)

    def receive(self, change: ViewChange) -> None:
        assert isinstance(change.view, RuleView)
        if change.failure is not None:
            raise change.failure
        cycle = self._cycles.get(change.view.name)
        if cycle is not None:
            cycle.receive(change.view, change.plus, change.minus)


def _views_of(compiled: CompiledRule, program: CompiledProgram, number: int) -> Iterator[RuleView]:
    """What is watched for a rule. With timestamps every instance is firable."""
    wanted: list[tuple[str, Program, Relation | None, bool]] = []
    if program.options.timestamps and compiled.rule.firing is Firing.INSTANCE:
        wanted.append(("instances", compiled.instances, None, False))
    else:
        wanted += [
            (f"tokens {i}", token, target, deletes)
            for i, (token, target, deletes) in enumerate(compiled.tokens)
        ]
    if compiled.rule.calls:
        wanted.append(("calls", compiled.instances, None, False))
    for what, watched, target, deletes in wanted:
        yield RuleView(
            program=watched,
            rule=compiled.name,
            key=f"{compiled.name} {number} {what}",
            target=target,
            deletes=deletes,
        )
