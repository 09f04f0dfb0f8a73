"""Every script in `cases/` prints what its comments say; `cases/README.md` describes the notation.

Each runs in memory, in a file that is closed and opened again after commits, and with its relations
in the lake, where no row is at hand when a statement begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness import lakes
from tests.harness.case_scripts import (
    CASES,
    LakeRunner,
    Runner,
    language_of,
    run_case,
    title_of,
    why_not_on_lake,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_LAKE = [case for case in CASES if why_not_on_lake(case) is None]
IN_LAKE_FILES = (
    "bags.amosql",
    "deleting_objects.amosql",
    "rules_over_aggregates.amosql",
    "rules_over_bags.amosql",
    "rules_transactions.amosql",
    "transactions_of_data.amosql",
    "transactions_of_schema.amosql",
)
ON_SPARK = ("functions_without_arguments.amosql", "text.amosql", "time_values.amosql")
"""Evaluated by Spark alone, statement by statement, without batching."""


def named(name: str) -> Path:
    return next(path for path in CASES if path.name == name)


def name_of(case: Path) -> str:
    return case.name


@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_case(case: Path, store: str, tmp_path: Path) -> None:
    path = ":memory:" if store == "memory" else str(tmp_path / "case.db")
    run_case(case, Runner(path, language_of(case)))


@pytest.fixture
def rows_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.seek_by_key(monkeypatch)
    lakes.write_later(monkeypatch)


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", IN_LAKE, ids=name_of)
def test_case_in_the_lake(case: Path) -> None:
    run_case(case, LakeRunner(":memory:", language_of(case)))


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("name", IN_LAKE_FILES)
def test_case_in_the_lake_of_a_file(name: str, tmp_path: Path) -> None:
    case = named(name)
    run_case(case, LakeRunner(str(tmp_path / "case.db"), language_of(case)))


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("name", ON_SPARK)
def test_case_on_spark(name: str, spark: SparkSession) -> None:
    case = named(name)
    run_case(case, LakeRunner(":memory:", language_of(case), forced="spark", spark=spark))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", IN_LAKE, ids=name_of)
def test_every_case_on_spark(case: Path, spark: SparkSession) -> None:
    run_case(case, LakeRunner(":memory:", language_of(case), forced="spark", spark=spark))


@pytest.mark.nightly
@pytest.mark.parametrize("case", IN_LAKE, ids=name_of)
def test_every_case_written_at_each_commit(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes.seek_by_key(monkeypatch)
    run_case(case, LakeRunner(str(tmp_path / "case.db"), language_of(case)))


def test_each_case_has_a_title() -> None:
    for case in CASES:
        assert title_of(case)


def test_there_are_cases_in_every_language() -> None:
    assert {case.suffix for case in CASES} == {".amosql", ".sql", ".dl"}
