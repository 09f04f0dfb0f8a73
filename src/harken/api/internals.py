"""The parts of a session, as `api` assembles them.

`db.internals` gives them to tests and benchmarks, which look inside an engine: at tables, nodes and
waves. They may change with any commit. The server, the pipeline and the command line use `Database`
only; tests/test_architecture.py makes sure of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harken.consumers.monitors.monitors import Monitors
from harken.consumers.programs.program_runs import Programs
from harken.consumers.rules.rules import Rules
from harken.continual.continual_queries import ContinualQueries
from harken.database.catalog import Catalog
from harken.database.permissions import Privilege
from harken.database.reactions import Reactions
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.engines.protocol import Engine
from harken.errors import IntegrityError, StorageError, TypeFault
from harken.intake.session_sources import SessionSources
from harken.ir.relations import Relation
from harken.ir.schema import Function, example
from harken.propagation.network import Network
from harken.statements.language_registry import StoredViews
from harken.statements.names import unknown_name


@dataclass(slots=True)
class Internals:
    runtime: Runtime
    transactions: Transactions
    reactions: Reactions
    rules: Rules
    monitors: Monitors
    materialized: StoredViews
    programs: Programs
    continual: ContinualQueries
    sources: SessionSources
    closed: bool = False

    @property
    def engine(self) -> Engine:
        return self.runtime.engine

    @property
    def connection(self) -> Any:
        """The engine's own: tests and benchmarks look at its tables."""
        return self.runtime.engine.connection

    @property
    def catalog(self) -> Catalog:
        return self.runtime.catalog

    @property
    def network(self) -> Network:
        return self.reactions.network

    def function(self, name: str, rules: Collection[str] = ()) -> Function:
        """The one function of a name; `rules` are those that the name could have meant as well."""
        overloads = self.catalog.named(name)
        if not overloads and (missing := self.runtime.standing.missing(name)):
            with self.alone():
                self.runtime.standing.declare(missing)
                self.reactions.synchronise()
            overloads = self.catalog.named(name)
        if not overloads:
            raise unknown_name(self.catalog, name, rules)
        if len(overloads) > 1:
            raise TypeFault(
                f"{name} means {', '.join(sorted(f.id for f in overloads))}",
                code="ambiguous",
                hint=f'name the type: "{example(overloads)}"',
            )
        self.runtime.permissions.check(overloads[0], Privilege.SELECT)
        return overloads[0]

    def relation(self, name: str) -> Relation:
        """The rows of a function."""
        relation = self.function(name).relation
        if relation is None:
            raise TypeFault(f"{name} is a procedure, and has no rows", code="side-effect")
        return relation

    # --- what every method of a session starts with ----------------------------------------

    def check_open(self) -> None:
        if self.closed:
            raise StorageError("the database is closed", code="closed")

    def look(self) -> None:
        """See what others have created and dropped."""
        self.check_open()
        self.transactions.look()

    def check_committed(self, message: str) -> None:
        if self.transactions.active:
            raise IntegrityError(message, code="transaction", hint="commit first")

    def force_strategy(self, strategy: str) -> None:
        """How conditions are monitored; `adaptive` forces nothing."""
        if strategy not in ("adaptive", "incremental", "naive"):
            raise TypeFault(
                f"there is no strategy {strategy}",
                code="bad-value",
                hint="use adaptive, incremental or naive",
            )
        self.network.chooser.forced = None if strategy == "adaptive" else strategy

    def close(self, close_programs: Callable[[], None]) -> None:
        """Commit, and close everything that the session has opened."""
        self.transactions.commit()
        close_programs()
        self.closed = True
        self.monitors.close()
        self.sources.close()
        try:
            self.engine.flush(give_way=True)
        finally:
            self.engine.close()
            self.connection.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A statement of the open transaction, or a transaction of its own."""
        if self.transactions.active:
            with self.transactions.statement():
                yield
        else:
            with self.transactions.block():
                yield
