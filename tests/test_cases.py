"""Every script in `cases/` prints what its comments say; `cases/README.md` describes the notation.

Each runs in memory, in a file that is closed and opened again after commits, and with its functions
in the lake; there nothing is at hand when a statement begins. A statement that is to fail must
leave the data, the schema and the interface variables as they were; where a rule undoes the
transaction, it must leave what was committed last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harken
from harken.lang.amosql.statement_shapes import split
from harken.propagation.check_phase import ROUND_LIMIT
from tests.harness import lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = sorted((Path(__file__).parent / "cases").glob("*.amosql"))
EXPECTATION = re.compile(r"/\*([=!])(.*?)\*/", re.DOTALL)
COMMIT = re.compile(r"commit(\s+work)?", re.IGNORECASE)
UNDONE_BY_RULE = "rolled-back"
REOPENINGS = (1, 2, 3, 5, 8, 13, 21, 34)
IN_LAKE_FILES = (
    "bags",
    "deleting_objects",
    "rules_over_aggregates",
    "rules_over_bags",
    "rules_transactions",
    "transactions_of_data",
    "transactions_of_schema",
)
ROUNDS_ON_SPARK = 50
"""After how many rounds rules that never settle are stopped: a round asks several questions."""
ON_SPARK = ("functions_without_arguments", "text", "time_values")


def named(case: str) -> Path:
    return next(path for path in CASES if path.stem == case)


@dataclass(frozen=True)
class Step:
    """The statements up to an expectation: the lines they print, or the fault of the last one."""

    line: int
    statements: list[str]
    lines: Counter[str]
    fault: str | None = None
    words: str = ""


def steps(script: str) -> Iterator[Step]:
    position = 0
    for found in EXPECTATION.finditer(script):
        statements = [piece.text for piece in split(script[position : found.start()])]
        line = script.count("\n", 0, found.start()) + 1
        position = found.end()
        if found[1] == "!":
            code, _, words = found[2].strip().partition(":")
            yield Step(line, statements, Counter(), code, words.strip())
        else:
            expected = (each.strip() for each in found[2].splitlines())
            yield Step(line, statements, Counter(each for each in expected if each))
    rest = [piece.text for piece in split(script[position:])]
    yield Step(script.count("\n") + 1, rest, Counter())


class Runner:
    """A session that can lose its connection at a commit, but not its interface variables."""

    def __init__(self, path: str, **options: Any) -> None:
        self.path = path
        self.options = options
        self.db = harken.connect(path, **options)
        self.commits = 0
        self.committed = self.rows()

    def run(self, statement: str) -> list[str]:
        printed: list[str] = []
        self.before_statement()
        self.db.run_program("amosql", statement, lambda result: printed.extend(result.lines()))
        if COMMIT.fullmatch(statement):
            self.commits += 1
            self.committed = self.rows()
            if self.path != ":memory:" and self.is_time_to_reopen():
                self.reopen()
        return printed

    def before_statement(self) -> None:
        """Nothing, here."""

    def said_here(self, words: str) -> str:
        """What an error is to say, in such a session."""
        return words

    def is_time_to_reopen(self) -> bool:
        """Not every time in a long script: a new session compiles all active rules again."""
        return self.commits in REOPENINGS

    def reopen(self) -> None:
        variables = dict(self.db.variables)
        self.db.close()
        self.db = harken.connect(self.path, **self.options)
        for name, value in variables.items():
            self.db.assign(name, value)

    def state(self) -> dict[str, Any]:
        """Every row of every table, and the session's variables."""
        return self.rows() | {":": dict(self.db.variables)}

    def rows(self) -> dict[str, Any]:
        """Not those of the counter of objects: a number once given is not given again."""
        connection = self.db.internals.connection
        tables = connection.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'harken_meta'"
        )
        rows = {name: connection.rows(f'SELECT * FROM "{name}"') for (name,) in tables}
        return {name: sorted(each) for name, each in rows.items()}


