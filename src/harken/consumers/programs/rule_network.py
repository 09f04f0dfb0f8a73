"""The views of a running program in the network: what is watched for its rules, and stored.

A rule is put in when it is first matched, its memories before it. Memories that other rules have
put in are shared; they are temporary tables, which only the network writes. If the memories of a
rule turn out to have more rows than there is room for, the rule is matched without them.

Law: after `release` the network and the database are as they were, but for what the program
changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.consumers.programs.compiled_programs import (
    CompiledProgram,
    CompiledRule,
    MemoryView,
    RuleView,
)
from harken.database.runtime import Runtime
from harken.ir.clauses import Program
from harken.ir.productions import Firing
from harken.ir.relations import Relation
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.values.rows import Row


class RuleNetwork:
    def __init__(
        self,
        runtime: Runtime,
        network: Network,
        owner: Consumer,
        program: CompiledProgram,
        number: int,
    ) -> None:
        self._engine = runtime.engine
        self._network = network
        self._owner = owner
        self._program = program
        self._number = number
        self._memories: dict[str, MemoryView] = {}
        self._views: list[RuleView] = []
        self._rows = 0

    def match(self, compiled: CompiledRule) -> Iterator[tuple[RuleView, list[Row]]]:
        """Put a rule into the network; yields its views with their rows."""
        if compiled.plain is not None and not self._store(compiled):
            compiled = compiled.plain
        for view in views_of(compiled, self._program, str(self._number)):
            self._views.append(view)
            self._network.graph.insert(view, self._owner)
            yield view, self._network.rows_now(view.name)

    def _store(self, compiled: CompiledRule) -> bool:
        """Store the memories of a rule; False if there is no room for them."""
        for each in compiled.memories:
            if each.relation.id in self._memories:
                continue
            view = MemoryView(
                program=each.program,
                table=each.relation,
                key=f"{each.relation.name} {self._number}",
            )
            self._engine.create_temporary(each.relation)
            self._memories[each.relation.id] = view
            self._network.graph.insert(view, self._owner)
            rows = self._network.rows_now(view.name)
            if (self._rows + len(rows)) * each.relation.arity > self._program.room:
                self._drop(view)
                return False
            self._rows += len(rows)
            self._engine.insert_many(each.relation, rows)
        return True

    def stored_rows(self) -> int:
        return sum(self._engine.count(each.table) for each in self._memories.values())

    def release(self) -> list[str]:
        """Take everything out again; returns the names of the views."""
        graph = self._network.graph
        for view in self._views:
            if view.name in graph:
                graph.remove(view.name)
        for memory in list(self._memories.values())[::-1]:
            self._drop(memory)
        return [view.name for view in self._views]

    def _drop(self, memory: MemoryView) -> None:
        if memory.name in self._network.graph:
            self._network.graph.remove(memory.name)
        self._memories.pop(memory.table.id, None)
        if self._engine.connection.in_transaction:
            self._engine.drop_temporary(memory.table)


def views_of(compiled: CompiledRule, program: CompiledProgram, run: str) -> Iterator[RuleView]:
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
            key=f"{compiled.name} {run} {what}",
            target=target,
            deletes=deletes,
        )
