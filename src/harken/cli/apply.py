"""`harken apply`: makes a database agree with a directory of files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import harken
from harken.cli.options import DatabaseFile, Format, Output, Overrides
from harken.cli.reporting import report, reported, writer
from harken.cli.sessions import command_line_spark, settings_of
from harken.database.results import to_json
from harken.errors import HarkenError
from harken.pipeline.progress_bars import progress_bars
from harken.settings import Settings


def apply(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The directory of .sql, .amosql, .dl and .yml files."),
    ],
    db: DatabaseFile = ":memory:",
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only show what would change; the database is not modified."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Apply again whenever a file changes, until Ctrl-C.")
    ] = False,
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Allow changes that delete rows.")
    ] = False,
    format: Output = Format.TEXT,
    set: Overrides = None,
) -> None:
    """Create, change and drop tables, views, rules and rows until a database agrees with a project.

    Everything happens in one transaction, including the tests. Without --db this happens in memory,
    which only checks the project.
    """
    from harken.project.file_versions import each_version
    from harken.project.project_files import read_project

    settings = settings_of(set)
    applying = _Applying(db, plan, allow_data_loss, format, settings)
    with reported(format):
        if not watch:
            applying.run(read_project(directory))
            return
        try:
            for project in each_version(directory, applying.refuse):
                try:
                    applying.run(project)
                except HarkenError as error:
                    applying.refuse(error)
        except KeyboardInterrupt:
            return


class _Applying:
    def __init__(
        self, path: str, only_plan: bool, allow_loss: bool, format: Format, settings: Settings
    ) -> None:
        self._path = path
        self._only_plan = only_plan
        self._allow_loss = allow_loss
        self._format = format
        self._settings = settings

    def refuse(self, error: HarkenError) -> None:
        report(error, None, self._format)

    def run(self, project: object) -> None:
        from harken.project.applying import apply_project
        from harken.project.plan import make_plan
        from harken.project.project_files import Project

        assert isinstance(project, Project)
        started = time.perf_counter()
        with self._database() as db:
            if self._only_plan:
                self._show(make_plan(db, project))
                return
            with progress_bars(db):
                done = apply_project(db, project, allow_data_loss=self._allow_loss, tell=self._show)
        if not done.is_empty:
            self._say(done, time.perf_counter() - started)

    @contextmanager
    def _database(self) -> Iterator[harken.Database]:
        """A plan creates no file, and waits for no lock."""
        exists = Path(self._path).exists()
        path = self._path if exists or not self._only_plan else ":memory:"
        read_only = self._only_plan and exists
        with (
            harken.connect(
                path, read_only=read_only, spark=command_line_spark, settings=self._settings
            ) as db,
            db.listening(writer(self._format)),  # what rules print
        ):
            yield db

    def _show(self, plan: object) -> None:
        from harken.project.plan import Plan
        from harken.project.plan_lines import as_json, lines

        assert isinstance(plan, Plan)
        if self._format is Format.JSON:
            for each in as_json(plan):
                print(to_json(each), flush=True)
            return
        print("\n".join(lines(plan)), flush=True)

    def _say(self, done: object, seconds: float) -> None:
        from harken.project.plan import Plan

        assert isinstance(done, Plan)
        tests = len(done.project.tests)
        if self._format is Format.JSON:
            print(to_json({"kind": "applied", "project": done.project.name, "tests": tests}))
            return
        passed = f"; {tests} {'test' if tests == 1 else 'tests'} passed" if tests else ""
        print(f"applied in {seconds:.2f} s{passed}", flush=True)
        if self._path == ":memory:":
            print(
                "The database was in memory and is gone now: --db FILE keeps one.", file=sys.stderr
            )
