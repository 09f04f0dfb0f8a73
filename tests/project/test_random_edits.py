"""Versions of a project applied one after the other = the last of them applied to nothing."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken.project.applying import apply_project
from harken.project.ownership import TABLE
from harken.project.plan import make_plan
from harken.project.project_files import Project, read_project
from tests.generators.projects import Version, versions


def written(version: Version, directory: Path) -> Project:
    for old in directory.iterdir():
        old.unlink()
    for name, text in version.files.items():
        (directory / name).write_text(text)
    return read_project(directory, {})


def contents(db: harken.Database) -> dict[tuple[str, str], object]:
    """Everything that there is, with its columns and its rows."""
    found: dict[tuple[str, str], object] = {}
    for each in db.definitions():
        if each.name == TABLE:
            continue
        result = db.sql(f"SELECT * FROM `{each.name}`")
        found[each.kind, each.name] = (result.columns, result.types, Counter(result.rows))
    return found


@settings(max_examples=12, deadline=None)
@given(st.lists(versions(), min_size=2, max_size=4))
def test_steps_end_where_the_last_version_begins(steps: list[Version]) -> None:
    with tempfile.TemporaryDirectory() as name, harken.connect() as db:
        for version in steps:
            project = written(version, Path(name))
            apply_project(db, project, allow_data_loss=True)
            assert make_plan(db, project).is_empty
            with harken.connect() as fresh:
                apply_project(fresh, project)
                assert contents(db) == contents(fresh)
