"""Scripts that say in comments what they print; `tests/cases/README.md` has the notation.

A `Runner` runs one, statement by statement, and `check` compares. Law: a statement that fails
leaves the data, the schema and the interface variables as they were; a transaction that is undone
leaves what was committed last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.propagation.check_phase import ROUND_LIMIT
from harken.statements.language_registry import Language, language_of_suffix
from tests.harness import lakes

CASES = sorted(
    path for path in (Path(__file__).parents[1] / "cases").iterdir() if path.suffix != ".md"
)
EXPECTATION = re.compile(r"/\*([=!~])(.*?)\*/", re.DOTALL)
COMMIT = re.compile(r"commit(\s+work)?", re.IGNORECASE)
NOT_ON_LAKE = "not on the lake:"
UNDONE = ("rolled-back", "constraint")
REOPENINGS = (1, 2, 3, 5, 8, 13, 21, 34)
ROUNDS_ON_SPARK = 50
"""After how many rounds rules that never settle are stopped: each round asks several questions."""


def title_of(case: Path) -> str:
    """The first comment of a case says what it is about."""
    found = re.match(r"/\* (.*?) ?\*/", case.read_text("utf-8"), re.DOTALL)
    assert found, f"{case.name} has no title"
    return found[1]


def why_not_on_lake(case: Path) -> str | None:
    """The reason that a case gives, if it cannot run with its relations in the lake."""
    _, found, reason = title_of(case).partition(NOT_ON_LAKE)
    return reason.strip() if found else None


@dataclass(frozen=True)
class CaseStep:
    """The statements up to an expectation: the lines they print, or the fault of the last one."""

    line: int
    statements: list[str]
    lines: Counter[str]
    fault: str | None = None
    words: str = ""
    monitored: list[str] = field(default_factory=list)
    """Views whose changes are printed from here on."""


def steps(script: str, language: Language) -> Iterator[CaseStep]:
    position = 0
    for found in EXPECTATION.finditer(script):
        statements = _statements(script[position : found.start()], language)
        line = script.count("\n", 0, found.start()) + 1
        position = found.end()
        match found[1]:
            case "!":
                code, _, words = found[2].strip().partition(":")
                yield CaseStep(line, statements, Counter(), code, words.strip())
            case "~":
                _, names = found[2].split(maxsplit=1)
                monitored = [name.strip() for name in names.split(",")]
                yield CaseStep(line, statements, Counter(), monitored=monitored)
            case _:
                expected = (each.strip() for each in found[2].splitlines())
                yield CaseStep(line, statements, Counter(each for each in expected if each))
    rest = _statements(script[position:], language)
    yield CaseStep(script.count("\n") + 1, rest, Counter())


def _statements(text: str, language: Language) -> list[str]:
    return [each for _, each in language.split(text)]


class Runner:
    """A session that can lose its connection at a commit, but neither its interface variables nor
    its monitors."""

    def __init__(self, path: str, language: Language, **options: Any) -> None:
        self.path = path
        self.language = language
        self.options = options
        self.db = harken.connect(path, **options)
        self.monitored: list[str] = []
        self.commits = 0
        self.committed = self.rows()

    def run(self, statement: str) -> list[str]:
        printed: list[str] = []
        self.before_statement()
        self.db.run_program(
            self.language.name, statement, lambda result: printed.extend(result.lines())
        )
        if (monitoring := self.language.monitoring(statement)) and monitoring[0]:
            self.monitored.append(monitoring[1])
        if self.is_commit(statement):
            self.commits += 1
            self.after_commit()
            self.committed = self.rows()
            if self.path != ":memory:" and self.is_time_to_reopen():
                self.reopen()
        return printed

    def is_commit(self, statement: str) -> bool:
        """AMOSQL leaves a transaction open until it is told to commit."""
        if self.language.name == "amosql":
            return COMMIT.fullmatch(statement) is not None
        return not self.db.in_transaction

    def before_statement(self) -> None:
        """Nothing, here."""

    def after_commit(self) -> None:
        """Nothing, here."""

    def expected_words(self, words: str) -> str:
        """What an error says in such a session."""
        return words

    def is_time_to_reopen(self) -> bool:
        """Not every time in a long script: a new session compiles all active rules again."""
        return self.commits in REOPENINGS

    def monitor(self, program: str) -> None:
        """Datalog has a directive for it, which other languages' views know as well."""
        self.monitored.append(program)
        self.db.run_program("datalog", program, lambda result: None)

    def reopen(self) -> None:
        variables, monitored = dict(self.db.variables), self.monitored
        self.db.close()
        self.db = harken.connect(self.path, **self.options)
        for name, value in variables.items():
            self.db.assign(name, value)
        self.monitored = []
        for program in monitored:
            self.monitor(program)

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
        return {name: sorted(each, key=repr) for name, each in rows.items()}


class LakeRunner(Runner):
    """One whose relations lie in the lake, some of it written, some pending, none at hand."""

    def __init__(
        self, path: str, language: Language, forced: str | None = None, **options: Any
    ) -> None:
        self.forced = forced
        super().__init__(path, language, engine="lake", **options)
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

    def expected_words(self, words: str) -> str:
        limit = ROUNDS_ON_SPARK if self.forced == "spark" else ROUND_LIMIT
        return words.replace(f"{ROUND_LIMIT} rounds", f"{limit} rounds")

    def after_commit(self) -> None:
        if self.is_time_to_reopen():
            lakes.check(self.db)
            self.db.flush()
            assert lakes.written(self.db) == lakes.state(self.db)

    def rows(self) -> dict[str, Any]:
        return super().rows() | {"lake": lakes.state(self.db)}


def check(runner: Runner, step: CaseStep) -> None:
    printed: Counter[str] = Counter()
    last = len(step.statements) - 1
    for number, statement in enumerate(step.statements):
        if step.fault is not None and number == last:
            check_fault(runner, step, statement)
        else:
            printed.update(without_number(line) for line in runner.run(statement))
    missing, unexpected = step.lines - printed, printed - step.lines
    assert printed == step.lines, (
        f"before line {step.line}: {list(missing)} missing, {list(unexpected)} unexpected"
    )
    for name in step.monitored:
        runner.monitor(f".monitor {name}")


def check_fault(runner: Runner, step: CaseStep, statement: str) -> None:
    before = runner.state()
    with pytest.raises(harken.HarkenError) as caught:
        runner.run(statement)
    error, place = caught.value, f"before line {step.line}"
    assert error.code == step.fault, f"{place}: {error.report()}"
    assert runner.expected_words(step.words) in error.report(), f"{place}: {error.report()}"
    assert error.span is not None, place
    assert 0 <= error.span.start <= error.span.end <= len(statement), place
    assert error.hint, place
    if error.code in UNDONE or COMMIT.fullmatch(statement):
        assert runner.rows() == runner.committed, f"{place}: the transaction left something behind"
    else:
        assert runner.state() == before, f"{place}: the statement failed, and changed something"


def without_number(line: str) -> str:
    """An object without a name prints with a number, which a script cannot know."""
    return re.sub(r"#\[(\w+) \d+\]", r"#[\1 ?]", line)


def language_of(case: Path) -> Language:
    language = language_of_suffix(case.suffix)
    assert language is not None, case.name
    return language


def run_case(case: Path, runner: Runner) -> None:
    try:
        for step in steps(case.read_text("utf-8"), runner.language):
            check(runner, step)
    finally:
        runner.db.close()
