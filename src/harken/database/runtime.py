"""What a running statement has access to: the engine, the catalog, the objects and the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from harken.database.catalog import Catalog
from harken.database.delta_claims import Claims
from harken.database.due_work import Agenda
from harken.database.objects import Object, Objects
from harken.database.permissions import Permissions
from harken.database.results import Result
from harken.database.secrets import Secrets
from harken.database.standing_relations import StandingRelations
from harken.database.system import FIRED
from harken.engines.protocol import Engine
from harken.ir.schema import Function
from harken.settings import Settings
from harken.values.encoding import literal_type
from harken.values.types import Type

if TYPE_CHECKING:
    from harken.database.reactions import Reactions

CALL_DEPTH = 500
"""The deepest nesting of procedure calls before it counts as infinite recursion."""


class RuleSwitch(Protocol):
    """What a statement may ask of the rules."""

    def activate(self, name: str, arguments: tuple[Any, ...], priority: int) -> None: ...

    def deactivate(self, name: str, arguments: tuple[Any, ...]) -> None: ...

    def record_decoupled(self, found: Any) -> None: ...

    def before_remaking(self, function: Function) -> None: ...

    def check(self, name: str) -> None:
        """Raise if a rule, or its action, no longer compiles."""


class Watcher(Protocol):
    """A watcher that prevents a deletion: its name for messages, and how to remove it."""

    @property
    def title(self) -> str: ...

    @property
    def ending(self) -> str: ...


class MonitorWatch(Protocol):
    """What a change of the schema must know about monitors."""

    def check(self) -> None: ...

    def users_of(self, function: Function) -> Sequence[Watcher]: ...


@dataclass(frozen=True, slots=True)
class AllWatchers:
    """Those who watch what others define: monitors, continual queries."""

    parts: tuple[MonitorWatch, ...]

    def check(self) -> None:
        for part in self.parts:
            part.check()

    def users_of(self, function: Function) -> Sequence[Watcher]:
        return [watcher for part in self.parts for watcher in part.users_of(function)]


@dataclass(slots=True)
class StatementCounts:
    """What became of the statements of SQL in this session."""

    texts: int = 0
    known: int = 0
    """Texts that were not parsed, because all of their statements were known."""
    planned: int = 0
    """Known statements that were planned, for the first time or again."""
    unfit: int = 0
    """Runs of known statements that had to be parsed and planned as they are."""
    changed: int = 0
    """Rows that statements inserted, deleted, or gave other values."""


@dataclass(slots=True)
class Runtime:
    engine: Engine
    catalog: Catalog
    objects: Objects
    settings: Settings
    python: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """The Python functions behind foreign functions, by function id."""
    replaced: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """Implementations that `db.foreign` gave to functions declared in AMOSQL."""
    module_directories: tuple[str, ...] = ()
    """Where modules of foreign functions are looked for first."""
    interface: dict[str, Any] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    """The interface variables that objects are printed as."""
    listener: Callable[[Result], None] = lambda result: print(*result.lines(), sep="\n")
    """Called with each result as soon as it exists."""
    depth: int = 0
    rules: RuleSwitch = field(init=False)
    monitors: MonitorWatch = field(init=False)
    reactions: Reactions = field(init=False)
    statement_counts: StatementCounts = field(default_factory=StatementCounts)
    all_in_lake: bool = False
    """Whether new stored functions go to the lake by default."""
    redefined: set[str] | None = None
    """While definitions are changed together: the names of those that changed so far. What they
    leave broken in between is looked at when all have changed (`statements.redefinition`)."""
    immediate_rules: bool = False
    """Whether any active rule acts after each statement."""
    before_rules: bool = False
    """Whether any active rule acts before the statements that trigger it."""
    is_trial: bool = False
    """Whether a statement is only tried, to see what it would trigger."""
    decoupled_rules: bool = False
    """Whether any active rule acts also after a rollback."""
    held_back: int = 0
    """How many loops and actions of rules are running: immediate rules act at their end."""
    asked_rows: Callable[[str], Sequence[tuple[Any, ...]]] = lambda name: ()
    """The rows of a source without a mirror."""
    delta_claims: list[Claims] = field(default_factory=list)
    """Who has not seen all changes of these views."""
    feeds: dict[str, Any] = field(default_factory=dict)
    """The streams that this session runs, by the relation that each feeds."""
    due_work: Agenda = field(default_factory=Agenda)
    """What is to be done when its time comes."""
    standing: StandingRelations = field(init=False)
    """Our relations that are there for whoever asks."""
    secrets: Secrets = field(init=False)
    permissions: Permissions = field(init=False)
    """Who may do what, and for whom the session works."""

    def __post_init__(self) -> None:
        records = self.engine.connection.records
        self.secrets = Secrets(records, self.settings)
        self.permissions = Permissions(records, self.catalog)
        self.standing = StandingRelations(self.catalog, not self.engine.connection.read_only)

    @contextmanager
    def holding_back(self) -> Iterator[None]:
        """In the block, the statements of procedures are no statements for immediate rules."""
        self.held_back += 1
        try:
            yield
        finally:
            self.held_back -= 1

    def emit(
        self,
        kind: str,
        columns: tuple[str, ...],
        rows: list[tuple[Any, ...]],
        types: tuple[Type, ...],
    ) -> None:
        self.listener(Result(kind, columns, rows, self.name_object, types=types))

    def name_object(self, value: Object) -> str:
        name = self.names.get(value.oid)
        if name is not None and self.interface.get(name) != value:
            name = next((each for each, held in self.interface.items() if held == value), None)
            if name is not None:
                self.names[value.oid] = name
        return f":{name}" if name is not None else repr(self.objects.handle(value.oid))

    def show_row(self, row: tuple[Any, ...]) -> str:
        return Result("rows", (), [row], self.name_object).lines()[0]

    def show_rows(self, rows: list[tuple[Any, ...]]) -> str:
        """Some rows in one line, at most the first ten."""
        shown = [self.show_row(row) for row in rows[:10]]
        more = [f"and {len(rows) - 10} more"] if len(rows) > 10 else []
        return ", ".join([*shown, *more])

    def count_firing(self, rule_oid: int, times: int) -> None:
        """Count how often a rule has acted: `fired(rule)`."""
        known = self.engine.results(FIRED, (rule_oid,))
        before = int(known[0][0]) if known else 0
        self.engine.set_row(FIRED, (rule_oid, before + times))

    def assign(self, name: str, value: Any) -> None:
        self.interface[name] = value
        if isinstance(value, Object):
            known = self.names.get(value.oid)
            if known is None or self.interface.get(known) != value:
                self.names[value.oid] = name

    def drop_variables_from(self, first_oid: int) -> None:
        """After a rollback: objects created since then are gone, and so are the variables that name
        them."""
        if self.catalog.allocate(0) == first_oid:
            return  # none was created
        gone = [
            name
            for name, value in self.interface.items()
            if isinstance(value, Object) and value.oid >= first_oid
        ]
        for name in gone:
            del self.interface[name]
        self.names = {oid: name for oid, name in self.names.items() if oid < first_oid}

    def types_of_variable(self, name: str) -> tuple[Type, ...]:
        """The types of the object in a variable; empty if it has no value, or its object is
        gone."""
        if name not in self.interface:
            return ()
        value = self.interface[name]
        if isinstance(value, Object):
            return tuple(Type(type_) for type_ in sorted(self.objects.types_of(value.oid)))
        return (literal_type(value),)
