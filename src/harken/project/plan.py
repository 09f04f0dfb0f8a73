"""The plan: what must change for a database to agree with a project.

Planning only reads. It compares the meaning of texts: a comment or another layout is no change.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from harken.api.database import Database
from harken.api.stored_definitions import Definition
from harken.database.language_names import AMOSQL, DATALOG, SQL
from harken.errors import HarkenError
from harken.project.continual_documents import QUERY, PlannedQuery, planned_queries
from harken.project.order import dependencies, in_order
from harken.project.ownership import Entry, owners, read_record
from harken.project.project_fault import ProjectFault
from harken.project.project_files import Declared, Project
from harken.project.seeds import Difference, Seed, difference, remembered
from harken.statements.declaration import (
    ACTIVATION,
    DOMAIN,
    FACT,
    FUNCTION,
    MATERIALIZED,
    RELATION,
    RULE,
    SOURCE,
    TABLE,
    TYPE,
    VIEW,
)
from harken.statements.language_registry import language_named

SEED, TESTS = "seed", "tests"
LANGUAGES = {
    **dict.fromkeys((TABLE, VIEW, MATERIALIZED, SOURCE, DOMAIN), SQL),
    **dict.fromkeys((FUNCTION, RULE), AMOSQL),
    RELATION: DATALOG,
}
SHARED_NAMES = (TABLE, VIEW, MATERIALIZED, RELATION, SOURCE, DOMAIN)
"""Kinds that share one name space."""
Key = tuple[str, str]


class Action(enum.StrEnum):
    CREATE = "create"
    CHANGE = "change"
    REMAKE = "remake"
    TAKE_OVER = "take over"
    DROP = "drop"


@dataclass(slots=True)
class PlannedChange:
    action: Action
    kind: str
    name: str
    declared: Declared | None = None
    entry: Entry | None = None
    recomputes: list[str] = field(default_factory=list)
    """Its readers, which are recomputed."""
    loses: str = ""
    """The rows that would be lost."""

    @property
    def key(self) -> Key:
        return self.kind, self.name


@dataclass(slots=True)
class PlannedSeed:
    seed: Seed
    change: Difference
    is_gone: bool = False


@dataclass(slots=True)
class Plan:
    project: Project
    changes: list[PlannedChange] = field(default_factory=list)
    """In the order in which they are made; drops come last."""
    groups: list[list[PlannedChange]] = field(default_factory=list)
    """What is created, in groups that are created together."""
    seeds: list[PlannedSeed] = field(default_factory=list)
    queries: list[PlannedQuery] = field(default_factory=list)
    tests_changed: bool = False
    unchanged: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.seeds or self.queries or self.tests_changed)

    @property
    def losses(self) -> list[PlannedChange]:
        return [each for each in self.changes if each.loses]

    @property
    def drops(self) -> list[PlannedChange]:
        return [each for each in self.changes if each.action is Action.DROP]


def make_plan(db: Database, project: Project) -> Plan:
    return _Planner(db, project).plan()


def tests_meaning(project: Project) -> str:
    """A text for all tests: they run when one of them, or anything else, has changed."""
    whole = "\n".join(each.meaning for each in project.tests)
    return hashlib.sha256(whole.encode()).hexdigest() if whole else ""


class _Planner:
    def __init__(self, db: Database, project: Project) -> None:
        self._db = db
        self._project = project
        self._record = read_record(db, project.name)
        self._owners = owners(db, project.name)
        self._there: dict[Key, Definition] = {(e.kind, e.name): e for e in db.definitions()}
        self._wanted = {each.key for each in project.declared}
        self._found: dict[Key, PlannedChange] = {}

    def plan(self) -> Plan:
        plan = Plan(self._project)
        below = dict(
            zip(
                (each.key for each in self._project.declared),
                dependencies(self._project.declared),
                strict=True,
            )
        )
        for group in in_order(self._project.declared):
            needed = {self._project.declared[i].key for e in group for i in below[e.key]}
            made = [each for e in group if (each := self._change(e, needed)) is not None]
            self._found |= {each.key: each for each in made}
            plan.unchanged += len(group) - len(made)
            if made:
                plan.groups.append(made)
        drops = list(self._drops())
        plan.changes = [each for group in plan.groups for each in group] + drops
        self._found |= {each.key: each for each in drops}
        for each in plan.changes:
            self._note_effects(each)
        plan.seeds = list(self._seeds())
        plan.queries = list(planned_queries(self._db, self._project.queries, self._record))
        known = self._record.get((TESTS, TESTS))
        plan.tests_changed = tests_meaning(self._project) != (known.meaning if known else "")
        return plan

    # --- what is made ----------------------------------------------------------------------

    def _change(self, declared: Declared, needed: set[Key]) -> PlannedChange | None:
        kind, name = declared.key
        entry, here = self._record.get(declared.key), self._there.get(declared.key)
        self._refuse_others(declared)
        remade = [self._found[key] for key in needed if key in self._found]
        anew = kind in (ACTIVATION, FACT) and any(
            each.action in (Action.CREATE, Action.REMAKE) for each in remade
        )
        is_there = here is not None or (kind in (ACTIVATION, FACT) and entry is not None)
        change = PlannedChange(Action.CREATE, kind, name, declared, entry)
        if anew or not is_there:
            return change
        meaning = declared.declaration.meaning
        kept = here.text if here is not None else ""
        if entry is not None and (entry.meaning, entry.kept) == (meaning, kept):
            return None
        if entry is None and (here is None or self._meaning_of(here) == meaning):
            change.action = Action.TAKE_OVER
            return change
        if kind == TYPE:
            raise declared.wrong(
                f"the supertypes of {name} would change, and its objects would not have them",
                "unsupported",
                f"in AMOSQL: add its objects to another type, or `delete type {name};` first",
            )
        change.action = Action.CHANGE if declared.declaration.in_place else Action.REMAKE
        return change

    def _refuse_others(self, declared: Declared) -> None:
        kind, name = declared.key
        if declared.key in self._owners:
            owner = self._owners[declared.key]
            raise declared.wrong(
                f"the {declared.title} is of the project {owner}",
                "not-owned",
                "one of the two projects has to leave it out",
            )
        if kind not in SHARED_NAMES or declared.key in self._there:
            return
        other = next((each for each in SHARED_NAMES if (each, name) in self._there), None)
        if other is not None and ((other, name) not in self._record):
            raise declared.wrong(
                f"there is already a {other} {name}, which is not of this project",
                "not-owned",
                "drop it first, or choose another name",
            )

    def _meaning_of(self, here: Definition) -> str | None:
        if here.kind == TYPE:
            return None
        try:
            language = language_named(LANGUAGES[here.kind])
            return next(iter(language.declarations(here.text))).meaning
        except (HarkenError, StopIteration):
            return None

    # --- what goes -------------------------------------------------------------------------

    def _drops(self) -> Iterator[PlannedChange]:
        for entry in reversed(self._record.values()):
            if entry.kind in (SEED, TESTS, QUERY) or entry.key in self._wanted:
                continue
            change = PlannedChange(Action.DROP, entry.kind, entry.name, None, entry)
            if entry.kind in (ACTIVATION, FACT):
                if self._host_stays(entry):
                    yield change
            elif entry.key in self._there:
                yield change

    def _host_stays(self, entry: Entry) -> bool:
        """Whether the rule or relation is unchanged. If not, its activations and facts go with
        it."""
        host = entry.name.partition("(")[0].strip()
        keys = [(kind, host) for kind in (RULE, *SHARED_NAMES)]
        return any(
            key in self._there
            and key in self._wanted
            and (key not in self._found or self._found[key].action is Action.CHANGE)
            for key in keys
        ) or not any(key in self._record for key in keys)

    # --- what follows ----------------------------------------------------------------------

    def _note_effects(self, change: PlannedChange) -> None:
        here = self._there.get(change.key)
        if here is None or change.action in (Action.CREATE, Action.TAKE_OVER):
            return
        if change.action is not Action.DROP:
            plain = here.name.partition("(")[0]
            own = {f"the {kind} {name}" for kind, name in self._found}
            if change.kind == MATERIALIZED:
                change.recomputes.append("its rows")
            change.recomputes += [e for e in self._db.readers_of(plain) if e not in own]
        if here.table is not None:
            change.loses = self._loss(change, here)

    def _loss(self, change: PlannedChange, here: Definition) -> str:
        gone: list[str] = []
        if change.action is Action.CHANGE and change.declared is not None:
            kept = change.declared.declaration.columns
            gone = [each.name for each in here.columns if each.name not in kept]
            if not gone:
                return ""
        rows = int(self._db.sql(f"SELECT count(*) FROM `{here.table}`").rows[0][0])
        if not rows:
            return ""
        said = f"{rows:,} {'row' if rows == 1 else 'rows'}"
        return f"{', '.join(gone)} of {said}" if gone else said

    # --- seeds -----------------------------------------------------------------------------

    def _seeds(self) -> Iterator[PlannedSeed]:
        wanted = {seed.table for seed in self._project.seeds}
        for (kind, name), entry in self._record.items():
            if kind == SEED and name not in wanted and self._target_stays(name):
                gone = remembered(name, entry.meaning)
                empty = Seed(name, gone.columns, [])
                yield PlannedSeed(empty, Difference(gone, empty), is_gone=True)
        for seed in self._project.seeds:
            self._refuse_anothers_seed(seed)
            known = self._record.get((SEED, seed.table))
            if (
                known is not None
                and known.meaning == seed.meaning
                and self._target_stays(seed.table)
            ):
                continue
            before: Seed | None = None
            if known is not None and self._target_stays(seed.table):
                before = remembered(seed.table, known.meaning)
            yield PlannedSeed(seed, difference(before, seed))

    def _refuse_anothers_seed(self, seed: Seed) -> None:
        owner = self._owners.get((SEED, seed.table))
        if owner is not None:
            raise seed.wrong(f"{seed.table} has the seeds of the project {owner}")

    def _target_stays(self, table: str) -> bool:
        """Whether the table exists, with the rows that it had."""
        here = next((e for e in self._there.values() if (e.table or "").lower() == table), None)
        if here is None:
            return False
        found = self._found.get((here.kind, here.name))
        return found is None or found.action in (Action.CHANGE, Action.TAKE_OVER)


def refuse_losses(plan: Plan) -> None:
    """Losing rows needs the user's consent."""
    if not plan.losses:
        return
    said = "; ".join(f"{each.kind} {each.name} ({each.loses})" for each in plan.losses)
    raise ProjectFault(
        f"rows would be lost: {said}",
        code="data-loss",
        hint="use --allow-data-loss to accept that; nothing was applied",
    )
