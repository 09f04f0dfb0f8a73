"""How the changes of a view's recursive relations are found, in words for `db.explain`.

The possible strategies do not depend on who watches; the one in use, and what is stored for it, is
read from the nodes of the network.

Law: the text says what `propagation.derived_changes` does, with the reason where everything is
recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.calculus.rederivation import is_rederivable
from harken.database.runtime import Runtime
from harken.ir.clauses import Program, stored_relations
from harken.ir.relations import Relation
from harken.ir.strata import Stratum, reachable, stratify
from harken.maintenance.recursive_nodes import STRATEGIES, RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.planner.change_methods import rounds_again
from harken.propagation.network import Network

AGAIN = "recomputed at each change, and compared"
STORED = (
    "auto, counting and materialized store the rounds at the first change, and follow "
    "only what changes in each; with external, which stores nothing, and with naive all "
    f"rounds are {AGAIN}"
)
CHOSEN = (
    "external rederives what a change can affect, and stores nothing; materialized stores "
    f"the rows and maintains them; with naive all rows are {AGAIN}; auto and counting take "
    "whichever was the fastest"
)


def strategies(runtime: Runtime, program: Program, network: Network) -> tuple[str, ...]:
    """The possible strategies for the recursive relations of a view, and those in use; empty if it
    has none."""
    found = []
    for stratum in stratify(program):
        if stratum.recursive:
            recursion = _Recursion(runtime, stratum, program, network)
            found += [f"{recursion.title}: {recursion.choice()}", f"in use: {recursion.in_use()}"]
    if not found:
        return ()
    return (f"Strategies for recursion: {', '.join(STRATEGIES)}", *found)


class _Recursion:
    def __init__(
        self, runtime: Runtime, stratum: Stratum, program: Program, network: Network
    ) -> None:
        self._network = network
        relations = [each.relation for each in stratum.definitions]
        counted = [each for each in relations if each.in_rounds]
        first = program.goal if program.goal in relations else relations[0]
        self._relation: Relation = counted[0] if counted else first
        own = Program(self._relation, reachable(self._relation, program.definitions))
        named = sorted({each.written_name for each in counted or relations})
        self.title = f"{' and '.join(named)}{', with UNION ALL' if counted else ''}"
        if counted:
            in_lake = [
                name
                for name, each in stored_relations(own).items()
                if runtime.engine.is_in_lake(each)
            ]
            self._refused = rounds_again(own, in_lake)
        else:
            self._refused = is_rederivable(own)
        self._what = "all rounds" if counted else "all rows"

    def choice(self) -> str:
        if self._refused is not None:
            return f"with any strategy {self._what} are {AGAIN}, because {self._refused}"
        return STORED if self._relation.in_rounds else CHOSEN

    def in_use(self) -> str:
        """In this session, and what the file stores for all sessions."""
        forced = self._network.chooser.forced
        wanted = set(self._wanted())
        if not wanted:
            return "none, because nothing watched here depends on it"
        if forced is not None:
            return f'{forced}, by db.monitoring("{forced}")'
        first = (
            each
            for each in (Strategy.NAIVE, Strategy.MATERIALIZED, Strategy.EXTERNAL)
            if each in wanted
        )
        strategy = next(first, min(wanted))
        return f"{strategy}; {self._done(strategy)}"

    def _wanted(self) -> Iterator[str]:
        for each in self._network.graph.views():
            if self._relation.id in each.program.definitions:
                yield each.strategy

    def _done(self, strategy: str) -> str:
        again = f"{self._what} are {AGAIN}"
        if self._refused is not None or strategy == Strategy.NAIVE:
            return again
        derived = {each.id: each for each in self._network.graph.derived.values()}
        node = derived.get(self._relation.id)
        if isinstance(node, RoundsNode):
            if node.refused is not None:
                reason = (
                    "external stores nothing" if strategy == Strategy.EXTERNAL else node.refused
                )
                return f"{again}, because {reason}"
            if node.table.holds():
                return f"the rounds are stored, {node.table.size()} rows"
            return "the rounds are stored after the next change"
        if isinstance(node, RecursiveNode) and node.kept_rows.holds():
            return f"{node.kept_rows.size()} rows are stored"
        return "nothing is stored"