class LakeRunner(Runner):
    """One whose functions lie in the lake, some of it written, some pending, none at hand."""

    def __init__(self, path: str, forced: str | None = None, **options: Any) -> None:
        self.forced = forced
        super().__init__(path, engine="lake", **options)
        self._force()

    def reopen(self) -> None:
        super().reopen()
        self._force()

    def _force(self) -> None:
        self.db.internals.engine.forced = self.forced
        if self.forced == "spark":
            self.db.round_limit(ROUNDS_ON_SPARK)

    def before_statement(self) -> None:
        lakes.let_go(self.db)

    def said_here(self, words: str) -> str:
        limit = ROUNDS_ON_SPARK if self.forced == "spark" else ROUND_LIMIT
        return words.replace(f"{ROUND_LIMIT} rounds", f"{limit} rounds")

    def run(self, statement: str) -> list[str]:
        printed = super().run(statement)
        if COMMIT.fullmatch(statement) and self.is_time_to_reopen():
            lakes.check(self.db)
            self.db.flush()
            assert lakes.written(self.db) == lakes.state(self.db)
            self.committed = self.rows()
        return printed

    def rows(self) -> dict[str, Any]:
        return super().rows() | {"lake": lakes.state(self.db)}


def check(runner: Runner, step: Step) -> None:
    printed: Counter[str] = Counter()
    last = len(step.statements) - 1
    for number, statement in enumerate(step.statements):
        if step.fault is not None and number == last:
            check_fault(runner, step, statement)
        else:
            printed.update(any_number(line) for line in runner.run(statement))
    assert printed == step.lines, f"before line {step.line}"


def check_fault(runner: Runner, step: Step, statement: str) -> None:
    before = runner.state()
    with pytest.raises(harken.HarkenError) as caught:
        runner.run(statement)
    error, place = caught.value, f"before line {step.line}"
    assert error.code == step.fault, f"{place}: {error.report()}"
    assert runner.said_here(step.words) in error.report(), place
    assert error.span is not None, place
    assert 0 <= error.span.start <= error.span.end <= len(statement), place
    assert error.hint, place
    if error.code == UNDONE_BY_RULE or COMMIT.fullmatch(statement):
        assert runner.rows() == runner.committed, f"{place}: the transaction left something behind"
    else:
        assert runner.state() == before, f"{place}: the statement failed, and changed something"


def any_number(line: str) -> str:
    """An object without a name prints with a number, which a script cannot know."""
    return re.sub(r"#\[(\w+) \d+\]", r"#[\1 ?]", line)


def run_case(case: Path, runner: Runner) -> None:
    try:
        for step in steps(case.read_text("utf-8")):
            check(runner, step)
    finally:
        runner.db.close()


@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case(case: Path, store: str, tmp_path: Path) -> None:
    run_case(case, Runner(":memory:" if store == "memory" else str(tmp_path / "case.db")))


@pytest.fixture
def rows_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.seek_by_key(monkeypatch)
    lakes.write_later(monkeypatch)


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_in_the_lake(case: Path) -> None:
    run_case(case, LakeRunner(":memory:"))


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", IN_LAKE_FILES)
def test_case_in_the_lake_of_a_file(case: str, tmp_path: Path) -> None:
    run_case(named(case), LakeRunner(str(tmp_path / "case.db")))


@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", ON_SPARK)
def test_case_on_spark(case: str, spark: SparkSession) -> None:
    run_case(named(case), LakeRunner(":memory:", forced="spark", spark=spark))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("rows_by_key")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_every_case_on_spark(case: Path, spark: SparkSession) -> None:
    run_case(case, LakeRunner(":memory:", forced="spark", spark=spark))


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_every_case_written_at_each_commit(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes.seek_by_key(monkeypatch)
    run_case(case, LakeRunner(str(tmp_path / "case.db")))


def test_each_case_has_a_title() -> None:
    for case in CASES:
        assert case.read_text("utf-8").startswith("/* "), case.name
