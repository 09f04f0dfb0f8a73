"""Law: a program of Datalog has exactly the rows that trying everything finds, and a monitor tells
exactly the difference that a transaction makes."""

from __future__ import annotations

from random import Random

import pytest

import harken
from harken.planner import tabulate
from tests.generators.datalog_programs import Maker, RandomProgram, fact, text_of
from tests.models.datalog_interpreter import World, meaning

PROGRAMS, TABULATED, WATCHED, AT_ONCE = 216, 60, 24, 12
LONG = 20_000


def compare(seed: int, transactions: int) -> int:
    """Run a random program and so many random transactions, all of its derived relations watched;
    how many rows it has derived."""
    random = Random(seed)
    program = Maker(random).program()
    text = text_of(program, random)
    with harken.connect() as db:
        db.datalog(text)
        before = meaning(program)
        check(db, before, text, bool(seed % 2))
        changes = {name: db.monitor(name) for name in program.derived if transactions}
        for _ in range(transactions):
            script = transaction(program, random)
            db.datalog(script)
            text += f"\n{script}"
            after = meaning(program)
            for name, monitor in changes.items():
                told = [(set(each.plus), set(each.minus)) for each in monitor.changes()]
                wanted = (after[name] - before[name], before[name] - after[name])
                assert told == ([wanted] if any(wanted) else []), f"{text}\n{name}"
            check(db, after, text, bool(seed % 2))
            before = after
    return sum(len(before[name]) for name in program.derived)


def check(db: harken.Database, expected: World, text: str, apart: bool) -> None:
    """Relations are evaluated one by one, or all together."""
    texts = [f".output {name}" for name in expected]
    outputs = [each for one in (texts if apart else [" ".join(texts)]) for each in db.datalog(one)]
    for (name, rows), output in zip(expected.items(), outputs, strict=True):
        assert output.rows == sorted(rows), f"{text}\n{name}"


def transaction(program: RandomProgram, random: Random) -> str:
    """Facts that come and go, also some that are there already or are not."""
    maker = Maker(random)
    lines = []
    for name in program.stored:
        rows = program.facts[name]
        for row in sorted(maker.rows(program.columns[name], random.randint(0, 3)), key=repr):
            rows.add(row)
            lines.append(f"+{fact(name, row)}.")
        for row in sorted(rows, key=repr):
            if random.random() < 0.3:
                rows.discard(row)
                lines.append(f"-{fact(name, row)}.")
    return "\n".join(lines)


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_a_program_has_the_rows_that_trying_everything_finds(first: int) -> None:
    derived = [compare(seed, 0) for seed in range(first, first + AT_ONCE)]
    assert any(derived), "programs that derive nothing say nothing"


@pytest.mark.parametrize("first", range(0, TABULATED, AT_ONCE))
def test_relations_that_are_computed_first_have_the_same_rows(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise only long programs have any."""
    monkeypatch.setattr(tabulate, "LONG", 2)
    monkeypatch.setattr(tabulate, "SHARED", 0)
    for seed in range(first, first + AT_ONCE):
        compare(2 * seed + 1, 0)


@pytest.mark.parametrize("first", range(0, WATCHED, AT_ONCE))
def test_a_monitor_tells_the_difference(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        compare(seed, 2)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_many_programs_and_transactions() -> None:
    for seed in range(PROGRAMS, LONG):
        compare(seed, 2)
