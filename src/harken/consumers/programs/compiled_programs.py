"""A program of production rules, compiled: what its cycle and the network need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harken.ir.clauses import Program
from harken.ir.productions import HeadCall, ProductionRule
from harken.ir.relations import Relation
from harken.maintenance.watched import WatchedView
from harken.values.rows import Row

DEFAULT_LIMIT = 100_000
"""How many firings a program may make, if it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView(WatchedView):
    """What the network watches for a rule: one of its output token relations, its firable
    instances, or all its instances. `deletes` is None unless its rows are facts."""

    rule: str
    key: str
    """Tells the views of a run apart."""
    target: Relation | None = None
    deletes: bool = False

    @property
    def name(self) -> str:
        return f"program rule {self.key}"

    @property
    def title(self) -> str:
        return f"rule {self.rule}"

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def may_be_counted(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView(WatchedView):
    """What the network watches and stores for a memory."""

    table: Relation
    key: str

    @property
    def name(self) -> str:
        return f"program memory {self.key}"

    @property
    def title(self) -> str:
        return "a stored subexpression of a program"

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def may_be_counted(self) -> bool:
        return False

    @property
    def stored(self) -> Relation:
        return self.table


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A subexpression that is stored while a program runs."""

    relation: Relation
    program: Program
    text: str


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """`tokens` are the programs of its output token relations: of each relation and sign if it is
    set-oriented, of its firable instances otherwise. `instances` has all rows of the body."""

    rule: ProductionRule
    tokens: tuple[tuple[Program, Relation | None, bool], ...]
    instances: Program
    memories: tuple[StoredMemory, ...] = ()
    """What its programs read, smaller ones first."""
    plain: CompiledRule | None = None
    """The rule without memories, for when they turn out too large."""

    @property
    def name(self) -> str:
        return self.rule.name


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is to be understood, beside its rules.

    With `timestamps` each fact has the time of its last insertion, and every instance is firable;
    with `refraction` no instance fires twice. The `resolution` chooses among instances that no
    priority orders: by the text, or by how recent their facts are (LEX, MEA, salience).
    """

    timestamps: bool = False
    refraction: bool = False
    resolution: str = "text"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """`above` are the rules that have priority over each rule."""

    rules: tuple[CompiledRule, ...]
    above: Mapping[str, frozenset[str]]
    options: ProgramOptions = ProgramOptions()
    limit: int = DEFAULT_LIMIT
    check_rows: Callable[[Relation, Sequence[Row]], None] = lambda _relation, _rows: None
    """Raises if a relation cannot hold these rows although its columns could."""
    call: Callable[[HeadCall, Row], None] = lambda _call, _row: None
    """Calls a procedure with stored values."""
    initial: tuple[tuple[Relation, Row], ...] = ()
    digest: str = ""
    """What tells the program from others."""
    policy: str = "atreat"
    """Which policy chose its memories."""
    room: float = float("inf")
    """How many rows its memories may have."""
    """The facts of the text in its order, which is that of their timestamps."""
