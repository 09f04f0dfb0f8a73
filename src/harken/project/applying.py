"""Applying a project: carries out the plan in one transaction.

Definitions come first, then the rows of seeds; what follows from both is computed at the end of the
transaction, and then the tests run. Law: all of it happens, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import harken
from harken.api.database import Database
from harken.api.stored_definitions import Definition
from harken.errors import HarkenError, Span
from harken.project.continual_documents import carry_out_queries
from harken.project.expectations import Expectation, complaint
from harken.project.ownership import TABLE, Entry, write_record
from harken.project.plan import (
    SEED,
    TESTS,
    Action,
    Plan,
    PlannedChange,
    make_plan,
    refuse_losses,
    tests_meaning,
)
from harken.project.project_fault import ProjectFault
from harken.project.project_files import Declared, Project, only
from harken.project.seeds import Seed, carry_out
from harken.statements.declaration import FACT
from harken.statements.dependents import BrokenReader


def apply_project(
    db: Database,
    project: Project,
    *,
    allow_data_loss: bool = False,
    tell: Callable[[Plan], None] = lambda plan: None,
) -> Plan:
    """Make a database agree with a project. `tell` receives the plan before anything is done."""
    db.find_modules_in(*project.directories)
    plan = make_plan(db, project)
    tell(plan)
    if plan.is_empty:
        return plan
    if not allow_data_loss:
        refuse_losses(plan)
    run_tests_by_themselves(project)
    with db.transaction(verify=lambda: run_tests(db, project)):
        plan = make_plan(db, project)  # another session may have changed something meanwhile
        if not allow_data_loss:
            refuse_losses(plan)
        _carry_out(db, plan)
    return plan


def _carry_out(db: Database, plan: Plan) -> None:
    taken = {name for group in plan.groups for each in group for name in _names(each)}
    early = [each for each in plan.drops if each.name.partition("(")[0].lower() in taken]
    with _located(plan.project), db.redefining():
        for each in early:
            _remove(db, each)
        for group in plan.groups:
            _make(db, group)
        for each in plan.drops:
            if each not in early:
                _remove(db, each)
    _sow(db, plan)
    carry_out_queries(db, plan.queries)
    _remember(db, plan.project)


@contextmanager
def _located(project: Project) -> Iterator[None]:
    """What no longer compiles, though nobody changed it, has a place if it is of the project."""
    try:
        yield
    except BrokenReader as error:
        for each in project.declared:
            if each.declaration.name.partition("(")[0] == error.reader:
                error.text, error.source = each.text, each.source
                error.span, error.hint = each.declaration.span, "edit it, too, or what it reads"
        raise


def _names(change: PlannedChange) -> frozenset[str]:
    assert change.declared is not None
    return change.declared.declaration.called


# --- definitions ---------------------------------------------------------------------------


def _remove(db: Database, change: PlannedChange) -> None:
    assert change.entry is not None
    try:
        db.run_program(change.entry.language, change.entry.removal, _quiet)
    except HarkenError as error:
        raise ProjectFault(
            f"{change.kind} {change.name} cannot be dropped: {error.message}",
            code=error.code,
            hint=error.hint,
        ) from error


def _make(db: Database, group: Sequence[PlannedChange]) -> None:
    """A group of one definition, or of mutually recursive relations."""
    made = [each for each in group if each.action is not Action.TAKE_OVER]
    for each in made:
        if each.action is Action.REMAKE:
            assert each.declared is not None
            own = each.declared
            _run(db, [own], own.declaration.removal_language or own.language, removes=True)
    declared = [each.declared for each in made if each.declared is not None]
    if declared:
        _run(db, declared, declared[0].language)


def _run(
    db: Database, declared: Sequence[Declared], language: str, *, removes: bool = False
) -> None:
    program = _Program(declared, removes=removes)
    try:
        db.run_program(language, program.text, _quiet)
    except HarkenError as error:
        raise program.located(error) from error.__cause__


def _quiet(result: object) -> None:
    """Ignores the results of a definition."""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    """In the program."""
    length: int
    declared: Declared
    origin: int | None
    """In the file."""


class _Program:
    """The text of several declarations, with the origin of each piece."""

    def __init__(self, declared: Sequence[Declared], *, removes: bool) -> None:
        texts: list[str] = []
        self._pieces: list[_Piece] = []
        at = 0
        for each in declared:
            if removes:
                parts: list[tuple[str, int | None]] = [(each.declaration.removal, None)]
            else:
                parts = [(part.text, part.start) for part in each.declaration.parts]
            for text, origin in chain(parts, [("\n", None)]):
                self._pieces.append(_Piece(at, len(text), each, origin))
                texts.append(text)
                at += len(text)
        self.text = "".join(texts)

    def located(self, error: HarkenError) -> HarkenError:
        """The error, located in the file instead of this text."""
        declared, span = self._place(error)
        error.text, error.source, error.span = declared.text, declared.source, span
        return error

    def _place(self, error: HarkenError) -> tuple[Declared, Span]:
        first = self._pieces[0].declared
        if error.span is None or error.text != self.text:
            return first, first.declaration.span
        start = error.span.start
        piece = next((e for e in self._pieces if start < e.start + e.length), self._pieces[-1])
        if piece.origin is None:
            return piece.declared, piece.declared.declaration.span
        moved = piece.origin + start - piece.start
        length = min(error.span.end - start, piece.length - (start - piece.start))
        return piece.declared, Span(moved, moved + max(length, 1))


# --- rows ----------------------------------------------------------------------------------


def _sow(db: Database, plan: Plan) -> None:
    tables = {(each.table or "").lower(): each for each in db.definitions()}
    for planned in plan.seeds:
        target = tables.get(planned.seed.table)
        if target is None:
            if planned.is_gone:
                continue
            raise planned.seed.wrong(
                f"there is no table {planned.seed.table} for these rows",
                "a seed is for a table, a stored function or a relation without rules",
            )
        try:
            carry_out(db, target, planned.change)
        except HarkenError as error:
            if isinstance(error, ProjectFault):
                raise
            raise planned.seed.wrong(
                f"{planned.seed.table}: {error.message}", error.hint
            ) from error


def _remember(db: Database, project: Project) -> None:
    texts = {(each.kind, each.name): each.text for each in db.definitions()}
    entries = []
    for place, each in enumerate(_placed(project)):
        declaration = each.declaration
        entries.append(
            Entry(
                declaration.kind,
                declaration.name,
                declaration.removal_language or each.language,
                declaration.meaning,
                declaration.removal,
                texts.get(each.key, ""),
                place,
            )
        )
    for seed in project.seeds:
        entries.append(Entry(SEED, seed.table, "", seed.meaning, "", "", len(entries)))
    entries += [each.entry for each in project.queries]
    meaning = tests_meaning(project)
    if meaning:
        entries.append(Entry(TESTS, TESTS, "", meaning, "", "", len(entries)))
    write_record(db, project.name, entries)


def _placed(project: Project) -> list[Declared]:
    from harken.project.order import in_order

    return [each for group in in_order(project.declared) for each in group]


# --- tests ---------------------------------------------------------------------------------


def run_tests(db: Database, project: Project) -> None:
    """Run the tests of the database itself."""
    own = [each for each in project.tests if not each.given]
    _refuse_failures(own, lambda test: complaint(db, test))


def run_tests_by_themselves(project: Project) -> None:
    """Run the tests with `given` rows, each in a database that has nothing else."""
    alone = [each for each in project.tests if each.given]
    if not alone:
        return
    with harken.connect() as db:
        apply_project(db, only(project, (FACT,)))
        tables = {(each.table or "").lower(): each for each in db.definitions()}
        tables.pop(TABLE, None)
        _refuse_failures(alone, lambda test: _complaint_alone(db, test, tables))


class _Enough(Exception):
    """Ends a transaction that only served to look at its result."""


def _complaint_alone(db: Database, test: Expectation, tables: dict[str, Definition]) -> str | None:
    found: list[str | None] = []

    def look() -> None:
        found.append(complaint(db, test))
        raise _Enough

    try:
        with db.transaction(verify=look):
            for seed in test.given:
                _give(db, seed, tables)
    except _Enough:
        pass
    return found[0]


def _give(db: Database, seed: Seed, tables: dict[str, Definition]) -> None:
    from harken.project.seeds import Difference

    if seed.table not in tables:
        raise seed.wrong(f"there is no table {seed.table} for these rows")
    carry_out(db, tables[seed.table], Difference(Seed(seed.table, (), []), seed))


def _refuse_failures(
    tests: Sequence[Expectation], look: Callable[[Expectation], str | None]
) -> None:
    failed: list[tuple[Expectation, str]] = []
    for test in tests:
        try:
            wrong = look(test)
        except HarkenError as error:
            wrong = error.message
        if wrong is not None:
            failed.append((test, wrong))
    if not failed:
        return
    first, message = failed[0]
    others = "".join(f"\n{_title(test)}: {wrong}" for test, wrong in failed[1:])
    fault = ProjectFault(
        f"{first.name}: {message}{others}",
        code="test-failed",
        span=first.node.span if first.node is not None else None,
        hint="nothing was applied",
    )
    if first.node is not None:
        fault.locate(first.node.text, first.node.source)
    raise fault


def _title(test: Expectation) -> str:
    if test.node is None:
        return test.name
    line, column = test.node.span.position(test.node.text)
    return f"{test.node.source}:{line}:{column}: {test.name}"
