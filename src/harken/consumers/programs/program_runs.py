"""The consumer of programs: puts their rules into the network, and runs their cycles.

A run belongs to the statement that starts it. Its views are in the network for as long as it runs;
what it changes reaches all other consumers by the same waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from harken.consumers.programs.active_programs import ActivePrograms
from harken.consumers.programs.compiled_programs import CompiledProgram, CompiledRule, RuleView
from harken.consumers.programs.cycle import Choose, Cycle, Firings
from harken.consumers.programs.matched_rules import MatchedRule
from harken.consumers.programs.rule_network import RuleNetwork
from harken.database.runtime import Runtime
from harken.maintenance.materialisation import Materialisation
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange


class Programs(Consumer):
    def __init__(
        self,
        runtime: Runtime,
        network: Network,
        check_phase: CheckPhase,
        active: ActivePrograms,
    ) -> None:
        self.active = active
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._cycles: dict[str, Cycle] = {}
        """The running cycle that each view belongs to."""
        self._numbers = count(1)

    @property
    def materialisation(self) -> Materialisation:
        return self._network.chooser.materialisation

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
        number = next(self._numbers)
        network = RuleNetwork(self._runtime, self._network, self, program, number)

        def match(compiled: CompiledRule, matched: MatchedRule) -> None:
            for view, rows in network.match(compiled):
                self._cycles[view.name] = cycle
                cycle.receive(view, rows, [])

        def propagate() -> None:
            self._check_phase.propagate()
            self._network.compiled.settle_new()

        cycle = Cycle(self._runtime, program, match, propagate, choose, telling)
        started = self._runtime.engine.connection.working_time()
        with self._between_waves():
            try:
                self._check_phase.propagate()
                firings = cycle.run(limit or program.limit)
                firings.stored_rows = network.stored_rows() + cycle.conflict_size()
                firings.policy = program.policy
                took = self._runtime.engine.connection.working_time() - started
                self.materialisation.note(program.digest, program.policy, took, firings.total)
                return firings
            finally:
                for name in network.release():
                    self._cycles.pop(name, None)

    @contextmanager
    def _between_waves(self) -> Iterator[None]:
        """Other consumers must know that waves come before the end of the transaction."""
        before, self._runtime.immediate_rules = self._runtime.immediate_rules, True
        try:
            yield
        finally:
            self._runtime.immediate_rules = before

    def receive(self, change: ViewChange) -> None:
        if change.failure is not None:
            raise change.failure
        cycle = self._cycles.get(change.view.name)
        if cycle is not None and isinstance(change.view, RuleView):
            cycle.receive(change.view, change.plus, change.minus)
